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

// Device returns the device of the event.
func (e *Event) Device() *Device { return e.device }

// Done reports whether the work before the last Record is done.
func (e *Event) Done() (bool, error) {
	if e == nil {
		return false, errNoEvent
	}
	if err := e.device.alive(); err != nil {
		return false, err
	}
	ok, err := e.marker.done()
	return ok, e.device.fail(err, "ask for an event")
}

// Sync makes the host wait until the event is done, for at most limit.
func (e *Event) Sync(limit time.Duration) error {
	poll := newBackoff(spinFor(syncThreads))
	for {
		done, err := e.Done()
		if done || err != nil {
			return err
		}
		if poll.pause() > limit {
			return e.device.fail(notDone(limit), "wait for an event")
		}
	}
}

// Since returns the time on the device from one event to another, both timed ones of the
// device, recorded and done.
func (e *Event) Since(start *Event) (time.Duration, error) {
	if e == nil || start == nil {
		return 0, errNoEvent
	}
	if start.device != e.device {
		return 0, e.device.fail(fmt.Errorf("the other is one of device %v", start.device), "ask for the time between events")
	}
	if err := e.device.alive(); err != nil {
		return 0, err
	}
	t, err := e.marker.since(start.marker)
	return t, e.device.fail(err, "ask for the time between events")
}

// syncThreads is how many threads may wait for devices at once: one a device
// of a large host.
const syncThreads = 7

// Close frees the event. Closing twice is no error.
func (e *Event) Close() error {
	return e.device.discard(e, e.marker.close, "free an event")
}
