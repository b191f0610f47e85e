//go:build linux && cgo

package cuda

// #include "calls.h"
import "C"

import "unsafe"

// MemInfo is the device's free and total memory in bytes.
func (c *Context) MemInfo() (free, total uint64, err error) {
	var f, t C.size_t
	rc := C.halox_mem_info(c.driver.table, c.handle, &f, &t)
	return uint64(f), uint64(t), c.check("cuMemGetInfo", rc)
}

// MemAlloc allocates n > 0 bytes of device memory, aligned to 256 bytes at
// least and not cleared.
func (c *Context) MemAlloc(n uint64) (DevicePtr, error) {
	var p C.CUaddr
	rc := C.halox_mem_alloc(c.driver.table, c.handle, &p, C.size_t(n))
	return DevicePtr(p), c.check("cuMemAlloc", rc)
}

// MemFree frees what MemAlloc gave. It may wait for the device.
func (c *Context) MemFree(p DevicePtr) error {
	return c.check("cuMemFree", C.halox_mem_free(c.driver.table, c.handle, C.CUaddr(p)))
}

// HostAlloc allocates n > 0 bytes of pinned host memory, not cleared. It is C
// memory: it may be sliced with unsafe.Slice and must be given to HostFree.
func (c *Context) HostAlloc(n uint64, flags HostFlags) (unsafe.Pointer, error) {
	var p unsafe.Pointer
	rc := C.halox_host_alloc(c.driver.table, c.handle, &p, C.size_t(n), C.uint(flags))
	return p, c.check("cuMemHostAlloc", rc)
}

// HostFree frees what HostAlloc gave.
func (c *Context) HostFree(p unsafe.Pointer) error {
	return c.check("cuMemFreeHost", C.halox_host_free(c.driver.table, c.handle, p))
}

// HostDevicePointer is the address at which kernels in c see pinned memory
// that was allocated with [HostMapped].
func (c *Context) HostDevicePointer(p unsafe.Pointer) (DevicePtr, error) {
	var dp C.CUaddr
	rc := C.halox_host_device_pointer(c.driver.table, c.handle, &dp, p)
	return DevicePtr(dp), c.check("cuMemHostGetDevicePointer", rc)
}
