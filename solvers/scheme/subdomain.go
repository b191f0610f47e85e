package scheme

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// subdomain is one subdomain with the launches of all stages made ready, for each phase: step n
// is of phase n mod the step's period.
type subdomain struct {
	resources streams.Resources
	rank      int
	device    *streams.Device
	stages    [][]stageLaunches // by phase, then by stage
	split     [][]total         // norms by phase and measured variable, of boundary and interior
	whole     [][]total         // of whole sweeps
	totals    [][]total         // those of the two that the scheme uses
	out       [][]int           // by stage: messages of its plan that leave
	in        [][]int           // and that come
}

// stageLaunches are the launches of a stage. Those that have nothing to do are nil.
type stageLaunches struct {
	plain, measured sweeps // measured takes norms on the way, where the stage can
	boxes           boxes
	tuning          Tuning // zero where the stage is not tuned

	sweeper *sweep.Sweeper // of a point function
	arrays  sweep.Arrays
}

// sweeps are the launches that sweep a subdomain.
type sweeps struct {
	boundary Launch // the boundary region
	interior Launch // the rest
	whole    Launch // both at once
}

// boxes are what they sweep. A stage that sweeps ghosts has no interior: its boundary region is all of it.
type boxes struct {
	boundary []domain.Box
	interior domain.Box
	whole    domain.Box
	ghosts   []domain.Box // of neighbours, which are swept too
	owned    domain.Box
	grown    bool
}

// large returns the box that most points are swept with.
func (b boxes) large() domain.Box {
	if b.grown {
		return b.whole
	}
	return b.interior
}

// region is a launch of a stage, and where it is kept.
type region struct {
	name            string
	boxes           []domain.Box
	plain, measured *Launch
}

// regions returns those of a stage; first boundary and interior, last the whole.
func (l *stageLaunches) regions() []region {
	interior := []domain.Box{l.boxes.interior}
	if l.boxes.interior.Empty() {
		interior = nil
	}
	return []region{
		{"sweep boundary", l.boxes.boundary, &l.plain.boundary, &l.measured.boundary},
		{"sweep interior", interior, &l.plain.interior, &l.measured.interior},
		{"sweep", []domain.Box{l.boxes.whole}, &l.plain.whole, &l.measured.whole},
	}
}

// findMessages lists the messages of each stage that leave and that come.
func (d *subdomain) findMessages(plans []*halo.Plan) {
	d.out, d.in = make([][]int, len(plans)), make([][]int, len(plans))
	for stage, plan := range plans {
		if plan == nil {
			continue
		}
		for i, m := range plan.Messages {
			if m.From == d.rank {
				d.out[stage] = append(d.out[stage], i)
			}
			if m.To == d.rank {
				d.in[stage] = append(d.in[stage], i)
			}
		}
	}
}

// Close frees what it holds. Closing twice is no error.
func (s *subdomain) Close() error { return s.resources.Close() }
