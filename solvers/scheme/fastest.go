package scheme

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// autotune returns the time of a step by the scheme of the options: the median of some intervals, which
// together take about the budget, of a run in which the variables may have any values. It takes norms as
// often as a run with these options. If limited ends before the first interval that counts, the time is that
// of all steps until then, including the start and end of a run. The variables have other values afterwards.
// An error that is ErrUnsuited has the reason why the scheme cannot run the step.
func autotune(
	ctx, limited context.Context, step *Step, plan *Plan, c *kernels.Compiler, o Options, budget time.Duration,
) (took time.Duration, err error) {
	defer step.keepLevels()()
	x, err := NewRunner(ctx, step, plan, c)
	if err != nil {
		return 0, err
	}
	t := stepTimer{budget: budget, group: int64(step.group())}
	if o.checks() {
		t.every = o.CheckEvery
	}
	o.History, o.Tolerance, o.anything = false, 0, true
	o.Steps, o.Progress, o.Interval = 1<<40, nil, t.interval
	r, err := x.Run(limited, o)
	if err := errors.Join(err, ctx.Err(), x.Close()); err != nil {
		return 0, err
	}
	return cmp.Or(t.median(), r.Loop/time.Duration(max(1, r.Steps))), nil
}

// stepTimer chooses the intervals of a timing: one that also starts threads, one that warms up and determines
// the length of the others, and the timed ones. For slow steps the second interval is the last, and is the
// one that counts.
type stepTimer struct {
	budget    time.Duration
	group     int64 // steps between two exchanges
	every     int64 // steps between norms; 0 for none
	intervals int
	steps     int64           // steps of an interval that counts
	took      []time.Duration // time of a step in intervals that count
}

const (
	timedIntervals = 3
	fewestSteps    = 8 // per interval: passes over memory run as many at once
	warmSteps      = 24
)

// interval implements Options.Interval.
func (s *stepTimer) interval(steps int64, took time.Duration) int64 {
	s.intervals++
	fitting := int64(s.budget) / timedIntervals * steps / max(1, int64(took))
	switch {
	case s.intervals == 1:
		return s.whole(fewestSteps)
	case s.intervals == 2:
		return s.whole(min(fitting, warmSteps))
	case s.intervals == 3 && took < 2*s.budget:
		s.steps = s.whole(fitting)
		return s.steps
	}
	s.took = append(s.took, max(1, took/time.Duration(steps)))
	if s.intervals > 3 && len(s.took) < timedIntervals {
		return s.steps
	}
	return 0
}

// median returns the time of a step, 0 if no interval counted. That happens on processes other than rank 0,
// if rank 0, whose time is used, found the steps slow and ended the run before this process did.
func (s *stepTimer) median() time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	slices.Sort(s.took)
	return s.took[len(s.took)/2]
}

// whole returns a number of steps of at least n and fewestSteps: whole groups and, unless norms are rarer,
// with the share of norms of a long run.
func (s *stepTimer) whole(n int64) int64 {
	n = max(n, fewestSteps)
	unit := max(1, s.group)
	for range s.every {
		if unit%s.every == 0 {
			break
		}
		unit += max(1, s.group)
	}
	if unit > n {
		unit = max(1, s.group)
	}
	return (n + unit - 1) / unit * unit
}

// trialTime is the duration of the intervals of one trial.
const trialTime = 10 * time.Millisecond

// Limits of a search, from Search.Begun: until waitLimit it waits for all kernels to be compiled, then it
// tries the schemes whose kernels are, and at searchLimit it stops, including the trial in progress.
const (
	waitLimit   = 1500 * time.Millisecond
	searchLimit = 2500 * time.Millisecond
)

// after returns a channel that receives after the search has taken a given time.
func (s Search) after(long time.Duration) <-chan time.Time {
	return s.clock.after(s.Begun.Add(long).Sub(s.clock.now()))
}

// isLate reports whether the search has reached its limit, by the clock of this process.
func (s Search) isLate() bool { return s.clock.now().Sub(s.Begun) >= searchLimit }

