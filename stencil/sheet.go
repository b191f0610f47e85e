package stencil

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
)

// A Sheet parses formulas over fields: expressions that also use the names of fields, numbers and other formulas, and
// the operators of a PDE (docs/reference/equations.md), which take expressions and may be nested. A power with an
// integer exponent up to 16 is computed as a chain of products, x^0.5 as sqrt(x), and operations on numbers are
// evaluated once, in float64. Everything else is computed as written, from left to right.
//
// Names must be declared before they are used. A Sheet is not safe for concurrent use.
type Sheet struct {
	b         builder
	axes      int // number of axes of the operators
	grid      Coordinates
	names     map[string]operand
	fields    []string
	arrays    int      // number of arrays that formulas read
	variables []string // names of numbers that may change

	// Files opens the file that file("NAME") or file("NAME", linear) names; nil: these calls are errors.
	Files func(name string, linear bool) (Rows, error)

	// Ignored are the terms that the bounds of the time step have ignored, which read fields only at the point.
	Ignored []string

	reads    reads
	made     map[int]call        // operator calls, by the steps that they produced
	previous int                 // with new values as formulas: array of the first field one step before; otherwise 0
	given    map[int]*Expression // expressions that depend only on coordinates, by step
}

// reads says what the texts that a Sheet parses may depend on.
type reads uint8

const (
	formulas    reads = iota // may use fields
	constants                // may not change
	expressions              // may use the time and noise, but no operators
)

// A call is the application of an operator to steps.
type call struct {
	name string
	args []int
}

// operand returns the argument that the operator differentiates.
func (c call) operand() int {
	switch c.name {
	case "div":
		return c.args[1]
	case "at":
		return c.args[0]
	}
	return c.args[len(c.args)-1]
}

// readLeaf is the leaf of a step that reads a field.
const readLeaf = "[]"

// NewSheet returns a sheet for a grid. The operators apply to the given number of axes.
func NewSheet(axes int, c Coordinates) *Sheet {
	return &Sheet{b: builder{folds: true}, axes: axes, grid: c, names: map[string]operand{},
		made: map[int]call{}, given: map[int]*Expression{}}
}

// declare declares a new name: a letter followed by letters, digits and "_". It returns an error if the name already
// has a meaning.
func (s *Sheet) declare(name string, o operand) error {
	_, known := s.names[name]
	_, function := functions[name]
	switch {
	case len(name) == 0 || length(name, func(r rune) bool { return isLetter(r) || isDigit(r) }) < len(name) ||
		isDigit(rune(name[0])):
		return fmt.Errorf("must be named with letters, digits and _, not %q", name)
	case function || slices.Contains(reserved, name) || slices.Contains(variableNames(), name) ||
		isOperator(name) || slices.Contains([]string{harmonic, noise, previous, file, linear}, name):
		s.names[name] = operand{s.b.number(1), o.kind} // so that formulas with the name cause no further errors
		return fmt.Errorf("must not be named %s, which has a meaning in formulas, as have %s, functions and operators: "+
			"take another name, such as %s0", name, list(variableNames()), name)
	case known:
		return fmt.Errorf("must not be named %s, which is the name of something else", name)
	}
	s.names[name] = o
	return nil
}

// Number declares a number.
func (s *Sheet) Number(name string, value float64) error {
	if !finite(value) {
		return fmt.Errorf("must be finite, got %v", value)
	}
	return s.declare(name, operand{at: s.b.number(value)})
}

// Variable declares a number that may change, see Scalars, with its initial value. Only formulas may use it.
func (s *Sheet) Variable(name string, value float64) error {
	if !finite(value) {
		return fmt.Errorf("must be finite, got %v", value)
	}
	s.variables = append(s.variables, name)
	return s.declare(name, operand{at: s.b.add(step{leaf: name, timed: true})})
}

// Field declares the next field, a named array. All fields must be declared before other arrays.
func (s *Sheet) Field(name string) error {
	s.fields = append(s.fields, name)
	return s.Name(name, s.Array())
}

// Name declares the name of an array.
func (s *Sheet) Name(name string, array int) error {
	return s.declare(name, operand{at: s.Read(array)})
}

// Array returns the number of a new array: 0, 1, and so on.
func (s *Sheet) Array() int {
	s.arrays++
	return s.arrays - 1
}

