package stencil

import "math"

// Coordinates say where the points of a grid are, see At. A grid of two dimensions has size 1, and spacing 0 or shift
// 0, on the third axis.
type Coordinates struct {
	Spacing [3]float64
	Shift   [3]float64 // from 0 to the first point, in spacings
	Size    [3]int     // points on each axis of the whole grid: nx, ny, nz
	Time    float64    // t
}

// At returns where the points of a 0-based index lie on an axis: at (index + Shift) * Spacing. Those outside the grid
// have their places too.
func (c *Coordinates) At(axis, index int) float64 {
	return (float64(index) + c.Shift[axis]) * c.Spacing[axis]
}

// An Evaluator computes an expression row by row. What does not depend on x is computed once a row, what depends on
// nothing but x once for all rows of the same place and length, and what depends on neither once.
//
// The value at a point has the same bits whatever row it is computed in. An Evaluator holds scratch rows: it is not
// safe for concurrent use.
type Evaluator struct {
	program program
	grid    Coordinates
	order   [4][]int // the steps by their variation
	spread  [4][]int // the steps with one value a row that a step with a row of values uses

	scalars []float64   // the values of steps that do not vary along x
	rows    [][]float64 // the values of steps that do, and of those that are spread; else nil
	first   int         // the index on x at which rows begin
	length  int         // of the rows; 0 before the first call
}

// NewEvaluator prepares the expression for a grid at one moment.
func (e *Expression) NewEvaluator(c Coordinates) *Evaluator {
	v := &Evaluator{program: e.program, grid: c, scalars: make([]float64, len(e.program.steps))}
	v.sortSteps()
	v.evaluateScalars(fixed, 0, 0)
	return v
}

// SetTime moves the evaluator to another moment. It allocates nothing.
func (v *Evaluator) SetTime(t float64) {
	v.grid.Time = t
	v.evaluateScalars(fixed, 0, 0)
	if v.length > 0 {
		v.spreadScalars(fixed)
		v.evaluateRows(alongX)
	}
}

// sortSteps files the steps under how often they have to be computed.
func (v *Evaluator) sortSteps() {
	steps := v.program.steps
	spread := make([]bool, len(steps))
	for _, s := range steps {
		if s.op == nil || s.varies&alongX == 0 {
			continue
		}
		for _, a := range s.args[:len(s.op.params)] {
			spread[a] = steps[a].varies&alongX == 0
		}
	}
	for at, s := range steps {
		v.order[s.varies] = append(v.order[s.varies], at)
		if spread[at] {
			v.spread[s.varies] = append(v.spread[s.varies], at)
		}
	}
}

// At returns the value at one point. For many points Row is much faster.
func (v *Evaluator) At(i, j, k int) float64 {
	var dst [1]float64
	v.Row(dst[:], i, j, k)
	return dst[0]
}

// Row sets dst[n] to the value at the point (i0+n, j, k). The indices may lie outside the grid, as those of walls do.
func (v *Evaluator) Row(dst []float64, i0, j, k int) {
	if len(dst) == 0 {
		return
	}
	root := v.program.root
	varies := v.program.steps[root].varies
	if varies&alongX != 0 {
		v.place(i0, len(dst))
	}
	v.evaluateScalars(acrossX, j, k)
	switch varies {
	case fixed, acrossX:
		fill(dst, v.scalars[root])
	case alongX:
		copy(dst, v.rows[root])
	default:
		v.rows[root] = dst
		v.spreadScalars(acrossX)
		v.evaluateRows(alongX | acrossX)
		v.rows[root] = nil
	}
}

// place makes the rows begin at i0 with that length, and computes what is the same in all such rows.
func (v *Evaluator) place(i0, length int) {
	if v.length == length && v.first == i0 {
		return
	}
	if v.length != length {
		v.allocate(length)
		v.spreadScalars(fixed)
	}
	v.first, v.length = i0, length
	v.evaluateRows(alongX)
}

// allocate gives every step that needs one a row of that length.
func (v *Evaluator) allocate(length int) {
	v.rows = make([][]float64, len(v.program.steps))
	for _, steps := range [][]int{v.order[alongX], v.order[alongX|acrossX], v.spread[fixed], v.spread[acrossX]} {
		for _, at := range steps {
			v.rows[at] = make([]float64, length)
		}
	}
}

func (v *Evaluator) spreadScalars(varies variation) {
	for _, at := range v.spread[varies] {
		fill(v.rows[at], v.scalars[at])
	}
}

func (v *Evaluator) evaluateRows(varies variation) {
	for _, at := range v.order[varies] {
		s := &v.program.steps[at]
		if s.op != nil {
			s.op.apply(v.rows[at], v.rows[s.args[0]], v.rows[s.args[1]], v.rows[s.args[2]])
			continue
		}
		v.leafRow(v.rows[at], s.leaf)
	}
}

// leafRow sets dst to the values of x or i, the only variables that vary along x.
func (v *Evaluator) leafRow(dst []float64, name string) {
	at := func(i int) float64 { return float64(i) }
	if name == "x" {
		at = func(i int) float64 { return v.grid.At(0, i) }
	}
	for n := range dst {
		dst[n] = at(v.first + n)
	}
}

func (v *Evaluator) evaluateScalars(varies variation, j, k int) {
	scalar := func(at int) []float64 { return v.scalars[at : at+1] }
	for _, at := range v.order[varies] {
		s := &v.program.steps[at]
		switch {
		case s.op != nil:
			s.op.apply(scalar(at), scalar(s.args[0]), scalar(s.args[1]), scalar(s.args[2]))
		case s.leaf == "":
			v.scalars[at] = s.value
		default:
			v.scalars[at] = v.leaf(s.leaf, j, k)
		}
	}
}

// leaf returns the value of a variable that does not vary along x.
func (v *Evaluator) leaf(name string, j, k int) float64 {
	g := &v.grid
	switch name {
	case "y":
		return g.At(1, j)
	case "z":
		return g.At(2, k)
	case "j":
		return float64(j)
	case "k":
		return float64(k)
	case "nx":
		return float64(g.Size[0])
	case "ny":
		return float64(g.Size[1])
	case "nz":
		return float64(g.Size[2])
	case "t":
		return g.Time
	}
	return math.Pi
}

func fill(dst []float64, value float64) {
	for n := range dst {
		dst[n] = value
	}
}
