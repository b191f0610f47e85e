package solvers

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
)

// checkedPoints is about how many points CheckValues looks at, at most.
const checkedPoints = 1 << 24

// CheckValues returns the error with which New refuses the problem for a value at step 0, of the
// initial field or of a wall, that is not finite. It needs no devices and no memory. It looks at
// every point, ghosts included, of a grid of up to some 16 million; of a larger one at those behind
// the walls of y and z and at rows in equal distances between.
func (p *Problem) CheckValues(ctx context.Context) error {
	if err := p.checkParts(); err != nil {
		return err
	}
	if p.Real == kernels.Float32 {
		return checkValues[float32](ctx, p)
	}
	return checkValues[float64](ctx, p)
}

func checkValues[T float32 | float64](ctx context.Context, p *Problem) error {
	var bad atomic.Pointer[notFinite]
	box := p.Grid.Box().Grow(p.Stencil.Radius())
	nx, step := box.Size()[0], p.rowStep()
	ys, zs := p.lines(1, step), p.lines(2, step)
	var next atomic.Int64
	var group errgroup.Group
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			s, values := newSource[T](p, &bad), make([]T, nx)
			for bad.Load() == nil { // the rows before a bad one are all begun, and looked at to their ends
				if err := ctx.Err(); err != nil {
					return err
				}
				i := int(next.Add(1) - 1)
				if i >= len(ys)*len(zs) {
					return nil
				}
				s.row(values, domain.Vec{box.Lo[0], ys[i%len(ys)], zs[i/len(ys)]})
			}
			return nil
		})
	}
	err := group.Wait()
	if found := bad.Load(); found != nil {
		return p.fault(found)
	}
	return err
}

// rowStep returns the distance between the rows that are looked at, along y and z alike.
func (p *Problem) rowStep() int {
	n := p.Grid.Size
	rows, axes := float64(n[1])*float64(n[2])*float64(n[0])/checkedPoints, float64(p.Grid.Dims-1)
	return max(1, int(math.Ceil(math.Pow(rows, 1/axes))))
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
