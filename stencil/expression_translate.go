package stencil

import (
	"fmt"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// translate checks names, numbers of arguments and kinds, and turns the tree into a program.
//
// The library's own type checker is not asked: it tells integers from floats, and has types that a field has no use for.
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
