package solvers

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/stencil"
)

// source evaluates the field after some steps, including ghosts, for one goroutine. Rows and single points have
// separate evaluators, because an evaluator caches the parts that are equal in all rows of one length.
type source[T float32 | float64] struct {
	problem *Problem
	reach   domain.Vec
	bad     *atomic.Pointer[notFinite]
	rows    [7]*stencil.Evaluator // boundary values by face, then the initial field
	points  [7]*stencil.Evaluator
	buffer  []float64
	ghosts  bool // only the values of walls are evaluated; points are 0
}

// initialField is the index of the initial field among the evaluators.
const initialField = 6

// newSource returns a source after n steps. It stores the first value that is non-finite in T in bad, see
// notFinite.precedes.
func newSource[T float32 | float64](p *Problem, bad *atomic.Pointer[notFinite], n int64) *source[T] {
	s := &source[T]{problem: p, reach: p.reach().Plus, bad: bad}
	c := p.coordinates(n)
	for i, e := range append(p.values(), p.Initial) {
		if e != nil {
			s.rows[i], s.points[i] = e.NewEvaluator(c), e.NewEvaluator(c)
		}
	}
	return s
}

// values returns, for each wall that sets the values of ghosts, the expression of the values; nil for other walls.
func (p *Problem) values() []*stencil.Expression {
	v := make([]*stencil.Expression, len(p.Boundary))
	for i := range domain.Faces(p.Grid.Dims) {
		if p.Boundary[i].sets() {
			v[i] = p.Boundary[i].Value
		}
	}
	return v
}

// row is a halo.Row. The points of a row between the boundaries of x are one run; ghosts beyond them are
// evaluated separately.
func (s *source[T]) row(values []T, at domain.Vec) {
	if cap(s.buffer) < len(values) {
		s.buffer = make([]float64, len(values))
	}
	n := s.problem.Grid.Size[0]
	for len(values) > 0 {
		which, q := s.problem.resolve(at, s.reach)
		run, from := 1, &s.points
		if at[0] >= 0 && at[0] < n {
			run, from = min(len(values), n-at[0]), &s.rows
		}
		if s.ghosts && which == initialField {
			clear(values[:run])
			values, at[0] = values[run:], at[0]+run
			continue
		}
		from[which].Row(s.buffer[:run], q[0], q[1], q[2])
		for i, v := range s.buffer[:run] {
			values[i] = T(v)
			if f := float64(values[i]); math.IsNaN(f) || math.IsInf(f, 0) {
				s.reportNotFinite(which, at.Add(domain.Vec{i}), v)
			}
		}
		values, at[0] = values[run:], at[0]+run
	}
}

// reportNotFinite stores a non-finite value, unless one that precedes it is stored.
func (s *source[T]) reportNotFinite(which int, at domain.Vec, v float64) {
	found := notFinite{which, at, v}
	for known := s.bad.Load(); known == nil || found.precedes(known); known = s.bad.Load() {
		if kept := found; s.bad.CompareAndSwap(known, &kept) {
			return
		}
	}
}

// ErrNotFinite reports a non-finite initial value or value of a wall.
var ErrNotFinite = boundary.ErrNotFinite

// notFinite is a non-finite value.
type notFinite struct {
	which int // index of the evaluator
	at    domain.Vec
	value float64
}

// precedes reports whether a value comes before another: in the order of the grid, x fastest, and along each axis the
// ghosts after the points of the grid, nearest first. The reported value therefore does not depend on which goroutine
// finds one first.
func (n *notFinite) precedes(other *notFinite) bool {
	for a := 2; a >= 0; a-- {
		if i, j := n.at[a], other.at[a]; i != j {
			return i >= 0 && (j < 0 || i < j) || j < 0 && i > j
		}
	}
	return false
}

// fault is the error for the value.
func (p *Problem) fault(v *notFinite) error {
	what := "initial"
	if v.which != initialField {
		what = fmt.Sprintf("the value at face %v", domain.Faces(3)[v.which])
	}
	switch {
	case p.Initial.String() == "": // the expression was not written by a user
		what = fmt.Sprintf("%s, a part of the formulas that depends on coordinates alone,", p.Initial.Text())
	case p.name != "":
		what += " of " + p.name
	}
	return fmt.Errorf("solvers: %s is %v at point %v, which is %w in %s", what, v.value, v.at, ErrNotFinite, p.Element)
}

// inExact is the error for a value of an exact solution after a number of steps.
func (n *notFinite) inExact(steps int64) error {
	return fmt.Errorf("solvers: exact is %v at point %v after %d steps, which is not finite", n.value, n.at, steps)
}

