// Package stencil holds what a run computes, as data: stencils, which say how a point follows from its neighbours, and
// expressions, which say what a field is at the points of a grid.
package stencil

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

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

// A ParseError says why a text is not an expression. Its message is one line.
type ParseError struct {
	Line, Column int    // 1-based, in characters; 0 when it is about the whole text
	Message      string // what is wrong, and what is allowed
}

// Error puts the place before the message. The line is named only from the second on.
func (e *ParseError) Error() string {
	switch {
	case e.Line > 1:
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	case e.Column > 0:
		return fmt.Sprintf("column %d: %s", e.Column, e.Message)
	}
	return e.Message
}

// newParseError makes the error for the character at the 0-based offset into src.
func newParseError(src string, offset int, format string, args ...any) *ParseError {
	e := &ParseError{Line: 1, Column: 1, Message: fmt.Sprintf(format, args...)}
	for _, c := range src {
		if offset--; offset < 0 {
			break
		}
		if e.Column++; c == '\n' {
			e.Line, e.Column = e.Line+1, 1
		}
	}
	return e
}

// oneLine makes text from elsewhere fit for one printed line.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, text)
}

// list joins names for a message.
func list(names []string) string { return strings.Join(names, ", ") }

// A variation says with which coordinates a value changes. It decides how often a value is computed.
type variation uint8

const (
	alongX  variation = 1 << iota // with x: a row of values
	acrossX                       // with y or z: one value a row
	fixed   variation = 0         // with neither: one value for ever
)

// A variable is a name that stands for a value of the point, the grid or the moment.
type variable struct {
	name   string
	varies variation
}

// variables is in the order in which messages list them.
var variables = []variable{
	{"x", alongX}, {"y", acrossX}, {"z", acrossX},
	{"i", alongX}, {"j", acrossX}, {"k", acrossX},
	{"nx", fixed}, {"ny", fixed}, {"nz", fixed},
	{"t", fixed}, {"pi", fixed},
}

// variableNames returns the names that an expression may use.
func variableNames() []string {
	names := make([]string, len(variables))
	for n, v := range variables {
		names[n] = v.name
	}
	return names
}

// functionNames returns the functions that an expression may call, sorted.
func functionNames() []string { return slices.Sorted(maps.Keys(functions)) }

// functions are Go's math functions of the same name, but for: log is the natural one; mod has the sign of its first
// argument, as % does; pow is ^; round goes away from zero at halves; sign is -1, 0 or 1, or NaN for NaN; min and max
// take two arguments or more, and give NaN if one of them is.
var functions = map[string]*operation{
	"abs": unary("abs", math.Abs), "sign": unary("sign", sign),
	"sqrt": unary("sqrt", math.Sqrt), "cbrt": unary("cbrt", math.Cbrt),
	"exp": unary(
		"exp",
		math.Exp,
	), "log": unary("log", math.Log), "log2": unary("log2", math.Log2), "log10": unary("log10", math.Log10),
	"sin": unary("sin", math.Sin), "cos": unary("cos", math.Cos), "tan": unary("tan", math.Tan),
	"asin": unary("asin", math.Asin), "acos": unary("acos", math.Acos), "atan": unary("atan", math.Atan),
	"sinh": unary("sinh", math.Sinh), "cosh": unary("cosh", math.Cosh), "tanh": unary("tanh", math.Tanh),
	"floor": unary("floor", math.Floor), "ceil": unary("ceil", math.Ceil), "round": unary("round", math.Round),
	"atan2": binary("atan2", math.Atan2), "hypot": binary("hypot", math.Hypot),
	"mod": modulo, "pow": power,
	"min": least, "max": greatest,
}

