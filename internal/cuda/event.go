//go:build linux && cgo

package cuda

// #cgo noescape halox_event_record
// #cgo nocallback halox_event_record
// #cgo noescape halox_event_query
// #cgo nocallback halox_event_query
// #cgo noescape halox_event_synchronize
// #cgo nocallback halox_event_synchronize
// #cgo noescape halox_event_elapsed
// #cgo nocallback halox_event_elapsed
// #include "calls.h"
import "C"

// EventCreate makes an event.
func (c *Context) EventCreate(flags EventFlags) (Event, error) {
	var e C.CUhandle
	rc := C.halox_event_create(c.driver.table, c.handle, &e, C.uint(flags))
	return Event(e), c.check("cuEventCreate", rc)
}

// EventDestroy gives the event up, also while it is still waited for.
func (c *Context) EventDestroy(e Event) error {
	return c.check("cuEventDestroy", C.halox_event_destroy(c.driver.table, c.handle, C.CUhandle(e)))
}

// EventRecord makes the event stand for all work now on the stream. Both
// belong to c.
func (c *Context) EventRecord(e Event, s Stream) error {
	return c.check("cuEventRecord", C.halox_event_record(c.driver.table, c.handle, C.CUhandle(e), C.CUhandle(s)))
}

// EventQuery reports whether what the event recorded is done. An event that
// was never recorded is done.
func (c *Context) EventQuery(e Event) (done bool, err error) {
	return c.done("cuEventQuery", C.halox_event_query(c.driver.table, c.handle, C.CUhandle(e)))
}

// EventSynchronize waits until what the event recorded is done.
func (c *Context) EventSynchronize(e Event) error {
	return c.check("cuEventSynchronize", C.halox_event_synchronize(c.driver.table, c.handle, C.CUhandle(e)))
}

// EventElapsed is the time between two recorded events in milliseconds. It
// fails with [CodeNotReady] when one of them is not done, and with
// [CodeInvalidHandle] when one was made with [EventNoTiming].
func (c *Context) EventElapsed(start, end Event) (float32, error) {
	var ms C.float
	rc := C.halox_event_elapsed(c.driver.table, c.handle, &ms, C.CUhandle(start), C.CUhandle(end))
	return float32(ms), c.check("cuEventElapsedTime", rc)
}
