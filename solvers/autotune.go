package solvers

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
)

// Autotune returns how long a step of a problem takes by the scheme of the options: the
// median of some intervals, which take about the budget together, of a run whose fields hold
// anything. It takes norms as often as a run with these options. An error that is ErrUnsuited
// says why the scheme cannot run it.
func Autotune(ctx context.Context, p *Problem, plan *halo.Plan, c *kernels.Compiler, o Options, budget time.Duration) (step time.Duration, err error) {
	s, err := newUnfilled(p, plan, c)
	if err != nil {
		return 0, err
	}
	r := autotuner{budget: budget}
	if !o.Checks() {
		o.CheckEvery = 1 << 40
	}
	o.History, o.Tolerance, o.anything = o.Checks(), 0, true
	o.Iterations, o.Progress, o.Interval = 1<<40, nil, r.interval
	if _, err := s.Run(ctx, o); errors.Is(err, ErrUnsuited) {
		return 0, errors.Join(err, s.Close())
	} else if err != nil {
		return 0, err // closing now would wait for streams that may hang
	}
	if err := errors.Join(ctx.Err(), s.Close()); err != nil {
		return 0, err
	}
	slices.Sort(r.took)
	return r.took[len(r.took)/2], nil
}

// autotuner chooses the intervals of a trial run: one to warm up, one to learn how long the
// others are to be, and these.
type autotuner struct {
	budget    time.Duration
	intervals int
	steps     int64           // of an interval that counts
	took      []time.Duration // by a step, of intervals that count
}

const (
	tunedIntervals = 3
	warmSteps      = 20
)

// interval implements Options.Interval.
func (r *autotuner) interval(steps int64, took time.Duration) int64 {
	r.intervals++
	switch {
	case r.intervals <= 2:
		return warmSteps
	case r.intervals == 3:
		r.steps = max(2, int64(r.budget)*warmSteps/tunedIntervals/max(1, int64(took)))
		return r.steps
	}
	r.took = append(r.took, max(1, took/time.Duration(steps)))
	if len(r.took) < tunedIntervals {
		return r.steps
	}
	return 0
}
