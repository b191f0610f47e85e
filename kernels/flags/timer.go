package flags

import (
	"errors"
	"math"
	"math/bits"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Timer measures the time of work on one device by the clock of the device, on a separate stream. All comparisons
// of variants use it: the tuning of kernels, the packing engines, benchmarks.
type Timer struct {
	resources  streams.Resources
	Stream     *streams.Stream // stream of the timed work
	Start, End *streams.Event  // recorded around the timed work
	gate       *Gate           // nil if the timer has none
	limit      time.Duration
}

// NewTimer creates a timer without a gate. The device counts as stuck if work takes longer than the limit. Close
// frees the timer.
func NewTimer(d *streams.Device, limit time.Duration) (*Timer, error) {
	t := &Timer{limit: limit}
	t.Stream = t.resources.NewStream(d, streams.Normal)
	t.Start, t.End = t.resources.NewTimedEvent(d), t.resources.NewTimedEvent(d)
	return t, t.resources.Done()
}

// NewGatedTimer creates a timer with a gate, which opens by itself after the gate limit.
func NewGatedTimer(c *kernels.Compiler, d *streams.Device, gateLimit, limit time.Duration) (*Timer, error) {
	t, err := NewTimer(d, limit)
	if err != nil {
		return nil, err
	}
	streams.Into(&t.resources, &t.gate)(NewGate(c, d, gateLimit))
	return t, t.resources.Done()
}

// Time returns the device time of the work that queue queues on the stream, after the work of warm (nil for none).
// If gated, all work is queued before any of it begins, since the host may take longer to queue an operation than
// the device to run it. The stream is idle before and after.
func (t *Timer) Time(gated bool, warm, queue func() error) (time.Duration, error) {
	if gated {
		if err := t.gate.Shut(t.Stream); err != nil {
			return 0, err
		}
	}
	err := t.around(warm, queue)
	if gated {
		err = errors.Join(err, t.gate.Open())
	}
	if err = errors.Join(err, t.Stream.Sync(t.limit)); err != nil {
		return 0, err
	}
	return t.End.Since(t.Start)
}

// around queues the work between the two events.
func (t *Timer) around(warm, queue func() error) error {
	if warm != nil {
		if err := warm(); err != nil {
			return err
		}
	}
	if err := t.Stream.Record(t.Start); err != nil {
		return err
	}
	if err := queue(); err != nil {
		return err
	}
	return t.Stream.Record(t.End)
}

// each returns the mean time of the given number of consecutive launches.
func (t *Timer) each(k *streams.Kernel, launches int) (time.Duration, error) {
	took, err := t.Time(false, nil, func() error {
		for range launches {
			if err := t.Stream.Launch(k); err != nil {
				return err
			}
		}
		return nil
	})
	return took / time.Duration(launches), err
}

// Least returns the shortest of up to three times of a launch, after one warm-up, until the time end. Short
// launches are timed in rows of up to 20, as in steps: a single one takes some microseconds longer.
func (t *Timer) Least(k *streams.Kernel, end time.Time) (best time.Duration, err error) {
	const rounds, rowTime, maxRow = 4, 200 * time.Microsecond, 20
	best = math.MaxInt64
	launches := 1
	for i := range rounds {
		if i > 1 && time.Now().After(end) {
			break
		}
		took, err := t.each(k, launches)
		if err != nil {
			return 0, err
		}
		if i > 0 {
			best = max(1, min(best, took))
		}
		launches = int(min(maxRow, max(1, rowTime/max(1, took))))
	}
	return best, nil
}

// Alike rounds the lengths of a box, in points, down to their five highest bits. Measurements for a box also apply
// to boxes that round to the same lengths, which differ by at most 6%: the fastest kernel depends on how often the
// thread blocks fill the GPU, and on how much of the box its caches hold.
func Alike(size [3]int) (alike [3]int) {
	const kept = 5
	for a, n := range size {
		low := max(0, bits.Len(uint(n))-kept)
		alike[a] = n >> low << low
	}
	return alike
}

// Close frees the timer. Closing twice is allowed.
func (t *Timer) Close() error { return t.resources.Close() }
