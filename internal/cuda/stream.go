//go:build linux && cgo

package cuda

// #cgo noescape halox_stream_synchronize
// #cgo nocallback halox_stream_synchronize
// #cgo noescape halox_stream_query
// #cgo nocallback halox_stream_query
// #cgo noescape halox_stream_wait
// #cgo nocallback halox_stream_wait
// #cgo noescape halox_event_record
// #cgo nocallback halox_event_record
// #cgo noescape halox_event_query
// #cgo nocallback halox_event_query
// #cgo noescape halox_event_synchronize
// #cgo nocallback halox_event_synchronize
// #cgo noescape halox_event_elapsed
// #cgo nocallback halox_event_elapsed
// #cgo noescape halox_graph_launch
// #cgo nocallback halox_graph_launch
// #include "calls.h"
import "C"

import ()

// StreamCreate makes a stream that does not synchronize with the default stream. Smaller numbers are higher priorities;
// values outside the range of [Context.StreamPriorityRange] are clamped.
func (c *Context) StreamCreate(priority int) (Stream, error) {
	var s C.CUhandle
	rc := C.halox_stream_create(c.driver.table, c.handle, &s, C.int(priority))
	return Stream(s), c.check("cuStreamCreateWithPriority", rc)
}

// StreamDestroy destroys the stream. Queued work still completes.
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

// StreamWaitEvent makes later work on the stream wait, on the device, for the last record of the event. The event may
// be of another device. An event that was never recorded counts as complete.
func (c *Context) StreamWaitEvent(s Stream, e Event) error {
	return c.check("cuStreamWaitEvent", C.halox_stream_wait(c.driver.table, c.handle, C.CUhandle(s), C.CUhandle(e)))
}

// done converts the result of a query; "not ready" is not an error.
func (c *Context) done(call string, rc C.int) (bool, error) {
	if Code(rc) == CodeNotReady {
		return false, nil
	}
	return rc == 0, c.check(call, rc)
}

// EventCreate makes an event.
func (c *Context) EventCreate(flags EventFlags) (Event, error) {
	var e C.CUhandle
	rc := C.halox_event_create(c.driver.table, c.handle, &e, C.uint(flags))
	return Event(e), c.check("cuEventCreate", rc)
}

// EventDestroy destroys the event, which streams may still wait for.
func (c *Context) EventDestroy(e Event) error {
	return c.check("cuEventDestroy", C.halox_event_destroy(c.driver.table, c.handle, C.CUhandle(e)))
}

// EventRecord records all work queued on the stream so far in the event. Both belong to c.
func (c *Context) EventRecord(e Event, s Stream) error {
	return c.check("cuEventRecord", C.halox_event_record(c.driver.table, c.handle, C.CUhandle(e), C.CUhandle(s)))
}

// EventQuery reports whether the recorded work is done. An event that was never recorded is done.
func (c *Context) EventQuery(e Event) (done bool, err error) {
	return c.done("cuEventQuery", C.halox_event_query(c.driver.table, c.handle, C.CUhandle(e)))
}

// EventSynchronize waits until the recorded work is done.
func (c *Context) EventSynchronize(e Event) error {
	return c.check("cuEventSynchronize", C.halox_event_synchronize(c.driver.table, c.handle, C.CUhandle(e)))
}

// EventElapsed returns the time between two recorded events in milliseconds. It fails with [CodeNotReady] if one of
// them is not done, and with [CodeInvalidHandle] if one was made with [EventNoTiming].
func (c *Context) EventElapsed(start, end Event) (float32, error) {
	var ms C.float
	rc := C.halox_event_elapsed(c.driver.table, c.handle, &ms, C.CUhandle(start), C.CUhandle(end))
	return float32(ms), c.check("cuEventElapsedTime", rc)
}

// StreamBeginCapture makes the stream capture queued work, instead of doing it, until [Context.StreamEndCapture]. A
// stream that waits for an event recorded in the capture, also one of another device, becomes part of it; s must wait
// for each of them before StreamEndCapture. The calls may be made on any thread.
//
// During a capture the host must not query or wait for these streams, or for events recorded in the capture, and the
// streams must not wait for events recorded outside. Drivers do not capture [Context.MemcpyPeerAsync]; between peers
// with access [Context.MemcpyDtoDAsync] does the same.
func (c *Context) StreamBeginCapture(s Stream) error {
	return c.check("cuStreamBeginCapture", C.halox_capture_begin(c.driver.table, c.handle, C.CUhandle(s)))
}

// StreamEndCapture ends the capture that began on s, and returns the captured graph, 0 after an error.
func (c *Context) StreamEndCapture(s Stream) (Graph, error) {
	var g C.CUhandle
	rc := C.halox_capture_end(c.driver.table, c.handle, C.CUhandle(s), &g)
	return Graph(g), c.check("cuStreamEndCapture", rc)
}

// GraphInstantiate prepares the graph for launches. The graph may then be destroyed.
func (c *Context) GraphInstantiate(g Graph) (GraphExec, error) {
	var x C.CUhandle
	rc := C.halox_graph_instantiate(c.driver.table, c.handle, &x, C.CUhandle(g))
	return GraphExec(x), c.check("cuGraphInstantiateWithFlags", rc)
}

// GraphUpload uploads the graph on the stream, so that the first launch need not.
func (c *Context) GraphUpload(x GraphExec, s Stream) error {
	return c.check("cuGraphUpload", C.halox_graph_upload(c.driver.table, c.handle, C.CUhandle(x), C.CUhandle(s)))
}

// GraphLaunch queues the graph on the stream, which belongs to c. It begins after its previous launch has ended, on any
// stream.
func (c *Context) GraphLaunch(x GraphExec, s Stream) error {
	return c.check("cuGraphLaunch", C.halox_graph_launch(c.driver.table, c.handle, C.CUhandle(x), C.CUhandle(s)))
}

// GraphExecDestroy destroys the result of GraphInstantiate. Queued launches still complete.
func (c *Context) GraphExecDestroy(x GraphExec) error {
	return c.check("cuGraphExecDestroy", C.halox_graph_exec_destroy(c.driver.table, c.handle, C.CUhandle(x)))
}

// GraphDestroy destroys a graph of StreamEndCapture.
func (c *Context) GraphDestroy(g Graph) error {
	return c.check("cuGraphDestroy", C.halox_graph_destroy(c.driver.table, c.handle, C.CUhandle(g)))
}