// Read returns the formula that reads an array at the point.
func (s *Sheet) Read(array int) int { return s.b.add(step{leaf: readLeaf, field: array, fields: true}) }

// Plus returns the formula a + factor*b.
func (s *Sheet) Plus(a int, factor float64, b int) int {
	if factor != 1 {
		b = s.times(factor, b)
	}
	return s.op(sum, a, b)
}

// Minus returns the formula a - b.
func (s *Sheet) Minus(a, b int) int { return s.op(difference, a, b) }

// Replace returns the formula with some of the arrays that it reads replaced by others.
func (s *Sheet) Replace(formula int, arrays map[int]int) int {
	return s.mapped(map[int]int{}, formula, func(leaf *step) {
		if array, ok := arrays[leaf.field]; ok && leaf.leaf == readLeaf {
			leaf.field = array
		}
	})
}

// Uses reports whether a formula depends on a name of what changes from step to step: t, dt, step or a variable.
func (s *Sheet) Uses(formula int, name string) (found bool) {
	s.walk(map[int]bool{}, formula, func(st *step) { found = found || st.op == nil && st.timed && st.leaf == name })
	return found
}

// mapped returns a step after changing its leaves.
func (s *Sheet) mapped(done map[int]int, at int, change func(leaf *step)) int {
	if to, ok := done[at]; ok {
		return to
	}
	st := s.b.steps[at]
	for i, a := range st.operands() {
		st.args[i] = s.mapped(done, a, change)
	}
	if st.op == nil {
		change(&st)
	}
	done[at] = s.b.add(st)
	return done[at]
}

// Updates makes formulas the new values of fields, so that they may use previous(u), the value of a field one step
// before. It declares an array with these values for each field.
func (s *Sheet) Updates() {
	s.previous = s.arrays
	s.arrays += len(s.fields)
}

// Let declares a name that stands for a formula. A steady formula does not depend on fields.
func (s *Sheet) Let(name, src string, steady bool) error {
	s.reads = formulas
	if steady {
		s.reads = constants
	}
	o, err := s.read(src, nil)
	if err == nil && steady {
		err = s.without(o.at, s.changing("t"))
	}
	if err != nil {
		o = operand{at: s.b.number(1)} // so that formulas that use the name cause no further errors
	}
	return cmp.Or(err, s.declare(name, o))
}

// Formula parses a formula and returns its number for Form.
func (s *Sheet) Formula(src string) (int, error) {
	s.reads = formulas
	o, err := s.read(src, &operand{})
	return o.at, err
}

// Lengths returns the formula part*dt*b, where dt is the length of a step, which may change.
func (s *Sheet) Lengths(part float64, b int) int {
	dt := s.b.add(step{leaf: ofSteps[0], timed: true})
	if part != 1 {
		dt = s.times(part, dt)
	}
	return s.op(product, dt, b)
}

// Steady is like Formula for a formula that does not depend on what changes from step to step.
func (s *Sheet) Steady(src string) (int, error) {
	tree, err := parseTree(src)
	if err != nil {
		return 0, err
	}
	return s.steady(src, tree, "the result")
}

// steady translates a number that does not depend on what changes from step to step.
func (s *Sheet) steady(src string, tree *node, what string) (int, error) {
	s.reads = formulas
	t := translator{builder: &s.b, source: src, scope: s}
	at := t.want(tree, number, what)
	if t.err == nil && !s.finite(at) {
		t.err = errNotFinite
	}
	s.walk(map[int]bool{}, at, func(st *step) {
		if t.err == nil && slices.Contains(s.changing("t", noise), st.leaf) {
			t.err = fmt.Errorf("must not depend on %s, which changes", st.leaf)
		}
	})
	return at, t.err
}

// Reduction parses a reduction of a formula over the grid, such as sum(u*v), by one of the functions. It returns the
// function and the number of the formula.
func (s *Sheet) Reduction(src string, functions ...string) (by string, formula int, err error) {
	tree, err := parseTree(src)
	if err != nil {
		return "", 0, err
	}
	if tree.kind != callNode || !slices.Contains(functions, tree.text) || len(tree.operands) != 1 {
		return "", 0, fmt.Errorf("must be %s of one formula, as %s(u)", list(functions), functions[0])
	}
	formula, err = s.steady(src, tree.operands[0], "what "+tree.text+" takes")
	return tree.text, formula, err
}

