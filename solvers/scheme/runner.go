package scheme

import (
	"errors"
	"fmt"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Runner is a step made ready on its devices. It steps the variables any number of times.
type Runner struct {
	resources  streams.Resources
	step       *Step
	place      *halo.Placement
	plans      []*halo.Plan                     // by stage; nil after a stage that needs no exchange
	exchanges  [][]*halo.Exchanger              // by phase, then by stage
	ghosts     map[*Variable][]*boundary.Ghosts // by variable with ghosts that are read, then by field
	subdomains []*subdomain
	compiler   *kernels.Compiler
	period     int
	done       int64 // steps
	broken     error // of a run that ended in the middle of a step
}

// New makes a step ready: it compiles, and allocates all that steps need. plans are those of
// Step.Plan. The content of the variables does not matter yet. Close frees what New made, and
// leaves the variables.
func New(step *Step, plans []*halo.Plan, c *kernels.Compiler) (x *Runner, err error) {
	if err := step.Check(); err != nil {
		return nil, err
	}
	x = &Runner{
		step: step, place: step.placement(), plans: plans, compiler: c, period: step.period(),
		ghosts: map[*Variable][]*boundary.Ghosts{},
	}
	made := x
	defer func() {
		if err != nil {
			x, err = nil, errors.Join(err, made.Close())
		}
	}()
	if err := x.checkPlans(); err != nil {
		return nil, err
	}
	if err := x.addGhosts(); err != nil {
		return nil, err
	}
	if err := x.addExchanges(); err != nil {
		return nil, err
	}
	for rank := range x.place.Subdomains {
		d, err := newSubdomain(rank, x)
		if err != nil {
			return nil, err
		}
		x.resources.Add(d)
		x.subdomains = append(x.subdomains, d)
	}
	return x, nil
}

// checkPlans returns an error unless there is a plan of the right fields for each stage.
func (x *Runner) checkPlans() error {
	if len(x.plans) != len(x.step.Stages) {
		return fmt.Errorf("scheme: %d plans for %d stages", len(x.plans), len(x.step.Stages))
	}
	for i, plan := range x.plans {
		sent := x.step.sent(i)
		if plan == nil && len(sent) == 0 {
			continue
		}
		if plan == nil || plan.Placement != x.place || len(plan.Specs) != len(sent) {
			return fmt.Errorf("scheme: the plan of stage %d is for another placement or other fields than the step's", i)
		}
		for k, a := range sent {
			if plan.Specs[k] != a.Variable.Spec {
				return fmt.Errorf("scheme: the plan of stage %d is for another field than %q", i, a.Variable.Spec.Name)
			}
		}
	}
	return nil
}

// addGhosts makes the ghosts behind physical faces ready, of variables of which ghosts are read.
func (x *Runner) addGhosts() error {
	for _, v := range x.step.variables() {
		if !x.step.readsAround(v) {
			continue
		}
		for _, f := range v.levels {
			g, err := boundary.New(x.compiler, f, v.Boundary)
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
func (x *Runner) addExchanges() error {
	made := map[string]*halo.Exchanger{}
	for phase := range x.period {
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

// messages returns how many messages a step has.
func (x *Runner) messages() (n int) {
	for _, plan := range x.plans {
		if plan != nil {
			n += len(plan.Messages)
		}
	}
	return n
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

// Done returns how many steps were made.
func (x *Runner) Done() int64 { return x.done }

// Boxes returns what a subdomain sweeps in a stage: its boundary region, up to six boxes that do not
// overlap, and its interior.
func (x *Runner) Boxes(stage, rank int) (boundary []domain.Box, interior domain.Box) {
	b := x.subdomains[rank].stages[0][stage].boxes
	return b.boundary, b.interior
}

// Tuning returns in which shape the first device sweeps, and the time that all devices took to
// find theirs out.
func (x *Runner) Tuning() (first kernels.Tuning, took time.Duration) {
	for _, d := range x.subdomains {
		took += d.tuning.Took
	}
	return x.subdomains[0].tuning, took
}

// Close frees what it holds. Closing twice is no error.
func (r *Runner) Close() error { return r.resources.Close() }
