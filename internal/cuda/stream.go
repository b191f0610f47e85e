//go:build linux && cgo

package cuda

// #cgo noescape halox_stream_synchronize
// #cgo nocallback halox_stream_synchronize
// #cgo noescape halox_stream_query
// #cgo nocallback halox_stream_query
// #cgo noescape halox_stream_wait
// #cgo nocallback halox_stream_wait
// #include "calls.h"
import "C"

// StreamCreate makes a stream that does not synchronise with the default
// stream. Smaller numbers are more urgent, see [Context.StreamPriorityRange];
// those outside of the range are moved into it.
func (c *Context) StreamCreate(priority int) (Stream, error) {
	var s C.CUhandle
	rc := C.halox_stream_create(c.driver.table, c.handle, &s, C.int(priority))
	return Stream(s), c.check("cuStreamCreateWithPriority", rc)
}

// StreamDestroy gives the stream up. Work on it still runs to its end.
func (c *Context) StreamDestroy(s Stream) error {
	return c.check("cuStreamDestroy", C.halox_stream_destroy(c.driver.table, c.handle, C.CUhandle(s)))
}

// StreamSynchronize waits until all work on the stream is done.
func (c *Context) StreamSynchronize(s Stream) error {
	return c.check("cuStreamSynchronize", C.halox_stream_synchronize(c.driver.table, c.handle, C.CUhandle(s)))
}

// StreamQuery reports whether all work on the stream is done.
func (c *Context) StreamQuery(s Stream) (done bool, err error) {
	return c.done("cuStreamQuery", C.halox_stream_query(c.driver.table, c.handle, C.CUhandle(s)))
}

// StreamWaitEvent makes later work on the stream wait, on the device, for what
// the event last recorded. The event may be of another device. An event that
// was never recorded is not waited for.
func (c *Context) StreamWaitEvent(s Stream, e Event) error {
	return c.check("cuStreamWaitEvent", C.halox_stream_wait(c.driver.table, c.handle, C.CUhandle(s), C.CUhandle(e)))
}

// done reads the result of a query, in which "not ready" is an answer.
func (c *Context) done(call string, rc C.int) (bool, error) {
	if Code(rc) == CodeNotReady {
		return false, nil
	}
	return rc == 0, c.check(call, rc)
}
