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

// autotune returns how long a step takes by the scheme of the options: the median of some
// intervals, which take about the budget together, of a run in which the variables may hold
// anything. It takes norms as often as a run with these options. The variables hold something else
// then. An error that is ErrUnsuited says why the scheme cannot run the step.
func autotune(ctx context.Context, step *Step, plan *Plan, c *kernels.Compiler, o Options,
	budget time.Duration) (took time.Duration, err error) {
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
	if _, err := x.Run(ctx, o); err != nil {
		return 0, errors.Join(err, x.Close())
	}
	if err := errors.Join(ctx.Err(), x.Close()); err != nil {
		return 0, err
	}
	return t.median(), nil
}

// stepTimer chooses the intervals of a timing: one that also starts threads, one that warms up and determines the length
// of the others, and the timed ones. For slow steps the second interval is the last, and it is the one that counts.
type stepTimer struct {
	budget    time.Duration
	group     int64 // steps between two exchanges
	every     int64 // steps between norms; 0 for none
	intervals int
	steps     int64           // of an interval that counts
	took      []time.Duration // by a step, of intervals that count
}

const (
	timedIntervals = 3
	fewestSteps    = 8 // of an interval: passes over memory take as many at once
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

// median returns the time of a step, 0 if no interval counted. That happens on processes other than rank 0, if rank 0,
// whose time is used, found the steps slow and ended the run before this process did.
func (s *stepTimer) median() time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	slices.Sort(s.took)
	return s.took[len(s.took)/2]
}

// whole returns a number of steps of at least n and fewestSteps: whole groups and, unless norms are rarer, with as many
// norms as a long run has in so many steps.
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

// trialTime is how long the intervals of one trial take.
const trialTime = 10 * time.Millisecond

// How long a search takes, from Search.Begun: after waitLimit it tries the schemes whose kernels are compiled, and the
// others as they are; after searchLimit it begins no trial.
const (
	waitLimit   = 1500 * time.Millisecond
	searchLimit = 2500 * time.Millisecond
)

// time returns the time by the search's clock, which tests replace.
func (s Search) time() time.Time {
	if s.clock == nil {
		return time.Now()
	}
	return s.clock()
}

// after returns a channel that is ready at a time. By the clock of a test it is that now or never.
func (s Search) after(at time.Time) <-chan time.Time {
	left := at.Sub(s.time())
	if s.clock == nil || left <= 0 {
		return time.After(left)
	}
	return nil
}

// isLate reports whether a search that has found something took its time, as rank 0 decides. All processes call it.
func (s Search) isLate(place *halo.Placement, found bool) (late bool, err error) {
	late = found && s.time().Sub(s.Begun) > searchLimit
	return mpi.Broadcast(context.Background(), place.Processes, "scheme: go on with trials", late, 0)
}

// Fastest returns the trials of a step, the shortest first: each scheme, over each path, runs the step for some
// milliseconds, with norms as often as the options say, unless there is too little memory for what it takes. Those that
// are close to the fastest run twice more, in turns, and their shortest times count. All their kernels are compiled
// first, side by side, see Ahead. The variables of the step hold something else then.
//
// A search takes about three seconds at most, see Search.Begun. Among the compiled schemes it first tries those that
// are usually the fastest. The next search for the step tries the rest. Once all are tried, the trials are stored in
// the user's cache, for steps that do the same on such devices, and are not repeated: known is true then. On devices that work on cores of the host
// nothing is tried, and there are no trials. Where processes share the grid all call it, and get the same trials, those
// of rank 0. See Step.Name for steps with user kernels.
func Fastest(ctx context.Context, step *Step, s Search, o Options) (trials []Trial, known bool, err error) {
	if err := step.Check(); err != nil {
		return nil, false, err
	}
	switch {
	case s.Compiler == nil:
		return nil, false, errors.New("scheme: a search without a compiler (nil)")
	case ctx == nil:
		return nil, false, errNoContext
	}
	place := step.placement()
	if idle, err := mpi.Broadcast(context.Background(), place.Processes, "scheme: choose a scheme",
		place.FirstDevice().HostCores, 0); err != nil || idle {
		return nil, false, err
	}
	m := s.memory(step, o)
	trials, err = s.recall(step, m)
	if err != nil || len(trials) > 0 || s.Known {
		return trials, len(trials) > 0, err
	}
	rest := s.unfinished().memory(step, o)
	before, err := s.recall(step, rest)
	if err != nil {
		return nil, false, err
	}
	trials, outcome, err := s.try(ctx, step, o, before)
	if err != nil || len(trials) == 0 {
		return nil, false, err
	}
	if isFirst(place) { // if writing fails, the next search repeats the trials
		switch outcome {
		case triedAll:
			_ = m.Put(trials)
		case triedSome:
			_ = rest.Put(trials)
		}
	}
	return trials, false, nil
}

