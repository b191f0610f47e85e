package scheme

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/halox/halox/kernels"
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
func (t *stepTimer) interval(steps int64, took time.Duration) int64 {
	t.intervals++
	switch {
	case t.intervals <= 2:
		return warmSteps
	case t.intervals == 3:
		t.steps = max(2, int64(t.budget)*warmSteps/timedIntervals/max(1, int64(took)))
		return t.steps
	}
	t.took = append(t.took, max(1, took/time.Duration(steps)))
	if len(t.took) < timedIntervals {
		return t.steps
	}
	return 0
}
