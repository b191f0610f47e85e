package scheme

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
	t := stepTimer{budget: budget}
	o.History, o.Tolerance, o.anything = false, 0, true
	o.Steps, o.Progress, o.Interval = 1<<40, nil, t.interval
	if _, err := x.Run(ctx, o); err != nil {
		return 0, errors.Join(err, x.Close())
	}
	if err := errors.Join(ctx.Err(), x.Close()); err != nil {
		return 0, err
	}
	slices.Sort(t.took)
	return t.took[len(t.took)/2], nil
}

// stepTimer chooses the intervals of a timing: one to warm up, one to learn how long the
// others are to be, and these.
type stepTimer struct {
	budget    time.Duration
	intervals int
	steps     int64           // of an interval that counts
	took      []time.Duration // by a step, of intervals that count
}

const (
	timedIntervals = 3
	warmSteps      = 20
)

// interval implements Options.Interval.
func (s *stepTimer) interval(steps int64, took time.Duration) int64 {
	s.intervals++
	switch {
	case s.intervals <= 2:
		return warmSteps
	case s.intervals == 3:
		s.steps = max(2, int64(s.budget)*warmSteps/timedIntervals/max(1, int64(took)))
		return s.steps
	}
	s.took = append(s.took, max(1, took/time.Duration(steps)))
	if len(s.took) < timedIntervals {
		return s.steps
	}
	return 0
}

// trialTime is how long the intervals of one trial take.
const trialTime = 10 * time.Millisecond

// searchTime is how long all trials together take, without compiling; after that no other is begun. Tests change it.
var searchTime = time.Second

// Fastest returns the trials of a step, the shortest first: each scheme but the baseline, over each path, runs the step
// for some milliseconds, with norms as often as the options say, unless there is too little memory for what it takes.
// All their kernels are compiled first, side by side, see Ahead. The variables of the step hold something else then.
// Trials are remembered in the user's cache, for steps that do the same on such devices, and not made again:
// known says so. On devices that work on cores of the host nothing is tried, and there are no trials. Where processes
// share the grid all call it, and get the same trials, those of rank 0. See Step.Name for steps with user kernels.
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
	trials, all, err := s.try(ctx, step, o)
	if err != nil || len(trials) == 0 {
		return nil, false, err
	}
	if all && isFirst(place) {
		_ = m.Put(trials)
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

// try times all schemes.
func (s Search) try(ctx context.Context, step *Step, o Options) (trials []Trial, all bool, err error) {
	ahead := s.Ahead
	if ahead == nil {
		ahead = Ahead(ctx, step, s, o)
	}
	s.tune(ctx, step, o, ahead)
	ahead.Wait() // what compiles takes cores from what is timed
	var failed error
	spent := time.Duration(0)
	place := step.placement()
	for _, c := range s.candidates(step) {
		over, err := mpi.Broadcast(context.Background(), place.Processes, "scheme: go on with trials",
			spent > searchTime, 0)
		if err != nil {
			return nil, false, err
		}
		if over {
			break
		}
		if err := Agreed(place, ctx.Err()); err != nil {
			return nil, false, c.failure(err)
		}
		if s.Trying != nil {
			s.Trying(c.name, c.path)
		}
		o.Scheme = c.name
		took := time.Duration(0)
		err = Agreed(place, fits(ctx, step, c.plan, s.Compiler, o))
		if err == nil {
			begin := time.Now()
			took, err = autotune(ctx, step, c.plan, s.Compiler, o, trialTime)
			spent += time.Since(begin)
			err = Agreed(place, err)
		}
		if err == nil {
			took, err = mpi.Broadcast(context.Background(), place.Processes, "scheme: time a step", took, 0)
		}
		switch {
		case errors.Is(err, ErrUnsuited) || errors.Is(err, streams.ErrOutOfMemory):
			continue
		case errors.Is(err, kernels.ErrNotCompiled):
			failed = cmp.Or(failed, c.failure(err))
			if s.Failed != nil {
				s.Failed(c.name, c.path, err)
			}
		case err != nil:
			return nil, false, c.failure(err)
		default:
			trials = append(trials, Trial{c.name, c.path, took, step.Group})
		}
	}
	if len(trials) == 0 {
		return nil, false, failed
	}
	slices.SortStableFunc(trials, faster)
	return trials, failed == nil, nil
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

// failure says what was tried.
func (c candidate) failure(err error) error {
	return fmt.Errorf("try scheme %s by %s: %w", c.name, c.path, err)
}