// binaryOperators lists every spelling; what the library knows beyond them is refused.
var binaryOperators = map[string]*operation{
	"+": sum, "-": difference, "*": product, "/": quotient, "%": modulo, "^": power, "**": power,
	"<": comparison(
		"<",
		func(a, b float64) bool { return a < b },
	), "<=": comparison("<=", func(a, b float64) bool { return a <= b }),
	">": comparison(
		">",
		func(a, b float64) bool { return a > b },
	), ">=": comparison(">=", func(a, b float64) bool { return a >= b }),
	"==": comparison(
		"==",
		func(a, b float64) bool { return a == b },
	), "!=": comparison("!=", func(a, b float64) bool { return a != b }),
	"and": both, "&&": both, "or": either, "||": either,
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
//
// The library's own type checker is not asked: it tells integers from floats, and has types that a field has no use
// for.
func translate(src string, tree ast.Node) (program, error) {
	t := translator{source: src, seen: map[ast.Node]operand{}}
	root := t.want(tree, number, "the result")
	if t.err != nil {
		return program{}, t.err
	}
	return program{steps: t.steps, root: root}, nil
}

// A translator is one translation. After the first error it goes on, but its results mean nothing.
type translator struct {
	builder
	source string
	seen   map[ast.Node]operand // a < b < c shares b, and nested ones would double the work at every level
	err    error
}

// An operand is a translated node.
type operand struct {
	at   int
	kind kind
}

func (t *translator) fail(n ast.Node, format string, args ...any) operand {
	if t.err == nil {
		t.err = newParseError(t.source, n.Location().From, format, args...)
	}
	return operand{at: t.number(0)}
}

// want translates n, which must be of that kind; role is what messages call it.
func (t *translator) want(n ast.Node, k kind, role string) int {
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

func (t *translator) node(n ast.Node) operand {
	o, ok := t.seen[n]
	if !ok {
		o = t.fresh(n)
		t.seen[n] = o
	}
	return o
}

func (t *translator) fresh(n ast.Node) operand {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return operand{at: t.number(float64(n.Value))}
	case *ast.FloatNode:
		return operand{at: t.number(n.Value)}
	case *ast.BoolNode:
		return t.truth(n.Value)
	case *ast.IdentifierNode:
		return t.identifier(n)
	case *ast.UnaryNode:
		return t.unary(n)
	case *ast.BinaryNode:
		return t.binary(n)
	case *ast.ConditionalNode:
		return t.choice(n)
	case *ast.CallNode:
		return t.call(n)
	}
	return t.fail(n, "%s is not allowed: an expression has numbers, variables, functions and operators", describe(n))
}

func (t *translator) truth(value bool) operand {
	if value {
		return operand{t.number(1), condition}
	}
	return operand{t.number(0), condition}
}

func (t *translator) identifier(n *ast.IdentifierNode) operand {
	at := slices.IndexFunc(variables, func(v variable) bool { return v.name == n.Value })
	if at >= 0 {
		return operand{at: t.variable(variables[at])}
	}
	if _, ok := functions[n.Value]; ok {
		return t.fail(n, "the function %s needs its arguments in parentheses", n.Value)
	}
	return t.fail(n, "unknown name %q: the variables are %s", n.Value, list(variableNames()))
}

func (t *translator) unary(n *ast.UnaryNode) operand {
	if n.Operator == "+" {
		return operand{at: t.want(n.Node, number, "the operand of +")}
	}
	op, ok := unaryOperators[n.Operator]
	if !ok {
		return t.fail(n, "the operator %s is not allowed", n.Operator)
	}
	return t.apply(op, []ast.Node{n.Node}, "the operand of "+n.Operator)
}

func (t *translator) binary(n *ast.BinaryNode) operand {
	op, ok := binaryOperators[n.Operator]
	if !ok {
		return t.fail(n, "the operator %s is not allowed: + - * / %% ^ **, comparisons, and, or, not", n.Operator)
	}
	return t.apply(op, []ast.Node{n.Left, n.Right}, "an operand of "+n.Operator)
}

func (t *translator) choice(n *ast.ConditionalNode) operand {
	if n.Exp1 == n.Cond {
		return t.fail(n, "a ?: b is not allowed: write c ? a : b")
	}
	op := choice
	if t.node(n.Exp1).kind == condition {
		op = choiceOfConditions
	}
	cond := t.want(n.Cond, condition, "what is before ?")
	first := t.want(n.Exp1, op.result, "a choice")
	second := t.want(n.Exp2, op.result, "a choice beside "+op.result.String())
	return operand{t.builder.apply(op, cond, first, second), op.result}
}

func (t *translator) call(n *ast.CallNode) operand {
	callee, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		return t.fail(n, "a method call is not allowed: the functions are %s", list(functionNames()))
	}
	op, ok := functions[callee.Value]
	if !ok {
		return t.fail(n, "unknown function %q: the functions are %s", callee.Value, list(functionNames()))
	}
	if wanted, ok := arity(op, len(n.Arguments)); !ok {
		return t.fail(n, "%s takes %s, not %d", op.name, wanted, len(n.Arguments))
	}
	return t.apply(op, n.Arguments, "an argument of "+op.name)
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
func (t *translator) apply(op *operation, nodes []ast.Node, role string) operand {
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

// describe names what a node is, for a message.
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.StringNode, *ast.BytesNode:
		return "a string"
	case *ast.NilNode:
		return "nil"
	case *ast.ArrayNode, *ast.SliceNode:
		return "a list"
	case *ast.MapNode:
		return "a map"
	case *ast.MemberNode, *ast.ChainNode:
		return "a member or an index"
	case *ast.VariableDeclaratorNode:
		return "let"
	case *ast.SequenceNode:
		return "a sequence with ;"
	}
	return "this"
}

// maxLength is the longest expression accepted, in bytes. It bounds the depth of the tree as well.
const maxLength = 4096

// maxNodes bounds the nodes of a tree, and with them the scratch rows of an Evaluator.
const maxNodes = 1000

// parseTree gives the syntax tree of src, which is as yet unchecked.
func parseTree(src string) (ast.Node, error) {
	switch {
	case len(src) > maxLength:
		return nil, &ParseError{Message: fmt.Sprintf("it has %d bytes: at most %d are allowed", len(src), maxLength)}
	case !utf8.ValidString(src):
		return nil, &ParseError{Message: "it is not valid UTF-8"}
	case strings.TrimSpace(src) == "":
		return nil, &ParseError{Message: "it is empty: a number or a formula in " + list(variableNames())}
	}
	tree, err := parseGuarded(src)
	var at *file.Error
	switch {
	case err == nil:
		return tree, nil
	case errors.As(err, &at):
		return nil, newParseError(src, at.From, "%s", complaint(at.Message))
	}
	return nil, &ParseError{Message: oneLine(err.Error())}
}

// parseGuarded calls the library's parser. A defect of it that panics must cost its user this expression, not the run.
func parseGuarded(src string) (root ast.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be parsed: %v", p)
		}
	}()
	tree, err := parser.ParseWithConfig(src, parserConfig())
	if err != nil {
		return nil, err
	}
	return tree.Node, nil
}

// complaint is the parser's message in one line.
func complaint(message string) string {
	return strings.ReplaceAll(oneLine(message), "unexpected token EOF", "the expression ends too early")
}

// parserConfig makes every call an ordinary one. The library's own functions, some of which (map, filter) have a syntax
// of their own, are then unknown names like any other.
func parserConfig() *conf.Config {
	c := conf.CreateNew()
	c.MaxNodes = maxNodes
	for name := range builtin.Index {
		c.Functions[name] = &builtin.Function{Name: name}
	}
	for name := range functions {
		c.Functions[name] = &builtin.Function{Name: name}
	}
	return c
}
