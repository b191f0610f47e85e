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
	// that an interval is to take: against it, to fill the queues of a device is nothing
	intervalTime  = 20 * time.Millisecond
	firstInterval = 2 // steps of the first interval, to find out how many fill one
	minIntervals  = 6 // of which a median has a confidence interval
)

// stepTimer steps a solver an interval at a time, each when it is asked for. The solver runs in a
// goroutine of its own until the timer is closed.
type stepTimer struct {
	want   chan int64         // steps of the next interval; closed for no more
	took   chan time.Duration // of the interval before
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

// step returns the time of a step in microseconds, over intervals: until the median is known
// to a percent or the time is spent. What it has comes back with the error that ends it.
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

// follow makes steps as long as rank 0 asks for more.
func follow(ctx context.Context, s *solvers.Solver, o scheme.Options) error {
	o.Interval = func(int64, time.Duration) int64 { return 1 } // what rank 0 says counts
	result, err := s.Run(ctx, o)
	if err == nil && result.Stopped == scheme.StoppedInterrupted {
		return context.Canceled
	}
	return left(err)
}

// run is the devices on which steps are timed.
type run struct {
	*bench.Machine
	slabs   bool          // how grids are cut, where a case leaves it open
	budget  time.Duration // of a row
	notes   io.Writer
	ceiling results.Sample  // the rate of a plain copy within a device
	record  *results.Record // of what was measured before
}

// newRun begins the record of steps.
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

// copies makes n copies and returns the time of one in microseconds.
func copies(s *streams.Stream, end *streams.Event, dst, src streams.Span, n int) (float64, error) {
	start := time.Now()
	err := cmp.Or(timing.Times(n, func() error { return s.Copy(dst, src) }), s.Record(end), timing.Await(end, start))
	return time.Since(start).Seconds() * 1e6 / float64(n), err
}

// task is a case whose row begins with these labels.
func (r *run) task(labels results.Row, c stepCase) bench.Task {
	return bench.OneRow(labels, func(ctx context.Context, _ *streams.Resources) (results.Row, error) {
		return r.byFirst(ctx, labels, c)
	})
}

// byFirst measures a case on its number of devices: the first of this process, or those of the first of several.
func (r *run) byFirst(ctx context.Context, row results.Row, c stepCase) (results.Row, error) {
	on, err := r.First(ctx, c.devices)
	if err != nil || on == nil {
		return row, err
	}
	with := *r
	with.Machine = on
	row, err = with.measure(ctx, row, c)
	return row, errors.Join(err, on.LeaveTo(r.Machine))
}

// measure adds to a row what the steps of a case take. It is left out where the scheme, a link or the memory does not
// suit the case.
func (r *run) measure(ctx context.Context, row results.Row, c stepCase) (results.Row, error) {
	step, s, err := r.step(ctx, c)
	if err != nil {
		return row, err
	}
	row = row.Label("parts", domain.Times(s.Place.Parts[:len(c.size)]))
	row.Note = s.note()
	return c.values(row, step, r.ceiling), nil
}

// step times the steps of a case, in microseconds, and says how it was set up.
func (r *run) step(ctx context.Context, c stepCase) (step results.Sample, s *setup, err error) {
	agree := func(mine error) error {
		return r.Processes.Agree(context.Background(), "run steps together", mine, bench.ErrLeftOut)
	}
	s, err = newSetup(ctx, r.Machine, c, r.slabs)
	if err = agree(err); err != nil {
		return step, nil, err
	}
	took, err := s.Choose(ctx)
	if err != nil {
		return step, nil, err
	}
	if took > 0 {
		fmt.Fprintln(r.notes, s.Tried(took))
	}
	if err := agree(left(s.CheckMemory(ctx))); err != nil {
		return step, nil, err
	}
	solver, err := s.New(ctx)
	if err = agree(err); err != nil {
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