// recall returns the trials that are remembered, if the fastest is still possible.
func (s Search) recall(step *Step, m cache.Store[[]Trial]) (trials []Trial, err error) {
	place := step.placement()
	if isFirst(place) {
		trials, _ = m.Get()
	}
	trials, err = mpi.Broadcast(context.Background(), place.Processes, "scheme: remember trials", trials, 0)
	if err != nil || len(trials) == 0 {
		return nil, err
	}
	if _, failed := step.Plan(s.Links, trials[0].Path); Agreed(place, failed) != nil {
		return nil, nil
	}
	return trials, nil
}

// outcome says what a search has tried.
type outcome int

const (
	triedAll  outcome = iota
	triedSome         // the search took its time
	leftOut           // all but what does not compile
)

// try times all schemes but those that were tried before, and returns all trials.
func (s Search) try(
	ctx context.Context, step *Step, o Options, trials []Trial,
) (all []Trial, tried outcome, err error) {
	place, partOf := step.placement(), !s.Begun.IsZero()
	if !partOf {
		s.Begun = s.time()
	}
	// As part of a search it may find nothing: something was found before.
	if late, err := s.isLate(place, partOf); late || err != nil {
		return trials, triedSome, err
	}
	ahead := s.Ahead
	if ahead == nil {
		ahead = Ahead(ctx, step, s, o)
		defer ahead.Stop()
	}
	s.tune(ctx, step, o, ahead)
	compiled, err := mpi.Broadcast(context.Background(), place.Processes, "scheme: see what is compiled",
		ahead.Wait(s.after(s.Begun.Add(waitLimit))), 0) // what compiles takes cores from what is timed
	if err != nil {
		return nil, tried, err
	}
	var failed error
	late := false
	wasTried := func(c candidate) bool { return slices.ContainsFunc(trials, c.isOf) }
	queue := slices.DeleteFunc(s.candidates(step), wasTried)
	if !compiled {
		s.ask(ctx, step, queue, o, ahead)
	}
	for len(queue) > 0 {
		i, err := s.next(place, queue, ahead)
		if err != nil {
			return nil, tried, err
		}
		c := queue[i]
		queue = slices.Delete(queue, i, i+1)
		if late, err = s.isLate(place, partOf || len(trials) > 0); err != nil {
			return nil, tried, err
		}
		if late {
			break
		}
		if s.Trying != nil {
			s.Trying(c.name, c.path)
		}
		took, err := s.timeStep(ctx, step, c, o)
		switch {
		case errors.Is(err, ErrUnsuited) || errors.Is(err, streams.ErrOutOfMemory):
			continue
		case errors.Is(err, kernels.ErrNotCompiled):
			failed = cmp.Or(failed, c.failure(err))
			if s.Failed != nil {
				s.Failed(c.name, c.path, err)
			}
		case err != nil:
			return nil, tried, c.failure(err)
		default:
			trials = append(trials, Trial{c.name, c.path, took, step.Group})
		}
	}
	if len(trials) == 0 {
		return nil, tried, failed
	}
	if err := s.timeAgain(ctx, step, o, trials); err != nil {
		return nil, tried, err
	}
	switch {
	case late:
		tried = triedSome
	case failed != nil:
		tried = leftOut
	}
	return trials, tried, nil
}