// Square returns the number of the square of a formula.
func (s *Sheet) Square(formula int) int { return s.op(product, formula, formula) }

var errNotFinite = errors.New("must not contain a non-finite number, such as 1/0")

// Expression parses an expression that may use names of the sheet, but no fields.
func (s *Sheet) Expression(src string) (*Expression, error) {
	at, err := s.Value(src)
	if err != nil {
		return nil, err
	}
	return s.extract(src, at), nil
}

// Value parses an expression like Expression, and returns its number for Ratio.
func (s *Sheet) Value(src string) (int, error) {
	s.reads = expressions
	o, err := s.read(src, &operand{})
	return o.at, cmp.Or(err, s.without(o.at, s.changing()))
}

// changing returns the names of numbers that may change, followed by others.
func (s *Sheet) changing(others ...string) []string {
	return slices.Concat(others, ofSteps, s.variables)
}

// without returns an error if a step depends on fields or on one of the names.
func (s *Sheet) without(root int, names []string) (err error) {
	if s.b.steps[root].fields {
		return errors.New("must not depend on fields")
	}
	s.walk(map[int]bool{}, root, func(st *step) {
		if slices.Contains(names, st.leaf) {
			err = fmt.Errorf("must not depend on %s, which changes: only equations and let may", st.leaf)
		}
	})
	return err
}

// read parses a text. If kind is not nil, the result must be of the same kind.
func (s *Sheet) read(src string, kind *operand) (o operand, err error) {
	tree, err := parseTree(src)
	if err != nil {
		return o, err
	}
	t := translator{builder: &s.b, source: src, scope: s}
	if kind != nil {
		o.at = t.want(tree, kind.kind, "the result")
	} else {
		o = t.node(tree)
	}
	if t.err == nil && !s.finite(o.at) {
		return o, errNotFinite
	}
	return o, t.err
}

// finite reports whether all numbers that a step depends on are finite.
func (s *Sheet) finite(root int) bool {
	ok := true
	s.walk(map[int]bool{}, root, func(st *step) { ok = ok && finite(st.value) })
	return ok
}

// walk calls f once for a step and for each step that it depends on.
func (s *Sheet) walk(seen map[int]bool, at int, f func(*step)) {
	if seen[at] {
		return
	}
	seen[at] = true
	st := s.b.steps[at]
	for _, a := range st.operands() {
		s.walk(seen, a, f)
	}
	f(&st)
}

// operands returns the operands of a step.
func (s *step) operands() []int {
	if s.op == nil {
		return nil
	}
	return s.args[:len(s.op.params)]
}

// extract returns a step that does not depend on fields as an expression.
func (s *Sheet) extract(src string, root int) *Expression {
	place := map[int]int{}
	e := &Expression{source: src}
	var add func(at int) int
	add = func(at int) int {
		to, ok := place[at]
		if ok {
			return to
		}
		st := s.b.steps[at]
		for i, a := range st.operands() {
			st.args[i] = add(a)
		}
		e.program.steps = append(e.program.steps, st)
		place[at] = len(e.program.steps) - 1
		return place[at]
	}
	e.program.root = add(root)
	return e
}

// listed implements scope.
func (s *Sheet) listed() (names, all []string) {
	names = slices.AppendSeq(names, maps.Keys(s.names))
	if s.reads == formulas {
		names = append(names, ofSteps...)
	}
	slices.Sort(names)
	all = slices.AppendSeq([]string{file, noise}, maps.Keys(operators))
	if s.previous > 0 {
		all = append(all, previous)
	}
	slices.Sort(all)
	return slices.Compact(names), all
}

// name implements scope.
func (s *Sheet) name(t *translator, n *node) (operand, bool) {
	if o, ok := s.names[n.text]; ok {
		if st := s.b.steps[o.at]; st.fields && s.reads == expressions {
			return t.fail(n, "%s depends on fields, which only equations may", n.text), true
		}
		return o, true
	}
	for a, size := range []string{"nx", "ny", "nz"} {
		if n.text == size {
			return operand{at: s.b.number(float64(s.grid.Size[a]))}, true
		}
	}
	switch {
	case n.text == "pi":
		return operand{at: s.b.number(math.Pi)}, true
	case n.text == "t" || s.reads == formulas && slices.Contains(ofSteps, n.text):
		return operand{at: s.b.add(step{leaf: n.text, timed: true})}, true
	case isOperator(n.text):
		return t.fail(n, "the operator %s needs its arguments in parentheses", n.text), true
	}
	if a := slices.Index([]string{"y", "j", "z", "k"}, n.text); a >= 0 && s.axes < 2+a/2 {
		return t.fail(n, "%s cannot be used on a grid of %d dimensions", n.text, s.axes), true
	}
	return operand{}, false
}

