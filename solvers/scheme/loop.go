package scheme

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/guard"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// compareRuns returns an error unless all processes begin the same run.
func (r *Runner) compareRuns(name Scheme, o Options, level int64) error {
	if !r.shared() {
		return nil
	}
	p := r.place.Processes
	run := fmt.Sprintf("scheme %s %s, %d steps from %d, norms %s every %d, tolerance %v, intervals %t",
		name, o.Order, o.Steps, level, o.Norm, o.CheckEvery, o.Tolerance, o.Interval != nil)
	all, err := mpi.Gather(context.Background(), p, "scheme: compare the runs that processes begin", run)
	if err != nil {
		return err
	}
	for rank, other := range all {
		if other != all[0] {
			return fmt.Errorf("scheme: %s runs %s, and %s %s: all must have the same options",
				p.Name(0), all[0], p.Name(rank), other)
		}
	}
	return nil
}

// alsoLost adds to the error of a lost device the names of others that are lost. If GPUs access each other's
// memory, CUDA loses several when one fails, and the one that a run reports first need not be the one that
// failed.
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

// lostAmong returns the names of lost devices, except those that do not answer within the limit.
func lostAmong(devices []*streams.Device, limit time.Duration) (names []string) {
	answers := make(chan error, len(devices))
	for _, d := range devices {
		if d == nil { // owned by another process
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

// fences are the events by which one worker follows its devices: their progress, so that the host is not more
// than two rounds ahead, and the arrival of requested norms.
type fences struct {
	*run
	queues []queue
	round  [2][]*streams.Event // ends of the last two rounds
	norms  [2][]*streams.Event // norms of the last two rounds with norms
	rounds int
	taker  passPlanner // source of norms; nil if phases of steps have them
	pacer  pacer       // nil if devices do not choose the lengths of steps
}

func (r *run) newFences(w worker) (*fences, error) {
	f := &fences{run: r, queues: w.queues()}
	f.taker, _ = w.(passPlanner)
	if p, ok := w.(pacer); ok && p.paces() {
		f.pacer = p
	}
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

// pass records the end of a round and waits for the end of the previous one.
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

// drain waits until the devices have finished the last recorded round. It never sleeps, unlike Sync after a
// while: an interval ends when they have finished, not when a thread wakes up. Devices that use host cores
// would lack the core.
func (f *fences) drain() {
	until := time.Now().Add(f.patience())
	for i, e := range f.round[f.rounds%2] {
		for !f.queues[i].steps.Device().HostCores && time.Now().Before(until) {
			if done, err := e.Done(); done || err != nil {
				break // the next wait returns the error again
			}
		}
	}
}

// collectNorms waits for the norms of a check and copies them, by rank.
func (f *fences) collectNorms(c normCheck, to []taken) error {
	for i, q := range f.queues {
		if err := f.norms[c.number%2][i].Sync(f.patience()); err != nil {
			return err
		}
		if f.taker != nil {
			f.taker.take(c, &to[q.rank])
			continue
		}
		last := c.step
		if f.pacer != nil && c.number > 0 {
			if missing := c.steps - f.pacer.paced().Steps; missing > 0 {
				last -= missing
				if err := errors.Join(f.queueTotals(f.subdomains[q.rank], q.norms, last), q.norms.Sync(f.patience())); err != nil {
					return err
				}
			}
		}
		for _, t := range f.subdomains[q.rank].totals[f.phase(last)] {
			t.addTo(&to[q.rank])
		}
	}
	return nil
}

// Run runs steps until the options or the context end the run. A context that ends is not an error: the run
// then stops between two steps. After an error the variables have no complete step, and the runner cannot run
// again. Divergence is not an error either: Result.Stopped reports it if norms are taken, see Options.
//
// If processes share the grid, all of them call it with the same options. They run the same steps and get
// bitwise identical norms. If the context of one ends, all stop at the same step. If one fails, all return an
// error.
func (r *Runner) Run(ctx context.Context, o Options) (Result, error) {
	held, untouched, err := r.hold(ctx, o.part)
	if r == nil {
		return Result{}, err
	}
	defer held.release()
	var def *definition
	var level int64
	if err == nil {
		o, def, level, err = r.begins(o)
	}
	if err = agree(r.place, "begin a run", err); err != nil {
		return Result{}, err
	}
	one, kept := r.keptFor(def, o, level)
	if !kept { // paths within processes may differ
		err = def.suits(r, o)
	}
	if err := agree(r.place, "see whether the scheme suits", err); err != nil {
		return Result{}, err
	}
	if err := r.compareRuns(def.name, o, level); err != nil {
		return Result{}, err
	}
	if !kept {
		err, r.done = r.forget(), level
	}
	r.kept, one.from = nil, one.last
	one.threads = streams.NewWorkerGroup(r.threadsOnHost(def), o.Limit)
	res := Result{}
	if err == nil {
		res, err = one.drive(ctx, def, o, untouched)
	}
	res.Scheme = def.name
	if err != nil {
		r.resources.Add(&one.resources)
		r.broken = tell(r.place, alsoLost(err, r.place.Devices))
		return res, r.broken // closing would wait for streams that may hang
	}
	r.step.advance(level + res.Steps)
	if o.Keep && (res.Stopped == StoppedSteps || res.Stopped == StoppedInterrupted) {
		r.kept = one
	} else {
		err = one.Close()
	}
	if o.part == nil {
		res.endHistory(o)
	}
	if err == nil && res.Stopped != StoppedDiverged {
		err = r.scaleNorms(&res)
	}
	return res, err
}

// keptFor returns the kept run if it can run steps after a level by a scheme, which it was checked against. Otherwise
// it returns a new one, and the kept run stays.
func (r *Runner) keptFor(def *definition, o Options, level int64) (one *prepared, kept bool) {
	shape := [...]any{def.name, o.Order, o.CheckEvery, o.Tolerance, o.Norm, o.Limit, o.anything, 0}
	if def.needs.Steady {
		shape[7] = r.changed // launches contain the parameters
	}
	if one, _ = r.kept.(*prepared); one != nil && one.shape == shape && r.done+one.last == level {
		return one, true
	}
	return &prepared{run: &run{Runner: r}, shape: shape}, false
}

// endHistory adds the last check to the history, if that is kept and lacks it.
func (r *Result) endHistory(o Options) {
	if last := len(r.History) - 1; o.History && r.Steps > 0 && (last < 0 || r.History[last].Step != r.Step) {
		r.History = append(r.History, r.Check.clone())
	}
}

// scaleNorms computes L2 of the last step if float64 cannot represent the squares summed by the step. All
// processes have the same norms, and call it.
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

// hold reserves the runner, its variables and its devices for one run, or for a part of one. untouched reports whether
// its ghosts are those that the part before left.
func (r *Runner) hold(ctx context.Context, p *part) (held uses, untouched bool, err error) {
	switch {
	case r == nil:
		return nil, false, errNoRunner
	case ctx == nil:
		return nil, false, errNoContext
	}
	switch err := r.guard.Hold(guard.Alone); {
	case errors.Is(err, guard.ErrClosed):
		return nil, false, errors.New("scheme: the runner is closed")
	case err != nil:
		return nil, false, fmt.Errorf("scheme: a run of this runner is in progress: %w", err)
	}
	untouched = p != nil
	held = uses{func() { r.guard.Release(guard.Alone) }}
	for _, v := range r.step.variables() {
		// a run sets ghosts at its start
		alone := r.step.writes(v) || r.step.readsAround(v) || r.step.group() > 1
		if err := held.add(v.hold(alone)); err != nil {
			return nil, false, fmt.Errorf("scheme: %w", err)
		}
		if alone {
			untouched = v.ghosts.Swap(p) == p && untouched
		}
	}
	if err := held.add(func() { streams.Release(r.place.Devices) }, streams.Hold(r.place.Devices)); err != nil {
		return nil, false, err
	}
	return held, untouched, nil
}

// begins completes the options of a run, and finds its scheme and the level at which it starts.
func (r *Runner) begins(o Options) (_ Options, def *definition, level int64, err error) {
	if o, err = o.complete(r.place); err == nil {
		err = errors.Join(o.checkNorms(r.step), r.usable())
	}
	if err == nil {
		def, err = find(Choose(o.Scheme, r.place))
	}
	if err == nil {
		level, err = r.step.newest(o.Steps)
	}
	if err == nil {
		o.Order = def.name.Order(o.Order)
	}
	return o, def, level, err
}

// threadsOnHost returns the approximate number of threads of a scheme on this host, including those of other
// processes.
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
		return fmt.Errorf("scheme: an earlier run has failed: %w", r.broken)
	}
	return nil
}

// prepared is a run with its workers, which may be kept for the next one.
type prepared struct {
	*run
	shape   [8]any // everything that the workers depend on
	workers []worker
	fences  []*fences // by worker
}

// prepare makes the workers.
func (r *prepared) prepare(def *definition, o Options) (err error) {
	for _, rank := range r.local {
		r.subdomains[rank].totals = r.subdomains[rank].split
	}
	r.workers, err = def.begin(r.run, o)
	if err = agree(r.place, "make a run ready", err); err != nil {
		return errors.Join(err, r.Close())
	}
	for _, w := range r.workers {
		f, err := r.newFences(w)
		if err != nil {
			return err
		}
		r.fences = append(r.fences, f)
	}
	return nil
}

// drive starts the workers and waits for them. untouched is that of hold.
func (r *prepared) drive(ctx context.Context, def *definition, o Options, untouched bool) (Result, error) {
	if r.workers == nil {
		if err := r.prepare(def, o); err != nil {
			return Result{}, err
		}
	}
	bytes := int64(0)
	if !untouched {
		if err := r.setGhosts(r.stepStreams(r.workers)); err != nil {
			return Result{}, err
		}
		bytes = r.once
	}
	c, err := newController(ctx, o, r.run, r.workers)
	if err != nil {
		return Result{}, err
	}
	start := time.Now()
	for _, w := range r.workers {
		w.start()
	}
	for i, w := range r.workers {
		r.threads.Go(fmt.Sprintf("main thread %d", i), func() error { return r.fences[i].work(w, c, i) })
	}
	err = r.threads.Wait()
	r.last, r.pace = c.round.last, c.steps.now
	c.result.Loop = time.Since(start)
	c.result.Bytes = bytes + (r.exchangesUpTo(r.from+c.result.Steps)-r.exchangesUpTo(r.from))*r.bytes()
	c.result.UpdatesPerSecond = float64(c.result.Steps) * float64(r.place.Grid.Points()) / c.result.Loop.Seconds()
	return c.result, err
}

// work is the loop of the i-th worker.
func (f *fences) work(w worker, c *controller, i int) (err error) {
	next := c.round
	defer func() {
		if errors.Is(err, streams.ErrPanicked) { // perhaps of a neighbor
			err = fmt.Errorf("%w; subdomains %v, %s", err, f.ranks(), next)
		} else if err != nil && !errors.Is(err, streams.ErrStopped) {
			err = fmt.Errorf("subdomains %v, %s: %w", f.ranks(), next, err)
		}
	}()
	for next.last >= next.first || len(c.due) > 0 {
		if next.early {
			check := c.checked.after(next.first - 1)
			if err := w.(earlyNorms).stepsWithNorms(next.first, next.last, check, c.checked.every); err != nil {
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
		if next.drain || next.early {
			if err := w.sync(); err != nil {
				return err
			}
		}
		if next.early {
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
		if err := f.taker.finish(f.from + c.result.Steps); err != nil {
			return err
		}
	}
	return w.sync()
}

// Event is work between two steps of a run, such as writing a file. Steps count from the start of the simulation: they
// are levels of the variables. If processes share the grid, all have the same events.
type Event struct {
	Name string // of the work, for errors: "write the series"
	// Next returns the first step after a step at which the event is due, 0 for none. It depends on its argument alone.
	// A nil function means that the event is due only when it is requested.
	Next func(step int64) int64
	// First also makes the event due before the first step of a run, if Next says so.
	First bool
	// Do is called when all devices have finished a step at which the event is due: so.Step. so is the result of the
	// steps so far, with norms if some were taken. An error ends the run. The context does not end when the run is
	// interrupted. Do may run other steps, but not change variables of this one.
	Do func(ctx context.Context, so Result) error

	mu        sync.Mutex
	requested bool
	interrupt func() // ends the steps in progress; nil between them
}

// Every returns an Event.Next for multiples of a number of steps.
func Every(steps int64) func(step int64) int64 {
	return func(step int64) int64 { return (step + steps) / steps * steps }
}

// Request makes the event due as soon as possible, between two steps. It may be called from any goroutine, and by
// processes other than rank 0 without effect.
func (e *Event) Request() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requested = true
	if e.interrupt != nil {
		e.interrupt()
	}
}

// watch sets the function with which requests interrupt steps, and calls it if there is a request.
func (e *Event) watch(interrupt func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.interrupt = interrupt; e.requested && interrupt != nil {
		interrupt()
	}
}

// take returns whether the event was requested, and forgets it.
func (e *Event) take() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.requested
	e.requested = false
	return was
}

// after returns the first step after a step at which the event is due, at most last.
func (e *Event) after(step, last int64) int64 {
	if e.Next == nil {
		return last
	}
	if next := e.Next(step); next > step {
		return min(next, last)
	}
	return last
}

// isDue reports whether the event is due at a step.
func (e *Event) isDue(step int64) bool { return e.Next != nil && e.Next(step-1) == step }

// RunEvents is Run with events. Fields and norms are those of Run: checks are at steps that CheckEvery divides, and
// after the last. Check.Step, Options.Progress and Result.History count steps from the start of the simulation, and
// Result.Steps the steps of this run. Options.Interval must be nil. The scheme is prepared once, however many events
// there are.
func (r *Runner) RunEvents(ctx context.Context, o Options, events ...*Event) (all Result, err error) {
	switch {
	case r == nil || ctx == nil || o.Steps < 1:
		return r.Run(ctx, o) // returns the error
	case o.Interval != nil:
		return all, errors.New("scheme: Options.Interval must be nil in a run with events")
	}
	begun, keep := r.Done(), o.Keep
	last := begun + o.Steps
	all.Step, o.Keep, o.part = begun, true, &part{}
	defer func() {
		if !keep && r.guard.Hold(guard.Alone) == nil {
			defer r.guard.Release(guard.Alone)
			err = errors.Join(err, r.forget())
		}
	}()
	do := func(due func(i int, e *Event) bool) error {
		for i, e := range events {
			if due(i, e) {
				if err := agree(r.place, e.Name, e.Do(context.WithoutCancel(ctx), all)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := do(func(_ int, e *Event) bool { return e.First && e.isDue(begun) }); err != nil {
		return all, err
	}
	for step := begun; step < last; {
		next := last
		for _, e := range events {
			next = e.after(step, next)
		}
		o.Steps, o.part.last = next-step, next == last
		one, err := r.segment(ctx, o, events, step)
		all.add(one, step)
		if step += one.Steps; err != nil {
			return all, err
		}
		if one.Stopped == StoppedDiverged {
			break
		}
		var d decision
		if one.Stopped == StoppedInterrupted {
			if d, err = r.decide(ctx, events); err != nil {
				return all, err
			}
		}
		if err := do(func(i int, e *Event) bool { return d.Due != nil && d.Due[i] || e.isDue(step) }); err != nil {
			return all, err
		}
		if d.Ended || one.Stopped != StoppedSteps && one.Stopped != StoppedInterrupted {
			break
		}
	}
	all.endHistory(o)
	return all, nil
}

// A decision says how a run continues after an interruption: which events are due, by requests of rank 0, and whether
// the context of any process has ended.
type decision struct {
	Due   []bool
	Ended bool
}

func (r *Runner) decide(ctx context.Context, events []*Event) (d decision, err error) {
	d.Ended = ctx.Err() != nil
	for _, e := range events {
		d.Due = append(d.Due, e.take())
	}
	all, err := mpi.Gather(context.Background(), r.place.Processes, "scheme: agree on the events that are due", d)
	for rank, other := range all {
		d.Ended = d.Ended || other.Ended
		if rank == 0 {
			d.Due = other.Due
		}
	}
	return d, err
}

// segment runs steps after one, until an event is requested.
func (r *Runner) segment(ctx context.Context, o Options, events []*Event, after int64) (Result, error) {
	if progress := o.Progress; progress != nil {
		o.Progress = func(steps int64) { progress(after + steps) }
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	for _, e := range events {
		e.watch(end)
		defer e.watch(nil)
	}
	return r.Run(ctx, o)
}

// add adds the result of the steps after one.
func (r *Result) add(one Result, after int64) {
	for i := range one.History {
		one.History[i].Step += after
	}
	one.Step += after
	one.History, one.Steps, one.Bytes = append(r.History, one.History...), one.Steps+r.Steps, one.Bytes+r.Bytes
	loop, updates := one.Loop+r.Loop, one.UpdatesPerSecond*one.Loop.Seconds()+r.UpdatesPerSecond*r.Loop.Seconds()
	if one.Loop = loop; loop > 0 {
		one.UpdatesPerSecond = updates / loop.Seconds()
	}
	*r = one
}
