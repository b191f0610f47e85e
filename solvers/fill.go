package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
)

// source evaluates the field after some steps, ghosts included, for one goroutine.
// Rows and single points have separate evaluators, because an evaluator
// keeps what is the same in all rows of one length.
type source[T float32 | float64] struct {
	problem *Problem
	bad     *atomic.Pointer[notFinite]
	rows    [7]*stencil.Evaluator // walls by face, then the initial field
	points  [7]*stencil.Evaluator
	buffer  []float64
}

// initialField is the place of the initial field among the evaluators.
const initialField = 6

// newSource returns a source after n steps that puts the first of the values that are not finite in T
// into bad, see notFinite.precedes.
func newSource[T float32 | float64](p *Problem, bad *atomic.Pointer[notFinite], n int64) *source[T] {
	s := &source[T]{problem: p, bad: bad}
	c := p.coordinates(n)
	for i, e := range append(p.values(), p.Initial) {
		if e != nil {
			s.rows[i], s.points[i] = e.NewEvaluator(c), e.NewEvaluator(c)
		}
	}
	return s
}

// values returns the expression of each wall, nil for those without.
func (p *Problem) values() []*stencil.Expression {
	v := make([]*stencil.Expression, len(p.Walls))
	for i := range domain.Faces(p.Grid.Dims) {
		if p.Walls[i].Kind.HasValues() {
			v[i] = p.Walls[i].Value
		}
	}
	return v
}

