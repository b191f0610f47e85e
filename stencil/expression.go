// Package stencil holds what a run computes, as data: stencils, which say how a point follows from its neighbours, and
// expressions, which say what a field is at the points of a grid.
package stencil

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// An Expression is a scalar field given as text: a formula in the coordinates x, y, z, the 0-based global indices
// i, j, k, the grid's sizes nx, ny, nz, the time t and pi. All arithmetic is in float64, so 1/2 is 0.5.
//
// It is immutable, and safe for concurrent use; each goroutine evaluates it through an Evaluator of its own.
type Expression struct {
	source  string
	program program
}

// Parse reads an expression, which must be a number, not a condition. parser.go has the grammar: numbers, the variables
// above, function calls, + - * / % (with the sign of its first operand), ^ or ** for powers, comparisons, and, or, not
// (also written &&, ||, !), the choices c ? a : b and if c { a } else { b }, and parentheses. There are no comments.
//
// An error is a *ParseError of one line, with the column and what is allowed there. Parse takes at most 4096 bytes.
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

// functionNames returns the functions that an expression may call, sorted.
func functionNames() []string { return slices.Sorted(maps.Keys(functions)) }

// functions are Go's math functions of the same name, except: log is the natural one; mod has the sign of its first
// argument, as % does; pow is ^; round goes away from zero at halves; sign is -1, 0 or 1, or NaN for NaN; min and max
// take two arguments or more, and give NaN if one of them is.
var functions = map[string]*operation{
	"abs": unary("abs", math.Abs), "sign": unary("sign", sign),
	"sqrt": unary("sqrt", math.Sqrt), "cbrt": unary("cbrt", math.Cbrt),
	"exp": unary("exp", math.Exp), "log": unary("log", math.Log),
	"log2": unary("log2", math.Log2), "log10": unary("log10", math.Log10),
	"sin": unary("sin", math.Sin), "cos": unary("cos", math.Cos), "tan": unary("tan", math.Tan),
	"asin": unary("asin", math.Asin), "acos": unary("acos", math.Acos), "atan": unary("atan", math.Atan),
	"sinh": unary("sinh", math.Sinh), "cosh": unary("cosh", math.Cosh), "tanh": unary("tanh", math.Tanh),
	"floor": unary("floor", math.Floor), "ceil": unary("ceil", math.Ceil), "round": unary("round", math.Round),
	"atan2": binary("atan2", math.Atan2), "hypot": binary("hypot", math.Hypot),
	"mod": modulo, "pow": power,
	"min": least, "max": greatest,
}

var binaryOperators = map[string]*operation{
	"+": sum, "-": difference, "*": product, "/": quotient, "%": modulo, "^": power,
	"and": both, "&&": both, "or": either, "||": either,
}

var comparisons = map[string]*operation{
	"<":  comparison("<", func(a, b float64) bool { return a < b }),
	"<=": comparison("<=", func(a, b float64) bool { return a <= b }),
	">":  comparison(">", func(a, b float64) bool { return a > b }),
	">=": comparison(">=", func(a, b float64) bool { return a >= b }),
	"==": comparison("==", func(a, b float64) bool { return a == b }),
	"!=": comparison("!=", func(a, b float64) bool { return a != b }),
}

// unaryOperators has no plus, which leaves no trace in a program.
var unaryOperators = map[string]*operation{"-": negation, "not": inversion, "!": inversion}

// A program is an expression as a list of steps. Each uses results of earlier steps only, and no two are the same, so
// that what is written twice is computed once. Both sides of a choice are computed: no operation has side effects.
type program struct {
	steps []step
	root  int // the step whose value is the expression's
}

// A step is an operation on earlier steps or, without one, a variable or a number. Steps are comparable.
type step struct {
	op     *operation // nil: a leaf
	args   [3]int     // the steps op works on
	leaf   string     // the variable's name; "": the number value
	value  float64
	varies variation
}

// A builder grows a program. The zero value is ready for use.
type builder struct {
	steps []step
	known map[step]int
}

// add gives the place of s in the program, where it may be already.
func (b *builder) add(s step) int {
	if at, ok := b.known[s]; ok {
		return at
	}
	if b.known == nil {
		b.known = map[step]int{}
	}
	b.steps = append(b.steps, s)
	b.known[s] = len(b.steps) - 1
	return len(b.steps) - 1
}

func (b *builder) number(value float64) int { return b.add(step{value: value}) }

func (b *builder) variable(v variable) int { return b.add(step{leaf: v.name, varies: v.varies}) }

// apply adds op on args. A square becomes a product, which takes a tenth of the time and has the same bits, if
// it is not subnormal.
func (b *builder) apply(op *operation, args ...int) int {
	if op == power && b.steps[args[1]] == (step{value: 2}) {
		op, args = product, []int{args[0], args[0]}
	}
	s := step{op: op}
	copy(s.args[:], args)
	for _, a := range args {
		s.varies |= b.steps[a].varies
	}
	return b.add(s)
}

