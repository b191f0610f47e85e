package scheme

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// newSubdomain prepares a subdomain.
func newSubdomain(rank int, r *Runner) (*subdomain, error) {
	d := &subdomain{rank: rank, device: r.place.Devices[rank]}
	d.findMessages(r)
	for phase := range r.period {
		if err := d.addPhase(r, phase); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// addPhase prepares the stages of the steps of a phase.
func (s *subdomain) addPhase(r *Runner, phase int) error {
	var stages []stageLaunches
	for i := range r.step.Stages {
		made, err := s.newStage(r, i, int64(phase))
		if err != nil {
			return fmt.Errorf("stage %d %q: %w", i, r.step.Stages[i].title(), err)
		}
		stages = append(stages, made)
	}
	s.stages = append(s.stages, stages)
	for k, totals := range []*[][]total{&s.split, &s.whole} {
		all, _, err := s.totalsOf(r, &s.resources, phase, func(stage int) []*sweep.Totals {
			return []*sweep.Totals{stages[stage].totals[k]}
		})
		if err != nil {
			return err
		}
		*totals = append(*totals, all)
	}
	return nil
}

// totalsOf returns the norms and reductions of the steps of a phase: the sweeps of stages take those that
// byStage returns, which may be nil, and the other norms are taken from the fields after a step. swept
// reports whether sweeps take all. Closing owner frees what it makes.
func (s *subdomain) totalsOf(
	r *Runner, owner *streams.Resources, phase int, byStage func(stage int) []*sweep.Totals,
) (all []total, swept bool, err error) {
	taken := map[int]string{}
	for stage := range r.step.Stages {
		parts := slices.DeleteFunc(byStage(stage), func(t *sweep.Totals) bool { return t == nil })
		if len(parts) == 0 {
			continue
		}
		t, ok := r.step.pointTotal(&r.step.Stages[stage])
		if !ok {
			continue
		}
		t.parts = parts
		all = append(all, t)
		maps.Copy(taken, t.variables)
	}
	swept = len(all) > 0 && len(taken) == len(r.step.Measured)
	for v := range r.step.Measured {
		if _, ok := taken[v]; ok {
			continue
		}
		t, err := s.measureFields(r, v, int64(phase), owner)
		if err != nil {
			return nil, false, err
		}
		all = append(all, t)
	}
	return all, swept, nil
}

// newStage prepares a stage for the steps n, n + period, ...
func (s *subdomain) newStage(r *Runner, i int, n int64) (made stageLaunches, err error) {
	st := &r.step.Stages[i]
	made.boxes = s.boxesOf(r, i, n)
	if st.Point != nil {
		err = s.newPoint(r, st, n, &made)
	} else {
		err = s.newKernels(st, n, &made)
	}
	return made, err
}

// newKernels prepares a stage with user kernels. A dry run makes none.
func (s *subdomain) newKernels(st *Stage, n int64, made *stageLaunches) error {
	if s.device.IsDry() {
		return nil
	}
	r := Region{Rank: s.rank, Device: s.device}
	for _, a := range st.Reads {
		r.Reads = append(r.Reads, a.field(n))
	}
	for _, a := range st.Writes {
		r.Writes = append(r.Writes, a.field(n))
	}
	for _, of := range made.regions() {
		if r.Name, r.Boxes = of.name, of.boxes; len(r.Boxes) == 0 {
			continue
		}
		l, err := st.kernels(r)
		if err != nil {
			return err
		}
		*of.plain, *of.measured = l, l
	}
	return nil
}

// measureFields takes the norms of a variable from its fields after a step, over the points that stages
// sweep, if no stage takes them during the sweep. Closing owner frees what it makes.
func (s *subdomain) measureFields(r *Runner, variable int, n int64, owner *streams.Resources) (total, error) {
	v := r.step.Measured[variable]
	real, _ := v.real()
	arrays, _ := v.Spec.Arrays()
	if arrays < v.Spec.Components {
		return nil, fmt.Errorf("scheme: %w: the norms of %q, whose %d components are adjacent, can only be taken by "+
			"the stage that writes it, if that reads the level before at the point",
			ErrUnsuited, v.Spec.Name, v.Spec.Components)
	}
	reducer, err := reduce.NewNormReducer(r.compiler, s.device, real, r.step.Sums)
	if err != nil {
		return nil, err
	}
	all := fieldTotal{variable: variable}
	for c := range arrays {
		next, last := v.Level(n).Array(s.rank, c), v.Level(n-1).Array(s.rank, c)
		t, err := reducer.Norms(next, last, next.Layout.Owned.Intersect(r.place.Subdomains[s.rank].Box))
		if err != nil {
			return nil, err
		}
		owner.Add(t)
		all.components = append(all.components, t)
	}
	return all, nil
}

// NewRunner prepares a step with a plan of Step.Plan: it compiles, and allocates everything that steps need.
// New does so for the devices of a session. The content of the variables does not matter yet. When the
// context ends, it stops before the next subdomain. If processes share the grid, all of them call it; if one
// fails, all return an error. Close frees what it made, but not the variables.
func NewRunner(ctx context.Context, step *Step, plan *Plan, c *kernels.Compiler) (r *Runner, err error) {
	if err := step.Check(); err != nil {
		return nil, err
	}
	r = &Runner{
		step: step, place: step.placement(), compiler: c, period: step.period(),
		ghosts: map[*Variable][]*boundary.Ghosts{},
	}
	defer func() {
		if err != nil {
			r, err = nil, errors.Join(err, r.Close())
		}
	}()
	var open uses
	for _, v := range step.variables() {
		for _, f := range v.levels {
			if err == nil {
				err = open.add(f.KeepOpen())
			}
		}
	}
	if err == nil {
		defer open.release()
		err = r.begin(ctx, plan)
	}
	if err := agree(r.place, "make a step ready", err); err != nil {
		return r, err
	}
	if err := r.addExchanges(ctx); err != nil {
		return r, err
	}
	if err := r.addOnce(plan.Once); err != nil {
		return r, err
	}
	return r, agree(r.place, "make the subdomains ready", r.addSubdomains(ctx))
}

// begin prepares everything that needs no other process.
func (r *Runner) begin(ctx context.Context, plan *Plan) error {
	switch {
	case ctx == nil:
		return errNoContext
	case plan == nil:
		return errors.New("scheme: the plan is nil: see Step.Plan")
	case r.compiler == nil:
		return errors.New("scheme: the compiler is nil: see kernels.NewCompiler")
	}
	if err := r.checkPlan(plan); err != nil {
		return err
	}
	r.plans, r.local = plan.Stages, localRanks(r.place)
	return r.addGhosts()
}

// addSubdomains prepares the subdomains of this process.
func (r *Runner) addSubdomains(ctx context.Context) error {
	r.subdomains = make([]*subdomain, len(r.place.Subdomains))
	for _, rank := range r.local {
		if err := ctx.Err(); err != nil {
			return err
		}
		d, err := newSubdomain(rank, r)
		if err != nil {
			return err
		}
		r.resources.Add(d)
		r.subdomains[rank] = d
	}
	return nil
}

// run is one run of a step, as used by schemes. Schemes add what they make to the run's resources. Steps of a
// run count from 1.
type run struct {
	resources streams.Resources
	*Runner
	threads *streams.WorkerGroup
	from    int64                     // steps before this part of the run
	last    int64                     // the last step
	rounds  int64                     // number of rounds with norm checks
	pace    int64                     // steps of its last rounds, see stepPace
	credits []map[int]*streams.Signal // by stage and message, if needed, see needsCredit
	frames  map[int]*sweep.Frames     // by rank, see feed
}

// phase returns the phase of a step.
func (r *run) phase(n int64) int { return int((r.done + n) % int64(r.period)) }

// time returns the time of the level that a step computes.
func (r *run) time(n int64) float64 { return r.moment(n).Time(1) }

// moment is when a step begins.
func (r *run) moment(n int64) sweep.Moment { return r.momentOf(r.done + n) }

// timeWritten returns the time of what a stage of step n writes.
func (r *run) timeWritten(stage int, n int64) float64 {
	switch part := r.step.Stages[stage].Time; {
	case part == Beginning:
		return r.moment(n).Time(0)
	case part > 0 && part < 1:
		return r.moment(n).Time(part)
	}
	return r.time(n)
}

// launch queues a launch, unless it is nil. It is given the time at which the step begins.
func (r *run) launch(s *streams.Stream, l Launch, n int64) error {
	if l == nil {
		return nil
	}
	return l(s, r.done+n, r.moment(n).Time(0))
}

// exchange returns the exchange after a stage of a step, nil if there is none.
func (r *run) exchange(stage int, n int64) *halo.Exchanger { return r.exchanges[r.phase(n)][stage] }

// substep numbers the stages of all steps, from 1.
func (r *run) substep(n int64, stage int) int64 {
	return (n-1)*int64(len(r.step.Stages)) + int64(stage) + 1
}

// sends reports whether an exchange may follow a stage of a step.
func (r *run) sends(stage int, n int64) bool { return !r.step.grows(r.done+n, stage) }

// exchangesUpTo returns how many exchanges end groups in steps 1 to n.
func (r *run) exchangesUpTo(n int64) int64 {
	k := int64(r.step.group())
	return (r.done+n)/k - r.done/k
}

// exchangesTo numbers the stages after which an exchange may follow, from 1, and returns the number of such a
// stage.
func (r *run) exchangesTo(stage int, n int64) int64 {
	if r.step.group() == 1 {
		return r.substep(n, stage)
	}
	return r.exchangesUpTo(n)
}

// patience is how long a worker waits for its own device: less than others wait for the worker, so that the
// first error names the device.
func (r *run) patience() time.Duration { return r.threads.Limit() / 2 }

// newStream makes a stream of the run, with a name for traces.
func (r *run) newStream(
	d *streams.Device, priority streams.Priority, name string, args ...any,
) (*streams.Stream, error) {
	s, err := d.NewStream(priority)
	if err != nil {
		return nil, err
	}
	r.resources.Add(s)
	s.SetName(name, args...)
	return s, nil
}

// newEvents makes events of the run.
func (r *run) newEvents(d *streams.Device, events ...**streams.Event) error {
	for _, e := range events {
		made, err := d.NewEvent()
		if err != nil {
			return err
		}
		r.resources.Add(made)
		*e = made
	}
	return nil
}

// refresh queues the boundary conditions for the ghosts of the variables that a stage has written, after the
// sweep of the boundary region and before messages are sent: a message may contain ghosts that are between
// its points.
func (r *run) refresh(d *subdomain, s *streams.Stream, stage int, n int64) error {
	t := r.timeWritten(stage, n)
	return r.eachWritten(stage, n, func(g *boundary.Ghosts) error { return g.Refresh(d.rank, s, r.done+n, t) })
}

// complete queues the remaining ghosts that a stage reads, in edges and corners, after those of neighbors
// have arrived.
func (r *run) complete(d *subdomain, s *streams.Stream, stage int, n int64) error {
	return r.eachReadAround(stage, n, func(g *boundary.Ghosts) error { return g.Complete(d.rank, s) })
}

// eachReadAround calls do for the ghosts of the variables that a stage of a step reads around points.
func (r *run) eachReadAround(stage int, n int64, do func(g *boundary.Ghosts) error) error {
	for _, a := range r.step.Stages[stage].Reads {
		if g := r.ghosts[a.Variable]; g != nil && a.around() {
			if err := do(g[a.slot(r.done+n)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachWritten calls do for the ghosts of the variables that a stage of a step writes.
func (r *run) eachWritten(stage int, n int64, do func(g *boundary.Ghosts) error) error {
	for _, a := range r.step.Stages[stage].Writes {
		if g := r.ghosts[a.Variable]; g != nil {
			if err := do(g[a.slot(r.done+n)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// queueTotals queues the norms of a step.
func (r *run) queueTotals(d *subdomain, s *streams.Stream, n int64) error {
	for _, t := range d.totals[r.phase(n)] {
		if err := t.Queue(s); err != nil {
			return err
		}
	}
	return nil
}

// sweeps returns the launches of a stage in a step, with norms or without.
func (s *subdomain) sweeps(r *run, stage int, n int64, norms bool) *sweeps {
	launches := &s.stages[r.phase(n)][stage]
	if norms {
		return &launches.measured
	}
	return &launches.plain
}

// takeTotals makes kernels take the norms and reductions of a subdomain's steps during sweeps, as returned by
// totals for each phase and stage, and the rest from the fields. See totalsOf.
func (r *run) takeTotals(d *subdomain, totals func(phase, stage int) []*sweep.Totals) (swept bool, err error) {
	d.totals, swept = nil, true
	for phase := range r.period {
		all, some, err := d.totalsOf(r.Runner, &r.resources, phase,
			func(stage int) []*sweep.Totals { return totals(phase, stage) })
		if err != nil {
			return false, err
		}
		d.totals, swept = append(d.totals, all), swept && some
	}
	return swept, nil
}

// takeFromFields makes the norms of a subdomain be taken from its fields, after a step.
func (r *run) takeFromFields(d *subdomain) error {
	_, err := r.takeTotals(d, func(int, int) []*sweep.Totals { return nil })
	return err
}

// setGhosts sets all ghosts that steps may read before they are written, at the start of a run: constant
// ghosts in all fields, and in fields of known levels those of neighbors and outside of physical boundaries.
func (r *run) setGhosts(at halo.Streams) error {
	for _, x := range r.initial {
		if err := r.exchangeNow(at, x); err != nil {
			return err
		}
	}
	for v, ghosts := range r.ghosts {
		for slot, g := range ghosts {
			level := r.levelIn(v, slot)
			for _, rank := range r.local {
				s := at[rank]
				if err := g.SetFixed(rank, s); err != nil {
					return err
				}
				if level > r.done+r.from-int64(r.depth(v)) {
					if err := g.Move(rank, s, level, r.timeOf(level)); err != nil {
						return err
					}
				}
				if err := g.Mirror(rank, s); err != nil {
					return err
				}
				if err := g.Complete(rank, s); err != nil {
					return err
				}
			}
		}
	}
	return at.Sync(r.patience())
}

// reduceFirst puts the reductions of the last stage for the level at which a run begins, by rank, into to.
func (r *run) reduceFirst(at halo.Streams, to []taken) error {
	last := len(r.step.Stages) - 1
	of := func(rank int) *stageLaunches { return &r.subdomains[rank].stages[r.phase(r.from)][last] }
	for _, rank := range r.local {
		made := of(rank)
		if err := errors.Join(r.launch(at[rank], made.measured.whole, r.from), made.totals[1].Queue(at[rank])); err != nil {
			return err
		}
	}
	err := at.Sync(r.patience())
	for _, rank := range r.local {
		if t, ok := r.step.pointTotal(&r.step.Stages[last]); ok {
			t.parts = []*sweep.Totals{of(rank).totals[1]}
			t.addTo(&to[rank])
		}
	}
	return err
}

// levelIn returns the newest known level in a field of the variable.
func (r *run) levelIn(v *Variable, slot int) int64 {
	level := r.done + r.from
	for v.slot(level) != slot {
		level--
	}
	return level
}

// depth returns the number of newest levels of a variable that stages read around a point.
func (r *run) depth(v *Variable) (levels int) {
	for _, a := range r.step.reads(v) {
		if a.around() {
			levels = max(levels, 1-a.Level)
		}
	}
	return levels
}

// exchangeNow executes an exchange, one message after another, and waits for it: the next one may use the
// same buffers.
func (r *run) exchangeNow(at halo.Streams, x plannedExchange) error {
	for i, m := range x.plan.Messages {
		if at[m.From] != nil {
			if err := x.Transfer(i).Send(at[m.From]); err != nil {
				return err
			}
		}
		if at[m.To] != nil {
			if err := x.Transfer(i).Receive(r.threads, at[m.To]); err != nil {
				return err
			}
		}
	}
	return at.Sync(r.patience())
}

// Close frees the run. Closing twice is not an error.
func (r *run) Close() error { return r.resources.Close() }