// row is a halo.Row. Of a row, the points between the walls of x are one run;
// a ghost beyond them is evaluated by itself.
func (s *source[T]) row(values []T, at domain.Vec) {
	if cap(s.buffer) < len(values) {
		s.buffer = make([]float64, len(values))
	}
	n := s.problem.Grid.Size[0]
	for len(values) > 0 {
		which, q := s.problem.resolve(at)
		run, from := 1, &s.points
		if at[0] >= 0 && at[0] < n {
			run, from = min(len(values), n-at[0]), &s.rows
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

// reportNotFinite remembers a value that is not finite, unless one before it is known.
func (s *source[T]) reportNotFinite(which int, at domain.Vec, v float64) {
	found := notFinite{which, at, v}
	for known := s.bad.Load(); known == nil || found.precedes(known); known = s.bad.Load() {
		if kept := found; s.bad.CompareAndSwap(known, &kept) {
			return
		}
	}
}

// ErrNotFinite says that an initial value or the value of a wall is not finite.
var ErrNotFinite = errors.New("not finite")

// notFinite is a value that is not finite.
type notFinite struct {
	which int // the evaluator
	at    domain.Vec
	value float64
}

// precedes reports whether a value comes before another: in the order of the grid, x fastest, and along each axis the
// ghosts after the points of the grid, those next to it first. So it does not depend on who finds a value first which
// is named.
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
		what = fmt.Sprintf("the wall %v", domain.Faces(3)[v.which])
	}
	return fmt.Errorf("solvers: %s is %v at point %v, which is %w in %s", what, v.value, v.at, ErrNotFinite, p.Real)
}

// inExact is the error for a value of an exact solution after so many steps.
func (n *notFinite) inExact(steps int64) error {
	return fmt.Errorf("solvers: exact is %v at point %v after %d steps, which is not finite", n.value, n.at, steps)
}

// resolve returns which evaluator gives the value at a point, owned or ghost, and at which point it is asked. See
// WallKind for edges and corners. Second layers behind Dirichlet walls are set before each step. Ghosts that lie deeper
// behind a wall than the stencil reaches, as they do where those of neighbours are swept, are never read; they have the
// value of the last that is.
func (p *Problem) resolve(at domain.Vec) (which int, q domain.Vec) {
	which = initialField
	for a := range p.Grid.Dims {
		n, face := p.Grid.Size[a], 2*a
		if !p.Grid.Periodic[a] {
			at[a] = min(max(at[a], -p.radius(a)), n-1+p.radius(a))
		}
		if at[a] >= 0 && at[a] < n {
			continue
		}
		if at[a] >= n {
			face++
		}
		kind := p.Walls[face].Kind
		from, copied := kind.Source(max(-1-at[a], at[a]-n))
		switch {
		case kind == Periodic:
			at[a] = (at[a] + n) % n
		case copied && at[a] < 0:
			at[a] = from
		case copied:
			at[a] = n - 1 - from
		case kind.HasValues():
			which = face
		}
	}
	return which, at
}

// fill sets the field to its values at step 0. It is an error if one of them is
// not finite, or if the context ends.
func fill[T float32 | float64](ctx context.Context, f *halo.Field, p *Problem) error {
	var bad atomic.Pointer[notFinite]
	if err := halo.FillContext(ctx, f, func(int) halo.Row[T] { return newSource[T](p, &bad, 0).row }); err != nil {
		return err
	}
	if found := bad.Load(); found != nil {
		return p.fault(found)
	}
	return nil
}

// Deviation is how far a field is from an exact solution.
type Deviation struct {
	L2  float64 // root of the product of the spacings times the sum of squares
	Max float64
}

// chunkPoints is how much of a field is compared at once.
const chunkPoints = 1 << 22

// ownedPoints returns the points of a box; where processes share the grid none on others than rank 0.
func ownedPoints[T float32 | float64](f *halo.Field, box domain.Box) (values []T, err error) {
	if p := f.Placement.Processes; p.IsAlone() || p.Rank == 0 {
		values = make([]T, box.Points())
	}
	return values, halo.Gather(context.Background(), values, f, box, 0)
}

// deviation compares all owned points with the expression at step n, also after an error, so that other processes do
// not wait. It is an error if the expression is not finite at a point.
func deviation[T float32 | float64](
	ctx context.Context, f *halo.Field, p *Problem, exact *stencil.Expression, n int64,
) (Deviation, error) {
	ev := exact.NewEvaluator(p.coordinates(n))
	scales := [...]float64{1, 0x1p600, 0x1p-600} // for errors of ordinary size, very small and very large ones
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

// checkedPoints is about how many points CheckValues checks, at most.
const checkedPoints = 1 << 24

// CheckValues returns the error with which New refuses the problem for a value at step 0, of the initial field or of a
// wall, that is not finite. It needs no devices and no memory. It looks at every point, ghosts included, of a grid of
// up to some 16 million; of a larger one at those behind the walls of y and z and at rows in equal distances between,
// of rows so long that these are too many at parts in equal distances.
func (p *Problem) CheckValues(ctx context.Context) error {
	if err := p.checkParts(); err != nil {
		return err
	}
	first := firstNotFinite[float64]
	if p.Real == kernels.Float32 {
		first = firstNotFinite[float32]
	}
	found, err := first(ctx, p, 0)
	if found != nil {
		return p.fault(found)
	}
	return err
}

// CheckExact returns the error with which Solver.Deviation refuses an exact solution that is not finite after n steps.
// It looks at the points of the grid that CheckValues looks at.
func (p *Problem) CheckExact(ctx context.Context, exact *stencil.Expression, n int64) error {
	q := *p
	q.Initial, q.Stencil = exact, stencil.Stencil{} // which has no ghosts
	found, err := firstNotFinite[float64](ctx, &q, n)
	if found != nil {
		return found.inExact(n)
	}
	return err
}

// firstNotFinite returns the first value that is not finite in T after n steps, of those that CheckValues looks at; nil
// if there is none.
func firstNotFinite[T float32 | float64](ctx context.Context, p *Problem, n int64) (*notFinite, error) {
	var bad atomic.Pointer[notFinite]
	ys, zs := p.rows()
	parts := p.partsOfRows(len(ys) * len(zs))
	var next atomic.Int64
	var group errgroup.Group
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			s, values := newSource[T](p, &bad, n), make([]T, parts[0][1]-parts[0][0])
			for bad.Load() == nil { // the rows before a bad one are all begun, and checked to their ends
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

// rows returns the indices along y and z of the rows that are checked: all, or, where these have too many points, rows
// in equal distances, the same along both axes, but always the first and the last of each.
func (p *Problem) rows() (ys, zs []int) {
	n, step := p.Grid.Size, 1
	points := func() float64 { return float64(n[0]) * float64((n[1]-1)/step+1) * float64((n[2]-1)/step+1) }
	for points() > checkedPoints && step < max(n[1], n[2]) {
		step += step/8 + 1
	}
	return p.lines(1, step), p.lines(2, step)
}

// partOfRow is how many points of a row are checked together, at most.
const partOfRow = 1 << 16

// partsOfRows returns the ranges of so many rows that are checked, ghosts included: all of them, or, where these are
// too many points, some in equal distances, with the first and the last.
func (p *Problem) partsOfRows(rows int) (parts [][2]int) {
	box := p.Grid.Box().Grow(p.Stencil.Radius())
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

// lines returns the indices along an axis of rows in steps, with the last and the ghosts, in the order of
// notFinite.precedes.
func (p *Problem) lines(axis, step int) (at []int) {
	n, width := p.Grid.Size[axis], p.Stencil.Radius()
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
