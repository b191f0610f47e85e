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

// Memory is the most that a run holds on one device, in bytes.
type Memory struct {
	Device    *streams.Device
	Variables int64 // all levels, with their ghosts
	Extra     int64 // other memory of the device: messages, values at boundaries, norms, tables and flags
	Pinned    int64 // on the host: staged messages, values at boundaries, norms, copies of parts of variables
}

// Fit returns an error, which is streams.ErrOutOfMemory, with the numbers, if that does not fit into the memory
// that is free now.
func Fit(all []Memory) error {
	var demands []streams.Demand
	var sum Memory
	for _, m := range all {
		demands = append(demands, streams.Demand{Device: m.Device,
			Held: streams.Held{Memory: m.Variables + m.Extra, Pinned: m.Pinned}})
		sum.Variables, sum.Extra, sum.Pinned = sum.Variables+m.Variables, sum.Extra+m.Extra, sum.Pinned+m.Pinned
	}
	if err := streams.Fit(demands); err != nil {
		return fmt.Errorf("scheme: a run takes %s for variables, %s besides and %s of pinned memory: %w: use more "+
			"devices, float32 or a smaller grid",
			streams.Size(sum.Variables), streams.Size(sum.Extra), streams.Size(sum.Pinned), err)
	}
	return nil
}

// DryRun returns what a run of the step by the options' scheme holds on each device of this process, by running it on
// devices that only count, see streams.DryRun: NewRunner and Run do all except the work itself. User kernels are not
// made, and count nothing. The variables are not touched.
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

// fits returns an error if a run takes more memory, besides the variables, than is free, or if the scheme does not suit
// the step.
func fits(ctx context.Context, step *Step, plan *Plan, c *kernels.Compiler, o Options) error {
	all, err := DryRun(ctx, step, plan, c, o)
	if err != nil {
		return err
	}
	for i := range all {
		all[i].Variables = 0 // they are there
	}
	return Fit(all)
}

// drySteps is how many steps a dry run makes: what a step takes does not depend on their number.
const drySteps = 2

// DryRun runs some steps with the options and returns what all holds that was made on the runner's devices,
// which are those of a streams.DryRun.
func (r *Runner) DryRun(ctx context.Context, o Options) (all []Memory, err error) {
	if r == nil {
		return nil, errNoRunner
	}
	if d := r.place.FirstDevice(); !d.IsDry() {
		return nil, fmt.Errorf("scheme: a dry run on device %v, which is a real one", d)
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

// Ahead begins to compile what a run of the step by the options' scheme asks for, in the background and side by
// side; for Auto what all schemes ask for that Fastest will try, or, where their trials are remembered, the fastest
// of them. It makes all ready on devices that only count, as DryRun does, and says nothing of what cannot be: who
// makes it ready for a run does. On host devices there is nothing to compile. The links need not be measured yet.
// Where Search.Ahead has begun something, it is that which compiles this too.
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

// begin begins to compile what the candidate needs.
func (c candidate) begin(ctx context.Context, step *Step, a *kernels.Ahead, o Options) {
	o.Scheme = c.name
	_, _ = DryRun(ctx, step, c.plan, a.Compiler(), o)
}

// asked returns the candidates that the options' scheme stands for.
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
