package streams

import (
	"fmt"
	"time"
)

// Event is a point in the work of a stream.
type Event struct {
	device *Device
	marker marker
}

// marker is what a backend does for one event.
type marker interface {
	done() (bool, error)
	close() error
}

// Device returns the device of the event.
func (e *Event) Device() *Device { return e.device }

// Done reports whether the work before the last Record is done.
func (e *Event) Done() (bool, error) {
	if err := e.device.alive(); err != nil {
		return false, err
	}
	ok, err := e.marker.done()
	return ok, e.device.fail(err, "ask for an event")
}

// Sync makes the host wait until the event is done, for at most limit.
func (e *Event) Sync(limit time.Duration) error {
	poll := newBackoff(shortSpin)
	for {
		done, err := e.Done()
		if done || err != nil {
			return err
		}
		if poll.pause() > limit {
			return e.device.fail(fmt.Errorf("not done after %v", limit), "wait for an event")
		}
	}
}

// Close frees the event. Closing twice is no error.
func (e *Event) Close() error {
	if !e.device.drop(e) {
		return nil
	}
	return e.device.fail(e.marker.close(), "free an event")
}
