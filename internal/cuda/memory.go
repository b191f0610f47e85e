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
// #cgo noescape halox_copy_3d
// #cgo nocallback halox_copy_3d
// #cgo noescape halox_copy_3d_peer
// #cgo nocallback halox_copy_3d_peer
// #cgo noescape halox_memset
// #cgo nocallback halox_memset
// #include "calls.h"
import "C"

import (
	"unsafe"
)

// MemInfo returns the device's free and total memory in bytes.
func (c *Context) MemInfo() (free, total uint64, err error) {
	var f, t C.size_t
	rc := C.halox_mem_info(c.driver.table, c.handle, &f, &t)
	return uint64(f), uint64(t), c.check("cuMemGetInfo", rc)
}

// MemAlloc allocates n > 0 bytes of device memory, aligned to at least 256 bytes and not cleared.
func (c *Context) MemAlloc(n uint64) (DevicePtr, error) {
	var p C.CUaddr
	rc := C.halox_mem_alloc(c.driver.table, c.handle, &p, C.size_t(n))
	return DevicePtr(p), c.check("cuMemAlloc", rc)
}

// MemFree frees memory of MemAlloc. It may wait for the device.
func (c *Context) MemFree(p DevicePtr) error {
	return c.check("cuMemFree", C.halox_mem_free(c.driver.table, c.handle, C.CUaddr(p)))
}

// HostAlloc allocates n > 0 bytes of pinned host memory, not cleared. It is C memory: it may be sliced with
// unsafe.Slice and must be freed with HostFree.
func (c *Context) HostAlloc(n uint64, flags HostFlags) (unsafe.Pointer, error) {
	var p unsafe.Pointer
	rc := C.halox_host_alloc(c.driver.table, c.handle, &p, C.size_t(n), C.uint(flags))
	return p, c.check("cuMemHostAlloc", rc)
}

// HostFree frees memory of HostAlloc.
func (c *Context) HostFree(p unsafe.Pointer) error {
	return c.check("cuMemFreeHost", C.halox_host_free(c.driver.table, c.handle, p))
}

// HostDevicePointer returns the address at which kernels in c access pinned memory that was allocated with
// [HostMapped].
func (c *Context) HostDevicePointer(p unsafe.Pointer) (DevicePtr, error) {
	var dp C.CUaddr
	rc := C.halox_host_device_pointer(c.driver.table, c.handle, &dp, p)
	return DevicePtr(dp), c.check("cuMemHostGetDevicePointer", rc)
}

// The copies queue a copy of n bytes on the stream, which belongs to c, and return before it is done. Host memory must
// be from [Context.HostAlloc]: Go memory must not be used by work that outlives the call.

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

// MemcpyDtoDAsync copies within the device's memory, or to and from that of a peer with enabled access.
func (c *Context) MemcpyDtoDAsync(dst, src DevicePtr, n uint64, s Stream) error {
	return c.check("cuMemcpyDtoDAsync", C.halox_copy_dtod(c.driver.table, c.handle,
		C.CUaddr(dst), C.CUaddr(src), C.size_t(n), C.CUhandle(s)))
}

// MemcpyPeerAsync copies from the memory of one context's device to that of another. Without peer access the driver
// copies through the host.
func (c *Context) MemcpyPeerAsync(
	dst DevicePtr, dstCtx *Context, src DevicePtr, srcCtx *Context, n uint64, s Stream,
) error {
	return c.check("cuMemcpyPeerAsync", C.halox_copy_peer(c.driver.table, c.handle,
		C.CUaddr(dst), dstCtx.handle, C.CUaddr(src), srcCtx.handle, C.size_t(n), C.CUhandle(s)))
}

// Memcpy3DAsync copies a box within the device's memory, or between it and pinned host memory. The driver rejects a
// pitch above [AttrMaxPitch].
func (c *Context) Memcpy3DAsync(dst, src Pitched, n Extent, s Stream) error {
	p := copy3D(dst, 0, src, 0, n) // the driver reads it before it returns
	return c.check("cuMemcpy3DAsync", C.halox_copy_3d(c.driver.table, c.handle, &p, C.CUhandle(s)))
}

// Memcpy3DPeerAsync copies a box from the memory of one context's device to that of another, as
// [Context.MemcpyPeerAsync] does for contiguous bytes.
func (c *Context) Memcpy3DPeerAsync(
	dst Pitched, dstCtx *Context, src Pitched, srcCtx *Context, n Extent, s Stream,
) error {
	p := copy3D(dst, dstCtx.handle, src, srcCtx.handle, n)
	return c.check("cuMemcpy3DPeerAsync", C.halox_copy_3d_peer(c.driver.table, c.handle, &p, C.CUhandle(s)))
}

func copy3D(dst Pitched, dstCtx C.CUhandle, src Pitched, srcCtx C.CUhandle, n Extent) C.CUcopy3D {
	return C.CUcopy3D{
		src: end3D(src, srcCtx), dst: end3D(dst, dstCtx),
		width: C.size_t(n.Width), height: C.size_t(n.Height), depth: C.size_t(n.Depth),
	}
}

func end3D(p Pitched, ctx C.CUhandle) C.CUend3D {
	const host, device = 1, 2
	e := C.CUend3D{ctx: ctx, pitch: C.size_t(p.Pitch), height: C.size_t(p.Rows)}
	if p.Host != nil {
		e.kind, e.host = host, C.uintptr_t(uintptr(p.Host))
	} else {
		e.kind, e.device = device, C.CUaddr(p.Device)
	}
	return e
}

// MemsetD8Async sets n bytes of device memory to value.
func (c *Context) MemsetD8Async(dst DevicePtr, value byte, n uint64, s Stream) error {
	return c.check("cuMemsetD8Async", C.halox_memset(c.driver.table, c.handle,
		C.CUaddr(dst), C.uchar(value), C.size_t(n), C.CUhandle(s)))
}
