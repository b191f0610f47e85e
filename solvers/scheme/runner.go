package scheme

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/guard"
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
func (s *stageLaunches) regions() []region {
	interior := []domain.Box{s.boxes.interior}
	if s.boxes.interior.Empty() {
		interior = nil
	}
	return []region{
		{"sweep boundary", s.boxes.boundary, &s.plain.boundary, &s.measured.boundary},
		{"sweep interior", interior, &s.plain.interior, &s.measured.interior},
		{"sweep", []domain.Box{s.boxes.whole}, &s.plain.whole, &s.measured.whole},
	}
}

// findMessages lists the messages of each stage that leave and that come.
func (s *subdomain) findMessages(r *Runner) {
	s.out, s.in = make([][]int, len(r.plans)), make([][]int, len(r.plans))
	for stage := range r.plans {
		for i, m := range r.messagesOf(stage) {
			if m.From == s.rank {
				s.out[stage] = append(s.out[stage], i)
			}
			if m.To == s.rank {
				s.in[stage] = append(s.in[stage], i)
			}
		}
	}
}

// Close frees its memory. Closing twice is not an error.
func (s *subdomain) Close() error { return s.resources.Close() }

// Runner is a step made ready on its devices. It steps the variables any number of times. Several runners may step
// the same variables in turn: each run begins at the newest level that these have.
//
// Its methods may be called from any goroutine. While one runs, Run, Steps and Close of it are errors, as are Close of
// its variables and of its session, and runs of others that step the same variables.
type Runner struct {
	resources  streams.Resources
	step       *Step
	place      *halo.Placement
	plans      []*halo.Plan                     // by stage; nil after a stage that needs no exchange
	initial    []plannedExchange                // those to begin a run with
	exchanges  [][]*halo.Exchanger              // by phase, then by stage
	ghosts     map[*Variable][]*boundary.Ghosts // by variable with ghosts that are read, then by field
	subdomains []*subdomain                     // by rank; nil for those of other processes
	local      []int                            // the ranks of the others
	compiler   *kernels.Compiler
	period     int
	options    Options // of Steps
	once       int64   // bytes that a run sends before its steps, of what is only read
	done       int64   // the level at which the run began that was made last
	broken     error   // of a run that ended in the middle of a step
	guard      guard.Guard
}

var errNoRunner = errors.New("scheme: the runner is nil: see New")

// checkPlan returns an error unless the plan has the exchanges of the step.
func (r *Runner) checkPlan(plan *Plan) error {
	if len(plan.Stages) != len(r.step.Stages) {
		return fmt.Errorf("scheme: plans for %d stages of %d", len(plan.Stages), len(r.step.Stages))
	}
	for i, p := range plan.Stages {
		if !r.isOf(p, r.step.sentSpecs(i)) {
			return fmt.Errorf("scheme: the plan of stage %d is for another placement or other fields than the step's",
				i)
		}
	}
	if !r.isOf(plan.Once, specsOf(r.step.onlyRead())) {
		return errors.New("scheme: Plan.Once is for another placement or other fields than the step's")
	}
	return nil
}

// isOf reports whether a plan brings all ghosts of these, nil for none.
func (r *Runner) isOf(p *halo.Plan, needs []halo.Spec) bool {
	if p == nil || len(needs) == 0 {
		return p == nil && len(needs) == 0
	}
	covers := func(s, t halo.Spec) bool { return s.Name == t.Name && s.Covers(t) }
	return p.Placement == r.place && slices.EqualFunc(p.Specs, needs, covers)
}

// plannedExchange is an exchange with its plan.
type plannedExchange struct {
	*halo.Exchanger
	plan *halo.Plan
}

// addExchange makes an exchange ready.
func (r *Runner) addExchange(plan *halo.Plan, fields []*halo.Field) (*halo.Exchanger, error) {
	e, err := halo.NewExchanger(plan, r.compiler, fields...)
	if err != nil {
		return nil, err
	}
	r.resources.Add(e)
	r.initial = append(r.initial, plannedExchange{e, plan})
	return e, nil
}

// addOnce makes the exchange of what is only read ready, for each level of it.
func (r *Runner) addOnce(plan *halo.Plan) error {
	if plan == nil {
		return nil
	}
	levels := 1
	for _, v := range r.step.onlyRead() {
		levels = max(levels, v.Levels())
	}
	for level := range levels {
		var fields []*halo.Field
		for _, v := range r.step.onlyRead() {
			fields = append(fields, v.Level(int64(level)))
		}
		if _, err := r.addExchange(plan, fields); err != nil {
			return err
		}
		r.once += plan.Bytes()
	}
	return nil
}

// addGhosts makes the ghosts behind physical faces ready, of variables of which ghosts are read, or sent after a group
// of steps.
func (r *Runner) addGhosts() error {
	for _, v := range r.step.variables() {
		if !r.step.readsAround(v) && (r.step.group() == 1 || !r.step.writes(v)) {
			continue
		}
		for _, f := range v.levels {
			g, err := r.step.newGhosts(r.compiler, v, f)
			if err != nil {
				return err
			}
			r.resources.Add(g)
			r.ghosts[v] = append(r.ghosts[v], g)
		}
	}
	return nil
}

