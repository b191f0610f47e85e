package stencil

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
)

// A Form represents formulas of a Sheet as data. Each node depends only on nodes before it, all nodes are distinct, and
// all are used. Expressions that depend only on coordinates are not nodes: they are read like fields, see Given.
// Neither are expressions that depend only on the time, the step and numbers that may change: they are computed once
// per step, see Scalars.
type Form struct {
	Nodes   []Node        // in the order of their evaluation
	Results []int         // node of each formula
	Fields  []Footprint   // offsets from a point at which each array is read; nil: never
	Given   []Given       // constant fields
	Values  []*Expression // numbers that may change from step to step
	Stage   int           // index of the stage in its step, for which noise has separate values; default 0
	Size    [3]int        // points per axis of the grid

	// InPlace holds, for each result, the array that it replaces, which is read only at the point, or -1. A nil slice
	// counts as all -1.
	InPlace []int

	Variables []string // numbers that may change between runs, in the order of declaration
}

// A Node is a number, a value read at an offset, or an operation. The value of a condition is 1 if it holds, and 0
// otherwise.
type Node struct {
	Op        string // name of the function or operator as in expressions, "? :" for a choice; "" for a leaf
	Args      []int  // nodes of the operands
	Condition bool   // true if the node is a condition

	Read    int        // for a leaf that reads: index into Form.Fields followed by Form.Given; otherwise -1
	Offset  domain.Vec // offset of a leaf that reads or is noise
	Value   int        // for a leaf: 1-based index into Form.Values; otherwise 0
	Noise   bool       // true if the leaf is noise, different at each point and step
	Number  float64    // value of a leaf that is a number, or the seed of noise
	Name    string     // for a leaf of Scalars.Nodes that may change: t, dt, step or a variable; otherwise ""
	Uniform bool       // true if the leaf reads a constant field that has one value along each row
}

// Given is a constant field: an expression of coordinates that is read around a point. All forms of a sheet share it.
type Given struct {
	*Expression
	Reads Footprint // offsets from a point at which it is read
}

// VariesAlong reports whether the value can differ between points along an axis.
func (e *Expression) VariesAlong(axis int) bool {
	return slices.ContainsFunc(e.program.steps, func(s step) bool {
		a, coordinate := axisOf(s.leaf)
		return s.op == nil && s.varies != fixed && (!coordinate || a == axis)
	})
}

// Form returns formulas, given by their numbers, as data. Each formula is a result.
func (s *Sheet) Form(formulas ...int) *Form {
	f := &former{Sheet: s, form: &Form{Fields: make([]Footprint, s.arrays), Size: s.grid.Size, Variables: s.variables},
		place: map[int]int{},
		given: map[int]int{}}
	for _, root := range formulas {
		f.form.Results = append(f.form.Results, f.node(root))
	}
	sortReads := func(r *Footprint) { *r = Offsets(*r...) }
	for i := range f.form.Fields {
		sortReads(&f.form.Fields[i])
	}
	for i := range f.form.Given {
		sortReads(&f.form.Given[i].Reads)
	}
	return f.form
}

// Footprint returns the offsets at which any array is read.
func (f *Form) Footprint() (all Footprint) {
	for _, reads := range f.Fields {
		all = all.Join(reads)
	}
	for _, g := range f.Given {
		all = all.Join(g.Reads)
	}
	return all
}

// A former builds a form.
type former struct {
	*Sheet
	form  *Form
	place map[int]int // node of each step
	given map[int]int // index in Given of each step
}

// node returns the node of a step.
func (f *former) node(at int) int {
	if n, ok := f.place[at]; ok {
		return n
	}
	st := f.b.steps[at]
	n := Node{Read: -1, Number: st.value, Offset: st.offset}
	offset, one := f.offset(at)
	switch {
	case st.leaf == readLeaf:
		n.Read = st.field
		f.form.Fields[st.field] = append(f.form.Fields[st.field], st.offset)
	case st.leaf == noise && st.timed:
		n.Noise = true
	case !st.fields && st.timed && st.varies == fixed:
		f.form.Values = append(f.form.Values, f.extract("", at))
		n = f.condition(at, Node{Read: -1, Value: len(f.form.Values)})
	case !st.fields && !st.timed && st.varies != fixed && one:
		n = f.read(at, offset)
	case st.op != nil:
		n.Op, n.Condition = st.op.name, st.op.result == condition
		for _, a := range st.operands() {
			n.Args = append(n.Args, f.node(a))
		}
	}
	return f.add(at, n)
}

