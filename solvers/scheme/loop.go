package scheme

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/guard"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// compareRuns returns an error unless all processes begin the same run.
func (r *Runner) compareRuns(name Scheme, o Options) error {
	if !r.shared() {
		return nil
	}
	p := r.place.Processes
	run := fmt.Sprintf("scheme %s %s, %d steps from %d, norms %s every %d, tolerance %v, intervals %t",
		name, o.Order, o.Steps, r.done, o.Norm, o.CheckEvery, o.Tolerance, o.Interval != nil)
	all, err := mpi.Gather(context.Background(), p, "scheme: compare the runs that processes begin", run)
	if err != nil {
		return err
	}
	for rank, other := range all {
		if other != all[0] {
			return fmt.Errorf("scheme: %s runs %s, and %s %s: all give the same options",
				p.Name(0), all[0], p.Name(rank), other)
		}
	}
	return nil
}

// alsoLost adds to the error of a lost device the names of others that are lost. Where GPUs reach each other's memory
// CUDA loses several when one fails, and the one that a run hears of first need not be the one that failed.
func alsoLost(err error, devices []*streams.Device) error {
	var first *streams.Error
	if !errors.As(err, &first) || !first.Fatal {
		return err
	}
	others := lostAmong(devices, time.Second)
	others = slices.DeleteFunc(others, func(name string) bool { return name == first.Device })
	if len(others) == 0 {
		return err
	}
	return fmt.Errorf("%w (also lost: %s; any of them may have failed first)", err, strings.Join(others, ", "))
}

// lostAmong returns the names of lost devices. A device that does not answer within the limit is none of them.
func lostAmong(devices []*streams.Device, limit time.Duration) (names []string) {
	answers := make(chan error, len(devices))
	for _, d := range devices {
		if d == nil { // another process has it
			answers <- nil
			continue
		}
		go func() {
			_, _, err := d.MemoryInfo()
			answers <- err
		}()
	}
	defer func() { slices.Sort(names) }()
	end := time.After(limit)
	for range devices {
		select {
		case err := <-answers:
			var lost *streams.Error
			if errors.As(err, &lost) && lost.Fatal && !slices.Contains(names, lost.Device) {
				names = append(names, lost.Device)
			}
		case <-end:
			return names
		}
	}
	return names
}

// fences are the events by which one worker follows its devices: how far they
// are, so that the host is not more than two rounds ahead of them, and whether
// the norms it asked for have come.
type fences struct {
	*run
	queues []queue
	round  [2][]*streams.Event // at the ends of the last two rounds
	norms  [2][]*streams.Event // of the last two rounds with norms
	rounds int
	taker  passPlanner // that norms come from; nil where phases of steps have them
}

func (r *run) newFences(w worker) (*fences, error) {
	f := &fences{run: r, queues: w.queues()}
	f.taker, _ = w.(passPlanner)
	for _, q := range f.queues {
		for _, events := range []*[]*streams.Event{&f.round[0], &f.round[1], &f.norms[0], &f.norms[1]} {
			var e *streams.Event
			if err := r.newEvents(r.subdomains[q.rank].device, &e); err != nil {
				return nil, err
			}
			*events = append(*events, e)
		}
	}
	return f, nil
}

// ranks returns the subdomains of the worker.
func (f *fences) ranks() (all []int) {
	for _, q := range f.queues {
		all = append(all, q.rank)
	}
	return all
}

// pass records the end of a round and waits for the end of the one before.
func (f *fences) pass(done round) error {
	f.rounds++
	now, before := f.round[f.rounds%2], f.round[(f.rounds+1)%2]
	for i, q := range f.queues {
		if err := q.steps.Record(now[i]); err != nil {
			return err
		}
		if done.check {
			if err := q.norms.Record(f.norms[done.number%2][i]); err != nil {
				return err
			}
		}
	}
	for _, e := range before {
		if err := e.Sync(f.patience()); err != nil {
			return err
		}
	}
	return nil
}

