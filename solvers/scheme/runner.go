package scheme

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/guard"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// subdomain is one subdomain with the prepared launches of all stages, for each phase: step n has phase n mod
// the step's period.
type subdomain struct {
	resources streams.Resources
	rank      int
	device    *streams.Device
	stages    [][]stageLaunches // by phase, then by stage
	split     [][]total         // norms and reductions by phase, taken by sweeps of boundary and interior
	whole     [][]total         // norms and reductions by phase, taken by whole sweeps
	totals    [][]total         // norms and reductions by phase, as the scheme takes them
	out       [][]int           // by stage: sent messages of its plan
	in        [][]int           // by stage: received messages
}

// stageLaunches are the launches of a stage. Those without work are nil.
type stageLaunches struct {
	plain, measured sweeps // measured also takes norms, if the stage can
	boxes           boxes
	tuning          Tuning // zero if the stage is not tuned

	// of a point function
	sweeper *sweep.Sweeper
	arrays  sweep.Arrays
	totals  [2]*sweep.Totals // of boundary and interior, and of whole sweeps; nil if there are none
}

// sweeps are the launches that sweep a subdomain.
type sweeps struct {
	boundary Launch // the boundary region
	interior Launch // the rest
	whole    Launch // both at once
}

// boxes are the swept boxes. A stage that sweeps ghosts has no interior: its boundary region is everything.
type boxes struct {
	boundary []domain.Box
	sides    []domain.Direction // of the boundary region, one per box; none if ghosts are swept
	interior domain.Box
	whole    domain.Box
	ghosts   []domain.Box // ghosts of neighbors that are swept too
	owned    domain.Box
	grown    bool
}

// growth returns how many layers of ghosts are swept.
func (b *boxes) growth() domain.Radius {
	return domain.Radius{Minus: b.owned.Lo.Sub(b.whole.Lo), Plus: b.whole.Hi.Sub(b.owned.Hi)}
}

// large returns the box with most of the swept points.
func (b boxes) large() domain.Box {
	if b.grown {
		return b.whole
	}
	return b.interior
}

// region is a launch of a stage, and where it is stored.
type region struct {
	name            string
	boxes           []domain.Box
	plain, measured *Launch
}

// regions returns the regions of a stage: boundary, interior, and last the whole.
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
	options    Options   // of Steps
	once       int64     // bytes that a run sends before its steps, of what is only read
	done       int64     // the level at which the run began that was made last
	kept       io.Closer // see Options.Keep
	changed    int       // how often SetParameters was called
	clock      stepClock // of a step with Pace
	broken     error     // of a run that ended in the middle of a step
	guard      guard.Guard
}

var errNoRunner = errors.New("scheme: the runner is nil: see New")

// checkPlan returns an error unless the plan has the exchanges of the step.
func (r *Runner) checkPlan(plan *Plan) error {
	if len(plan.Stages) != len(r.step.Stages) {
		return fmt.Errorf("scheme: the plan must have %d stages, got %d", len(r.step.Stages), len(plan.Stages))
	}
	for i, p := range plan.Stages {
		if !r.isOf(p, r.step.sentSpecs(i)) {
			return fmt.Errorf("scheme: the plan of stage %d must be for the placement and the fields of the step", i)
		}
	}
	if !r.isOf(plan.Once, specsOf(r.step.onlyRead())) {
		return errors.New("scheme: Plan.Once must be for the placement and the fields of the step")
	}
	return nil
}

// isOf reports whether a plan updates all ghosts of these specs; nil for none.
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

// addExchange prepares an exchange.
func (r *Runner) addExchange(plan *halo.Plan, fields []*halo.Field) (*halo.Exchanger, error) {
	e, err := halo.NewExchanger(plan, r.compiler, fields...)
	if err != nil {
		return nil, err
	}
	r.resources.Add(e)
	r.initial = append(r.initial, plannedExchange{e, plan})
	return e, nil
}

// addOnce prepares the exchange of variables that are only read, for each level.
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