func (f *former) add(at int, n Node) int {
	f.form.Nodes = append(f.form.Nodes, n)
	f.place[at] = len(f.form.Nodes) - 1
	return f.place[at]
}

// read returns the node that reads a constant field, whose coordinates are all taken at the given offset.
func (f *former) read(at int, offset domain.Vec) Node {
	center := f.shift(at, domain.Vec{-offset[0], -offset[1], -offset[2]})
	which, ok := f.given[center]
	if !ok {
		which = len(f.form.Given)
		f.given[center] = which
		if f.Sheet.given[center] == nil {
			f.Sheet.given[center] = f.extract("", center)
		}
		f.form.Given = append(f.form.Given, Given{Expression: f.Sheet.given[center]})
	}
	g := &f.form.Given[which]
	g.Reads = append(g.Reads, offset)
	return f.condition(at, Node{Read: len(f.form.Fields) + which, Offset: offset, Uniform: !g.VariesAlong(0)})
}

// condition returns a node for the number n that was computed for a step. If the step is a condition, the node compares
// n with 0.
func (f *former) condition(at int, n Node) Node {
	if st := f.b.steps[at]; st.op == nil || st.op.result == number {
		return n
	}
	f.form.Nodes = append(f.form.Nodes, n, Node{Read: -1})
	last := len(f.form.Nodes) - 1
	return Node{Op: "!=", Args: []int{last - 1, last}, Condition: true, Read: -1}
}

// offset returns the offset at which a step takes all coordinates that it depends on, if there is only one.
func (f *former) offset(root int) (o domain.Vec, one bool) {
	var known [3]bool
	one = true
	f.walk(map[int]bool{}, root, func(st *step) {
		if st.op != nil || st.leaf == "" || st.varies == fixed {
			return
		}
		for a := range 3 {
			axis, ok := axisOf(st.leaf)
			if ok && axis != a {
				continue
			}
			one = one && (!known[a] || o[a] == st.offset[a])
			known[a], o[a] = true, st.offset[a]
		}
	})
	return o, one
}

// A term is the only field at an offset, or its Laplacian.
type term struct {
	lap    bool
	offset domain.Vec
}

// An affine represents a formula that is a number plus a sum of terms times numbers. For other formulas ok is false.
type affine struct {
	terms    map[term]float64
	constant float64
	ok       bool
}

// affineOf returns a step as an affine. known caches the results of earlier calls, because formulas share many steps.
func (s *Sheet) affineOf(known map[int]affine, at int) affine {
	a, ok := known[at]
	if !ok {
		a = s.newAffine(known, at)
		known[at] = a
	}
	return a
}

func (s *Sheet) newAffine(known map[int]affine, at int) affine {
	st := s.b.steps[at]
	if u, ok := s.ofField(at, "lap"); ok && u == 0 {
		return affine{map[term]float64{{lap: true}: 1}, 0, true}
	}
	if st.op == nil {
		if st.leaf == readLeaf && st.field == 0 {
			return affine{map[term]float64{{offset: st.offset}: 1}, 0, true}
		}
		return affine{nil, st.value, st.leaf == ""}
	}
	a, b := s.affineOf(known, st.args[0]), affine{ok: true}
	if len(st.op.params) > 1 {
		b = s.affineOf(known, st.args[1])
	}
	switch {
	case !a.ok || !b.ok:
		return affine{}
	case st.op == sum:
		return a.plus(1, b)
	case st.op == difference:
		return a.plus(-1, b)
	case st.op == negation:
		return affine{ok: true}.plus(-1, a)
	case st.op == product && len(a.terms) == 0:
		return affine{ok: true}.plus(a.constant, b)
	case st.op == product && len(b.terms) == 0:
		return affine{ok: true}.plus(b.constant, a)
	case st.op == quotient && len(b.terms) == 0:
		return affine{ok: true}.plus(1/b.constant, a)
	}
	return affine{}
}

