package solvers

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
)

// checkedPoints is about how many points CheckValues looks at, at most.
const checkedPoints = 1 << 24

// CheckValues returns the error with which New refuses the problem for a value at step 0, of the
// initial field or of a wall, that is not finite. It needs no devices and no memory. It looks at
// every point, ghosts included, of a grid of up to some 16 million; of a larger one at those behind
// the walls of y and z and at rows in equal distances between, of rows so long that these are too many at parts in equal distances.
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

// CheckExact returns the error with which Solver.Deviation refuses an exact solution that is not finite after n steps. It looks at
// the points of the grid that CheckValues looks at.
func (p *Problem) CheckExact(ctx context.Context, exact *stencil.Expression, n int64) error {
	q := *p
	q.Initial, q.Stencil = exact, stencil.Stencil{} // which has no ghosts
	found, err := firstNotFinite[float64](ctx, &q, n)
	if found != nil {
		return found.inExact(n)
	}
	return err
}

// firstNotFinite returns the first value that is not finite in T after n steps, of those that CheckValues looks at; nil if there is none.
func firstNotFinite[T float32 | float64](ctx context.Context, p *Problem, n int64) (*notFinite, error) {
	var bad atomic.Pointer[notFinite]
	stepY, stepZ := p.rowSteps()
	ys, zs := p.lines(1, stepY), p.lines(2, stepZ)
	parts := p.partsOfRows(len(ys) * len(zs))
	var next atomic.Int64
	var group errgroup.Group
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			s, values := newSource[T](p, &bad, n), make([]T, parts[0][1]-parts[0][0])
			for bad.Load() == nil { // the rows before a bad one are all begun, and looked at to their ends
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

// rowSteps returns the distances between the rows that are looked at, along y and z: the same, but for an axis that is shorter.
func (p *Problem) rowSteps() (y, z int) {
	n, axes := p.Grid.Size, float64(p.Grid.Dims-1)
	few := checkedPoints / float64(n[0]) // rows
	rounded := func(step float64, n int) int { return int(min(math.Ceil(max(1, step)), float64(n))) }
	step := math.Pow(float64(n[1])*float64(n[2])/few, 1/axes)
	y, z = rounded(step, n[1]), rounded(step, n[2])
	switch {
	case step > float64(n[1]):
		z = rounded(float64(n[2])*float64(len(p.lines(1, y)))/few, n[2])
	case step > float64(n[2]):
		y = rounded(float64(n[1])*float64(len(p.lines(2, z)))/few, n[1])
	}
	return y, z
}

// partOfRow is how many points of a row are looked at together, at most.
const partOfRow = 1 << 16

// partsOfRows returns the ranges of so many rows that are looked at, ghosts included: all of them, or, where these are too many
// points, some in equal distances, with the first and the last.
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

// lines returns the indices along an axis of the rows that are looked at, in the order of notFinite.precedes.
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
