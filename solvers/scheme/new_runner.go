package scheme

import (
	"context"
	"errors"

	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels"
)

// NewRunner makes a step ready over a plan of Step.Plan: it compiles, and allocates all that steps
// need. New does so for the devices of a session. The content of the variables does not matter yet.
// When the context ends, so does NewRunner, before the next subdomain. Where processes share the grid all call it, and
// where one cannot make its part ready, all return an error. Close frees what it made, and leaves
// the variables.
func NewRunner(ctx context.Context, step *Step, plan *Plan, c *kernels.Compiler) (x *Runner, err error) {
	if err := step.Check(); err != nil {
		return nil, err
	}
	x = &Runner{step: step, place: step.placement(), compiler: c, period: step.period(), ghosts: map[*Variable][]*boundary.Ghosts{}}
	made := x
	defer func() {
		if err != nil {
			x, err = nil, errors.Join(err, made.Close())
		}
	}()
	if err := x.place.Agree(context.Background(), "make a step ready", x.begin(plan)); err != nil {
		return nil, err
	}
	if err := x.addExchanges(ctx); err != nil {
		return nil, err
	}
	if err := x.addOnce(plan.Once); err != nil {
		return nil, err
	}
	return x, x.place.Agree(context.Background(), "make the subdomains ready", x.addSubdomains(ctx))
}

// begin makes all ready that takes no other process.
func (x *Runner) begin(plan *Plan) error {
	switch {
	case plan == nil:
		return errors.New("scheme: the plan is nil: see Step.Plan")
	case x.compiler == nil:
		return errors.New("scheme: the compiler is nil: see kernels.NewCompiler")
	}
	if err := x.checkPlan(plan); err != nil {
		return err
	}
	x.plans, x.local = plan.Stages, localRanks(x.place)
	return x.addGhosts()
}

// addSubdomains makes those of this process ready.
func (x *Runner) addSubdomains(ctx context.Context) error {
	x.subdomains = make([]*subdomain, len(x.place.Subdomains))
	for _, rank := range x.local {
		if err := ctx.Err(); err != nil {
			return err
		}
		d, err := newSubdomain(rank, x)
		if err != nil {
			return err
		}
		x.resources.Add(d)
		x.subdomains[rank] = d
	}
	return nil
}