// plus returns a + factor*b.
func (a affine) plus(factor float64, b affine) affine {
	all := maps.Clone(a.terms)
	if all == nil {
		all = map[term]float64{}
	}
	for t, f := range b.terms {
		all[t] += factor * f
	}
	return affine{all, a.constant + factor*b.constant, true}
}

// ofField returns the field that a step applies one of these operators to, if the step is nothing else.
func (s *Sheet) ofField(at int, names ...string) (field int, ok bool) {
	c, ok := s.made[at]
	if !ok || !slices.Contains(names, c.name) {
		return 0, false
	}
	u := s.b.steps[c.operand()]
	return u.field, u.leaf == readLeaf && u.offset == domain.Vec{}
}

// Linear returns the explicit Euler step u + dt*f of a formula f as a stencil, if f is a sum of numbers times
// differences of the only field. A number times lap(u) gives the stencil of Heat.
func (s *Sheet) Linear(formula int, dt float64) (Stencil, bool) {
	if len(s.fields) != 1 {
		return Stencil{}, false
	}
	a := s.affineOf(map[int]affine{}, formula)
	if !a.ok || a.constant != 0 {
		return Stencil{}, false
	}
	spacing := s.grid.Spacing[:s.axes]
	all, lap := Stencil{Dims: max(2, s.axes), Center: 1}, a.terms[term{lap: true}]
	if lap > 0 {
		heat, err := Heat(spacing, lap, dt)
		if err != nil {
			return Stencil{}, false
		}
		all = heat.Stencil()
	}
	weights := map[domain.Vec]float64{}
	for _, g := range all.Groups {
		for _, o := range g.Offsets() {
			weights[o] = g.Weight
		}
	}
	others := false
	for t, f := range a.terms {
		switch {
		case t.lap:
			others = others || f < 0
		case t.offset == domain.Vec{}:
			all.Center += dt * f
		case f != 0:
			weights[t.offset] += dt * f
			others = true
		}
	}
	if lap < 0 || len(weights) == 0 {
		return Stencil{}, false
	}
	if others {
		all.Groups = grouped(weights)
	}
	return all, all.Check() == nil
}

// grouped groups points by weight, x fastest.
func grouped(weights map[domain.Vec]float64) (groups []Group) {
	for _, o := range Offsets(slices.Collect(maps.Keys(weights))...) {
		at := slices.IndexFunc(groups, func(g Group) bool { return g.Weight == weights[o] })
		if at < 0 {
			at = len(groups)
			groups = append(groups, Group{weights[o], []Part{nil}})
		}
		groups[at].Parts[0] = append(groups[at].Parts[0], o)
	}
	return groups
}

// Stability is a diamond inside the stability region of a time integration method: |x|/Real + |y|/Imaginary <= 1 for x
// <= 0. The stability region of each method contains that of explicit Euler, a circle around -1.
type Stability struct {
	Real      float64 // largest stable step for u' = -u
	Imaginary float64 // largest stable step for u' = i u; 0: no step is stable
}