// drain waits until the devices have done the round whose end was recorded last. It
// never sleeps, as Sync does after a while: an interval ends when they are done, not when a
// thread wakes up. Devices that work on cores of the host would lack the core.
func (f *fences) drain() {
	until := time.Now().Add(f.patience())
	for i, e := range f.round[f.rounds%2] {
		for !f.queues[i].steps.Device().HostCores && time.Now().Before(until) {
			if done, err := e.Done(); done || err != nil {
				break // an error comes again from what waits next
			}
		}
	}
}

// collectNorms waits for the norms of a check and hands them over, by rank.
func (f *fences) collectNorms(c normCheck, to []taken) error {
	for i, q := range f.queues {
		if err := f.norms[c.number%2][i].Sync(f.patience()); err != nil {
			return err
		}
		if f.taker != nil {
			f.taker.take(c, &to[q.rank])
			continue
		}
		for _, t := range f.subdomains[q.rank].totals[f.phase(c.step)] {
			t.addTo(&to[q.rank])
		}
	}
	return nil
}

// Run steps until the options or the context say stop. A context that ends is
// no error: the run then stops between two steps. After an error the variables
// hold no whole step, and the runner runs no more. A run that has diverged is no error either: Result.Stopped says so,
// where norms are taken, see Options.
//
// Where processes share the grid all call it, with the same options. They make the same steps and come to the same
// norms, to the bit. Where the context of one ends, all stop at the same step. Where one fails, all return an error.
func (r *Runner) Run(ctx context.Context, o Options) (Result, error) {
	held, err := r.hold(ctx)
	if r == nil {
		return Result{}, err
	}
	defer held.release()
	var def *definition
	if err == nil {
		o, def, err = r.begins(o)
	}
	if err = agree(r.place, "begin a run", err); err != nil {
		return Result{}, err
	}
	// paths may differ within processes
	if err := agree(r.place, "see whether the scheme suits", def.suits(r, o)); err != nil {
		return Result{}, err
	}
	if err := r.compareRuns(def.name, o); err != nil {
		return Result{}, err
	}
	one := &run{Runner: r, threads: streams.NewWorkerGroup(r.threadsOnHost(def), o.Limit)}
	res, err := one.run(ctx, def, o)
	res.Scheme = def.name
	if err != nil {
		r.resources.Add(&one.resources)
		r.broken = tell(r.place, alsoLost(err, r.place.Devices))
		return res, r.broken // closing now would wait for streams that may hang
	}
	r.step.advance(r.done + res.Steps)
	err = one.Close()
	if err == nil && res.Stopped != StoppedDiverged {
		err = r.scaleNorms(&res)
	}
	return res, err
}

// scaleNorms computes L2 of the last step where float64 cannot hold the squares that the step summed. All processes
// have the same norms, and call it.
func (r *Runner) scaleNorms(res *Result) error {
	for i := range res.Norms {
		n, v := &res.Norms[i], r.step.Measured[i]
		if !beyondSquares(n.Max) {
			continue
		}
		l2, err := halo.Reduce(v.Level(v.Newest()), r.compiler, halo.L2, r.step.Sums)
		if err != nil {
			return err
		}
		n.L2 = 0
		for _, component := range l2.Floats {
			n.L2 = math.Hypot(n.L2, component)
		}
		n.L2 /= math.Sqrt(float64(r.place.Grid.Points()))
		if last := len(res.History) - 1; last >= 0 && res.History[last].Step == res.Step {
			res.History[last].Norms[i].L2 = n.L2
		}
	}
	return nil
}

// hold keeps the runner, its variables and its devices to one run.
func (r *Runner) hold(ctx context.Context) (held uses, err error) {
	switch {
	case r == nil:
		return nil, errNoRunner
	case ctx == nil:
		return nil, errNoContext
	}
	switch err := r.guard.Hold(guard.Alone); {
	case errors.Is(err, guard.ErrClosed):
		return nil, errors.New("scheme: the runner is closed: it runs no more steps")
	case err != nil:
		return nil, fmt.Errorf("scheme: a run of this runner is under way: %w", err)
	}
	held = uses{func() { r.guard.Release(guard.Alone) }}
	for _, v := range r.step.variables() {
		// ghosts are set as a run begins
		alone := r.step.writes(v) || r.step.readsAround(v) || r.step.group() > 1
		if err := held.add(v.hold(alone)); err != nil {
			return nil, fmt.Errorf("scheme: %w", err)
		}
	}
	if err := held.add(func() { streams.Release(r.place.Devices) }, streams.Hold(r.place.Devices)); err != nil {
		return nil, err
	}
	return held, nil
}

