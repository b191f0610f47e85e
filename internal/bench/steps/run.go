package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

const (
	// target time of an interval, compared with which filling the queues of a device is negligible
	intervalTime  = 20 * time.Millisecond
	firstInterval = 2 // steps of the first interval, which determines the number of steps of the next
	minIntervals  = 6 // for a median with a confidence interval
)

// stepTimer runs a solver one interval at a time, on request. The solver runs in a separate goroutine until the timer
// is closed.
type stepTimer struct {
	want   chan int64         // steps of the next interval; closed for no more
	took   chan time.Duration // time of the previous interval
	ended  chan struct{}      // closed with the run, after result and err
	result scheme.Result
	err    error
}

// newStepTimer starts the run. It returns the error that a scheme rejects the problem with.
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

// interval runs the given number of steps and returns their time. It returns the context's error if that ended the run.
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

// over returns why the run ended.
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

// step returns the time of a step in microseconds, measured over intervals until the median is known to a percent or
// the time is spent. With an error it returns the intervals so far.
func (t *stepTimer) step(ctx context.Context, most time.Duration) (results.Sample, error) {
	n, err := t.pace()
	if err != nil {
		return results.Sample{}, err
	}
	budget := measure.Budget{Warm: 1, Min: minIntervals, Time: most, Within: measure.Within}
	return measure.Repeat(ctx, budget, func() (float64, error) {
		took, err := t.interval(n)
		return took.Seconds() * 1e6 / float64(n), err
	})
}

// pace determines how many steps take the time of an interval: an even number, since steps alternate between two
// fields. It ignores the first interval, in which threads start, and uses one that takes half the time or more: the
// number of steps per launch grows during a run.
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

// follow runs steps as long as rank 0 requests more.
func follow(ctx context.Context, s *solvers.Solver, o scheme.Options) error {
	o.Interval = func(int64, time.Duration) int64 { return 1 } // the result of rank 0 counts
	result, err := s.Run(ctx, o)
	if err == nil && result.Stopped == scheme.StoppedInterrupted {
		return context.Canceled
	}
	return left(err)
}

// run is the devices on which steps are timed.
type run struct {
	*bench.Machine
	slabs   bool          // decomposition, if the case does not set it
	budget  time.Duration // of a row
	notes   io.Writer
	ceiling results.Sample  // the rate of a plain copy within a device
	record  *results.Record // of what was measured before
}

// newRun begins the record.
func (o *common) newRun(ctx context.Context, kind results.Kind, on *bench.Machine, to *bench.Recorder) (*run, error) {
	r := &run{Machine: on, slabs: o.Cut == cutSlabs, budget: o.Budget, notes: to.Notes}
	if err := to.Begin(kind, on.Links); err != nil {
		return nil, err
	}
	r.record = to.Record
	var err error
	if on.Processes.IsAlone() || on.Processes.Rank == 0 {
		err = r.measureCeiling(ctx)
	}
	return r, bench.AgreeToGoOn(ctx, on.Processes, err)
}

// measureCeiling measures the rate of a plain copy within the first device, of bytes read
// and written, in GB/s: that of memory, since the arrays do not fit into a GPU's cache.
func (r *run) measureCeiling(ctx context.Context) (err error) {
	d := r.Devices[0]
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	bytes := int64(1 << 28)
	if d.HostMemory {
		bytes = 1 << 24
	}
	dst, src := open.Alloc(d, bytes), open.Alloc(d, bytes)
	s, end := open.NewStream(d, streams.Normal), open.NewEvent(d)
	if err := open.Err(); err != nil {
		return err
	}
	pace := measure.Pace{First: 1, Max: 400, Batch: 8 * time.Millisecond}
	took, err := pace.Measure(ctx, func(n int) (float64, error) { return copies(s, end, dst.All(), src.All(), n) })
	r.ceiling = took.Under(2 * float64(bytes) / 1e3)
	return err
}

// copies runs n copies and returns the time of one in microseconds.
func copies(s *streams.Stream, end *streams.Event, dst, src streams.Span, n int) (float64, error) {
	start := time.Now()
	err := cmp.Or(timing.Times(n, func() error { return s.Copy(dst, src) }), s.Record(end), timing.Await(end, start))
	return time.Since(start).Seconds() * 1e6 / float64(n), err
}

// task is a case whose row begins with these labels.
func (r *run) task(labels results.Row, c stepCase) bench.Task {
	return r.taskBy(labels, c, func(ctx context.Context, on *run, row results.Row) (results.Row, error) {
		return on.measure(ctx, row, c)
	})
}

// taskBy is a case that is measured on its number of devices: the first of this process, or those of the first of
// several. measure adds the values of the row.
func (r *run) taskBy(
	labels results.Row, c stepCase, measure func(ctx context.Context, on *run, row results.Row) (results.Row, error),
) bench.Task {
	return bench.OneRow(labels, func(ctx context.Context, _ *streams.Resources) (results.Row, error) {
		on, err := r.First(ctx, c.devices)
		if err != nil || on == nil {
			return labels, err
		}
		with := *r
		with.Machine = on
		row, err := measure(ctx, &with, labels)
		return row, errors.Join(err, on.LeaveTo(r.Machine))
	})
}

// measure adds the time of a case's steps to a row. The case is left out if the scheme, a link or the memory does not
// support it.
func (r *run) measure(ctx context.Context, row results.Row, c stepCase) (results.Row, error) {
	step, s, err := r.step(ctx, c)
	if err != nil {
		return row, err
	}
	row = row.Label("parts", domain.Times(s.Place.Parts[:len(c.size)]))
	row.Note = s.note()
	return c.values(row, step, r.ceiling, s.Problem.Stencil.Operations()), nil
}

// open opens a case. The caller closes the solver.
func (r *run) open(ctx context.Context, c stepCase) (*setup, *solvers.Solver, error) {
	agree := func(mine error) error {
		return r.Processes.Agree(context.Background(), "run steps together", mine, bench.ErrLeftOut)
	}
	s, err := newSetup(ctx, r.Machine, c, r.slabs)
	if err = agree(err); err != nil {
		return nil, nil, err
	}
	took, err := s.Choose(ctx)
	if err != nil {
		return nil, nil, err
	}
	if took > 0 {
		fmt.Fprintln(r.notes, s.Tried(took))
	}
	if err := agree(left(s.CheckMemory(ctx))); err != nil {
		return nil, nil, err
	}
	solver, err := s.New(ctx)
	return s, solver, agree(err)
}

// step times the steps of a case, in microseconds, and returns its setup.
func (r *run) step(ctx context.Context, c stepCase) (step results.Sample, s *setup, err error) {
	s, solver, err := r.open(ctx, c)
	if err != nil {
		return step, nil, err
	}
	defer func() { err = errors.Join(err, solver.Close()) }()
	if !r.Processes.IsAlone() && r.Processes.Rank > 0 {
		return step, s, follow(ctx, solver, s.Options())
	}
	timer, err := newStepTimer(ctx, solver, s.Options())
	if err != nil {
		return step, nil, left(err)
	}
	defer func() { err = errors.Join(err, timer.close()) }()
	step, err = timer.step(ctx, r.budget)
	return step, s, err
}