// StableStep returns a stable step of a method for the equation of a field. It considers the parts of the equation that
// are sums of numbers times lap, dxx, dyy, dzz, div, upwind and first differences of the field, whose coefficients are
// numbers or expressions of coordinates. For an expression, its largest value on the grid is used. Terms that read only
// the point itself are ignored, see Sheet.Ignored. If there are no differences, the result is +Inf.
//
// The second result is a bound that also considers a decay -r*u, where r is a number.
//
// Upwind differences of speed b are equivalent to centered differences plus a diffusivity |b|h/2. With diffusivity D
// and speed a per axis, the bound is the larger of the bound of Euler, min(1/sum(2D/h^2), 2/sum(a^2/D)), and 1/sum(X +
// sqrt(X^2 + Y^2)), where X = 2D/h^2/Real and Y = a/h/Imaginary.
func (s *Sheet) StableStep(formula, field int, m Stability) (stable, damped float64, err error) {
	b, err := s.bounds(formula, field)
	if err != nil {
		return 0, 0, err
	}
	rate, drift, both := 0.0, 0.0, 0.0
	for a, h := range s.grid.Spacing[:s.axes] {
		x, speed := 2*b.diffusivity[a]/(h*h)+b.upwind[a]/h, math.Abs(b.centered[a])+b.upwind[a]
		if rate += x; speed != 0 {
			drift += 2 * speed * speed / (x * h * h)
			both += math.Hypot(x/m.Real, speed/h/m.Imaginary)
		} else {
			both += x / m.Real
		}
		both += x / m.Real
	}
	disk := min(1/rate, 2/drift)
	if stable = max(1/both, disk); stable == 0 { // +Inf if there are no differences
		return 0, 0, errUnstable
	}
	decay := max(0, -b.growth) // both regions are convex, so the parts of the step that two terms take up add
	return stable, max(1/(both+decay/m.Real), 1/(1/disk+decay/2)), nil
}

// StableLeapfrog is like StableStep for a formula of the second derivative and the leapfrog method. No bound is known
// for first differences. If D is the square of the speed along each axis, the bound is 1/sqrt(sum(D/h^2)).
func (s *Sheet) StableLeapfrog(formula, field int) (stable, damped float64, err error) {
	b, err := s.bounds(formula, field)
	if err != nil {
		return 0, 0, err
	}
	all := 0.0
	for a, h := range s.grid.Spacing[:s.axes] {
		if b.centered[a] != 0 || b.upwind[a] != 0 {
			return 0, 0, ErrNoBound
		}
		all += b.diffusivity[a] / (h * h)
	}
	return 1 / math.Sqrt(all), 1 / math.Sqrt(all+max(0, -b.growth)/4), nil
}

// bounds returns the terms that bound the time step for the formula of a field.
func (s *Sheet) bounds(formula, field int) (*bounder, error) {
	b := &bounder{Sheet: s, field: field, factors: map[int]float64{formula: 1}}
	for at := formula; at >= 0; at-- { // a step comes after those that it depends on
		if factor, ok := b.factors[at]; ok {
			b.add(at, factor)
		}
	}
	for a := range s.axes {
		if b.diffusivity[a] < 0 {
			return nil, errBackward
		}
	}
	if b.other {
		return nil, ErrNoBound
	}
	return b, nil
}

// EulerBound returns the largest stable step of explicit Euler for a diffusivity of 1.
func (s *Sheet) EulerBound() float64 {
	rate := 0.0
	for a := range s.axes {
		rate += 2 * s.inverse2(a)
	}
	return 1 / rate
}

// ErrNoBound means that no stable step of an equation is known.
var ErrNoBound = errors.New("has differences for which no stable step is known, so that time.dt must be a number: known " +
	"are sums of differences of fields, times numbers or expressions of coordinates")

var (
	errBackward = errors.New("is unstable with any time step: it diffuses backward where a coefficient is negative")
	errUnstable = errors.New("is unstable with centered differences and integrators euler and rk2: use integrator " +
		"ssprk3 or rk4, write upwind(a, u) in place of a*dx(u), or add diffusion along that axis")
)

// atPoint reports whether a step reads fields only at the point, and no stored formulas.
func (s *Sheet) atPoint(root int) bool {
	ok := true
	s.walk(map[int]bool{}, root, func(st *step) {
		ok = ok && (st.leaf != readLeaf || st.field < len(s.fields) && st.offset == domain.Vec{})
	})
	return ok
}

// Ratio returns the quotient of two values as an expression. src is the text of the first.
func (s *Sheet) Ratio(src string, a, b int) *Expression {
	if s.b.steps[b] == (step{value: 1}) {
		return s.extract(src, a)
	}
	return s.extract("("+src+")/("+s.extract("", b).Text()+")", s.op(quotient, a, b))
}