// call implements scope.
func (s *Sheet) call(t *translator, n *node) (operand, bool) {
	op, ok := operators[n.text]
	switch n.text {
	case noise:
		return s.noise(t, n), true
	case file:
		return s.file(t, n), true
	case previous:
		return s.before(t, n), true
	}
	if !ok {
		return operand{}, false
	}
	least, most := op.arguments(s.axes)
	count := len(n.operands)
	switch {
	case s.reads == expressions:
		return t.fail(n, "the operator %s can be used in equations only", n.text), true
	case count < least || count > most:
		return t.fail(n, "%s takes %s on a grid of %d dimensions, got %d arguments", n.text, op.takes, s.axes,
			count), true
	case s.axes < 2 && strings.Contains(n.text, "y") || s.axes < 3 && strings.Contains(n.text, "z"):
		return t.fail(n, "%s cannot be used on a grid of %d dimensions", n.text, s.axes), true
	}
	args := make([]int, count)
	for i, o := range n.operands {
		switch {
		case n.text == "div" && i == 2 && o.text == harmonic:
		case n.text == "div" && i == 2:
			return t.fail(o, "the third argument of div must be the word %s", harmonic), true
		default:
			args[i] = t.want(o, number, "an argument of "+n.text)
		}
		if st := s.b.steps[args[i]]; n.text == "at" && i > 0 && t.err == nil &&
			(st.op != nil || st.leaf != "" || st.value != math.Trunc(st.value) || math.Abs(st.value) > maxReach) {
			return t.fail(o, "the offsets of at must be whole numbers from -%d to %[1]d", maxReach), true
		}
	}
	if t.err != nil {
		return operand{}, true
	}
	at := op.translate(s, args)
	if _, known := s.made[at]; !known && s.b.steps[at].op != nil && s.b.steps[at].fields {
		s.made[at] = call{n.text, args}
	}
	if r := s.reach(at); max(r[0], r[1], r[2]) > maxReach {
		return t.fail(n, "operators must reach at most %d points from the point, and here reach %d: they nest too deep",
			maxReach, max(r[0], r[1], r[2])), true
	}
	return operand{at: at}, true
}

// before translates previous(u).
func (s *Sheet) before(t *translator, n *node) operand {
	if s.previous == 0 || s.reads != formulas {
		return t.fail(n, "previous can be used in update only")
	}
	if len(n.operands) == 1 {
		st := s.b.steps[t.want(n.operands[0], number, "the argument of previous")]
		if st.leaf == readLeaf && st.field < len(s.fields) && st.offset == (domain.Vec{}) {
			st.field += s.previous
			return operand{at: s.b.add(st)}
		}
	}
	return t.fail(n, "previous takes one argument, the name of a field")
}

// noise translates noise(seed).
func (s *Sheet) noise(t *translator, n *node) operand {
	if len(n.operands) == 1 {
		st := s.b.steps[t.want(n.operands[0], number, "the seed")]
		if st.op == nil && st.leaf == "" && st.value == math.Trunc(st.value) && 0 <= st.value && st.value <= 1<<53 {
			leaf := step{leaf: noise, value: st.value, varies: alongX | acrossX, timed: s.reads == formulas}
			return operand{at: s.b.add(leaf)}
		}
	}
	return t.fail(n, "noise takes one argument, its seed: a whole number of at least 0")
}

// file translates file("NAME") and file("NAME", linear).
func (s *Sheet) file(t *translator, n *node) operand {
	count := len(n.operands)
	if count < 1 || count > 2 || n.operands[0].kind != textNode ||
		count == 2 && (n.operands[1].kind != nameNode || n.operands[1].text != linear) {
		return t.fail(n, `file takes a name in quotes and perhaps the word linear, as file("u.npy", linear)`)
	}
	if s.Files == nil {
		return t.fail(n, "file cannot be used here: nothing opens files")
	}
	rows, err := s.Files(n.operands[0].text, count == 2)
	if err != nil {
		return t.fail(n, "%v", err)
	}
	return operand{at: s.b.add(step{leaf: file, rows: rows, varies: alongX | acrossX})}
}

