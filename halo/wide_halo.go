package halo

import (
	"errors"
	"fmt"
	"math"

	"github.com/halox/halox/domain"
)

// WideHalo is a halo so wide that several steps go between two exchanges: it spares
// the latency of all exchanges but one and pays with points that several
// subdomains compute. With ghosts of Steps times the radius, the first step after
// an exchange sweeps the owned points and all ghosts but the outermost Radius of
// them, each step after it a region smaller by the radius, and the last one the
// owned points alone. Every point that two subdomains compute gets the same bits
// in both.
type WideHalo struct {
	Cut    *domain.Decomposition
	Radius domain.Radius // of one step
	Steps  int           // between two exchanges
}

// NewWideHalo returns the halo for so many steps between two exchanges. It is an error
// if a subdomain owns fewer layers than its neighbours then need of it. The cut is
// that of a placement, or of a staggered field.
func NewWideHalo(cut *domain.Decomposition, radius domain.Radius, steps int) (*WideHalo, error) {
	d := &WideHalo{cut, radius, steps}
	if cut == nil {
		return nil, errors.New("halo: a halo of no subdomains: the decomposition is nil")
	}
	if steps < 1 {
		return nil, fmt.Errorf("halo: %d steps between two exchanges; at least 1", steps)
	}
	for _, r := range append(radius.Minus[:], radius.Plus[:]...) {
		if r < 0 || r > math.MaxInt32/steps {
			return nil, fmt.Errorf("halo: %d steps of radius %d between two exchanges: a radius is not negative, and ghosts have less than 2^31 layers", steps, r)
		}
	}
	if err := cut.CheckWidth(d.Width()); err != nil {
		return nil, fmt.Errorf("halo: %d steps between two exchanges: %w", steps, err)
	}
	return d, nil
}

// Width returns the width of the ghosts: Steps times the radius.
func (d *WideHalo) Width() domain.Radius { return times(d.Radius, d.Steps) }

func times(r domain.Radius, n int) domain.Radius {
	for a := range 3 {
		r.Minus[a] *= n
		r.Plus[a] *= n
	}
	return r
}

// Spec returns the field with ghosts as wide as the halo needs. Ghosts that are
// swept need edges and corners too, whatever the shape of the stencil, and of all components.
// With one step no ghosts are swept, and the connectivity stays as it is: set it for stencils
// that read edges or corners.
func (d *WideHalo) Spec(s Spec) Spec {
	s.Width = d.Width()
	if d.Steps > 1 {
		s.Connectivity, s.Widths = Corners, nil
	}
	return s
}

// Region returns what the subdomain of a rank sweeps in a step, 0 <= step < Steps
// since the exchange: its box, grown by Steps-1-step times the radius towards
// neighbours, but not beyond physical faces.
func (d *WideHalo) Region(rank, step int) domain.Box {
	return d.Cut.Grown(rank, times(d.Radius, d.Steps-1-step))
}

// Run queues steps 0 to steps-1. Before step 0 and every Steps steps after it,
// exchange brings the ghosts of the field that the step reads; in every step, sweep
// is called for each rank with the region to be swept. Ghosts behind physical faces
// that change with the field are set by sweep, before it sweeps. The first error
// ends the run.
func (d *WideHalo) Run(steps int, exchange func(step int) error, sweep func(step, rank int, region domain.Box) error) error {
	if exchange == nil || sweep == nil {
		return errors.New("halo: steps of a wide halo without an exchange or a sweep")
	}
	for step := range steps {
		if step%d.Steps == 0 {
			if err := exchange(step); err != nil {
				return err
			}
		}
		for rank := range d.Cut.Subdomains {
			if err := sweep(step, rank, d.Region(rank, step%d.Steps)); err != nil {
				return err
			}
		}
	}
	return nil
}
