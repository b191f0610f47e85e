package temporal

import (
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// Tune finds out on a GPU how long passes over the box take, beside the sweep, as Passes.Tune does. It changes what passes store to.
func (p *Points) Tune(sweep *streams.Kernel, arrays sweep.Arrays, box domain.Box, sides []Sides, budget time.Duration) error {
	if p.gpu == nil {
		return nil
	}
	p.gpu.limit(func(depth int) error { return p.holds(arrays, box, sides, depth) })
	err := p.gpu.tune(p.gpu.tuningKey("point function "+p.name, box), sweep, budget, func(s shape) (*streams.Kernel, error) {
		l, err := p.onGPU("pass to tune", s, arrays, box, sides)
		if err != nil {
			return nil, err
		}
		return l.Kernel, nil
	})
	if err != nil {
		return err
	}
	p.cost = p.gpu.costs()
	return nil
}
