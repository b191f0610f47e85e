// Package scheme runs the steps of a simulation on the devices of a placement: anybody's step,
// under any scheme.
//
// A Step is one or more stages. A stage sweeps the points of the grid: it reads variables, each
// with its footprint, and writes variables. Ghosts of what a stage writes are exchanged after it,
// where a stage reads them. A scheme says how the sweeps and exchanges are ordered over host
// threads, streams, graphs and kernels. Baseline, TwoStream and Assisted are those of Sourouri,
// Gillberg, Baden and Cai, "Effective multi-GPU communication using multiple CUDA streams and
// threads" (ICPADS 2014). Whatever the scheme, fields are the same to the last bit.
package scheme

import (
	"fmt"
	"slices"

	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// definition is a scheme.
type definition struct {
	name  Scheme
	needs Needs
	// assistants is how many threads it has beside one a subdomain, at most.
	assistants func(x *Runner) int
	// unfit returns an error if the scheme cannot run a step for other reasons than its needs.
	unfit func(x *Runner) error
	make  func(r *run, o Options) (scheme, error)
	// onGPUs says that make is for GPUs, see SweepsInstead.
	onGPUs bool
}

// suits returns ErrUnsuited, with the reason, where the scheme cannot run the step.
func (d *definition) suits(x *Runner, o Options) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("scheme: %w: %s %w", ErrUnsuited, d.name, fmt.Errorf(format, args...))
	}
	if n := x.step.group(); n > 1 && !d.needs.Groups {
		return fail("exchanges after each step, and Step.Group asks for %d between two exchanges", n)
	}
	if p := x.place.Processes; !p.IsAlone() && !d.needs.Processes {
		return fail("makes steps of one process, and %d processes share the grid", p.Size())
	}
	devices := x.place.Devices
	for _, plan := range x.plans {
		if plan == nil {
			continue
		}
		for _, m := range plan.Messages {
			if m.Path != p2p.MPI && devices[m.From] != devices[m.To] && len(d.needs.Paths) > 0 &&
				!slices.Contains(d.needs.Paths, m.Path) {
				return fail("exchanges over path %v, and device %v sends to %v by path %s", d.needs.Paths,
					devices[m.From], devices[m.To], m.Path)
			}
		}
	}
	seen := map[*streams.Device]bool{}
	for _, device := range devices {
		if d.needs.OnePerDevice && device != nil && seen[device] {
			return fail("has one subdomain a device, and %v several", device)
		}
		seen[device] = true
	}
	for v := range x.ghosts {
		if d.needs.Steady && !v.Boundary.Steady() {
			return fail("makes steps without the host, and the values at a boundary of %q change with time",
				v.Spec.Name)
		}
	}
	for i, st := range x.step.Stages {
		if d.needs.Steady && st.changes() {
			return fail("makes steps without the host, and what stage %d %q queues changes from step to step", i,
				st.title())
		}
		if d.needs.Swept && st.Kernels != nil {
			return fail("sweeps the stages itself, and stage %d %q has kernels of its own", i, st.title())
		}
	}
	if len(d.needs.Orders) > 0 && !slices.Contains(d.needs.Orders, o.Order) {
		return fail("has no order %q; it can take %q", o.Order, d.needs.Orders)
	}
	if d.unfit == nil {
		return nil
	}
	if err := d.unfit(x); err != nil {
		return fail("%w", err)
	}
	return nil
}

// scheme is one way to order steps. Each subdomain is driven by one worker, and
// that worker makes these calls.
type scheme interface {
	// workers returns how many workers drive how many subdomains each: the ranks by
	// worker.
	workers() [][]int
	// assistants starts the other threads that the scheme needs. They end when
	// stop was called for every worker, or with the workers.
	assistants()
	// steps queues the steps from first to last of the worker's subdomains, and with norms
	// also those of the last.
	steps(worker int, first, last int64, norms bool) error
	// maxQueued is how many steps may be queued at once.
	maxQueued() int64
	// stop says that the worker makes no step after n.
	stop(worker int, n int64)
	// queues returns the stream of a subdomain that ends its steps, and the one on which the
	// norms are reduced, maybe the same.
	queues(rank int) (steps, norms *streams.Stream)
	// sync waits until all that was queued for the worker's subdomains is done.
	sync(worker int) error
}

// checker is a scheme of which a launch makes many steps, and can take norms of others than the last.
type checker interface {
	// mostChecks is how many others a round may have; 0 where it can have none.
	mostChecks() int64
	// stepsChecked queues steps with the norms of the last, and of those before it that every divides. Norms that may
	// end the run end the steps: the fields are then as they were before the first.
	stepsChecked(worker int, first, last, every int64) error
	// checked returns the norms of the worker's subdomain at each of those others, once all is done, and which of them
	// ended the steps, counted from 1; 0 for none.
	checked(worker int) (norms []reduce.Norms, ended int64)
}

// alone gives every worker one of the ranks.
func alone(local []int) [][]int {
	ranks := make([][]int, len(local))
	for i, rank := range local {
		ranks[i] = []int{rank}
	}
	return ranks
}

// together gives one worker all of the ranks.
func together(local []int) [][]int { return [][]int{local} }

// none is the number of assistants of schemes that have none.
func none(*Runner) int { return 0 }
