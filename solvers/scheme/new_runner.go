package scheme

import (
	"context"
	"errors"

	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels"
)

// NewRunner makes a step ready over a plan of Step.Plan: it compiles, and allocates all that steps
// need. New does so for the devices of a session. The content of the variables does not matter yet.
// When the context ends, so does NewRunner, before the next subdomain. Close frees what it made, and leaves
// the variables.
func NewRunner(ctx context.Context, step *Step, plan *Plan, c *kernels.Compiler) (x *Runner, err error) {
	if err := step.Check(); err != nil {
		return nil, err
	}
	switch {
	case plan == nil:
		return nil, errors.New("scheme: the plan is nil: see Step.Plan")
	case c == nil:
		return nil, errors.New("scheme: the compiler is nil: see kernels.NewCompiler")
	}
	x = &Runner{
		step: step, place: step.placement(), plans: plan.Stages, compiler: c, period: step.period(),
		ghosts: map[*Variable][]*boundary.Ghosts{},
	}
	made := x
	defer func() {
		if err != nil {
			x, err = nil, errors.Join(err, made.Close())
		}
	}()
	if err := x.checkPlan(plan); err != nil {
		return nil, err
	}
	if err := x.addGhosts(); err != nil {
		return nil, err
	}
	if err := x.addExchanges(ctx); err != nil {
		return nil, err
	}
	if err := x.addOnce(plan.Once); err != nil {
		return nil, err
	}
	for rank := range x.place.Subdomains {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, err := newSubdomain(rank, x)
		if err != nil {
			return nil, err
		}
		x.resources.Add(d)
		x.subdomains = append(x.subdomains, d)
	}
	return x, nil
}
