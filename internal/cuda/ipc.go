//go:build linux && cgo

package cuda

// #include "calls.h"
import "C"

// Handle identifies memory or an event of a process for other processes of the host.
type Handle [64]byte

// MemoryHandle returns the handle of memory of MemAlloc. Other processes see the whole driver allocation that contains
// it, which is nothing else if its size is a multiple of 2 MiB.
func (c *Context) MemoryHandle(p DevicePtr) (Handle, error) {
	var h C.CUipc
	rc := C.halox_ipc_memory_handle(c.driver.table, c.handle, &h, C.CUaddr(p))
	return goHandle(h), c.check("cuIpcGetMemHandle", rc)
}

// OpenMemory maps memory of another process, of this device or of a peer, until CloseMemory. The other process must
// not free it before.
func (c *Context) OpenMemory(h Handle) (DevicePtr, error) {
	var p C.CUaddr
	handle := cHandle(h)
	rc := C.halox_ipc_open_memory(c.driver.table, c.handle, &p, &handle)
	return DevicePtr(p), c.check("cuIpcOpenMemHandle", rc)
}

// CloseMemory ends the mapping of OpenMemory.
func (c *Context) CloseMemory(p DevicePtr) error {
	return c.check("cuIpcCloseMemHandle", C.halox_ipc_close_memory(c.driver.table, c.handle, C.CUaddr(p)))
}

// EventHandle returns the handle of an event with [EventInterprocess].
func (c *Context) EventHandle(e Event) (Handle, error) {
	var h C.CUipc
	rc := C.halox_ipc_event_handle(c.driver.table, c.handle, &h, C.CUhandle(e))
	return goHandle(h), c.check("cuIpcGetEventHandle", rc)
}

// OpenEvent returns an event of another process, to be destroyed by EventDestroy before that process destroys it.
func (c *Context) OpenEvent(h Handle) (Event, error) {
	var e C.CUhandle
	handle := cHandle(h)
	rc := C.halox_ipc_open_event(c.driver.table, c.handle, &e, &handle)
	return Event(e), c.check("cuIpcOpenEventHandle", rc)
}

func goHandle(c C.CUipc) (h Handle) {
	for i := range h {
		h[i] = byte(c.bytes[i])
	}
	return h
}

func cHandle(h Handle) (c C.CUipc) {
	for i := range h {
		c.bytes[i] = C.uchar(h[i])
	}
	return c
}
