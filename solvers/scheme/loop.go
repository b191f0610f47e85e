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
// hold no whole step, and the runner runs no more.
func (x *Runner) Run(ctx context.Context, o Options) (Result, error) {
	o, err := o.complete()
	if err != nil {
		return Result{}, err
	}
	if x.broken != nil {
		return Result{}, fmt.Errorf("scheme: a run before has failed: %w", x.broken)
	}
	name := Choose(o.Scheme, x.place)
	def, err := find(name)
	if err != nil {
		return Result{}, err
	}
	if err := def.suits(x, o); err != nil {
		return Result{}, err
	}
	r := &run{Runner: x, workers: streams.NewWorkerGroup(len(x.subdomains)+def.assistants(x), o.Limit)}
	x.resources.Add(&r.resources)
	res, err := r.run(ctx, def, o)
	res.Scheme = name
	if err != nil {
		x.broken = err
		return res, err // closing now would wait for streams that may hang
	}
	x.done += res.Steps
	return res, r.Close()
}

// run starts the workers and waits for them.
func (r *run) run(ctx context.Context, def *definition, o Options) (Result, error) {
	for _, d := range r.subdomains {
		d.totals = d.split
	}
	sch, err := def.make(r, o)
	if err != nil {
		return Result{}, errors.Join(err, r.Close())
	}
	if err := r.setGhosts(); err != nil {
		return Result{}, err
	}
	workers := sch.workers()
	c := newController(ctx, o, r, len(workers), sch.maxQueued())
	var fences []*fences
	for _, ranks := range workers {
		f, err := r.newFences(sch, ranks)
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
	c.result.Bytes = c.result.Steps * r.bytes()
	c.result.UpdatesPerSecond = float64(c.result.Steps) * float64(r.place.Grid.Points()) / c.result.Loop.Seconds()
	return c.result, err
}

// work is the loop of one worker.
func (r *run) work(sch scheme, c *controller, w int, f *fences) (err error) {
	next := c.round
	defer func() {
		if err != nil && !errors.Is(err, streams.ErrStopped) {
			err = fmt.Errorf("subdomains %v, in steps %d to %d: %w", f.ranks, next.first, next.last, err)
		}
	}()
	for next.last >= next.first || c.due() > 0 {
		if next.last >= next.first {
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
		if step := c.due(); step > 0 {
			if err := f.collectNorms(r, c, step); err != nil {
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
	return sch.sync(w)
}
