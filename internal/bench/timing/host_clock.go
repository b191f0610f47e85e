package timing

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// Limit is how long a benchmark waits for a device or a thread that makes no progress.
const Limit = 60 * time.Second

// Queued returns the time of one of what queue queues, in microseconds by the host's clock: the
// median over batches that are waited for, each of some milliseconds, so that to begin one and to
// wait for it counts little.
func Queued(ctx context.Context, at []*streams.Stream, queue func(n int) error) (results.Sample, error) {
	return Batches(ctx, func(n int) (float64, error) { return Batch(at, queue, n) })
}

// Batches is Queued of batches that are given.
func Batches(ctx context.Context, batch func(n int) (float64, error)) (results.Sample, error) {
	pace := Pace{First: 20, Max: 400, Batch: 4 * time.Millisecond}
	return pace.Measure(ctx, batch)
}

// Batch queues n and waits for them; it returns the time of one in microseconds.
func Batch(at []*streams.Stream, queue func(n int) error, n int) (float64, error) {
	start := time.Now()
	if err := queue(n); err != nil {
		return 0, err
	}
	for _, s := range at {
		if s == nil {
			continue // of another process
		}
		if err := s.Sync(Limit); err != nil {
			return 0, err
		}
	}
	return time.Since(start).Seconds() * 1e6 / float64(n), nil
}

// Await waits for an event until Limit after start. It does not sleep, as [streams.Event.Sync]
// does after a while: what is timed by it may take less than that.
func Await(e *streams.Event, start time.Time) error {
	for {
		done, err := e.Done()
		if done || err != nil {
			return err
		}
		if time.Since(start) > Limit {
			return fmt.Errorf("what device %v was given is not done after %v", e.Device(), Limit)
		}
		runtime.Gosched()
	}
}