// translate checks names, numbers of arguments and kinds, and turns the tree into a program.
func translate(src string, tree *node) (program, error) {
	t := translator{source: src}
	root := t.want(tree, number, "the result")
	if t.err != nil {
		return program{}, t.err
	}
	return program{steps: t.steps, root: root}, nil
}

// A translator is one translation. After the first error it continues, but its results mean nothing.
type translator struct {
	builder
	source string
	err    error
}

// An operand is a translated node.
type operand struct {
	at   int
	kind kind
}

func (t *translator) fail(n *node, format string, args ...any) operand {
	if t.err == nil {
		t.err = newParseError(t.source, n.at, format, args...)
	}
	return operand{at: t.number(0)}
}

// want translates n, which must be of that kind; role is what messages call it.
func (t *translator) want(n *node, k kind, role string) int {
	o := t.node(n)
	if o.kind != k && t.err == nil {
		t.fail(n, "%s must be %s, not %s%s", role, k, o.kind, conditionHint(k))
	}
	return o.at
}

func conditionHint(wanted kind) string {
	if wanted == number {
		return ": write c ? 1 : 0"
	}
	return ": write a comparison, such as x < 0.5"
}

func (t *translator) node(n *node) operand {
	switch n.kind {
	case numberNode:
		return operand{at: t.number(n.value)}
	case truthNode:
		return operand{t.number(n.value), condition}
	case nameNode:
		return t.name(n)
	case callNode:
		return t.call(n)
	case comparisonsNode:
		return t.comparisons(n)
	case choiceNode:
		return t.choice(n)
	}
	switch {
	case len(n.operands) == 2:
		return t.apply(binaryOperators[n.text], n.operands, "an operand of "+n.text)
	case n.text == "+":
		return operand{at: t.want(n.operands[0], number, "the operand of +")}
	}
	return t.apply(unaryOperators[n.text], n.operands, "the operand of "+n.text)
}

func (t *translator) name(n *node) operand {
	at := slices.IndexFunc(variables, func(v variable) bool { return v.name == n.text })
	if at >= 0 {
		return operand{at: t.variable(variables[at])}
	}
	if _, ok := functions[n.text]; ok {
		return t.fail(n, "the function %s needs its arguments in parentheses", n.text)
	}
	return t.fail(n, "unknown name %q: the variables are %s", n.text, list(variableNames()))
}

// comparisons translates a < b < c as a < b and b < c.
func (t *translator) comparisons(n *node) operand {
	var all, before int
	for i, o := range n.operands {
		value := t.want(o, number, "an operand of "+n.text)
		if i > 0 {
			one := t.builder.apply(comparisons[strings.Fields(n.text)[i-1]], before, value)
			if i == 1 {
				all = one
			} else {
				all = t.builder.apply(both, all, one)
			}
		}
		before = value
	}
	return operand{all, condition}
}

func (t *translator) choice(n *node) operand {
	op := choice
	holds := t.want(n.operands[0], condition, "what is chosen by")
	first := t.node(n.operands[1])
	if first.kind == condition {
		op = choiceOfConditions
	}
	second := t.want(n.operands[2], op.result, "the other choice")
	return operand{t.builder.apply(op, holds, first.at, second), op.result}
}

func (t *translator) call(n *node) operand {
	op, ok := functions[n.text]
	if !ok {
		return t.fail(n, "unknown function %q: the functions are %s", n.text, list(functionNames()))
	}
	if wanted, ok := arity(op, len(n.operands)); !ok {
		return t.fail(n, "%s takes %s, not %d", op.name, wanted, len(n.operands))
	}
	return t.apply(op, n.operands, "an argument of "+op.name)
}

// arity says how many arguments op takes, and whether n will do.
func arity(op *operation, n int) (wanted string, ok bool) {
	switch {
	case op.folds:
		return "2 arguments or more", n >= 2
	case len(op.params) == 1:
		return "1 argument", n == 1
	}
	return fmt.Sprintf("%d arguments", len(op.params)), n == len(op.params)
}

// apply translates op on nodes, as many as it takes; those beyond two of a folding operation are taken in one by one.
func (t *translator) apply(op *operation, nodes []*node, role string) operand {
	args := make([]int, len(nodes))
	for n, node := range nodes {
		args[n] = t.want(node, op.params[min(n, len(op.params)-1)], role)
	}
	at := t.builder.apply(op, args[:len(op.params)]...)
	for _, next := range args[len(op.params):] {
		at = t.builder.apply(op, at, next)
	}
	return operand{at, op.result}
}
