package scheme

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

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
		var sent []*Variable
		for _, a := range x.step.sent(i) {
			sent = append(sent, a.Variable)
		}
		if !x.isOf(p, sent) {
			return fmt.Errorf("scheme: the plan of stage %d is for another placement or other fields than the step's", i)
		}
	}
	if !x.isOf(plan.Once, x.step.onlyRead()) {
		return fmt.Errorf("scheme: the plan of what is only read is for another placement or other fields than the step's")
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

// addGhosts makes the ghosts behind physical faces ready, of variables of which ghosts are read, or sent after a group of steps.
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
		for _, a := range x.step.sent(i) {
			if a.Variable == v {
				return true
			}
		}
	}
	return false
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
