//go:build linux && cgo

package cuda

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "calls.h"
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/halox/halox/internal/dl"
)

// DefaultLibrary is the name under which a driver installs its library.
const DefaultLibrary = "libcuda.so.1"

// Driver is an opened and initialised CUDA driver. Make one with [Open].
type Driver struct {
	table *C.halox_cuda // C memory; nil after Close
}

// Open opens the driver library at path, or [DefaultLibrary] when path is
// empty, and initialises it. The error is [ErrNoDriver] when there is no
// library or no device, and otherwise names every symbol that the library
// lacks or the call that failed.
func Open(path string) (*Driver, error) {
	if path == "" {
		path = DefaultLibrary
	}
	d, err := load(path)
	if err != nil {
		return nil, err
	}
	if err := d.check("cuInit", NoDevice, C.halox_init(d.table)); err != nil {
		d.Close()
		return nil, noDriver(err)
	}
	return d, nil
}

func load(path string) (*Driver, error) {
	if err := dl.Check(path); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoLibrary, err)
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	why := make([]C.char, 4096)
	var missing C.int
	table := C.halox_cuda_open(name, &why[0], C.size_t(len(why)), &missing)
	if table != nil {
		return &Driver{table: table}, nil
	}
	text := C.GoString(&why[0])
	if missing > 0 {
		return nil, fmt.Errorf("the CUDA driver %s is too old for halox: it lacks %s",
			path, strings.ReplaceAll(text, " ", ", "))
	}
	return nil, fmt.Errorf("%w: %s", ErrNoLibrary, text)
}

// noDriver turns those failures of cuInit that mean that there is nothing to
// run on into ErrNoDriver.
func noDriver(err error) error {
	switch code := err.(*Error).Code; code {
	case CodeNoDevice, CodeStubLibrary:
		return fmt.Errorf("%w: the library is there, but %w", ErrNoDriver, err)
	}
	return err
}

// Close frees what Open made. Later calls through the driver or what came from
// it fail with [CodeDeinitialized]. Closing twice does nothing.
func (d *Driver) Close() error {
	C.free(unsafe.Pointer(d.table))
	d.table = nil
	return nil
}

// Version is the newest CUDA version that the driver supports, as 1000*major +
// 10*minor.
func (d *Driver) Version() (int, error) {
	var v C.int
	rc := C.halox_version(d.table, &v)
	return int(v), d.check("cuDriverGetVersion", NoDevice, rc)
}

// DeviceCount is the number of devices that the driver shows this process.
func (d *Driver) DeviceCount() (int, error) {
	var n C.int
	rc := C.halox_device_count(d.table, &n)
	return int(n), d.check("cuDeviceGetCount", NoDevice, rc)
}

// check makes an error of a result, or nil of success. It is small enough to
// be inlined, so that success costs hot calls nothing.
func (d *Driver) check(call string, device int, rc C.int) error {
	if rc == 0 {
		return nil
	}
	return d.failure(call, device, rc)
}

func (d *Driver) failure(call string, device int, rc C.int) *Error {
	e := &Error{Call: call, Code: Code(rc), Device: device}
	e.Name = orElse(C.halox_error_name(d.table, rc), "CUDA_ERROR")
	e.Text = orElse(C.halox_error_text(d.table, rc), "the driver has no words for it")
	return e
}

func orElse(s *C.char, other string) string {
	if s == nil {
		return other
	}
	return C.GoString(s)
}

// Device is one GPU as the driver numbers them.
type Device struct {
	driver  *Driver
	ordinal int
	id      C.int
}

// Device gives the device with the given ordinal, counted from 0.
func (d *Driver) Device(ordinal int) (*Device, error) {
	dev := &Device{driver: d, ordinal: ordinal}
	if err := dev.check("cuDeviceGet", C.halox_device(d.table, &dev.id, C.int(ordinal))); err != nil {
		return nil, err
	}
	return dev, nil
}

func (d *Device) check(call string, rc C.int) error {
	return d.driver.check(call, d.ordinal, rc)
}

// Ordinal is the device's number.
func (d *Device) Ordinal() int { return d.ordinal }

// Name is the product's name.
func (d *Device) Name() (string, error) {
	var name [256]C.char
	rc := C.halox_device_name(d.driver.table, &name[0], C.int(len(name)), d.id)
	return C.GoString(&name[0]), d.check("cuDeviceGetName", rc)
}

// UUID is the device's identity in the form GPU-8-4-4-4-12 hexadecimal digits,
// as NVML and nvidia-smi write it.
func (d *Device) UUID() (string, error) {
	var b [16]byte
	rc := C.halox_device_uuid(d.driver.table, (*C.uchar)(&b[0]), d.id)
	id := fmt.Sprintf("GPU-%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	return id, d.check("cuDeviceGetUuid", rc)
}

// PCIBusID is the device's place as domain:bus:device.function, 0000:3b:00.0.
// It is what tells devices apart across CUDA and NVML.
func (d *Device) PCIBusID() (string, error) {
	var id [32]C.char
	rc := C.halox_device_pci(d.driver.table, &id[0], C.int(len(id)), d.id)
	return C.GoString(&id[0]), d.check("cuDeviceGetPCIBusId", rc)
}

// TotalMemory is the device's memory in bytes.
func (d *Device) TotalMemory() (uint64, error) {
	var n C.size_t
	rc := C.halox_device_memory(d.driver.table, &n, d.id)
	return uint64(n), d.check("cuDeviceTotalMem", rc)
}

// Attribute is the value of one attribute.
func (d *Device) Attribute(a Attribute) (int, error) {
	var v C.int
	rc := C.halox_device_attribute(d.driver.table, &v, C.int(a), d.id)
	return int(v), d.check("cuDeviceGetAttribute", rc)
}

// CanAccessPeer reports whether a context of d may map memory of peer.
func (d *Device) CanAccessPeer(peer *Device) (bool, error) {
	var can C.int
	rc := C.halox_device_can_access(d.driver.table, &can, d.id, peer.id)
	return can != 0, d.check("cuDeviceCanAccessPeer", rc)
}

// P2PAttribute is the value of one attribute of the link from d to peer.
func (d *Device) P2PAttribute(a P2PAttribute, peer *Device) (int, error) {
	var v C.int
	rc := C.halox_device_p2p(d.driver.table, &v, C.int(a), d.id, peer.id)
	return int(v), d.check("cuDeviceGetP2PAttribute", rc)
}

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
