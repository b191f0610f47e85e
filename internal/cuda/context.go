//go:build linux && cgo

package cuda

// #include "calls.h"
import "C"

import "errors"

// Context is a device's primary context, the one that all users of the device
// in this process share. Make one with [Device.RetainPrimary].
type Context struct {
	device *Device
	driver *Driver
	handle C.CUhandle // 0 after Release
}

// RetainPrimary makes the device's primary context or takes a share in it, to
// be given back with [Context.Release]. The flags count for the whole process;
// a driver that cannot change them once the context is active keeps the old.
func (d *Device) RetainPrimary(flags SchedFlags) (*Context, error) {
	table := d.driver.table
	err := d.check("cuDevicePrimaryCtxSetFlags", C.halox_primary_flags(table, d.id, C.uint(flags)))
	if err != nil && !errors.Is(err, CodePrimaryActive) {
		return nil, err
	}
	c := &Context{device: d, driver: d.driver}
	rc := C.halox_primary_retain(table, &c.handle, d.id)
	if err := d.check("cuDevicePrimaryCtxRetain", rc); err != nil {
		return nil, err
	}
	return c, nil
}

// Release gives the share in the primary context back; the last share to go
// destroys the context and all in it. Releasing twice does nothing.
func (c *Context) Release() error {
	if c.handle == 0 {
		return nil
	}
	c.handle = 0
	return c.check("cuDevicePrimaryCtxRelease", C.halox_primary_release(c.driver.table, c.device.id))
}

// Device is the device that the context is of.
func (c *Context) Device() *Device { return c.device }

func (c *Context) check(call string, rc C.int) error {
	return c.driver.check(call, c.device.ordinal, rc)
}

// Enter makes the context the current one of the calling thread, to which the goroutine must be locked.
func (c *Context) Enter() error {
	return c.check("cuCtxSetCurrent", C.halox_ctx_enter(c.driver.table, c.handle))
}

// Synchronize waits for all work in the context. Nothing in a time step should.
func (c *Context) Synchronize() error {
	return c.check("cuCtxSynchronize", C.halox_ctx_synchronize(c.driver.table, c.handle))
}

// EnablePeerAccess lets kernels and copies in c use memory of peer, in that
// direction only. That it was enabled already is no error.
func (c *Context) EnablePeerAccess(peer *Context) error {
	rc := C.halox_ctx_enable_peer(c.driver.table, c.handle, peer.handle)
	if Code(rc) == CodePeerAlreadyEnabled {
		return nil
	}
	return c.check("cuCtxEnablePeerAccess", rc)
}

// StreamPriorityRange is the range of priorities that streams can have. The
// greatest priority is the smaller number.
func (c *Context) StreamPriorityRange() (least, greatest int, err error) {
	var l, g C.int
	rc := C.halox_ctx_priorities(c.driver.table, c.handle, &l, &g)
	return int(l), int(g), c.check("cuCtxGetStreamPriorityRange", rc)
}
