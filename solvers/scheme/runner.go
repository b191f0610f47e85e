package scheme

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels"
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
	split     [][]total         // what is taken of steps by phase, by sweeps of boundary and interior
	whole     [][]total         // by whole sweeps
	totals    [][]total         // as the scheme has it taken
	out       [][]int           // by stage: messages of its plan that leave
	in        [][]int           // and that come
}

// stageLaunches are the launches of a stage. Those that have nothing to do are nil.
type stageLaunches struct {
	plain, measured sweeps // measured takes norms on the way, where the stage can
	boxes           boxes
	tuning          Tuning // zero where the stage is not tuned

	// of a point function
	sweeper *sweep.Sweeper
	arrays  sweep.Arrays
	totals  [2]*sweep.Totals // of boundary and interior, and of whole sweeps; nil where there are none
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

// growth returns how many layers of ghosts are swept.
func (b *boxes) growth() domain.Radius {
	return domain.Radius{Minus: b.owned.Lo.Sub(b.whole.Lo), Plus: b.whole.Hi.Sub(b.owned.Hi)}
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
func (d *subdomain) findMessages(r *Runner) {
	d.out, d.in = make([][]int, len(r.plans)), make([][]int, len(r.plans))
	for stage := range r.plans {
		for i, m := range r.messagesOf(stage) {
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

// Runner is a step made ready on its devices. It steps the variables any number of times. Several runners may step
// the same variables in turn: each run begins at the newest level that these have.
type Runner struct {
	resources  streams.Resources
	step       *Step
	place      *halo.Placement
	plans      []*halo.Plan      // by stage; nil after a stage that needs no exchange
	once       []*halo.Exchanger // of variables that are only read, by level
	oncePlan   *halo.Plan
	exchanges  [][]*halo.Exchanger              // by phase, then by stage
	ghosts     map[*Variable][]*boundary.Ghosts // by variable with ghosts that are read, then by field
	subdomains []*subdomain                     // by rank; nil for those of other processes
	local      []int                            // the ranks of the others
	compiler   *kernels.Compiler
	period     int
	options    Options // of Steps
	done       int64   // the level at which the run began that was made last
	broken     error   // of a run that ended in the middle of a step
	closed     bool
	running    atomic.Bool // within Run
}

// checkPlan returns an error unless the plan has the exchanges of the step.
func (x *Runner) checkPlan(plan *Plan) error {
	if len(plan.Stages) != len(x.step.Stages) {
		return fmt.Errorf("scheme: plans for %d stages of %d", len(plan.Stages), len(x.step.Stages))
	}
	for i, p := range plan.Stages {
		if !x.isOf(p, x.step.sentVariables(i)) {
			return fmt.Errorf("scheme: the plan of stage %d is for another placement or other fields than the step's", i)
		}
	}
	if !x.isOf(plan.Once, x.step.onlyRead()) {
		return errors.New("scheme: the plan of what is only read is for another placement or other fields than the step's")
	}
	return nil
}

// isOf reports whether a plan is one for these variables, nil for none.
func (x *Runner) isOf(p *halo.Plan, variables []*Variable) bool {
	if p == nil || len(variables) == 0 {
		return p == nil && len(variables) == 0
	}
	return p.Placement == x.place && slices.EqualFunc(p.Specs, specsOf(variables), halo.Spec.Equal)
}

// addOnce makes the exchange of what is only read ready, for each level of it.
func (x *Runner) addOnce(plan *halo.Plan) error {
	if plan == nil {
		return nil
	}
	levels := 1
	for _, v := range x.step.onlyRead() {
		levels = max(levels, v.Levels())
	}
	for level := range levels {
		var fields []*halo.Field
		for _, v := range x.step.onlyRead() {
			fields = append(fields, v.Level(int64(level)))
		}
		e, err := halo.NewExchanger(plan, x.compiler, fields...)
		if err != nil {
			return err
		}
		x.resources.Add(e)
		x.once = append(x.once, e)
	}
	x.oncePlan = plan
	return nil
}

// addGhosts makes the ghosts behind physical faces ready, of variables of which ghosts are read, or sent after a group
// of steps.
func (x *Runner) addGhosts() error {
	for _, v := range x.step.variables() {
		if !x.step.readsAround(v) && (x.step.group() == 1 || !x.step.writes(v)) {
			continue
		}
		for _, f := range v.levels {
			g, err := x.step.newGhosts(x.compiler, v, f)
			if err != nil {
				return err
			}
			x.resources.Add(g)
			x.ghosts[v] = append(x.ghosts[v], g)
		}
	}
	return nil
}

// addExchanges makes the exchanges ready. Phases in which the same fields are exchanged share
// one.
func (x *Runner) addExchanges(ctx context.Context) error {
	made := map[string]*halo.Exchanger{}
	for phase := range x.period {
		if err := ctx.Err(); err != nil && !x.shared() { // all processes make all exchanges ready
			return err
		}
		var stages []*halo.Exchanger
		for i, plan := range x.plans {
			if plan == nil {
				stages = append(stages, nil)
				continue
			}
			key := fmt.Sprint(i)
			var fields []*halo.Field
			for _, a := range x.step.sent(i) {
				fields = append(fields, a.field(int64(phase)))
				key += fmt.Sprint(" ", a.slot(int64(phase)))
			}
			if made[key] == nil {
				e, err := halo.NewExchanger(plan, x.compiler, fields...)
				if err != nil {
					return err
				}
				x.resources.Add(e)
				made[key] = e
			}
			stages = append(stages, made[key])
		}
		x.exchanges = append(x.exchanges, stages)
	}
	return nil
}

// exchanged reports whether a stage's exchange brings ghosts of the variable.
func (x *Runner) exchanged(v *Variable) bool {
	for i := range x.step.Stages {
		if slices.Contains(x.step.sentVariables(i), v) {
			return true
		}
	}
	return false
}

// messagesOf returns those of a stage's plan.
func (x *Runner) messagesOf(stage int) []halo.Message {
	if x.plans[stage] == nil {
		return nil
	}
	return x.plans[stage].Messages
}

// bytes returns what a step sends from device to device.
func (x *Runner) bytes() (n int64) {
	for _, plan := range x.plans {
		if plan != nil {
			n += plan.Bytes()
		}
	}
	return n
}

// Placement returns where the variables lie.
func (x *Runner) Placement() *halo.Placement { return x.place }

// Plans returns the messages of a step, by stage.
func (x *Runner) Plans() []*halo.Plan { return x.plans }

// Done returns the newest level of the variables: how many steps were made, by this runner and others.
func (x *Runner) Done() int64 {
	if level, err := x.step.newest(1); err == nil {
		return level
	}
	return x.done
}

// Boxes returns what a subdomain of this process sweeps in a stage: its boundary region, up to six boxes that do not
// overlap, and its interior.
func (x *Runner) Boxes(stage, rank int) (boundary []domain.Box, interior domain.Box) {
	b := x.subdomains[rank].stages[0][stage].boxes
	return b.boundary, b.interior
}

// Tuning returns those of the stages that were tuned, in order, by the first device that tuned them.
// Host devices tune nothing, nor does a stage of the caller's kernels.
func (x *Runner) Tuning() (all []Tuning) {
	for stage := range x.step.Stages {
		var found []Tuning
		took := time.Duration(0)
		for _, d := range x.subdomains {
			if d == nil {
				continue
			}
			for _, phase := range d.stages {
				if t := phase[stage].tuning; t.Layers > 0 {
					found = append(found, t)
					took += t.Took
				}
			}
		}
		if len(found) > 0 {
			found[0].Took = took
			all = append(all, found[0])
		}
	}
	return all
}

// shared reports whether other processes take part.
func (x *Runner) shared() bool { return isShared(x.place) }

// workerOf returns which of the process's subdomains that of a rank is: the number of its worker where each has one.
func (x *Runner) workerOf(rank int) int { return slices.Index(x.local, rank) }

// Close frees what it holds: it runs no more. Closing twice is no error.
func (r *Runner) Close() error {
	r.closed = true
	return r.resources.Close()
}

// boundaryLayers returns how deep the boundary region of a stage is at each side: what
// neighbours need of what it writes, what it reads of ghosts that come from neighbours or change
// from step to step, and what ghosts behind physical faces are made from. All else, the interior,
// is swept while messages travel. Neighbours need nothing of a stage after which nothing is sent.
func (d *subdomain) boundaryLayers(x *Runner, stage int, sends bool) (layers domain.Radius) {
	st := &x.step.Stages[stage]
	if sends {
		for _, i := range d.out[stage] {
			for _, p := range x.messagesOf(stage)[i].Parts {
				deepen(&layers, p.Dir, p.Send.Size(), p.Send.Size())
			}
		}
	}
	for _, a := range st.Writes {
		if g := x.ghosts[a.Variable]; g != nil {
			layers = deeper(layers, g[0].Layers(d.rank))
		}
	}
	for _, a := range st.Reads {
		r, changing := a.footprint().Radius(), domain.Radius{}
		if g := x.ghosts[a.Variable]; g != nil {
			changing = g[0].Layers(d.rank)
		}
		for _, side := range domain.Faces(x.place.Grid.Dims) {
			_, inside := x.place.Neighbour(d.rank, side)
			if inside && x.exchanged(a.Variable) || !inside && at(changing, side) > 0 {
				deepen(&layers, side, r.Minus, r.Plus)
			}
		}
	}
	return layers
}

// deepen makes the boundary region as deep at the sides of a direction as layers says.
func deepen(to *domain.Radius, dir domain.Direction, minus, plus domain.Vec) {
	for a, side := range dir {
		switch side {
		case -1:
			to.Minus[a] = max(to.Minus[a], minus[a])
		case 1:
			to.Plus[a] = max(to.Plus[a], plus[a])
		}
	}
}

// boxesOf returns what a stage of step n, or of its phase, sweeps.
func (d *subdomain) boxesOf(x *Runner, stage int, n int64) (b boxes) {
	b.owned = x.place.Subdomains[d.rank].Box
	b.whole = b.owned
	if !x.step.grows(n, stage) {
		b.interior, b.boundary = domain.Split(b.owned, d.boundaryLayers(x, stage, true))
		return b
	}
	b.grown = true
	b.whole = x.place.Grown(d.rank, x.step.growth(n, stage))
	b.boundary = []domain.Box{b.whole}
	_, b.ghosts = domain.Split(b.whole, b.growth())
	return b
}
