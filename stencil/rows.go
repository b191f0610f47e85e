package stencil

import (
	"math"

	"github.com/halox/halox/domain"
)

// Coordinates defines the positions of the points of a grid, see At. A grid of two dimensions has size 1 on the third
// axis, and spacing 0 or shift 0.
type Coordinates struct {
	Spacing [3]float64 // distance between points, per axis
	Shift   [3]float64 // position of the first point, in spacings
	Size    [3]int     // points per axis of the whole grid: nx, ny, nz
	Time    float64    // the variable t; default 0
}

// At returns the position on an axis of the points with a 0-based index: (index + Shift) * Spacing. It is also defined
// outside the grid.
func (c *Coordinates) At(axis, index int) float64 {
	return (float64(index) + c.Shift[axis]) * c.Spacing[axis]
}

// An Evaluator computes an expression row by row. Subexpressions that do not depend on x are computed once per row.
// Subexpressions that depend only on x are computed once for all rows with the same position and length. Subexpressions
// that depend on no coordinate are computed once.
//
// The value at a point is bitwise identical in every row that contains the point. An Evaluator holds scratch rows and
// is not safe for concurrent use.
type Evaluator struct {
	program program
	grid    Coordinates
	order   [4][]int // steps by their variation
	spread  [4][]int // steps with one value per row that are operands of a step with a row of values

	named   map[string]float64 // for a Sheet: values of names that are not variables
	scalars []float64          // values of steps that do not vary along x
	rows    [][]float64        // values of steps that vary along x, and of spread steps; otherwise nil
	first   int                // index on x of the first point of the rows
	length  int                // length of the rows; 0 before the first call
	row     [2]int             // y and z of the current row
}

// NewEvaluator prepares the expression for a grid at the time of its coordinates.
func (e *Expression) NewEvaluator(c Coordinates) *Evaluator {
	v := &Evaluator{program: e.program, grid: c, scalars: make([]float64, len(e.program.steps))}
	v.sortSteps()
	v.evaluateScalars(fixed, 0, 0)
	return v
}

// SetTime sets the time. It does not allocate.
func (v *Evaluator) SetTime(t float64) {
	v.grid.Time = t
	v.evaluateScalars(fixed, 0, 0)
	if v.length > 0 {
		v.spreadScalars(fixed)
		v.evaluateRows(alongX)
	}
}

// sortSteps groups the steps by how often they are computed.
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

// At returns the value at one point. For many points, Row is much faster.
func (v *Evaluator) At(i, j, k int) float64 {
	var dst [1]float64
	v.Row(dst[:], i, j, k)
	return dst[0]
}

// Row sets dst[n] to the value at the point (i0+n, j, k). The indices may be outside the grid, for example for boundary
// values.
func (v *Evaluator) Row(dst []float64, i0, j, k int) {
	if len(dst) == 0 {
		return
	}
	v.row = [2]int{j, k}
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

// place moves the rows to i0, sets their length, and computes the values that all such rows share.
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

// allocate allocates a row of the given length for every step that needs one.
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
		v.leafRow(v.rows[at], s)
	}
}

// leafRow sets dst to the values of x, i, noise or a file. No other leaves vary along x.
func (v *Evaluator) leafRow(dst []float64, s *step) {
	if s.leaf == file {
		s.rows.Row(dst, domain.Vec{v.first, v.row[0], v.row[1]})
		return
	}
	at := func(i int) float64 { return float64(i) }
	switch s.leaf {
	case "x":
		at = func(i int) float64 { return v.grid.At(0, i) }
	case noise:
		at = func(i int) float64 { return uniform(uint64(s.value), i, v.row[0], v.row[1]) }
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
	if value, ok := v.named[name]; ok {
		return value
	}
	return math.Pi
}

func fill(dst []float64, value float64) {
	for n := range dst {
		dst[n] = value
	}
}
