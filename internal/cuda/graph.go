//go:build linux && cgo

package cuda

// #cgo noescape halox_graph_launch
// #cgo nocallback halox_graph_launch
// #include "calls.h"
import "C"

// StreamBeginCapture makes the stream capture what is put on it, instead of doing it, until
// [Context.StreamEndCapture]. A stream that waits for an event recorded in the capture,
// also one of another device, becomes part of it; StreamEndCapture wants each of them to
// have been waited for by s. Any thread may make the calls.
//
// Meanwhile those streams, and events recorded in the capture, must not be queried or
// waited for by the host, nor may they wait for events recorded outside. Drivers do not
// capture [Context.MemcpyPeerAsync]; between peers with access [Context.MemcpyDtoDAsync]
// does the same.
func (c *Context) StreamBeginCapture(s Stream) error {
	return c.check("cuStreamBeginCapture", C.halox_capture_begin(c.driver.table, c.handle, C.CUhandle(s)))
}

// StreamEndCapture ends the capture that began on s, also where it fails, and returns what
// was captured. The graph is 0 where it fails.
func (c *Context) StreamEndCapture(s Stream) (Graph, error) {
	var g C.CUhandle
	rc := C.halox_capture_end(c.driver.table, c.handle, C.CUhandle(s), &g)
	return Graph(g), c.check("cuStreamEndCapture", rc)
}

// GraphInstantiate makes the graph ready to be launched. The graph may be destroyed then.
func (c *Context) GraphInstantiate(g Graph) (GraphExec, error) {
	var x C.CUhandle
	rc := C.halox_graph_instantiate(c.driver.table, c.handle, &x, C.CUhandle(g))
	return GraphExec(x), c.check("cuGraphInstantiateWithFlags", rc)
}

// GraphUpload does on the stream what the first launch would have to do before.
func (c *Context) GraphUpload(x GraphExec, s Stream) error {
	return c.check("cuGraphUpload", C.halox_graph_upload(c.driver.table, c.handle, C.CUhandle(x), C.CUhandle(s)))
}

// GraphLaunch puts the graph on the stream, which belongs to c. It begins after its last
// launch has ended, on whatever stream that was.
func (c *Context) GraphLaunch(x GraphExec, s Stream) error {
	return c.check("cuGraphLaunch", C.halox_graph_launch(c.driver.table, c.handle, C.CUhandle(x), C.CUhandle(s)))
}

// GraphExecDestroy gives up what GraphInstantiate gave. A launch still runs to its end.
func (c *Context) GraphExecDestroy(x GraphExec) error {
	return c.check("cuGraphExecDestroy", C.halox_graph_exec_destroy(c.driver.table, c.handle, C.CUhandle(x)))
}

// GraphDestroy gives up what StreamEndCapture gave.
func (c *Context) GraphDestroy(g Graph) error {
	return c.check("cuGraphDestroy", C.halox_graph_destroy(c.driver.table, c.handle, C.CUhandle(g)))
}