// resolve returns the evaluator that gives the value at a point, owned or ghost, and the point at which to evaluate it.
// See BoundaryKind for edges and corners. Second layers behind Dirichlet walls are set before each step. Ghosts behind
// a wall that are deeper than the radius of the stencil, which exist if ghosts of neighbors are swept, are never read;
// they have the value of the deepest ghost that is read. Ghosts computed from points and values are set when a run
// begins.
func (p *Problem) resolve(at, reach domain.Vec) (which int, q domain.Vec) {
	which = initialField
	for a := range p.Grid.Dims {
		n, face := p.Grid.Size[a], 2*a
		if !p.Grid.Periodic[a] {
			at[a] = min(max(at[a], -reach[a]), n-1+reach[a])
		}
		if at[a] >= 0 && at[a] < n {
			continue
		}
		if at[a] >= n {
			face++
		}
		c := boundary.Condition{Kind: p.Boundary[face].Kind, Half: p.Boundary[face].Half}
		from, copied := c.Source(max(-1-at[a], at[a]-n))
		switch {
		case c.Kind == Periodic:
			at[a] = (at[a] + n) % n
		case copied && at[a] < 0:
			at[a] = from
		case copied:
			at[a] = n - 1 - from
		case p.Boundary[face].sets():
			which = face
		}
	}
	return which, at
}

// fill sets the field to its values at step 0, or only the ghosts that have values of walls. It returns an error if a
// value is not finite or if the context ends.
func fill[T float32 | float64](ctx context.Context, f *halo.Field, p *Problem, ghosts bool) error {
	var bad atomic.Pointer[notFinite]
	err := halo.FillContext(ctx, f, func(int) halo.Row[T] {
		s := newSource[T](p, &bad, 0)
		s.ghosts = ghosts
		return s.row
	})
	if err != nil {
		return err
	}
	if found := bad.Load(); found != nil {
		return p.fault(found)
	}
	return nil
}

// Deviation is the difference between a field and an exact solution.
type Deviation struct {
	L2  float64 // square root of the sum of squares times the product of the spacings
	Max float64 // largest absolute difference
}

// chunkPoints is the number of points that are compared at a time.
const chunkPoints = 1 << 22

// ownedPoints returns the points of a box. If processes share the grid, only rank 0 gets them.
func ownedPoints[T float32 | float64](f *halo.Field, box domain.Box) (values []T, err error) {
	if p := f.Placement.Processes; p.IsAlone() || p.Rank == 0 {
		values = make([]T, box.Points())
	}
	return values, halo.Gather(context.Background(), values, f, box, 0)
}

// deviation compares all owned points with the expression at time t, after n steps. It continues after an error, so
// that other processes do not wait. It returns an error if the expression is not finite at a point.
func deviation[T float32 | float64](
	ctx context.Context, f *halo.Field, p *Problem, exact *stencil.Expression, n int64, t float64,
) (Deviation, error) {
	ev := exact.NewEvaluator(p.coordinates(0))
	ev.SetTime(t)
	scales := [...]float64{1, 0x1p600, 0x1p-600} // for errors of ordinary, very small and very large size
	var sums [len(scales)]float64
	var d Deviation
	var bad *notFinite
	want := make([]float64, p.Grid.Size[0])
	err := p.Grid.EachChunk(chunkPoints, func(box domain.Box) error {
		got, err := ownedPoints[T](f, box)
		if err != nil {
			return err
		}
		for z := box.Lo[2]; z < box.Hi[2]; z++ {
			for y := box.Lo[1]; y < box.Hi[1]; y++ {
				if err := ctx.Err(); err != nil && f.Placement.Processes.IsAlone() {
					return err
				}
				if len(got) == 0 {
					return nil
				}
				ev.Row(want, 0, y, z)
				for i, w := range want {
					if bad == nil && (math.IsNaN(w) || math.IsInf(w, 0)) {
						bad = &notFinite{at: domain.Vec{i, y, z}, value: w}
					}
					e := math.Abs(float64(got[i]) - w)
					d.Max = math.Max(d.Max, e)
					for k, scale := range scales {
						sums[k] += (scale * e) * (scale * e)
					}
				}
				got = got[len(want):]
			}
		}
		return nil
	})
	if err == nil && bad != nil {
		err = bad.inExact(n)
	}
	if err != nil {
		return Deviation{}, err
	}
	volume := 1.0
	for _, h := range p.Spacing {
		volume *= h
	}
	k := 0
	switch {
	case d.Max < 0x1p-480:
		k = 1
	case d.Max > 0x1p480:
		k = 2
	}
	d.L2 = math.Sqrt(volume*sums[k]) / scales[k]
	return d, nil
}

