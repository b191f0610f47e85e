//go:build linux && cgo

package cuda

// #cgo noescape halox_copy_htod
// #cgo nocallback halox_copy_htod
// #cgo noescape halox_copy_dtoh
// #cgo nocallback halox_copy_dtoh
// #cgo noescape halox_copy_dtod
// #cgo nocallback halox_copy_dtod
// #cgo noescape halox_copy_peer
// #cgo nocallback halox_copy_peer
// #cgo noescape halox_memset
// #cgo nocallback halox_memset
// #include "calls.h"
import "C"

import "unsafe"

// The copies put n bytes of work on the stream, which belongs to c, and return
// before it is done. Host memory comes from [Context.HostAlloc]: Go's own
// memory must not be given to work that outlives the call.

// MemcpyHtoDAsync copies from pinned host memory to the device.
func (c *Context) MemcpyHtoDAsync(dst DevicePtr, src unsafe.Pointer, n uint64, s Stream) error {
	return c.check("cuMemcpyHtoDAsync", C.halox_copy_htod(c.driver.table, c.handle,
		C.CUaddr(dst), src, C.size_t(n), C.CUhandle(s)))
}

// MemcpyDtoHAsync copies from the device to pinned host memory.
func (c *Context) MemcpyDtoHAsync(dst unsafe.Pointer, src DevicePtr, n uint64, s Stream) error {
	return c.check("cuMemcpyDtoHAsync", C.halox_copy_dtoh(c.driver.table, c.handle,
		dst, C.CUaddr(src), C.size_t(n), C.CUhandle(s)))
}

// MemcpyDtoDAsync copies within the device's memory, or to and from that of a
// peer to which access is enabled.
func (c *Context) MemcpyDtoDAsync(dst, src DevicePtr, n uint64, s Stream) error {
	return c.check("cuMemcpyDtoDAsync", C.halox_copy_dtod(c.driver.table, c.handle,
		C.CUaddr(dst), C.CUaddr(src), C.size_t(n), C.CUhandle(s)))
}

// MemcpyPeerAsync copies from the memory of one context's device to that of
// another. Without peer access between them the driver goes through the host.
func (c *Context) MemcpyPeerAsync(dst DevicePtr, dstCtx *Context, src DevicePtr, srcCtx *Context, n uint64, s Stream) error {
	return c.check("cuMemcpyPeerAsync", C.halox_copy_peer(c.driver.table, c.handle,
		C.CUaddr(dst), dstCtx.handle, C.CUaddr(src), srcCtx.handle, C.size_t(n), C.CUhandle(s)))
}

// MemsetD8Async sets n bytes of device memory to value.
func (c *Context) MemsetD8Async(dst DevicePtr, value byte, n uint64, s Stream) error {
	return c.check("cuMemsetD8Async", C.halox_memset(c.driver.table, c.handle,
		C.CUaddr(dst), C.uchar(value), C.size_t(n), C.CUhandle(s)))
}