// addGhosts prepares the ghosts outside of physical boundaries, for variables whose ghosts are read, or sent
// after a group of steps. Those of fields that are constant along an axis are as they were filled.
func (r *Runner) addGhosts() error {
	for _, v := range r.step.variables() {
		if !r.step.readsAround(v) && (r.step.group() == 1 || !r.step.writes(v)) || v.Spec.IsConstant() {
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

// addExchanges prepares the exchanges. Phases that exchange the same fields share one.
func (r *Runner) addExchanges(ctx context.Context) error {
	made := map[string]*halo.Exchanger{}
	for phase := range r.period {
		if err := ctx.Err(); err != nil && !r.shared() { // all processes prepare all exchanges
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

// exchanged reports whether a stage's exchange updates ghosts of the variable.
func (r *Runner) exchanged(v *Variable) bool {
	for i := range r.step.Stages {
		if slices.ContainsFunc(r.step.sent(i), func(a Access) bool { return a.Variable == v }) {
			return true
		}
	}
	return false
}

// messagesOf returns the messages of a stage's plan.
func (r *Runner) messagesOf(stage int) []halo.Message {
	if r.plans[stage] == nil {
		return nil
	}
	return r.plans[stage].Messages
}

// bytes returns the bytes that a step sends from device to device.
func (r *Runner) bytes() (n int64) {
	for _, plan := range r.plans {
		if plan != nil {
			n += plan.Bytes()
		}
	}
	return n
}

// Placement returns the placement of the variables, nil for a nil runner.
func (r *Runner) Placement() *halo.Placement {
	if r == nil {
		return nil
	}
	return r.place
}

// Plans returns the exchanges of a step, by stage; empty for a nil runner.
func (r *Runner) Plans() []*halo.Plan {
	if r == nil {
		return nil
	}
	return r.plans
}

// Done returns the newest level of the variables: the number of steps run, by this runner and others. It is 0
// for a nil runner, and if the variables are at different levels.
func (r *Runner) Done() int64 {
	if r == nil {
		return 0
	}
	level, _ := r.step.newest(1)
	return level
}

// Boxes returns the boxes that a subdomain of this process sweeps in a stage: its boundary region, up to six
// disjoint boxes, and its interior; both empty if there is no such subdomain or stage.
func (r *Runner) Boxes(stage, rank int) (boundary []domain.Box, interior domain.Box) {
	if r == nil || stage < 0 || stage >= len(r.step.Stages) || !slices.Contains(r.local, rank) {
		return nil, domain.Box{}
	}
	b := r.subdomains[rank].stages[0][stage].boxes
	return b.boundary, b.interior
}

// Tuning returns the tunings of the tuned stages, in order, by the first device that tuned them. CPU devices
// and stages with user kernels are not tuned.
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

// SetParameters sets the parameters of the point function of a stage for later runs: p is a value of the type of
// Point.Parameters, or a pointer to one. Stage.Parameters, if set, starts from them in each step. If processes
// share the grid, all of them call it. During a run it is an error.
func (r *Runner) SetParameters(stage int, p any) error {
	if r == nil {
		return errNoRunner
	}
	if err := r.guard.Hold(guard.Alone); err != nil {
		return fmt.Errorf("scheme: Runner.SetParameters: the runner must be open and not running: %w", err)
	}
	defer r.guard.Release(guard.Alone)
	if stage < 0 || stage >= len(r.step.Stages) || r.step.Stages[stage].Point == nil {
		return fmt.Errorf("scheme: Runner.SetParameters: must name a stage with a point function, got %d of %d", stage,
			len(r.step.Stages))
	}
	for _, rank := range r.local {
		for _, stages := range r.subdomains[rank].stages {
			if err := stages[stage].sweeper.SetParameters(p); err != nil {
				return err
			}
		}
	}
	r.changed++
	return nil
}

// shared reports whether other processes take part.
func (r *Runner) shared() bool { return isShared(r.place) }

// workerOf returns the index of a rank's subdomain in this process: the number of its worker if each has one.
func (r *Runner) workerOf(rank int) int { return slices.Index(r.local, rank) }

// forget closes the kept run.
func (r *Runner) forget() (err error) {
	if r.kept != nil {
		err = r.kept.Close()
	}
	r.kept = nil
	return err
}

// Close frees what the runner allocated. It does nothing for a nil or closed runner. During a run it returns
// an error and the runner stays open.
func (r *Runner) Close() error {
	if r == nil {
		return nil
	}
	switch err := r.guard.Close(); {
	case errors.Is(err, guard.ErrClosed):
		return nil
	case err != nil:
		return fmt.Errorf("scheme: a run of this runner is in progress: %w: close it after the run", err)
	}
	return errors.Join(r.forget(), r.resources.Close())
}

// A stepClock is the time of the newest level of a step with Pace.
type stepClock struct {
	level  int64   // the newest level
	now    float64 // its time
	length float64 // length of the step after it or, between two runs, of the step before it
}

// momentOf returns the moment of the step that computes a level.
func (r *Runner) momentOf(level int64) sweep.Moment {
	if !r.step.paced() {
		return sweep.Moment{Step: level, Length: r.step.Length}
	}
	m := sweep.Moment{Step: level, Length: r.clock.length}
	m.Start = r.clock.now - float64(float64(r.clock.level)*m.Length)
	return m
}

// timeOf returns the time of a level at the start of a run.
func (r *Runner) timeOf(level int64) float64 {
	if !r.step.paced() {
		return float64(level) * r.step.Length
	}
	return r.clock.now - float64(float64(r.clock.level-level)*r.clock.length)
}

// Time returns the time of the newest level of the variables, as far as this runner knows it: with Step.Pace, it is
// that of level 0 or of its last run, and otherwise the level times Step.Length. It is 0 for a nil runner.
func (r *Runner) Time() float64 {
	if r == nil {
		return 0
	}
	level := r.Done()
	if !r.step.paced() || r.clock.level != level {
		return float64(level) * r.step.Length
	}
	return r.clock.now
}

// SetTime sets the time of the newest level of the variables, and the length of the step that computed it, for a step
// with Step.Pace that continues from restored fields. Otherwise it does nothing.
func (r *Runner) SetTime(time, length float64) error {
	if r == nil {
		return errNoRunner
	}
	if err := r.guard.Hold(guard.Alone); err != nil {
		return fmt.Errorf("scheme: Runner.SetTime: the runner must be open and not running: %w", err)
	}
	defer r.guard.Release(guard.Alone)
	if r.step.paced() {
		r.clock = stepClock{level: r.Done(), now: time, length: length}
	}
	return nil
}

// boundaryLayers returns the depth of the boundary region of a stage at each side: the written points that
// neighbors need, the points that depend on ghosts which come from neighbors or change from step to step, and
// those that ghosts outside of physical boundaries depend on. The rest, the interior, is swept while messages
// are in flight. Neighbors need no points of a stage without an exchange after it.
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
			_, inside := r.place.Neighbor(s.rank, side)
			if inside && r.exchanged(a.Variable) || !inside && at(changing, side) > 0 {
				deepen(&layers, side, reads.Minus, reads.Plus)
			}
		}
	}
	return layers
}

// deepen makes the boundary region as deep at the sides of a direction as layers.
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

// boxesOf returns the boxes that a stage of step n, or of its phase, sweeps.
func (s *subdomain) boxesOf(r *Runner, stage int, n int64) (b boxes) {
	b.owned = r.place.Subdomains[s.rank].Box
	b.whole = b.owned
	if !r.step.grows(n, stage) {
		b.interior, b.sides, b.boundary = domain.SplitBySide(b.owned, s.boundaryLayers(r, stage, true))
		return b
	}
	b.grown = true
	b.whole = r.place.Grown(s.rank, r.step.growth(n, stage))
	b.boundary = []domain.Box{b.whole}
	_, b.ghosts = domain.Split(b.whole, b.growth())
	return b
}