// checkedPoints is the approximate maximum number of points that CheckValues checks.
const checkedPoints = 1 << 24

// CheckValues returns the error that New would return for a non-finite initial or boundary value at step 0. It needs no
// devices and no memory. On a grid of up to about 16 million points it checks every point, including ghosts. On a
// larger grid it checks the ghosts outside the boundaries of y and z, and equally spaced rows in between; of very long
// rows it checks equally spaced parts.
func (p *Problem) CheckValues(ctx context.Context) error {
	if err := p.checkParts(); err != nil {
		return err
	}
	first := firstNotFinite[float64]
	if p.Element == domain.Float32 {
		first = firstNotFinite[float32]
	}
	for i := range p.variables() {
		for _, of := range []*Problem{p.of(i), p.before(i)} {
			if of == nil {
				continue
			}
			if found, err := first(ctx, of, 0); found != nil {
				return of.fault(found)
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckExact returns the error that Solver.Deviation would return for an exact solution that is not finite after n
// steps. It checks the same points as CheckValues, without ghosts.
func (p *Problem) CheckExact(ctx context.Context, exact *stencil.Expression, n int64) error {
	q := *p
	q.Initial, q.reads = exact, stencil.Point() // no ghosts
	found, err := firstNotFinite[float64](ctx, &q, n)
	if found != nil {
		return found.inExact(n)
	}
	return err
}

// firstNotFinite returns the first value that is non-finite in T after n steps, among the points that CheckValues
// checks; nil if there is none.
func firstNotFinite[T float32 | float64](ctx context.Context, p *Problem, n int64) (*notFinite, error) {
	var bad atomic.Pointer[notFinite]
	ys, zs := p.rows()
	parts := p.partsOfRows(len(ys) * len(zs))
	var next atomic.Int64
	var group errgroup.Group
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			s, values := newSource[T](p, &bad, n), make([]T, parts[0][1]-parts[0][0])
			for bad.Load() == nil { // all rows before a bad row have been started, and are checked completely
				i := int(next.Add(1) - 1)
				if i >= len(ys)*len(zs) {
					return nil
				}
				for _, part := range parts {
					if err := ctx.Err(); err != nil {
						return err
					}
					s.row(values[:part[1]-part[0]], domain.Vec{part[0], ys[i%len(ys)], zs[i/len(ys)]})
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return bad.Load(), err
}

// rows returns the indices along y and z of the rows to check: all rows or, if they have too many points, equally
// spaced rows. The distance is the same along both axes, and the first and last rows are included.
func (p *Problem) rows() (ys, zs []int) {
	n, step := p.Grid.Size, 1
	points := func() float64 { return float64(n[0]) * float64((n[1]-1)/step+1) * float64((n[2]-1)/step+1) }
	for points() > checkedPoints && step < max(n[1], n[2]) {
		step += step/8 + 1
	}
	return p.lines(1, step), p.lines(2, step)
}

// partOfRow is the maximum number of points of a row that are checked at a time.
const partOfRow = 1 << 16

// partsOfRows returns the ranges of each row to check, including ghosts: the whole row or, if the rows have too many
// points, equally spaced ranges, including the first and the last.
func (p *Problem) partsOfRows(rows int) (parts [][2]int) {
	box := p.Grid.Box().Grow(p.reach())
	lo, hi := box.Lo[0], box.Hi[0]
	every := int(math.Ceil(float64(hi-lo) * float64(rows) / (4 * checkedPoints)))
	for at := lo; at < hi; at += every * partOfRow {
		parts = append(parts, [2]int{at, min(hi, at+partOfRow)})
	}
	if last := parts[len(parts)-1]; last[1] < hi {
		parts = append(parts, [2]int{max(last[1], hi-partOfRow), hi})
	}
	return parts
}

// lines returns the indices along an axis of rows that are step apart, including the last row and the ghosts, in the
// order of notFinite.precedes.
func (p *Problem) lines(axis, step int) (at []int) {
	n, width := p.Grid.Size[axis], p.reach()
	for i := 0; i < n-1; i += step {
		at = append(at, i)
	}
	for i := n - 1; i < n+width.Plus[axis]; i++ {
		at = append(at, i)
	}
	for i := 1; i <= width.Minus[axis]; i++ {
		at = append(at, -i)
	}
	return at
}
