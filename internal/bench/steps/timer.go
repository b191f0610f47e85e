package steps

import (
	"context"
	"fmt"
	"time"

	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
)

const (
	intervalTime  = 20 * time.Millisecond // that an interval is to take: against it, to fill the queues of a device is nothing
	firstInterval = 2                     // steps of the first interval, to find out how many fill one
	minIntervals  = 6                     // of which a median has a confidence interval
)

// stepTimer steps a solver an interval at a time, each when it is asked for. The solver runs in a
// goroutine of its own until the timer is closed.
type stepTimer struct {
	want   chan int64         // steps of the next interval; closed for no more
	took   chan time.Duration // of the interval before
	ended  chan struct{}      // closed with the run, after result and err
	result solvers.Result
	err    error
}

// newStepTimer starts the run. It returns the error that a scheme refuses the problem with.
func newStepTimer(ctx context.Context, s *solvers.Solver, o scheme.Options) (*stepTimer, error) {
	t := &stepTimer{want: make(chan int64), took: make(chan time.Duration, 1), ended: make(chan struct{})}
	o.Interval = func(_ int64, took time.Duration) int64 {
		t.took <- took
		return <-t.want
	}
	go func() {
		defer close(t.ended)
		t.result, t.err = s.Run(ctx, o)
	}()
	_, err := t.await()
	return t, err
}

// interval makes so many steps and returns what they took. It returns the context's error
// where that ended the run.
func (t *stepTimer) interval(steps int64) (time.Duration, error) {
	select {
	case t.want <- steps:
		return t.await()
	case <-t.ended:
		return 0, t.over()
	}
}

// await waits for the end of an interval, or of the run.
func (t *stepTimer) await() (time.Duration, error) {
	select {
	case took := <-t.took:
		return took, nil
	case <-t.ended:
		return 0, t.over()
	}
}

// over says why the run ended.
func (t *stepTimer) over() error {
	switch {
	case t.err != nil:
		return t.err
	case t.result.Stopped == scheme.StoppedInterrupted:
		return context.Canceled
	}
	return fmt.Errorf("the run ended by itself after %d steps: %s", t.result.Steps, t.result.Stopped)
}

// close ends the run.
func (t *stepTimer) close() error {
	close(t.want)
	<-t.ended
	return t.err
}

// step returns the time of a step in microseconds, over intervals: until the median is known
// to a percent or the time is spent. What it has comes back with the error that ends it.
func (t *stepTimer) step(ctx context.Context, most time.Duration) (results.Sample, error) {
	n, err := t.pace()
	if err != nil {
		return results.Sample{}, err
	}
	budget := measure.Budget{Warm: 1, Min: minIntervals, Time: most, Within: timing.Within}
	return measure.Repeat(ctx, budget, func() (float64, error) {
		took, err := t.interval(n)
		return took.Seconds() * 1e6 / float64(n), err
	})
}

// pace finds out how many steps take the time of an interval: an even number, since every other
// step goes from one field to the other. The first interval, in which threads start, is not
// looked at. It tells from one that takes half the time or more: steps are made by launches, which
// have more steps the longer a run goes on.
func (t *stepTimer) pace() (int64, error) {
	if _, err := t.interval(firstInterval); err != nil {
		return 0, err
	}
	for n := int64(firstInterval); ; {
		took, err := t.interval(n)
		if err != nil {
			return 0, err
		}
		fill := 2 * (int64(float64(n)*float64(intervalTime)/float64(took)/2) + 1)
		if took >= intervalTime/2 {
			return fill, nil
		}
		n = min(fill, 4*n)
	}
}
