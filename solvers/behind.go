package solvers

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// behind is what keeps the ghosts behind the walls of one subdomain right for one field,
// beside those that are given once: the launches are queued, in order, before a step reads
// the field, after ghosts have come from neighbours.
type behind struct {
	odd     []*streams.Kernel // second layers behind Dirichlet walls, by axis
	mirrors *halo.Walls       // Neumann walls; of all subdomains
	rank    int
}

// queue queues the launches.
func (b *behind) queue(s *streams.Stream) error {
	if err := launch(s, b.odd...); err != nil {
		return err
	}
	if b.mirrors == nil {
		return nil
	}
	return b.mirrors.QueueOn(b.rank, s)
}

// newMirrors makes the Neumann walls of a field ready, nil where there are none.
func newMirrors(p *Problem, f *halo.Field, c *kernels.Compiler) (*halo.Walls, error) {
	var walls []halo.Wall
	for i, side := range domain.Faces(p.Grid.Dims) {
		if insulated(p.Walls[i]) {
			walls = append(walls, halo.Wall{Side: side, Kind: halo.Mirror})
		}
	}
	if len(walls) == 0 {
		return nil, nil
	}
	return halo.NewWalls(f, c, walls...)
}

// reflections makes the second layers of ghosts behind Dirichlet walls ready.
func (t *part) reflections(p *Problem, a kernels.Array, c *kernels.Compiler) (all []*streams.Kernel, err error) {
	fixed := func(w Wall) bool { return w.Kind == Dirichlet }
	r, err := c.NewReflector(t.device, p.Real)
	if err != nil {
		return nil, err
	}
	sides := t.sides(fixed)
	for i, side := range sides {
		if p.reach(side.Axis()) < 2 {
			continue
		}
		k, err := r.Reflect(a, secondLayer(a.Layout, side, sides[i+1:]), side)
		if err != nil {
			return nil, err
		}
		t.Add(k)
		all = append(all, k)
	}
	return all, nil
}

// secondLayer returns the second layer of ghosts at a side with what lies beside it in
// edges and corners, but for what is behind Dirichlet walls of later axes: they count there.
func secondLayer(l domain.Layout, side domain.Direction, later []domain.Direction) domain.Box {
	b, a := l.Owned.Grow(l.Width), side.Axis()
	for _, other := range later {
		if o := other.Axis(); o != a && other.Positive() {
			b.Hi[o] = l.Owned.Hi[o]
		} else if o != a {
			b.Lo[o] = l.Owned.Lo[o]
		}
	}
	b.Lo[a] = l.Owned.Lo[a] - 2
	if side.Positive() {
		b.Lo[a] = l.Owned.Hi[a] + 1
	}
	b.Hi[a] = b.Lo[a] + 1
	return b
}