// Fastest returns the trials of a step, the fastest first: each scheme, over each path, runs the step for
// some milliseconds, with norms as often as in the options, unless it needs too much memory. Those close to
// the fastest run twice more, alternating, and their minimum counts. All kernels are compiled first, in
// parallel, see Ahead. The variables of the step have other values afterwards.
//
// A search begins no trial after two and a half seconds, see Search.Begun, and stops the one in progress. It
// takes longer only while a scheme is prepared, which may compile kernels that were not compiled ahead. It
// tries schemes whose kernels are compiled, first those that are usually the fastest; if there are none in
// that time, there are no trials. The next search for the step tries the rest; one during which no more
// kernels are compiled is the last. The trials are saved in the user's cache, for equal steps on equal
// devices. Once all schemes have been tried, trials are not repeated: then known is true. On devices that use
// host cores nothing is tried, and there are no trials. If processes share the grid, all call it and get the
// same trials, those of rank 0. See Step.Name for steps with user kernels.
func Fastest(ctx context.Context, step *Step, s Search, o Options) (trials []Trial, known bool, err error) {
	if err := step.Check(); err != nil {
		return nil, false, err
	}
	switch {
	case s.Compiler == nil:
		return nil, false, errors.New("scheme: Search.Compiler must not be nil")
	case ctx == nil:
		return nil, false, errNoContext
	}
	place := step.placement()
	if idle, err := mpi.Broadcast(context.Background(), place.Processes, "scheme: choose a scheme",
		place.FirstDevice().HostCores, 0); err != nil || idle {
		return nil, false, err
	}
	m := s.memory(step, o)
	before, err := s.recall(step, m)
	switch complete := len(before.Trials) > 0 && !before.Partial; {
	case err != nil:
		return nil, false, err
	case complete:
		return before.Trials, true, nil
	case s.Known:
		return nil, false, nil
	}
	all, err := s.try(ctx, step, o, before.Trials)
	if err != nil {
		return nil, false, err
	}
	if isFirst(place) && !all.incomplete && len(all.Trials) > 0 {
		_ = m.Put(all) // if that fails, the next search repeats the trials
	}
	return all.Trials, false, nil
}

// recall returns the cached trials, if the fastest is still possible.
func (s Search) recall(step *Step, m cache.Store[found]) (f found, err error) {
	place := step.placement()
	if isFirst(place) {
		f, _ = m.Get()
	}
	f, err = mpi.Broadcast(context.Background(), place.Processes, "scheme: remember trials", f, 0)
	if err != nil || len(f.Trials) == 0 {
		return found{}, err
	}
	if _, failed := step.Plan(s.Links, f.Trials[0].Path); Agreed(place, failed) != nil {
		return found{}, nil
	}
	return f, nil
}

// try times the schemes that were not tried before, and returns all trials.
func (s Search) try(ctx context.Context, step *Step, o Options, before []Trial) (f found, err error) {
	if s.clock.now == nil {
		s.clock = realClock
	}
	if s.Begun.IsZero() {
		s.Begun = s.clock.now()
	}
	waits := s.clock.now().Sub(s.Begun) < waitLimit // for kernels, a second at least
	ahead := s.Ahead
	if ahead == nil {
		ahead = Ahead(ctx, step, s, o)
		defer ahead.Stop()
	}
	limited, end := context.WithCancel(ctx)
	defer end()
	go func() {
		select {
		case <-s.after(searchLimit):
			end()
		case <-limited.Done():
		}
	}()
	place := step.placement()
	queue := slices.DeleteFunc(s.candidates(step), func(c candidate) bool {
		return slices.ContainsFunc(before, c.isOf)
	})
	if err := s.tune(ctx, step, o, queue, ahead); err != nil {
		return f, err
	}
	ahead.Wait(s.after(waitLimit)) // compilation would take cores from timed steps
	f.Trials = before
	var failed error
	for len(queue) > 0 {
		i, err := s.next(ctx, place, queue, ahead)
		if err != nil {
			return found{}, err
		}
		if i < 0 {
			f.Partial = !waits || len(f.Trials) > len(before)
			break
		}
		c := queue[i]
		queue = slices.Delete(queue, i, i+1)
		if s.Trying != nil {
			s.Trying(c.name, c.path)
		}
		took, err := s.timeStep(ctx, limited, step, c, o, trialTime)
		switch {
		case errors.Is(err, ErrUnsuited) || errors.Is(err, streams.ErrOutOfMemory):
			continue
		case errors.Is(err, kernels.ErrNotCompiled):
			failed = cmp.Or(failed, c.failure(err))
			if s.Failed != nil {
				s.Failed(c.name, c.path, err)
			}
		case err != nil:
			return found{}, c.failure(err)
		default:
			f.Trials = append(f.Trials, Trial{c.name, c.path, took, step.Group})
		}
	}
	if len(f.Trials) == 0 {
		return found{}, failed
	}
	f.incomplete = failed != nil
	return f, s.timeAgain(ctx, limited, step, o, f.Trials)
}

// ask starts compiling what the candidates need, and sets how each knows when that is done.
func (s Search) ask(ctx context.Context, step *Step, queue []candidate, o Options, ahead *kernels.Ahead) {
	_ = ahead.Asked()
	for i, c := range queue {
		c.begin(ctx, step, ahead, o)
		queue[i].ready = ahead.Asked()
	}
}

