package scheme

import (
	"cmp"
	"context"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
)

// Ahead begins to compile what a run of the step by the options' scheme asks for, in the background and side by
// side; for Auto what all schemes ask for that Fastest will try, or, where their trials are remembered, the fastest
// of them. It makes all ready on devices that only count, as DryRun does, and says nothing of what cannot be: who
// makes it ready for a run does. On host devices there is nothing to compile. The links need not be measured yet.
func Ahead(ctx context.Context, step *Step, s Search, o Options) *kernels.Ahead {
	a := s.Compiler.Ahead(ctx)
	if step.placement().FirstDevice().GoKernels {
		return a
	}
	for _, c := range s.asked(step, o) {
		c.begin(ctx, step, a, o)
	}
	return a
}

// begin begins to compile what the candidate needs.
func (c candidate) begin(ctx context.Context, step *Step, a *kernels.Ahead, o Options) {
	o.Scheme = c.name
	_, _ = DryRun(ctx, step, c.plan, a.Compiler(), o)
}

// asked returns what the options' scheme stands for.
func (s Search) asked(step *Step, o Options) []candidate {
	name, path := o.Scheme, s.Path
	if (name == Auto || name == "") && step.placement().Processes.IsAlone() {
		if trials, ok := s.memory(step, o).recall(s.paths(step)); ok {
			name, path = trials[0].Scheme, trials[0].Path
		} else if !s.Known {
			return s.candidates(step)
		}
	}
	name = Choose(name, step.placement())
	needs, err := NeedsOf(name)
	if err != nil {
		return nil
	}
	if path == p2p.Auto || path == "" {
		path = cmp.Or(needs.Path, p2p.Auto)
	}
	plan, err := step.Plan(s.Links, path)
	if err != nil {
		return nil
	}
	return []candidate{{name, path, plan}}
}
