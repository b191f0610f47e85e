package solvers

import (
	"errors"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// part is one subdomain with the launches of a step made ready, for steps that
// write field 0 and for steps that write field 1. Launches that have nothing
// to do are nil.
type part struct {
	resources  streams.Resources
	rank       int
	device     *streams.Device
	plain      sweeps
	measured   sweeps       // the same, which take the norms on their way
	ghostFills [2]ghostFill // of each field
	walls      []*movingWall
	norms      [2]*kernels.NormReduction // totals of the measured sweeps that the scheme uses
	out, in    []int                     // messages of the plan

	tuning kernels.Tuning

	splitNorms, wholeNorms [2]*kernels.NormReduction // of boundary and interior, and of whole
}

// sweeps are the launches that sweep a part.
type sweeps struct {
	boundary [2]*streams.Kernel // the boundary region
	interior [2]*streams.Kernel // the rest
	whole    [2]*streams.Kernel // both at once
}

// sweeps returns those of a step, with norms or without.
func (t *part) sweeps(norms bool) *sweeps {
	if norms {
		return &t.measured
	}
	return &t.plain
}

// newPart makes a subdomain ready.
func newPart(rank int, p *Problem, plan *halo.Plan, fields [2]*halo.Field, c *kernels.Compiler) (t *part, err error) {
	t = &part{rank: rank, device: plan.Placement.Devices[rank]}
	made := t
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	t.findMessages(plan)
	if err := t.makeSweeps(p, plan, fields, c); err != nil {
		return nil, err
	}
	copier, err := c.NewBoxCopier(t.device)
	if err != nil {
		return nil, err
	}
	for i := range t.ghostFills {
		if t.ghostFills[i], err = t.newGhostFill(p, plan.Placement, fields[i].Parts[rank], c); err != nil {
			return nil, err
		}
	}
	for _, side := range p.faces(plan.Placement, rank, moving) {
		w, err := t.newMovingWall(p, side, fields, copier)
		if err != nil {
			return nil, err
		}
		t.walls = append(t.walls, w)
	}
	return t, nil
}

// makeSweeps makes all sweeps ready, in both directions between the two fields.
func (t *part) makeSweeps(p *Problem, plan *halo.Plan, fields [2]*halo.Field, c *kernels.Compiler) error {
	sweeper, err := c.NewSweeper(t.device, p.Stencil, p.Real)
	if err != nil {
		return err
	}
	box := plan.Placement.Subdomains[t.rank].Box
	interior, boundary := domain.Split(box, p.boundaryLayers(plan, t.rank))
	if err := t.tune(sweeper, fields, interior); err != nil {
		return err
	}
	for to := range 2 {
		m := maker{t, sweeper, fields[to].Parts[t.rank], fields[1-to].Parts[t.rank], to}
		var split []sweepOf
		if len(boundary) > 0 {
			split = append(split, sweepOf{"sweep boundary", boundary, &t.plain.boundary, &t.measured.boundary})
		}
		if !interior.Empty() {
			split = append(split, sweepOf{"sweep interior", []domain.Box{interior}, &t.plain.interior, &t.measured.interior})
		}
		if t.splitNorms[to], err = m.make(split); err != nil {
			return err
		}
		whole := sweepOf{"sweep", []domain.Box{box}, &t.plain.whole, &t.measured.whole}
		if t.wholeNorms[to], err = m.make([]sweepOf{whole}); err != nil {
			return err
		}
	}
	t.norms = t.splitNorms
	return nil
}

// tuneBudget is how long the shape of sweeps may be searched for on one device: that of
// others of its kind and stencil is then known.
const tuneBudget = 100 * time.Millisecond

// tune finds the fastest shape for sweeps of the interior. Fields are not filled yet, and
// hold anything.
func (t *part) tune(s *kernels.Sweeper, fields [2]*halo.Field, interior domain.Box) (err error) {
	if interior.Empty() {
		return nil
	}
	t.tuning, err = s.Tune(fields[1].Parts[t.rank], fields[0].Parts[t.rank], interior, tuneBudget)
	return err
}

// maker makes the sweeps of a part from src to dst, which is field `to`.
type maker struct {
	part     *part
	sweeper  *kernels.Sweeper
	dst, src kernels.Array
	to       int
}

// sweepOf is one launch of a step, and where it is kept.
type sweepOf struct {
	name            string
	boxes           []domain.Box
	plain, measured *[2]*streams.Kernel
}

// make makes the sweeps ready that together make a step, without norms and with, and the
// total of the norms.
func (m maker) make(all []sweepOf) (*kernels.NormReduction, error) {
	var sets []kernels.BoxSet
	for _, s := range all {
		k, err := m.sweeper.SweepAs(s.name, m.dst, m.src, s.boxes...)
		if err != nil {
			return nil, err
		}
		m.part.resources.Add(k)
		s.plain[m.to] = k
		sets = append(sets, kernels.BoxSet{Name: s.name, Boxes: s.boxes})
	}
	launches, total, err := m.sweeper.Measure(m.dst, m.src, sets...)
	if err != nil {
		return nil, err
	}
	m.part.resources.Add(total)
	for i, s := range all {
		s.measured[m.to] = launches[i]
	}
	return total, nil
}

func (t *part) findMessages(plan *halo.Plan) {
	for i, m := range plan.Messages {
		if m.From == t.rank {
			t.out = append(t.out, i)
		}
		if m.To == t.rank {
			t.in = append(t.in, i)
		}
	}
}

// boundaryLayers returns how deep the boundary region is at each side: the
// stencil's reach where a neighbour needs the points, or where ghosts change
// from step to step.
func (p *Problem) boundaryLayers(plan *halo.Plan, rank int) domain.Radius {
	var layers domain.Radius
	deepen := func(dir domain.Direction) {
		for a, to := range dir {
			switch to {
			case -1:
				layers.Minus[a] = p.radius(a)
			case 1:
				layers.Plus[a] = p.radius(a)
			}
		}
	}
	for _, m := range plan.Messages {
		if m.From == rank {
			deepen(m.Dir)
		}
	}
	for _, side := range domain.Faces(p.Grid.Dims) {
		w := p.wallAt(side)
		changing := isNeumann(w) || moving(w) || (w.Kind == Dirichlet && p.radius(side.Axis()) > 1)
		if _, inside := plan.Placement.Neighbour(rank, side); !inside && changing {
			deepen(side)
		}
	}
	return layers
}

// refreshWalls queues what the walls do to the ghosts of the field of step n, after the
// boundary region is swept.
func (r *run) refreshWalls(t *part, s *streams.Stream, n int64) error {
	if err := r.moveWalls(t, s, n); err != nil {
		return err
	}
	return launch(s, t.ghostFills[n%2].own...)
}

// moveWalls queues what changes with time behind walls.
func (r *run) moveWalls(t *part, s *streams.Stream, n int64) error {
	for _, w := range t.walls {
		if err := w.queue(s, n, float64(n)*r.problem.TimeStep, r.problem.Real, r.patience()); err != nil {
			return err
		}
	}
	return nil
}

// completeWalls queues what is still to be done to the ghosts of the field that step n reads,
// after those of neighbours have come: in edges and corners, and all at the first step.
func (r *run) completeWalls(t *part, s *streams.Stream, n int64) error {
	from := &t.ghostFills[(n-1)%2]
	if n == 1 {
		if err := launch(s, from.own...); err != nil {
			return err
		}
	}
	return launch(s, from.beside...)
}

// launch queues the kernels that there are, in order.
func launch(s *streams.Stream, kernels ...*streams.Kernel) error {
	for _, k := range kernels {
		if k == nil {
			continue
		}
		if err := s.Launch(k); err != nil {
			return err
		}
	}
	return nil
}

// Close frees what it holds. Closing twice is no error.
func (t *part) Close() error { return t.resources.Close() }
