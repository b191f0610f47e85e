package sweep

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/results"
)

// sweepCase is a stencil over a grid of so many points along each axis.
type sweepCase struct {
	shape
	real   kernels.Real
	points int
	norms  []string
	sums   []sums.Mode // of the norms
}

// cases are a stencil, a precision and a size each, with norms and without.
func (o *Options) cases() (all []sweepCase) {
	var modes []sums.Mode
	for _, mode := range o.Sums {
		modes = append(modes, sums.Mode(mode))
	}
	for _, s := range shapes() {
		if !slices.Contains(o.Stencils, s.name) {
			continue
		}
		sizes := o.Points3D
		if s.dims() == 2 {
			sizes = o.Points2D
		}
		for _, precision := range o.Precision {
			for _, n := range sizes {
				all = append(all, sweepCase{shape: s, real: kernels.Real(precision), points: n, norms: o.Norms, sums: modes})
			}
		}
	}
	return all
}

// labels begins the rows of a case.
func (c sweepCase) labels() results.Row {
	grid := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%dx", c.points), c.dims()), "x")
	return results.NewRow().Label("stencil", c.name).Label("precision", c.real).Label("points", c.points).Label("grid", grid)
}

// operations returns those of a point.
func (c sweepCase) operations() int {
	s, err := c.stencil()
	if err != nil {
		return 0 // it was swept, so there is none
	}
	return flops(s)
}

// box is the owned points.
func (c sweepCase) box() domain.Box {
	size := domain.Vec{1, 1, 1}
	for a := range c.dims() {
		size[a] = c.points
	}
	return domain.Box{Hi: size}
}

// layout is that of the arrays.
func (c sweepCase) layout() (domain.Layout, error) {
	s, err := c.stencil()
	if err != nil {
		return domain.Layout{}, err
	}
	return domain.NewLayout(c.box(), s.Radius(), c.real.Size())
}

// rated adds to a row the time of a sweep and what follows of it.
func (c sweepCase) rated(row results.Row, took, plain results.Sample) results.Row {
	points := float64(c.box().Points())
	return row.Value(results.Updates, took.Under(points*1e6)).
		Value(results.GFLOPS, took.Under(points*float64(c.operations())/1e3)).
		Join(results.NewRow().Transfer(2*c.box().Points()*int64(c.real.Size()), took, plain))
}

// sameOwned returns an error that names the first row of owned points that differs.
func (c sweepCase) sameOwned(got, want []byte, l domain.Layout) error {
	size := int64(c.real.Size())
	for z := range c.box().Hi[2] {
		for y := range c.box().Hi[1] {
			from := l.Offset(domain.Vec{0, y, z}) * size
			to := from + int64(c.points)*size
			if !bytes.Equal(got[from:to], want[from:to]) {
				return fmt.Errorf("a sweep of %s in %s over %d points along each axis differs from the host's in the row at y %d, z %d", c.name, c.real, c.points, y, z)
			}
		}
	}
	return nil
}
