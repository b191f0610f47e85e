// Package timing times launches on a device, for what tries several ways and takes the fastest.
package timing

import (
	"errors"
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

// Time returns how long the device takes for one launch.
func (w *Timer) Time(k *streams.Kernel) (time.Duration, error) { return w.Each(k, 1) }

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

// Close frees the timer. Closing twice is no error.
func (w *Timer) Close() error { return w.resources.Close() }
