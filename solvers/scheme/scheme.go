// Package scheme runs the steps of a simulation on the devices of a placement: any step, with any scheme.
//
// A Step is one or more stages. A stage sweeps the points of the grid: it reads variables, each with its
// footprint, and writes variables. Ghosts of written variables are exchanged after a stage, if a stage reads
// them. A scheme is how the sweeps and exchanges are ordered over host threads, streams, graphs and kernels.
// Baseline, TwoStream and Assisted are those of Sourouri, Gillberg, Baden and Cai, "Effective multi-GPU
// communication using multiple CUDA streams and threads" (ICPADS 2014). Fields are bitwise identical with all
// schemes.
package scheme

import (
	"fmt"
	"slices"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// definition describes a scheme: everything that other files know about it.
type definition struct {
	name  Scheme
	needs Needs
	// assistants returns the maximum number of threads in addition to its workers. It may be nil, for none.
	assistants func(r *Runner) int
	// unfit returns an error if the scheme cannot run a step for other reasons than its needs. It may be nil.
	unfit func(r *Runner) error
	// make returns the workers of a run, which together drive all subdomains of this process.
	make func(r *run, o Options) ([]worker, error)
	// onGPUs is true if make supports only GPUs, see SweepsInstead.
	onGPUs bool
}

// suits returns ErrUnsuited, with the reason, if the scheme cannot run the step.
func (d *definition) suits(r *Runner, o Options) error {
	err := d.needs.check(r, o)
	if err == nil && d.unfit != nil {
		err = d.unfit(r)
	}
	if err != nil {
		return fmt.Errorf("scheme: %w: %s %w", ErrUnsuited, d.name, err)
	}
	return nil
}

// check returns an error if the runner's step, its plans or the options do not meet the needs of a scheme.
func (n Needs) check(r *Runner, o Options) error {
	if k := r.step.group(); k > 1 && !n.Groups {
		return fmt.Errorf("exchanges after each step: Step.Group must be 1, got %d", k)
	}
	if p := r.place.Processes; !p.IsAlone() && !n.Processes {
		return fmt.Errorf("supports one process, got %d", p.Size())
	}
	devices := r.place.Devices
	for stage := range r.plans {
		for _, m := range r.messagesOf(stage) {
			if m.Path != p2p.MPI && devices[m.From] != devices[m.To] && !n.takes(m.Path) {
				return fmt.Errorf("must use one of the paths %v, got %s from %v to %v",
					n.Paths, m.Path, devices[m.From], devices[m.To])
			}
		}
	}
	for i, device := range devices {
		if n.OnePerDevice && device != nil && slices.Contains(devices[:i], device) {
			return fmt.Errorf("must have one subdomain per device, got several on %v", device)
		}
	}
	for v := range r.ghosts {
		if n.Steady && !v.Boundary.Steady() {
			return fmt.Errorf("runs steps without the host: boundary values of %q must not vary in time", v.Spec.Name)
		}
	}
	for i, st := range r.step.Stages {
		if n.Steady && st.Changing {
			return fmt.Errorf("runs steps without the host: launches of stage %d %q must not change", i, st.title())
		}
		if n.Swept && st.Kernels != nil {
			return fmt.Errorf("needs point functions, got user kernels in stage %d %q", i, st.title())
		}
	}
	if len(n.Orders) > 0 && !slices.Contains(n.Orders, o.Order) {
		return fmt.Errorf("must have one of the orders %q, got %q", n.Orders, o.Order)
	}
	return nil
}

// worker drives one or more subdomains from a host thread, which makes all calls except the first two. A run
// embedded in a worker implements the methods that are equal for most schemes.
type worker interface {
	// maxQueued is the maximum number of queued steps. It is the same for all workers.
	maxQueued() int64
	// start starts other threads that the worker needs. They end after stop, or with the workers.
	start()
	// steps queues the steps from first to last and, if norms is set, the norms of the last.
	steps(first, last int64, norms bool) error
	// stop announces that no step after n follows.
	stop(n int64)
	// queues returns the streams of the worker's subdomains.
	queues() []queue
	// sync waits until all queued work is finished.
	sync() error
}

// queue is the streams of a subdomain: one that ends its steps, and one on which norms are reduced, which may
// be the same.
type queue struct {
	rank         int
	steps, norms *streams.Stream
}

// stepStreams returns the streams that end the steps of subdomains, by rank.
func (r *run) stepStreams(workers []worker) halo.Streams {
	at := make(halo.Streams, len(r.subdomains))
	for _, w := range workers {
		for _, q := range w.queues() {
			at[q.rank] = q.steps
		}
	}
	return at
}

// earlyNorms is implemented by workers whose launches run several steps and can take norms before the last of
// them.
type earlyNorms interface {
	// maxEarly is the maximum number of steps before the last whose norms a round takes; 0 if unsupported.
	maxEarly() int64
	// stepsWithNorms queues steps with the norms of the last, and before it of every so many from step next on.
	// Norms that may end the run end the steps: the fields are then as before the first step.
	stepsWithNorms(first, last, next, every int64) error
	// early returns the norms of the worker's subdomain before the last step, after all queued work is
	// finished, and which of them ended the steps, counted from 1; 0 for none.
	early() (norms []reduce.Norms, ended int64)
}

// maxSteps is the number of steps that most schemes queue at once: two rounds of them fit into the queues of
// a device, which hold some 1000 launches.
const maxSteps = 32

func (r *run) maxQueued() int64 { return maxSteps }
func (r *run) start()           {}
func (r *run) stop(int64)       {}

// onePerSubdomain makes a worker for each subdomain of this process.
func (r *run) onePerSubdomain(newWorker func(d *subdomain) (worker, error)) (all []worker, err error) {
	for _, rank := range r.local {
		w, err := newWorker(r.subdomains[rank])
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

// syncAll waits for streams. Nil streams belong to other processes.
func (r *run) syncAll(all ...*streams.Stream) error {
	for _, s := range all {
		if s == nil {
			continue
		}
		if err := s.Sync(r.patience()); err != nil {
			return err
		}
	}
	return nil
}
