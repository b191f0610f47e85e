// Package stencil holds what a run computes, as data: stencils, which say how a point follows from its neighbours, and
// expressions, which say what a field is at the points of a grid.
package stencil

// An Expression is a scalar field given as text: a formula in the coordinates x, y, z, the 0-based global indices
// i, j, k, the grid's sizes nx, ny, nz, the time t and pi. All arithmetic is in float64, so 1/2 is 0.5.
//
// It is immutable, and safe for concurrent use; each goroutine evaluates it through an Evaluator of its own.
type Expression struct {
	source  string
	program program
}

// Parse reads an expression. A number alone is an expression too. The result has to be a number, not a condition.
//
// Operators are + - * / % (the sign of the first operand), ^ and ** (powers), comparisons, and, or, not, && || !, and
// the choices c ? a : b and if c { a } else { b }. An error about a name lists those that there are.
//
// What is wrong comes back as a *ParseError: one line with the column and what is allowed. Parse never panics; it takes
// at most 4096 bytes.
func Parse(src string) (*Expression, error) {
	tree, err := parseTree(src)
	if err != nil {
		return nil, err
	}
	p, err := translate(src, tree)
	if err != nil {
		return nil, err
	}
	return &Expression{source: src, program: p}, nil
}

// String returns the text the expression was parsed from.
func (e *Expression) String() string { return e.source }

// Uses reports whether the variable of that name occurs in the expression, even where its value does not matter.
func (e *Expression) Uses(name string) bool {
	for _, s := range e.program.steps {
		if s.op == nil && s.leaf == name && name != "" {
			return true
		}
	}
	return false
}

// Varies reports whether the value can change from point to point, and not only with the grid and the time.
func (e *Expression) Varies() bool { return e.program.steps[e.program.root].varies != fixed }
