// Package stencil represents computations as data: stencils, which compute a point from its neighbors, and expressions,
// which define a scalar field at the points of a grid.
package stencil

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
)

// An Expression is a scalar field given as text: a formula in the coordinates x, y, z, the 0-based global indices
// i, j, k, the grid sizes nx, ny, nz, the time t and pi. All arithmetic is in float64, so 1/2 is 0.5.
//
// It is immutable and safe for concurrent use; each goroutine evaluates it through its own Evaluator.
type Expression struct {
	source  string
	program program
}

// Parse parses an expression, whose value must be a number, not a condition. The grammar is in parser.go: numbers,
// the variables above, function calls, + - * / % (with the sign of its first operand), ^ or ** for powers,
// comparisons, and, or, not (also written &&, ||, !), the choices c ? a : b and if c { a } else { b }, and
// parentheses. There are no comments.
//
// An error is a *ParseError of one line, with the column and what is allowed there. Parse accepts at most 4096
// bytes.
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

// String returns the text that the expression was parsed from.
func (e *Expression) String() string { return e.source }

// Uses reports whether the named variable occurs in the expression, even if it does not affect the value.
func (e *Expression) Uses(name string) bool {
	for _, s := range e.program.steps {
		if s.op == nil && s.leaf == name && name != "" {
			return true
		}
	}
	return false
}

// IsNumber reports whether the value is the same at all points and times.
func (e *Expression) IsNumber() bool { return !e.Varies() && !e.Uses("t") }

// Varies reports whether the value can differ between points, rather than depend only on the grid and the time.
func (e *Expression) Varies() bool { return e.program.steps[e.program.root].varies != fixed }

// functionNames returns the functions that an expression may call, sorted.
func functionNames() []string { return slices.Sorted(maps.Keys(functions)) }

// functions are Go's math functions of the same name, with these exceptions: log is the natural logarithm; mod has the
// sign of its first argument, like %; pow is ^; round rounds halves away from zero; sign is -1, 0 or 1, or NaN for NaN;
// min and max take two or more arguments, and return NaN if one of them is NaN.
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

// unaryOperators does not contain plus, because a unary plus adds no step to a program.
var unaryOperators = map[string]*operation{"-": negation, "not": inversion, "!": inversion}

// A program is an expression as a list of steps. Each step uses only results of earlier steps. No two steps are equal,
// so repeated subexpressions are computed once. Both branches of a choice are computed, because no operation has side
// effects.
type program struct {
	steps []step
	root  int // index of the step with the value of the expression
}

// A step is an operation on earlier steps or, if op is nil, a variable or a number. Steps are comparable.
type step struct {
	op     *operation // nil for a leaf
	args   [3]int     // indices of the operand steps
	leaf   string     // name of the variable; "" for the number value
	value  float64
	minus  bool // for a number: it is -0, which compares equal to 0
	varies variation

	// Only for formulas of a Sheet.
	field  int        // for a leaf that reads a field: its number
	rows   Rows       // for a leaf that is a file
	fields bool       // true if the step depends on fields
	timed  bool       // true if the step depends on the time, the step or a number that changes
	offset domain.Vec // for a leaf that varies: offset from the point
}

// Rows provides numbers at the points of a grid and around it, such as those of a file. Implementations must be safe
// for concurrent use and comparable.
type Rows interface {
	Row(dst []float64, at domain.Vec) // sets dst to the values along x, starting at a point; missing values are NaN
}

// A builder builds a program. The zero value is ready for use.
type builder struct {
	steps []step
	known map[step]int
	folds bool // for a Sheet: evaluate operations on numbers, and expand integer powers to products
}

// add returns the index of s in the program. It appends s if the program does not contain it.
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

func (b *builder) number(value float64) int {
	return b.add(step{value: value, minus: value == 0 && math.Signbit(value)})
}

func (b *builder) variable(v variable) int { return b.add(step{leaf: v.name, varies: v.varies}) }

// apply adds op on args. A square becomes a product, which takes a tenth of the time and is bitwise identical unless it
// is subnormal.
func (b *builder) apply(op *operation, args ...int) int {
	if at, ok := b.fold(op, args); b.folds && ok {
		return at
	}
	if op == power && b.steps[args[1]] == (step{value: 2}) {
		op, args = product, []int{args[0], args[0]}
	}
	s := step{op: op}
	copy(s.args[:], args)
	for _, a := range args {
		s.varies |= b.steps[a].varies
		s.fields, s.timed = s.fields || b.steps[a].fields, s.timed || b.steps[a].timed
	}
	return b.add(s)
}

// maxChain is the largest exponent of a power that is expanded to a chain of products.
const maxChain = 16

// fold returns the index of the result of an operation on numbers, or of the products that an integer power expands to.
func (b *builder) fold(op *operation, args []int) (at int, ok bool) {
	var values [3][1]float64
	folds := true
	for i, a := range args {
		values[i][0] = b.steps[a].value
		folds = folds && b.steps[a].op == nil && b.steps[a].leaf == ""
	}
	if folds {
		var dst [1]float64
		op.apply(dst[:], values[0][:], values[1][:], values[2][:])
		return b.number(dst[0]), true
	}
	if op != power || b.steps[args[1]].op != nil || b.steps[args[1]].leaf != "" {
		return 0, false
	}
	switch n := values[1][0]; {
	case n == 0.5:
		return b.apply(functions["sqrt"], args[0]), true
	case n != math.Trunc(n) || math.Abs(n) > maxChain:
		return 0, false
	case n < 0:
		return b.apply(quotient, b.number(1), b.chain(args[0], int(-n))), true
	default:
		return b.chain(args[0], int(n)), true
	}
}