// next waits until kernels of a candidate are compiled on rank 0, and returns the first of these, or -1 once
// the search is late. All processes call it.
func (s Search) next(
	ctx context.Context, place *halo.Placement, queue []candidate, ahead *kernels.Ahead,
) (i int, err error) {
	const pause = 20 * time.Millisecond
	for i = -1; isFirst(place) && !s.isLate(); ahead.Wait(s.clock.after(pause)) {
		if ctx.Err() != nil {
			i = 0 // its trial returns that error on all processes
			break
		}
		if i = slices.IndexFunc(queue, func(c candidate) bool { return c.ready() }); i >= 0 {
			break
		}
	}
	return mpi.Broadcast(context.Background(), place.Processes, "scheme: choose what to try", i, 0)
}

// timeStep returns the time of a step of a candidate, as measured by rank 0, until the end of limited.
func (s Search) timeStep(
	ctx, limited context.Context, step *Step, c candidate, o Options, budget time.Duration,
) (took time.Duration, err error) {
	place := step.placement()
	if err := Agreed(place, ctx.Err()); err != nil {
		return 0, err
	}
	o.Scheme = c.name
	if err := Agreed(place, fits(ctx, step, c.plan, s.Compiler, o)); err != nil {
		return 0, err
	}
	took, err = autotune(ctx, limited, step, c.plan, s.Compiler, o, budget)
	if err := Agreed(place, errors.Join(err, ctx.Err())); err != nil {
		return 0, err
	}
	return mpi.Broadcast(context.Background(), place.Processes, "scheme: time a step", took, 0)
}

// The mostClose fastest trials that took at most closeTo times the shortest are repeated timesOfClose times.
// Their intervals are longer, so that the launch of a scheme that runs an interval in one launch counts less.
const (
	closeTo      = 1.15
	mostClose    = 4
	timesOfClose = 2
	timeOfClose  = 4 * trialTime
)

// timeAgain repeats the trials close to the fastest, alternating, until the search is late, and sorts all
// trials, the fastest first.
func (s Search) timeAgain(ctx, limited context.Context, step *Step, o Options, trials []Trial) error {
	slices.SortStableFunc(trials, faster)
	defer slices.SortStableFunc(trials, faster)
	n := 0
	for n < min(mostClose, len(trials)) && float64(trials[n].Step) <= closeTo*float64(trials[0].Step) {
		n++
	}
	again := slices.DeleteFunc(s.candidates(step), func(c candidate) bool {
		return n < 2 || !slices.ContainsFunc(trials[:n], c.isOf)
	})
	for range timesOfClose {
		for _, c := range again {
			late, err := mpi.Broadcast(context.Background(), step.placement().Processes, "scheme: go on with trials",
				s.isLate(), 0)
			if late || err != nil {
				return err
			}
			took, err := s.timeStep(ctx, limited, step, c, o, timeOfClose)
			if errors.Is(err, streams.ErrOutOfMemory) { // there was enough memory before
				continue
			}
			if err != nil {
				return c.failure(err)
			}
			t := &trials[slices.IndexFunc(trials, c.isOf)]
			t.Step = min(t.Step, took)
		}
		slices.Reverse(again)
	}
	return nil
}

// tune finds the fastest shapes of sweeps once their kernels are compiled, while other kernels are: kernels
// of schemes with their own sweeps may depend on the shapes, and are started then. Errors are reported by the
// trials. All processes make a runner, or none.
func (s Search) tune(ctx context.Context, step *Step, o Options, queue []candidate, ahead *kernels.Ahead) error {
	s.ask(ctx, step, queue, o, ahead)
	i := slices.IndexFunc(queue, func(c candidate) bool {
		return c.name.Needs().Swept && c.name.Needs().CheckPath(c.name, c.path) == nil
	})
	place := step.placement()
	if i < 0 || place.FirstDevice().GoKernels {
		return nil
	}
	// needs only kernels of the runner
	simple := []candidate{{name: Baseline, path: queue[i].path, plan: queue[i].plan}}
	s.ask(ctx, step, simple, o, ahead)
	if at, err := s.next(ctx, place, simple, ahead); at < 0 || err != nil || Agreed(place, ctx.Err()) != nil {
		return err
	}
	if x, err := NewRunner(ctx, step, simple[0].plan, s.Compiler); err == nil && x.Close() == nil {
		s.ask(ctx, step, queue, o, ahead)
	}
	return nil
}

// isOf reports whether a trial is of the candidate.
func (c candidate) isOf(t Trial) bool { return t.Scheme == c.name && t.Path == c.path }

// failure returns the error of a trial of the candidate.
func (c candidate) failure(err error) error {
	return fmt.Errorf("try scheme %s by %s: %w", c.name, c.path, err)
}