// addExchanges makes the exchanges ready. Phases in which the same fields are exchanged share
// one.
func (r *Runner) addExchanges(ctx context.Context) error {
	made := map[string]*halo.Exchanger{}
	for phase := range r.period {
		if err := ctx.Err(); err != nil && !r.shared() { // all processes make all exchanges ready
			return err
		}
		var stages []*halo.Exchanger
		for i, plan := range r.plans {
			if plan == nil {
				stages = append(stages, nil)
				continue
			}
			key := fmt.Sprint(i)
			var fields []*halo.Field
			for _, a := range r.step.sent(i) {
				fields = append(fields, a.field(int64(phase)))
				key += fmt.Sprint(" ", a.slot(int64(phase)))
			}
			if made[key] == nil {
				var err error
				if made[key], err = r.addExchange(plan, fields); err != nil {
					return err
				}
			}
			stages = append(stages, made[key])
		}
		r.exchanges = append(r.exchanges, stages)
	}
	return nil
}

// exchanged reports whether a stage's exchange brings ghosts of the variable.
func (r *Runner) exchanged(v *Variable) bool {
	for i := range r.step.Stages {
		if slices.ContainsFunc(r.step.sent(i), func(a Access) bool { return a.Variable == v }) {
			return true
		}
	}
	return false
}

// messagesOf returns those of a stage's plan.
func (r *Runner) messagesOf(stage int) []halo.Message {
	if r.plans[stage] == nil {
		return nil
	}
	return r.plans[stage].Messages
}

// bytes returns what a step sends from device to device.
func (r *Runner) bytes() (n int64) {
	for _, plan := range r.plans {
		if plan != nil {
			n += plan.Bytes()
		}
	}
	return n
}

// Placement returns where the variables lie, nil of a nil runner.
func (r *Runner) Placement() *halo.Placement {
	if r == nil {
		return nil
	}
	return r.place
}

// Plans returns the messages of a step, by stage; none of a nil runner.
func (r *Runner) Plans() []*halo.Plan {
	if r == nil {
		return nil
	}
	return r.plans
}

// Done returns the newest level of the variables: how many steps were made, by this runner and others. It is 0 of a nil
// runner, and where the variables are at different levels.
func (r *Runner) Done() int64 {
	if r == nil {
		return 0
	}
	level, _ := r.step.newest(1)
	return level
}

// Boxes returns what a subdomain of this process sweeps in a stage: its boundary region, up to six boxes that do not
// overlap, and its interior; nothing where there is no such subdomain or stage.
func (r *Runner) Boxes(stage, rank int) (boundary []domain.Box, interior domain.Box) {
	if r == nil || stage < 0 || stage >= len(r.step.Stages) || !slices.Contains(r.local, rank) {
		return nil, domain.Box{}
	}
	b := r.subdomains[rank].stages[0][stage].boxes
	return b.boundary, b.interior
}

// Tuning returns those of the stages that were tuned, in order, by the first device that tuned them.
// CPU devices tune nothing, nor does a stage of user kernels.
func (r *Runner) Tuning() (all []Tuning) {
	if r == nil {
		return nil
	}
	for stage := range r.step.Stages {
		var found Tuning
		for _, rank := range r.local {
			for _, phase := range r.subdomains[rank].stages {
				t, took := phase[stage].tuning, found.Took
				if found.Layers == 0 {
					found = t
				}
				found.Took = took + t.Took
			}
		}
		if found.Layers > 0 {
			all = append(all, found)
		}
	}
	return all
}

// shared reports whether other processes take part.
func (r *Runner) shared() bool { return isShared(r.place) }

// workerOf returns which of the process's subdomains that of a rank is: the number of its worker where each has one.
func (r *Runner) workerOf(rank int) int { return slices.Index(r.local, rank) }

// Close frees what the runner allocated. It does nothing for a nil or closed runner. During a run it returns an error
// and the runner stays open.
func (r *Runner) Close() error {
	if r == nil {
		return nil
	}
	switch err := r.guard.Close(); {
	case errors.Is(err, guard.ErrClosed):
		return nil
	case err != nil:
		return fmt.Errorf("scheme: a run of this runner is under way: %w: close it after that", err)
	}
	return r.resources.Close()
}

// boundaryLayers returns how deep the boundary region of a stage is at each side: what
// neighbours need of what it writes, what it reads of ghosts that come from neighbours or change
// from step to step, and what ghosts behind physical faces are made from. All else, the interior,
// is swept while messages travel. Neighbours need nothing of a stage after which nothing is sent.
func (s *subdomain) boundaryLayers(r *Runner, stage int, sends bool) (layers domain.Radius) {
	st := &r.step.Stages[stage]
	if sends {
		for _, i := range s.out[stage] {
			for _, p := range r.messagesOf(stage)[i].Parts {
				deepen(&layers, p.Dir, p.Send.Size(), p.Send.Size())
			}
		}
	}
	for _, a := range st.Writes {
		if g := r.ghosts[a.Variable]; g != nil {
			layers = layers.Max(g[0].Layers(s.rank))
		}
	}
	for _, a := range st.Reads {
		reads, changing := a.footprint().Radius(), domain.Radius{}
		if g := r.ghosts[a.Variable]; g != nil {
			changing = g[0].Layers(s.rank)
		}
		for _, side := range domain.Faces(r.place.Grid.Dims) {
			_, inside := r.place.Neighbour(s.rank, side)
			if inside && r.exchanged(a.Variable) || !inside && at(changing, side) > 0 {
				deepen(&layers, side, reads.Minus, reads.Plus)
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
func (s *subdomain) boxesOf(r *Runner, stage int, n int64) (b boxes) {
	b.owned = r.place.Subdomains[s.rank].Box
	b.whole = b.owned
	if !r.step.grows(n, stage) {
		b.interior, b.boundary = domain.Split(b.owned, s.boundaryLayers(r, stage, true))
		return b
	}
	b.grown = true
	b.whole = r.place.Grown(s.rank, r.step.growth(n, stage))
	b.boundary = []domain.Box{b.whole}
	_, b.ghosts = domain.Split(b.whole, b.growth())
	return b
}
