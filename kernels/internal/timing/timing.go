// Package timing times launches on a device, for what tries several ways and takes the fastest.
package timing

import (
	"errors"
	"math"
	"math/bits"
	"time"

	"github.com/halox/halox/streams"
)

// Timer times launches on a stream of its own.
type Timer struct {
	resources  streams.Resources
	Stream     *streams.Stream
	Start, End *streams.Event // timed ones
}

// limit is how long a launch may take before the device counts as stuck.
const limit = 30 * time.Second

// New makes a timer for a device. Close frees it.
func New(d *streams.Device) (w *Timer, err error) {
	w = &Timer{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if w.Stream, err = d.NewStream(streams.Normal); err != nil {
		return w, err
	}
	w.resources.Add(w.Stream)
	for _, e := range []**streams.Event{&w.Start, &w.End} {
		if *e, err = d.NewTimedEvent(); err != nil {
			return w, err
		}
		w.resources.Add(*e)
	}
	return w, nil
}

// Each returns how long the device takes for each of so many launches, one after the other.
func (w *Timer) Each(k *streams.Kernel, launches int) (time.Duration, error) {
	err := w.Stream.Record(w.Start)
	for range launches {
		if err == nil {
			err = w.Stream.Launch(k)
		}
	}
	if err == nil {
		err = w.Stream.Record(w.End)
	}
	if err == nil {
		err = w.End.Sync(limit)
	}
	if err != nil {
		return 0, err
	}
	took, err := w.End.Since(w.Start)
	return took / time.Duration(launches), err
}

// Least returns the least of some times of a launch, after one that warms up, and no more of them than there is time for
// until end. Short launches are timed one behind the other, as steps are: by itself one takes some microseconds more.
func (w *Timer) Least(k *streams.Kernel, end time.Time) (best time.Duration, err error) {
	const most, together, mostTogether = 4, 200 * time.Microsecond, 20
	best = math.MaxInt64
	launches := 1
	for i := range most {
		if i > 1 && time.Now().After(end) {
			break
		}
		took, err := w.Each(k, launches)
		if err != nil {
			return 0, err
		}
		if i > 0 {
			best = max(1, min(best, took))
		}
		launches = int(min(mostTogether, max(1, together/max(1, took))))
	}
	return best, nil
}

// Alike rounds the lengths of a box, in points, down to their five highest bits. What is found for a box is kept for those that round
// alike, whose lengths differ by 6% at most: which kernel is the fastest depends on the number of blocks, beside those that a GPU
// runs at a time, and on how much of the box its caches hold.
func Alike(size [3]int) (alike [3]int) {
	const kept = 5
	for a, n := range size {
		low := max(0, bits.Len(uint(n))-kept)
		alike[a] = n >> low << low
	}
	return alike
}

// Close frees the timer. Closing twice is no error.
func (w *Timer) Close() error { return w.resources.Close() }