// Diffusivity returns the value D of the diffusion D*lap(u), div(D, u) or D*dxx(u) of a field along an axis, if a
// formula has only one and D does not depend on fields. Terms that read only the point and first differences are no
// diffusion.
func (s *Sheet) Diffusivity(formula, field, axis int) (at int, ok bool) {
	found, ok := []int(nil), true
	second := func(name string) bool { return len(name) == 3 && name[1] == name[2] } // dxx, dyy or dzz
	var visit func(at, factor int)
	visit = func(at, factor int) {
		st := s.b.steps[at]
		of, alone := s.ofField(at, "lap", "div", "dxx", "dyy", "dzz")
		switch c := s.made[at]; {
		case s.noDiffusion(at):
		case alone && of == field && second(c.name) && c.name[1] != "xyz"[axis]:
		case alone && of == field && c.name == "div":
			found = append(found, s.scaled(factor, c.args[0]))
		case alone && of == field:
			found = append(found, factor)
		case st.op == sum || st.op == difference:
			visit(st.args[0], factor)
			if st.op == difference {
				factor = s.op(negation, factor)
			}
			visit(st.args[1], factor)
		case st.op == negation:
			visit(st.args[0], s.op(negation, factor))
		case st.op == product && !s.b.steps[st.args[0]].fields:
			visit(st.args[1], s.scaled(factor, st.args[0]))
		case st.op == product && !s.b.steps[st.args[1]].fields:
			visit(st.args[0], s.scaled(factor, st.args[1]))
		case st.op == quotient && !s.b.steps[st.args[1]].fields:
			visit(st.args[0], s.op(quotient, factor, st.args[1]))
		default:
			ok = false
		}
	}
	if visit(formula, s.b.number(1)); !ok || len(found) != 1 || s.without(found[0], s.changing(noise)) != nil {
		return 0, false
	}
	return found[0], true
}

// scaled returns a product without a factor of 1.
func (s *Sheet) scaled(factor, at int) int {
	if s.b.steps[factor] == (step{value: 1}) {
		return at
	}
	return s.op(product, factor, at)
}

// noDiffusion reports whether a step consists of values at the point and their first differences.
func (s *Sheet) noDiffusion(at int) bool {
	st := s.b.steps[at]
	switch c, made := s.made[at]; {
	case s.atPoint(at):
		return true
	case made:
		return (len(c.name) == 2 && c.name[0] == 'd' || c.name == "upwind" || c.name == "grad2") &&
			!slices.ContainsFunc(c.args, func(a int) bool { return !s.atPoint(a) })
	}
	return st.op != nil && !slices.ContainsFunc(st.operands(), func(a int) bool { return !s.noDiffusion(a) })
}

// A bounder accumulates the terms that bound the time step.
type bounder struct {
	*Sheet
	field                         int
	factors                       map[int]float64 // total factor of each step that was added
	diffusivity, upwind, centered [3]float64
	growth                        float64 // factor of the field itself
	other                         bool
}

// add adds a step multiplied by a factor.
func (b *bounder) add(at int, factor float64) {
	st := b.b.steps[at]
	c, made := b.made[at]
	local := b.atPoint(at)
	if local && (!st.fields || factor == 0) {
		return
	}
	var first, second float64
	var isFirst, isSecond bool
	if st.op == product || st.op == quotient {
		number := func(at int) (float64, bool) {
			if local { // other coefficients may have both signs
				return b.b.steps[at].value, b.isNumber(at)
			}
			value, _, known := b.largest(at)
			return value, known
		}
		first, isFirst = number(st.args[0])
		second, isSecond = number(st.args[1])
	}
	field, alone := b.ofField(at, slices.Collect(maps.Keys(operators))...)
	switch {
	case local && st.op == nil && st.field == b.field:
		b.growth += factor
	case made && alone && field == b.field:
		b.other = !b.addDifference(c, factor) || b.other
	case (made || st.op == nil) && !local:
		b.other = true
	case st.op == sum:
		b.factors[st.args[0]] += factor
		b.factors[st.args[1]] += factor
	case st.op == difference:
		b.factors[st.args[0]] += factor
		b.factors[st.args[1]] -= factor
	case st.op == negation:
		b.factors[st.args[0]] -= factor
	case st.op == product && isFirst:
		b.factors[st.args[1]] += factor * first
	case st.op == product && isSecond:
		b.factors[st.args[0]] += factor * second
	case st.op == quotient && b.isNumber(st.args[1]):
		b.factors[st.args[0]] += factor / second
	case local:
		b.ignore(factor, at)
	default:
		b.other = true
	}
}

