package scheme

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/halox/halox/streams"
)

// Run steps until the options or the context say stop. A context that ends is
// no error: the run then stops between two steps. After an error the variables
// hold no whole step, and the runner runs no more. A run that has diverged is no error either: Result.Stopped says so,
// where norms are taken, see Options.
//
// Where processes share the grid all call it, with the same options. They make the same steps and come to the same norms, to
// the bit. Where the context of one ends, all stop at the same step. Where one fails, all return an error.
func (x *Runner) Run(ctx context.Context, o Options) (Result, error) {
	if !x.running.CompareAndSwap(false, true) {
		return Result{}, errors.New("scheme: a run of this runner is under way")
	}
	defer x.running.Store(false)
	o, def, err := x.begins(o)
	if err = x.place.Agree(context.Background(), "begin a run", err); err != nil {
		return Result{}, err
	}
	if err := x.suitsAll(def, o); err != nil {
		return Result{}, err
	}
	name := def.name
	if err := x.compareRuns(name, o); err != nil {
		return Result{}, err
	}
	r := &run{Runner: x, workers: streams.NewWorkerGroup(x.threadsOnHost(def), o.Limit)}
	res, err := r.run(ctx, def, o)
	res.Scheme = name
	if err != nil {
		x.resources.Add(&r.resources)
		err = tell(x.place, alsoLost(err, x.place.Devices))
		x.broken = err
		return res, err // closing now would wait for streams that may hang
	}
	x.step.advance(x.done + res.Steps)
	return res, r.Close()
}

// begins completes the options of a run, and finds its scheme and the step that it goes on from.
func (x *Runner) begins(o Options) (Options, *definition, error) {
	o, err := o.complete(x.place)
	if err != nil {
		return o, nil, err
	}
	if err := errors.Join(o.checkNorms(x.step), x.usable()); err != nil {
		return o, nil, err
	}
	def, err := find(Choose(o.Scheme, x.place))
	if err != nil {
		return o, nil, err
	}
	x.done, err = x.step.newest(o.Steps)
	return o, def, err
}

// threadsOnHost returns about how many threads a scheme has on this host, with those of other processes.
func (x *Runner) threadsOnHost(def *definition) int {
	threads := len(x.local) + def.assistants(x)
	if x.shared() {
		_, processes := x.place.Processes.Local()
		threads *= processes
	}
	return threads
}

// usable returns an error if the runner, or a variable, is closed, or a run has failed.
func (x *Runner) usable() error {
	if x.closed {
		return errors.New("scheme: the runner is closed: it makes no steps any more")
	}
	if x.broken != nil {
		return fmt.Errorf("scheme: a run before has failed: %w", x.broken)
	}
	for _, v := range x.step.variables() {
		if err := v.levels[0].Usable(); err != nil {
			return fmt.Errorf("scheme: %w", err)
		}
	}
	return nil
}

// run starts the workers and waits for them.
func (r *run) run(ctx context.Context, def *definition, o Options) (Result, error) {
	for _, rank := range r.local {
		r.subdomains[rank].totals = r.subdomains[rank].split
	}
	sch, err := def.make(r, o)
	if err = r.place.Agree(context.Background(), "make a run ready", err); err != nil {
		return Result{}, errors.Join(err, r.Close())
	}
	if err := r.setGhosts(); err != nil {
		return Result{}, err
	}
	workers := sch.workers()
	c, err := r.newController(ctx, o, len(workers), sch)
	if err != nil {
		return Result{}, err
	}
	var fences []*fences
	for worker, ranks := range workers {
		f, err := r.newFences(sch, worker, ranks)
		if err != nil {
			return Result{}, err
		}
		fences = append(fences, f)
	}
	start := time.Now()
	sch.assistants()
	for w, f := range fences {
		r.workers.Go(fmt.Sprintf("main thread %d", w), func() error { return r.work(sch, c, w, f) })
	}
	err = r.workers.Wait()
	c.result.Loop = time.Since(start)
	c.result.Bytes = r.exchangesUpTo(c.result.Steps) * r.bytes()
	c.result.UpdatesPerSecond = float64(c.result.Steps) * float64(r.place.Grid.Points()) / c.result.Loop.Seconds()
	return c.result, err
}

// newController makes that of the run, which asks for the first interval.
func (r *run) newController(ctx context.Context, o Options, workers int, sch scheme) (c *controller, err error) {
	defer streams.Caught(&err, "Options.Interval of step", r.step.Name)
	return newController(ctx, o, r, workers, sch)
}

// work is the loop of one worker.
func (r *run) work(sch scheme, c *controller, w int, f *fences) (err error) {
	next := c.round
	defer func() {
		if err != nil && !errors.Is(err, streams.ErrStopped) {
			err = fmt.Errorf("subdomains %v, %s: %w", f.ranks, next, err)
		}
	}()
	for next.last >= next.first || len(c.due) > 0 {
		if next.every > 0 {
			if err := sch.(checker).stepsChecked(w, next.first, next.last, next.every); err != nil {
				return err
			}
		} else if next.last >= next.first {
			if err := sch.steps(w, next.first, next.last, next.check); err != nil {
				return err
			}
		}
		if err := f.pass(r, next); err != nil {
			return err
		}
		if next.drain {
			f.drain(r)
			if err := sch.sync(w); err != nil {
				return err
			}
		}
		if next.every > 0 {
			if err := sch.sync(w); err != nil {
				return err
			}
			c.checked[w].norms, c.checked[w].ended = sch.(checker).checked(w)
		}
		for i, l := range c.due {
			if err := f.collectNorms(r, l, c.collected[i]); err != nil {
				return err
			}
		}
		after, err := c.barrier(w)
		if err != nil {
			return err
		}
		next = after
	}
	sch.stop(w, next.last)
	if d, ok := sch.(divider); ok {
		if err := d.finish(w, c.result.Steps); err != nil {
			return err
		}
	}
	return sch.sync(w)
}