// maxReach is the maximum distance from the point, along each axis, at which formulas may read.
const maxReach = 2

// reach returns the maximum distance at which a step reads fields along each axis.
func (s *Sheet) reach(root int) (r domain.Vec) {
	s.walk(map[int]bool{}, root, func(st *step) {
		if st.leaf == readLeaf {
			for a, d := range st.offset {
				r[a] = max(r[a], abs(d))
			}
		}
	})
	return r
}

// shift returns a step evaluated at an offset from the point.
func (s *Sheet) shift(at int, o domain.Vec) int {
	return s.mapped(map[int]int{}, at, func(leaf *step) {
		if axis, ok := axisOf(leaf.leaf); ok { // a coordinate does not change along other axes
			leaf.offset[axis] += o[axis]
		} else if leaf.fields || leaf.varies != fixed {
			leaf.offset = leaf.offset.Add(o)
		}
	})
}

// axisOf returns the axis of a coordinate or an index.
func axisOf(leaf string) (axis int, ok bool) {
	axis = strings.Index("xyzijk", leaf)
	return axis % 3, len(leaf) == 1 && axis >= 0
}

// along returns a step evaluated n points further along an axis.
func (s *Sheet) along(at, axis, n int) int {
	var o domain.Vec
	o[axis] = n
	return s.shift(at, o)
}

// ofSteps are the names by which formulas refer to numbers of a step: its length, and its number, from 1. A declared
// name takes precedence over them.
var ofSteps = []string{"dt", "step"}

// Words of formulas that are neither operators nor functions of numbers.
const (
	harmonic = "harmonic" // the third argument of div
	previous = "previous"
	linear   = "linear" // the second argument of file
)

// An operator is a finite difference of expressions. Below, xp is the value at the next point along x and xm the value
// at the previous one, up and um are these values along any axis, and h is the spacing.
type operator struct {
	takes       string                         // description of the arguments, for messages
	least, most int                            // minimum and maximum number of arguments
	perAxis     bool                           // one additional argument per axis
	translate   func(s *Sheet, args []int) int // converts a call to steps
}

func isOperator(name string) bool {
	_, ok := operators[name]
	return ok
}

// arguments returns the minimum and maximum number of arguments on a grid with the given number of axes.
func (o *operator) arguments(axes int) (least, most int) {
	if o.perAxis {
		return o.least + axes, o.most + axes
	}
	return o.least, o.most
}

// operators are the operators of formulas. All are of second order, except upwind, which is of first order.
var operators = func() map[string]operator {
	one := func(f func(s *Sheet, u int) int) operator {
		return operator{"1 argument", 1, 1, false, func(s *Sheet, args []int) int { return f(s, args[0]) }}
	}
	all := map[string]operator{
		"lap": one((*Sheet).laplacian), "grad2": one((*Sheet).gradient2),
		"div":    {takes: "k and u", least: 2, most: 3, translate: (*Sheet).divergence},
		"upwind": {takes: "a velocity per axis and u", least: 1, most: 1, perAxis: true, translate: (*Sheet).upwind},
		"at":     {takes: "u and an offset per axis", least: 1, most: 1, perAxis: true, translate: (*Sheet).at},
	}
	for a, name := range []string{"x", "y", "z"} {
		all["d"+name] = one(func(s *Sheet, u int) int { return s.centered(u, a) })
		all["d"+name+name] = one(func(s *Sheet, u int) int { return s.second(u, a) })
		for b := a + 1; b < 3; b++ {
			all["d"+name+"xyz"[b:b+1]] = one(func(s *Sheet, u int) int { return s.mixed(u, a, b) })
		}
	}
	return all
}()

// op adds an operation.
func (s *Sheet) op(op *operation, args ...int) int { return s.b.apply(op, args...) }

// times multiplies a step by a number.
func (s *Sheet) times(factor float64, at int) int { return s.op(product, s.b.number(factor), at) }

func (s *Sheet) inverse2(axis int) float64 { return 1 / (s.grid.Spacing[axis] * s.grid.Spacing[axis]) }