// ignore adds a factor times a step to Ignored.
func (s *Sheet) ignore(factor float64, at int) {
	p := s.extract("", at).program
	for i := range p.steps {
		left := 8
		switch st := &p.steps[i]; {
		case st.leaf == readLeaf:
			st.leaf = s.fields[st.field]
		case st.op != nil && !st.fields && strings.Contains(p.text(i, &left), "..."): // a long coefficient
			*st = step{leaf: "(...)"}
		}
	}
	left := 20 // steps that are written
	text := p.text(p.root, &left)
	switch factor {
	case 1:
		text = bare(text)
	case -1:
		text = "-" + text
	default:
		text = fmt.Sprintf("%.6g * %s", factor, text)
	}
	if !slices.Contains(s.Ignored, text) {
		s.Ignored = append(s.Ignored, text)
	}
}

// addDifference adds an operator applied to the field. It returns false if no bound is known.
func (b *bounder) addDifference(c call, factor float64) bool {
	axis := strings.IndexByte("xyz", c.name[len(c.name)-1])
	switch {
	case c.name == "lap" || c.name == "div":
		if c.name == "div" {
			k, oneSign, known := b.largest(c.args[0])
			if !known {
				return false
			}
			if factor *= k; !oneSign {
				factor = -math.Abs(factor)
			}
		}
		for a := range b.axes {
			b.diffusivity[a] += factor
		}
	case len(c.name) == 3 && c.name[1] == c.name[2]: // dxx
		b.diffusivity[axis] += factor
	case len(c.name) == 2: // dx
		b.centered[axis] += factor
	case c.name == "upwind":
		for a, v := range c.args[:b.axes] {
			speed, _, known := b.largest(v)
			if !known {
				return false
			}
			b.upwind[a] += math.Abs(factor * speed)
		}
	default:
		return false
	}
	return true
}

func (s *Sheet) isNumber(at int) bool { return s.b.steps[at].op == nil && s.b.steps[at].leaf == "" }

// boundPoints is the approximate maximum number of points at which coefficients are evaluated for a bound. On larger
// grids, only some rows are evaluated.
const boundPoints = 1 << 24

// largest returns the value with the largest magnitude, over all points, of a step that depends only on coordinates,
// and whether all values have its sign or are 0. For other steps, known is false.
func (s *Sheet) largest(root int) (value float64, oneSign, known bool) {
	st := s.b.steps[root]
	switch {
	case s.isNumber(root):
		return st.value, true, true
	case s.without(root, s.changing("t", noise)) != nil || st.op != nil && st.op.result == condition:
		return 0, false, false
	}
	e := s.extract("", root)
	var used, every domain.Vec
	for a := range 3 {
		used[a], every[a] = 1, 1
		if e.Uses("xyz"[a:a+1]) || e.Uses("ijk"[a:a+1]) || e.Uses(file) {
			used[a] = s.grid.Size[a]
		}
	}
	for float64(used[0])*float64(ceil(used[1], every[1]))*float64(ceil(used[2], every[2])) > boundPoints &&
		max(every[1], every[2]) < max(used[1], used[2]) {
		every[1], every[2] = every[1]+1, every[2]+1
	}
	ev, row := e.NewEvaluator(s.grid), make([]float64, min(used[0], boundPoints))
	low, high := math.Inf(1), math.Inf(-1)
	for k := 0; k < used[2]; k += every[2] {
		for j := 0; j < used[1]; j += every[1] {
			ev.Row(row, 0, j, k)
			for _, v := range row {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if value = high; -low > high {
		value = low
	}
	known = finite(low) && finite(high)
	return value, known && (low >= 0 || high <= 0), known
}

func ceil(a, b int) int { return (a + b - 1) / b }