// begins completes the options of a run, and finds its scheme and the step that it goes on from.
func (r *Runner) begins(o Options) (Options, *definition, error) {
	o, err := o.complete(r.place)
	if err != nil {
		return o, nil, err
	}
	if err := errors.Join(o.checkNorms(r.step), r.usable()); err != nil {
		return o, nil, err
	}
	def, err := find(Choose(o.Scheme, r.place))
	if err != nil {
		return o, nil, err
	}
	r.done, err = r.step.newest(o.Steps)
	return o, def, err
}

// threadsOnHost returns about how many threads a scheme has on this host, with those of other processes.
func (r *Runner) threadsOnHost(def *definition) int {
	threads := len(r.local)
	if def.assistants != nil {
		threads += def.assistants(r)
	}
	if r.shared() {
		_, processes := r.place.Processes.Local()
		threads *= processes
	}
	return threads
}

// usable returns an error if a run has failed.
func (r *Runner) usable() error {
	if r.broken != nil {
		return fmt.Errorf("scheme: a run before has failed: %w", r.broken)
	}
	return nil
}

// run starts the workers and waits for them.
func (r *run) run(ctx context.Context, def *definition, o Options) (Result, error) {
	for _, rank := range r.local {
		r.subdomains[rank].totals = r.subdomains[rank].split
	}
	workers, err := def.begin(r, o)
	if err = agree(r.place, "make a run ready", err); err != nil {
		return Result{}, errors.Join(err, r.Close())
	}
	if err := r.setGhosts(); err != nil {
		return Result{}, err
	}
	c, err := newController(ctx, o, r, workers)
	if err != nil {
		return Result{}, err
	}
	var all []*fences
	for _, w := range workers {
		f, err := r.newFences(w)
		if err != nil {
			return Result{}, err
		}
		all = append(all, f)
	}
	start := time.Now()
	for _, w := range workers {
		w.start()
	}
	for i, w := range workers {
		r.threads.Go(fmt.Sprintf("main thread %d", i), func() error { return all[i].work(w, c, i) })
	}
	err = r.threads.Wait()
	c.result.Loop = time.Since(start)
	c.result.Bytes = r.once + r.exchangesUpTo(c.result.Steps)*r.bytes()
	c.result.UpdatesPerSecond = float64(c.result.Steps) * float64(r.place.Grid.Points()) / c.result.Loop.Seconds()
	return c.result, err
}

// work is the loop of a worker, the i-th.
func (f *fences) work(w worker, c *controller, i int) (err error) {
	next := c.round
	defer func() {
		if err != nil && !errors.Is(err, streams.ErrStopped) {
			err = fmt.Errorf("subdomains %v, %s: %w", f.ranks(), next, err)
		}
	}()
	for next.last >= next.first || len(c.due) > 0 {
		if next.every > 0 {
			if err := w.(earlyNorms).stepsWithNorms(next.first, next.last, next.every); err != nil {
				return err
			}
		} else if next.last >= next.first {
			if err := w.steps(next.first, next.last, next.check); err != nil {
				return err
			}
		}
		if err := f.pass(next); err != nil {
			return err
		}
		if next.drain {
			f.drain()
		}
		if next.drain || next.every > 0 {
			if err := w.sync(); err != nil {
				return err
			}
		}
		if next.every > 0 {
			c.early[i].norms, c.early[i].ended = w.(earlyNorms).early()
		}
		for k, check := range c.due {
			if err := f.collectNorms(check, c.collected[k]); err != nil {
				return err
			}
		}
		after, err := c.barrier(i)
		if err != nil {
			return err
		}
		next = after
	}
	w.stop(next.last)
	if f.taker != nil {
		if err := f.taker.finish(c.result.Steps); err != nil {
			return err
		}
	}
	return w.sync()
}
