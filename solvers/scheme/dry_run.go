package scheme

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Memory is the peak memory of a run on one device, in bytes.
type Memory struct {
	Device    *streams.Device // the device
	Variables int64           // all levels of all variables, with their ghosts
	Extra     int64           // other device memory: messages, values at boundaries, norms, tables and flags
	Pinned    int64           // pinned host memory: staged messages, boundary values, norms, parts of variables

	// State is the part of Variables that later steps depend on, by the names of a checkpoint. That copies all of it on
	// the device, if there is memory. DryRun of this package does not set it.
	State map[string]int64
}

// Fit returns an error, streams.ErrOutOfMemory with the sizes, if the run does not fit into the free memory.
func Fit(all []Memory) error {
	var demands []streams.Demand
	var sum Memory
	for _, m := range all {
		demands = append(demands, streams.Demand{Device: m.Device,
			Held: streams.Held{Memory: m.Variables + m.Extra, Pinned: m.Pinned}})
		sum.Variables, sum.Extra, sum.Pinned = sum.Variables+m.Variables, sum.Extra+m.Extra, sum.Pinned+m.Pinned
	}
	if err := streams.Fit(demands); err != nil {
		return fmt.Errorf("scheme: a run needs %s for variables, %s of other device memory and %s of pinned memory: "+
			"%w: use more devices, float32 or a smaller grid",
			streams.Size(sum.Variables), streams.Size(sum.Extra), streams.Size(sum.Pinned), err)
	}
	return nil
}

// DryRun returns the memory of a run of the step by the options' scheme on each device of this process, by
// running it on devices that only count allocations, see streams.DryRun: NewRunner and Run do everything
// except the work itself. User kernels are not made, and count nothing. The variables are not used.
func DryRun(ctx context.Context, step *Step, plan *Plan, c *kernels.Compiler, o Options) (all []Memory, err error) {
	if err := step.Check(); err != nil {
		return nil, err
	}
	place := step.placement().DryRun()
	defer func() { err = errors.Join(err, streams.CloseAll(place.Devices)) }()
	dry, _, err := step.copy(place)
	if err != nil {
		return nil, err
	}
	x, err := NewRunner(ctx, dry, plan.On(place), c)
	if err != nil {
		return nil, err
	}
	return x.DryRun(ctx, o)
}

// fits returns an error if a run needs more memory, in addition to the variables, than is free, or if the
// scheme does not suit the step.
func fits(ctx context.Context, step *Step, plan *Plan, c *kernels.Compiler, o Options) error {
	all, err := DryRun(ctx, step, plan, c, o)
	if err != nil {
		return err
	}
	for i := range all {
		all[i].Variables = 0 // they are allocated
	}
	return Fit(all)
}

// drySteps is the number of steps of a dry run: the memory of a step does not depend on it.
const drySteps = 2

// DryRun runs some steps with the options and returns the memory of everything made on the runner's devices,
// which are those of a streams.DryRun.
func (r *Runner) DryRun(ctx context.Context, o Options) (all []Memory, err error) {
	if r == nil {
		return nil, errNoRunner
	}
	if d := r.place.FirstDevice(); !d.IsDry() {
		return nil, fmt.Errorf("scheme: a dry run must not use a real device, got %v", d)
	}
	o.Steps, o.Progress, o.Interval = drySteps, nil, nil
	if _, err := r.Run(ctx, o); err != nil {
		return nil, err
	}
	at := map[*streams.Device]int{}
	for _, rank := range r.local {
		d := r.place.Devices[rank]
		i, seen := at[d]
		if !seen {
			most := d.Peak()
			i = len(all)
			at[d] = i
			all = append(all, Memory{Device: d.Real(), Extra: most.Memory, Pinned: most.Pinned})
		}
		for _, v := range r.step.variables() {
			for _, f := range v.levels {
				n := f.Parts[rank].Data.Memory.Size()
				all[i].Variables, all[i].Extra = all[i].Variables+n, all[i].Extra-n
			}
		}
	}
	return all, nil
}

// Ahead starts compiling, in the background and in parallel, what a run of the step by the options' scheme
// needs: for Auto what all schemes need that Fastest will try or, if their trials are cached, the fastest of
// them. It prepares everything on devices that only count allocations, like DryRun, and ignores errors: the
// run reports them. On CPU devices there is nothing to compile. The links need not be measured yet. If
// Search.Ahead is set, it compiles this too.
func Ahead(ctx context.Context, step *Step, s Search, o Options) *kernels.Ahead {
	a := s.Ahead
	if a == nil && (ctx == nil || step.Check() != nil) {
		ended, end := context.WithCancel(context.Background())
		end()
		return s.Compiler.Ahead(ended)
	}
	if a == nil {
		a = s.Compiler.Ahead(ctx)
	}
	if step.Check() != nil || step.placement().FirstDevice().GoKernels {
		return a
	}
	for _, c := range s.asked(step, o) {
		c.begin(ctx, step, a, o)
	}
	return a
}

// begin starts compiling what the candidate needs.
func (c candidate) begin(ctx context.Context, step *Step, a *kernels.Ahead, o Options) {
	o.Scheme = c.name
	_, _ = DryRun(ctx, step, c.plan, a.Compiler(), o)
}

// asked returns the candidates of the options' scheme.
func (s Search) asked(step *Step, o Options) []candidate {
	name, path := o.Scheme, s.Path
	if (name == Auto || name == "") && step.placement().Processes.IsAlone() {
		if f, err := s.memory(step, o).Get(); err == nil && !f.Partial {
			name, path = f.Trials[0].Scheme, f.Trials[0].Path
		} else if !s.Known {
			return s.candidates(step)
		}
	}
	name = Choose(name, step.placement())
	if path == p2p.Auto || path == "" {
		path = cmp.Or(name.Needs().Path, p2p.Auto)
	}
	plan, err := step.Plan(s.Links, path)
	if err != nil {
		return nil
	}
	return []candidate{{name: name, path: path, plan: plan}}
}