// ask finds out what each candidate waits for.
func (s Search) ask(ctx context.Context, step *Step, queue []candidate, o Options, ahead *kernels.Ahead) {
	_ = ahead.Asked()
	for i, c := range queue {
		c.begin(ctx, step, ahead, o)
		queue[i].ready = ahead.Asked()
	}
}

// next returns which candidate is tried next: the first whose kernels are compiled on rank 0, and after searchLimit the
// first of all.
func (s Search) next(place *halo.Placement, queue []candidate, ahead *kernels.Ahead) (i int, err error) {
	const pause = 20 * time.Millisecond
	ready := func(c candidate) bool { return c.ready == nil || c.ready() }
	for limit := s.Begun.Add(searchLimit); isFirst(place); {
		now := s.time()
		if i = slices.IndexFunc(queue, ready); i >= 0 {
			break
		}
		if i = 0; !now.Before(limit) || ahead.Wait(s.after(now.Add(min(pause, limit.Sub(now))))) {
			break
		}
	}
	return mpi.Broadcast(context.Background(), place.Processes, "scheme: choose what to try", i, 0)
}

// timeStep returns how long a step takes by a candidate, as rank 0 has timed it.
func (s Search) timeStep(ctx context.Context, step *Step, c candidate, o Options) (took time.Duration, err error) {
	place := step.placement()
	if err := Agreed(place, ctx.Err()); err != nil {
		return 0, err
	}
	o.Scheme = c.name
	if err := Agreed(place, fits(ctx, step, c.plan, s.Compiler, o)); err != nil {
		return 0, err
	}
	took, err = autotune(ctx, step, c.plan, s.Compiler, o, trialTime)
	if err := Agreed(place, err); err != nil {
		return 0, err
	}
	return mpi.Broadcast(context.Background(), place.Processes, "scheme: time a step", took, 0)
}

// Trials that took at most closeTo times as long as the shortest run again: the mostClose shortest, timesOfClose times.
const (
	closeTo      = 1.15
	mostClose    = 4
	timesOfClose = 2
)

// timeAgain repeats the trials that are close to the shortest, in turns, and sorts all trials, the shortest first.
func (s Search) timeAgain(ctx context.Context, step *Step, o Options, trials []Trial) error {
	slices.SortStableFunc(trials, faster)
	n := 0
	for n < min(mostClose, len(trials)) && float64(trials[n].Step) <= closeTo*float64(trials[0].Step) {
		n++
	}
	again := slices.DeleteFunc(s.candidates(step), func(c candidate) bool {
		return n < 2 || !slices.ContainsFunc(trials[:n], c.isOf)
	})
	for range timesOfClose {
		for _, c := range again {
			if late, err := s.isLate(step.placement(), true); late || err != nil {
				slices.SortStableFunc(trials, faster)
				return err
			}
			took, err := s.timeStep(ctx, step, c, o)
			if errors.Is(err, streams.ErrOutOfMemory) { // there was enough before
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
	slices.SortStableFunc(trials, faster)
	return nil
}

// tune finds the fastest shapes of sweeps, while other kernels are compiled: those of schemes that sweep by
// themselves may depend on them, and are begun then. What fails here the trials tell.
func (s Search) tune(ctx context.Context, step *Step, o Options, ahead *kernels.Ahead) {
	sweeping := slices.DeleteFunc(s.candidates(step), func(c candidate) bool {
		needs := c.name.Needs()
		return !needs.Swept || needs.CheckPath(c.name, c.path) != nil
	})
	place := step.placement()
	// all processes make a runner, or none
	if len(sweeping) == 0 || place.FirstDevice().GoKernels || Agreed(place, ctx.Err()) != nil {
		return
	}
	x, err := NewRunner(ctx, step, sweeping[0].plan, s.Compiler)
	if err != nil || x.Close() != nil {
		return
	}
	for _, c := range sweeping {
		c.begin(ctx, step, ahead, o)
	}
}

// isOf reports whether a trial was one of the candidate.
func (c candidate) isOf(t Trial) bool { return t.Scheme == c.name && t.Path == c.path }

// failure says what was tried.
func (c candidate) failure(err error) error {
	return fmt.Errorf("try scheme %s by %s: %w", c.name, c.path, err)
}
