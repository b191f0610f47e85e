package streams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/halox/halox/internal/host"
	"github.com/halox/halox/internal/poll"
)

// ErrStopped is returned by a worker because another one failed.
var ErrStopped = errors.New("stopped: another worker failed")

// WorkerGroup holds the host threads of one run. Each worker is a goroutine locked to its own OS thread that runs
// its whole loop. Workers synchronize through counters in memory. The first error stops all.
type WorkerGroup struct {
	group *errgroup.Group
	ctx   context.Context
	limit time.Duration
	pace  *poll.Policy
	mu    sync.Mutex
	busy  map[string]int // running workers, by name
}

// NewWorkerGroup returns a group for the given number of workers, which are started by Go. No worker waits for
// another longer than limit. If there is a core for every worker, waiting workers spin.
func NewWorkerGroup(workers int, limit time.Duration) *WorkerGroup {
	group, ctx := errgroup.WithContext(context.Background())
	return &WorkerGroup{group: group, ctx: ctx, limit: limit, pace: paceOf(workers), busy: map[string]int{}}
}

// Go starts a worker. A panic in it is returned as its error.
func (w *WorkerGroup) Go(name string, loop func() error) {
	w.count(name, 1)
	w.group.Go(func() (err error) {
		defer w.count(name, -1)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("worker %s panicked: %s", name, Panicked(p))
			}
		}()
		return loop()
	})
}

func (w *WorkerGroup) count(name string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[name] += n; w.busy[name] == 0 {
		delete(w.busy, name)
	}
}

// Wait waits for all workers and returns the first error. After an error it waits for the others for at most the
// group's limit: a worker that is stuck in a device call is abandoned, and named in the error.
func (w *WorkerGroup) Wait() error {
	done := make(chan error, 1)
	go func() { done <- w.group.Wait() }()
	select {
	case err := <-done:
		return err
	case <-w.ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(w.limit):
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Errorf("%w; still busy after %v: %s", context.Cause(w.ctx), w.limit,
		strings.Join(slices.Sorted(maps.Keys(w.busy)), ", "))
}

// Limit returns how long a worker may wait for another.
func (w *WorkerGroup) Limit() time.Duration { return w.limit }

// How host threads wait for each other and for devices. They spin only if there is a core for each, as CUDA's own
// waits do.
var (
	spinning = poll.Policy{
		Spin: 100 * time.Millisecond, Yields: 20, Share: 8, Min: 5 * time.Microsecond, Max: 200 * time.Microsecond,
	}
	yielding = poll.Policy{
		Spin: 10 * time.Microsecond, Yields: 20, Share: 8, Min: 5 * time.Microsecond, Max: 200 * time.Microsecond,
	}
)

// paceOf returns the wait policy for the given number of threads.
func paceOf(threads int) *poll.Policy {
	if threads < host.Threads() {
		return &spinning
	}
	return &yielding
}

// Counter counts what one worker has done, for others to wait for. It has its own cache line.
type Counter struct {
	Name   string        // of the worker that counts, for errors of the workers that wait for it
	shared *atomic.Int64 // the count of another process, if that is greater; nil if there is none
	_      [40]byte
	n      atomic.Int64
	_      [56]byte
}

// Count returns the count.
func (c *Counter) Count() int64 {
	if n := c.n.Load(); c.shared == nil || n > 0 {
		return n
	}
	return c.shared.Load()
}

// Add increments the count by one.
func (c *Counter) Add() { c.n.Add(1) }

// Set sets the count to n.
func (c *Counter) Set(n int64) { c.n.Store(n) }

// Await waits until the counter has reached n. It returns ErrStopped if another worker failed, and an error that
// names the counter after the group's limit.
func (w *WorkerGroup) Await(counter *Counter, n int64) error {
	if w == nil {
		return errNoGroup
	}
	return w.await(counter, n, w.limit)
}

// await is Await with another limit, if that is less.
func (w *WorkerGroup) await(counter *Counter, n int64, limit time.Duration) error {
	if w == nil {
		return errNoGroup
	}
	limit = min(limit, w.limit)
	wait := w.pace.Begin()
	for counter.Count() < n {
		waited := wait.Pause()
		if waited < w.pace.Spin {
			continue
		}
		if w.ctx.Err() != nil {
			return ErrStopped
		}
		if waited > limit {
			return fmt.Errorf("waited %v for %s to reach %d, got %d", limit, counter.Name, n, counter.Count())
		}
	}
	return nil
}

// Caught, deferred around a call of a user function, converts a panic in it to the error. The error names the
// function: what it is, such as "Stage.Kernels of stage", and its name of. Caught does not allocate without a
// panic.
func Caught(err *error, what, of string) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s %q panicked: %s", what, of, Panicked(p))
	}
}

// Panicked returns the text of a recovered panic: its value and its location.
func Panicked(p any) string {
	var stack [64]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(0, stack[:])])
	for raised := false; ; {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			raised = true
		case raised && !strings.HasPrefix(frame.Function, "runtime."):
			return fmt.Sprintf("%v (in %s, %s:%d)", p, path.Base(frame.Function), path.Base(frame.File), frame.Line)
		}
		if !more {
			return fmt.Sprint(p)
		}
	}
}

// Signal orders two streams that different workers feed. An event is not enough: Wait considers only a Record that
// was called before, so the waiting worker must first know that the other worker has called it. A signal counts
// its records for that. Its two events alternate, so that a record can be waited for while the next one is made.
type Signal struct {
	events  [2]*Event
	records Counter
}

// NewSignal creates a signal for a stream of device d. The name identifies the worker that records it.
func (d *Device) NewSignal(name string, args ...any) (*Signal, error) {
	first, err := d.NewEvent()
	if err != nil {
		return nil, err
	}
	second, err := d.NewEvent()
	if err != nil {
		return nil, errors.Join(err, first.Close())
	}
	return &Signal{events: [2]*Event{first, second}, records: Counter{Name: fmt.Sprintf(name, args...)}}, nil
}

// event returns the event of the n-th record.
func (s *Signal) event(n int64) *Event { return s.events[n%2] }

// Record queues an event on a stream and publishes the record.
func (s *Signal) Record(on *Stream) error {
	if err := on.Record(s.event(s.records.Count() + 1)); err != nil {
		return err
	}
	s.records.Add()
	return nil
}

// Wait makes a stream wait for the n-th record, counted from 1, once the recording worker has queued it. That
// worker must not make record n+2 before record n was waited for.
func (s *Signal) Wait(group *WorkerGroup, on *Stream, n int64) error {
	if err := group.Await(&s.records, n); err != nil {
		return err
	}
	return on.Wait(s.event(n))
}

// Await waits on the host until the n-th record has been queued, or announced.
func (s *Signal) Await(c *WorkerGroup, n int64) error { return c.Await(&s.records, n) }

// SetRecords sets the number of records that Await and Wait see, without making one: one more wakes those that await
// it.
func (s *Signal) SetRecords(n int64) { s.records.Set(n) }

// Close frees the events.
func (s *Signal) Close() error { return errors.Join(s.events[0].Close(), s.events[1].Close()) }