// laplacian adds the terms in the order of StarWeights, with the weights of a Laplacian: c*u + w*(xp + yp + zp + xm +
// ym + zm), or, if the spacings differ, c*u + wx*(xp + xm) + wy*(yp + ym) + wz*(zp + zm).
func (s *Sheet) laplacian(u int) int {
	h := s.grid.Spacing[:s.axes]
	if !equal(h) {
		center := 0.0
		for a := range h {
			center += s.inverse2(a)
		}
		all := s.times(-2*center, u)
		for a := range h {
			all = s.op(sum, all, s.times(s.inverse2(a), s.op(sum, s.along(u, a, 1), s.along(u, a, -1))))
		}
		return all
	}
	around := -1
	for _, n := range []int{1, -1} {
		for a := range h {
			if next := s.along(u, a, n); around < 0 {
				around = next
			} else {
				around = s.op(sum, around, next)
			}
		}
	}
	return s.op(sum, s.times(-float64(2*s.axes)*s.inverse2(0), u), s.times(s.inverse2(0), around))
}

// second is -2/h^2*u + 1/h^2*(up + um).
func (s *Sheet) second(u, axis int) int {
	return s.op(sum, s.times(-2*s.inverse2(axis), u),
		s.times(s.inverse2(axis), s.op(sum, s.along(u, axis, 1), s.along(u, axis, -1))))
}

// centered is 1/(2h)*(up - um).
func (s *Sheet) centered(u, axis int) int {
	return s.times(0.5/s.grid.Spacing[axis], s.op(difference, s.along(u, axis, 1), s.along(u, axis, -1)))
}

// mixed is 1/(4 ha hb)*((upp + umm) - (upm + ump)).
func (s *Sheet) mixed(u, a, b int) int {
	corner := func(m, n int) int { return s.along(s.along(u, a, m), b, n) }
	return s.times(0.25/(s.grid.Spacing[a]*s.grid.Spacing[b]),
		s.op(difference, s.op(sum, corner(1, 1), corner(-1, -1)), s.op(sum, corner(1, -1), corner(-1, 1))))
}

// gradient2 is dx(u)*dx(u) + dy(u)*dy(u) + ...
func (s *Sheet) gradient2(u int) int {
	return s.total(func(a int) int {
		d := s.centered(u, a)
		return s.op(product, d, d)
	})
}

// total returns the sum of one term per axis.
func (s *Sheet) total(term func(axis int) int) int {
	all := term(0)
	for a := 1; a < s.axes; a++ {
		all = s.op(sum, all, term(a))
	}
	return all
}

// divergence is the sum of 1/h^2*(kp*(up - u) - km*(u - um)), where kp and km are means of k at the point and its
// neighbor: 0.5*(k + k') or, if div has three arguments, 2*(k*k')/(k + k').
func (s *Sheet) divergence(args []int) int {
	k, u := args[0], args[1]
	face := func(axis, n int) int {
		other := s.along(k, axis, n)
		low, high := k, other
		if n < 0 {
			low, high = other, k
		}
		both := s.op(sum, low, high)
		if len(args) == 3 {
			return s.op(quotient, s.times(2, s.op(product, low, high)), both)
		}
		return s.times(0.5, both)
	}
	return s.total(func(a int) int {
		up := s.op(product, face(a, 1), s.op(difference, s.along(u, a, 1), u))
		down := s.op(product, face(a, -1), s.op(difference, u, s.along(u, a, -1)))
		return s.times(s.inverse2(a), s.op(difference, up, down))
	})
}

// upwind is the sum of 1/h*(max(a, 0)*(u - um) + min(a, 0)*(up - u)), where a is the velocity along the axis.
func (s *Sheet) upwind(args []int) int {
	u, zero := args[s.axes], s.b.number(0)
	return s.total(func(a int) int {
		from := s.op(product, s.op(greatest, args[a], zero), s.op(difference, u, s.along(u, a, -1)))
		to := s.op(product, s.op(least, args[a], zero), s.op(difference, s.along(u, a, 1), u))
		return s.times(1/s.grid.Spacing[a], s.op(sum, from, to))
	})
}

// at evaluates its first argument at the offset given by the other arguments.
func (s *Sheet) at(args []int) int {
	var o domain.Vec
	for a, n := range args[1:] {
		o[a] = int(s.b.steps[n].value)
	}
	return s.shift(args[0], o)
}