// chain returns the n-th power: 1, x, x*x, x^2*x, x^2*x^2, x^4*x, x^3*x^3, ...
func (b *builder) chain(x, n int) int {
	switch {
	case n == 0:
		return b.number(1)
	case n == 1:
		return x
	case n%2 == 1:
		return b.apply(product, b.chain(x, n-1), x)
	}
	half := b.chain(x, n/2)
	return b.apply(product, half, half)
}

// translate checks names, numbers of arguments and kinds, and turns the tree into a program.
func translate(src string, tree *node) (program, error) {
	t := translator{builder: &builder{}, source: src}
	root := t.want(tree, number, "the result")
	if t.err != nil {
		return program{}, t.err
	}
	return program{steps: t.steps, root: root}, nil
}

// A translator holds the state of one translation. After the first error it continues, but its results are meaningless.
type translator struct {
	*builder
	source string
	scope  scope // nil for a plain expression
	err    error
}

// A scope defines names and operators in addition to the variables and functions of expressions.
type scope interface {
	name(t *translator, n *node) (operand, bool)
	call(t *translator, n *node) (operand, bool)
	listed() (names, operators []string) // names for messages
}

// listed returns the names and operators to list in messages.
func (t *translator) listed() (names, operators []string) {
	if t.scope != nil {
		names, operators = t.scope.listed()
	}
	return append(names, variableNames()...), append(operators, functionNames()...)
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

// want translates n, which must be of kind k. The role of n is used in messages.
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
	case textNode:
		return t.fail(n, "a text can only be the argument of file, as in file(\"u.npy\")")
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
	if t.scope != nil {
		if o, ok := t.scope.name(t, n); ok {
			return o
		}
	}
	at := slices.IndexFunc(variables, func(v variable) bool { return v.name == n.text })
	if at >= 0 {
		return operand{at: t.variable(variables[at])}
	}
	names, calls := t.listed()
	if slices.Contains(calls, n.text) {
		return t.fail(n, "the function %s needs its arguments in parentheses", n.text)
	}
	return t.fail(n, "unknown name %q%s", n.text, hint(n.text, names, "the variables are "))
}

// hint suggests the known word that is most similar to an unknown word, or lists all words. Words of fewer than three
// bytes are too short to compare.
func hint(word string, words []string, about string) string {
	meant := Nearest(word, words)
	if len(word) < 3 || distance(word, meant) > max(1, len(word)/3) {
		at := slices.IndexFunc(words, func(w string) bool { return len(w) > 2 && strings.HasPrefix(word, w) })
		if meant = ""; at >= 0 {
			meant = words[at]
		}
	}
	if meant != "" {
		return ", did you mean " + meant + "?"
	}
	return ": " + about + list(words)
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
	holds := t.want(n.operands[0], condition, "the first operand of a choice")
	first := t.node(n.operands[1])
	if first.kind == condition {
		op = choiceOfConditions
	}
	second := t.want(n.operands[2], op.result, "the other value of a choice")
	return operand{t.builder.apply(op, holds, first.at, second), op.result}
}

func (t *translator) call(n *node) operand {
	if t.scope != nil {
		if o, ok := t.scope.call(t, n); ok {
			return o
		}
	}
	op, ok := functions[n.text]
	if !ok {
		names, all := t.listed()
		if slices.Contains(names, n.text) {
			return t.fail(n, "%s is not a function: a product needs *, as in %[1]s*(x)", n.text)
		}
		if other := otherwise[n.text]; other != "" {
			return t.fail(n, "unknown function %q: write %s", n.text, other)
		}
		return t.fail(n, "unknown function %q%s", n.text, hint(n.text, all, "the functions are "))
	}
	if wanted, ok := arity(op, len(n.operands)); !ok {
		return t.fail(n, "%s takes %s, not %d", op.name, wanted, len(n.operands))
	}
	return t.apply(op, n.operands, "an argument of "+op.name)
}

// otherwise are the spellings of functions that other languages have.
var otherwise = map[string]string{
	"where": "c ? a : b", "select": "c ? a : b", "ifelse": "c ? a : b", "iif": "c ? a : b", "piecewise": "c ? a : b",
	"heaviside": "x > 0 ? 1 : 0", "ln": "log(x)", "fabs": "abs(x)", "arctan2": "atan2(y, x)", "clip": "min(max(x, a), b)",
	"gradient": "dx(u), dy(u) and dz(u)", "grad": "dx(u), dy(u) and dz(u)", "laplacian": "lap(u)", "rand": "noise(seed)",
}

// arity describes how many arguments op takes, and whether n is valid.
func arity(op *operation, n int) (wanted string, ok bool) {
	switch {
	case op.folds:
		return "2 arguments or more", n >= 2
	case len(op.params) == 1:
		return "1 argument", n == 1
	}
	return fmt.Sprintf("%d arguments", len(op.params)), n == len(op.params)
}

// apply translates op on nodes. If op folds, it is applied to more than two nodes from left to right.
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
