package temporal

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// NewPoints returns the passes of a point function between arrays of the layouts of some. next tells of each access that reads a
// variable which the function steps the access that is its next level, and is -1 for all others. The error is ErrImpossible where
// there are none.
func NewPoints(c *kernels.Compiler, d *streams.Device, f sweep.Point, accesses []sweep.Access, next []int, like sweep.Arrays) (*Points, error) {
	body, err := sweep.NewBody(d, f, accesses)
	if err != nil {
		return nil, err
	}
	if len(next) != len(accesses) {
		return nil, fmt.Errorf("temporal: the next levels of %d accesses, not of %d", len(next), len(accesses))
	}
	if err := body.Check(like); err != nil {
		return nil, err
	}
	p := &Points{device: d, body: body, name: f.Name, dims: f.Dims, arrays: body.Arrays(), like: like}
	if err := p.findFields(accesses, next); err != nil {
		return nil, err
	}
	if err := p.findRadius(); err != nil {
		return nil, err
	}
	if d.GoKernels {
		p.cost = pointCosts()
		return p, nil
	}
	if p.gpu, err = p.newGPU(c); err != nil {
		return nil, err
	}
	p.cost = p.gpu.costs()
	return p, nil
}

// pointCosts are those of a core, which point functions nearly never leave waiting for memory.
func pointCosts() []float64 {
	cost := noPasses(8)
	for _, d := range []int{2, 3, 4, 6, 8} {
		cost[d] = 1 + 0.97*float64(d-1)
	}
	return cost
}

// Costs returns the time of a pass by its depth, over that of a sweep, which is depth 1: infinite where there is none. It is for Cut.
func (p *Points) Costs() []float64 { return p.cost }

// Pass makes a launch ready that makes so many steps, two or more: it reads level 0 from the arrays that the function reads, and stores the
// last level of the points of a box to those that it writes. sides are those of each access that is written, by its place among the accesses.
// The box ends where the grid does on sides that are not Open. Ghosts behind these hold in level 0 what the sides say. The moment that the launch
// is given is that of its first step.
func (p *Points) Pass(name string, arrays sweep.Arrays, box domain.Box, sides []Sides, depth int) (*sweep.Launch, error) {
	if err := p.check(arrays, box, sides, depth); err != nil {
		return nil, err
	}
	if p.device.GoKernels {
		return p.onHost(name, arrays, box, sides, depth)
	}
	return p.onGPU(name, p.gpu.of(depth, box.Size(), Sides{}), arrays, box, sides)
}
