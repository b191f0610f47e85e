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

// DefaultLibrary is the file name of an installed driver library.
const DefaultLibrary = "libcuda.so.1"

// Driver is an opened and initialized CUDA driver. Make one with [Open].
type Driver struct {
	table *C.halox_cuda // C memory; nil after Close
}

// Open opens the driver library at path, or [DefaultLibrary] if path is empty, and initializes it. The error is
// [ErrNoDriver] if there is no library or no device; otherwise it names the missing symbols or the failed call.
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

// noDriver converts failures of cuInit that mean that there is no usable device into ErrNoDriver.
func noDriver(err error) error {
	switch code := err.(*Error).Code; code {
	case CodeNoDevice, CodeStubLibrary:
		return fmt.Errorf("%w: the library exists, but %w", ErrNoDriver, err)
	}
	return err
}

// Close frees the driver. Later calls of it and its objects fail with [CodeDeinitialized]. Closing twice does nothing.
func (d *Driver) Close() error {
	C.free(unsafe.Pointer(d.table))
	d.table = nil
	return nil
}

// Version returns the newest CUDA version that the driver supports, as 1000*major + 10*minor.
func (d *Driver) Version() (int, error) {
	var v C.int
	rc := C.halox_version(d.table, &v)
	return int(v), d.check("cuDriverGetVersion", NoDevice, rc)
}

// DeviceCount returns the number of devices that the process can see.
func (d *Driver) DeviceCount() (int, error) {
	var n C.int
	rc := C.halox_device_count(d.table, &n)
	return int(n), d.check("cuDeviceGetCount", NoDevice, rc)
}

// check converts a result into an error, nil for success. It is small enough to be inlined.
func (d *Driver) check(call string, device int, rc C.int) error {
	if rc == 0 {
		return nil
	}
	return d.failure(call, device, rc)
}

func (d *Driver) failure(call string, device int, rc C.int) *Error {
	e := &Error{Call: call, Code: Code(rc), Device: device}
	e.Name = orElse(C.halox_error_name(d.table, rc), "CUDA_ERROR")
	e.Text = orElse(C.halox_error_text(d.table, rc), "no description")
	return e
}

func orElse(s *C.char, other string) string {
	if s == nil {
		return other
	}
	return C.GoString(s)
}

// Device is a GPU, by the driver's numbering.
type Device struct {
	driver  *Driver
	ordinal int
	id      C.int
}

// Device returns the device with the given ordinal, counted from 0.
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

// Ordinal returns the device's number.
func (d *Device) Ordinal() int { return d.ordinal }

// Name returns the product name.
func (d *Device) Name() (string, error) {
	var name [256]C.char
	rc := C.halox_device_name(d.driver.table, &name[0], C.int(len(name)), d.id)
	return C.GoString(&name[0]), d.check("cuDeviceGetName", rc)
}

// UUID returns the device's UUID in the form GPU-8-4-4-4-12 hexadecimal digits, as NVML and nvidia-smi write it. That
// of a MIG instance, which the driver names such as "NVIDIA A100-SXM4-40GB MIG 1g.5gb", begins with MIG-.
func (d *Device) UUID() (string, error) {
	name, err := d.Name()
	if err != nil {
		return "", err
	}
	kind := "GPU"
	if strings.Contains(name, " MIG ") {
		kind = "MIG"
	}
	var b [16]byte
	rc := C.halox_device_uuid(d.driver.table, (*C.uchar)(&b[0]), d.id)
	id := fmt.Sprintf("%s-%x-%x-%x-%x-%x", kind, b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	return id, d.check("cuDeviceGetUuid", rc)
}

// PCIBusID returns the device's address as domain:bus:device.function, 0000:3b:00.0. It identifies a device across CUDA
// and NVML.
func (d *Device) PCIBusID() (string, error) {
	var id [32]C.char
	rc := C.halox_device_pci(d.driver.table, &id[0], C.int(len(id)), d.id)
	return C.GoString(&id[0]), d.check("cuDeviceGetPCIBusId", rc)
}

// TotalMemory returns the device's memory in bytes.
func (d *Device) TotalMemory() (uint64, error) {
	var n C.size_t
	rc := C.halox_device_memory(d.driver.table, &n, d.id)
	return uint64(n), d.check("cuDeviceTotalMem", rc)
}

// Attribute returns the value of an attribute.
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

// P2PAttribute returns the value of an attribute of the link from d to peer.
func (d *Device) P2PAttribute(a P2PAttribute, peer *Device) (int, error) {
	var v C.int
	rc := C.halox_device_p2p(d.driver.table, &v, C.int(a), d.id, peer.id)
	return int(v), d.check("cuDeviceGetP2PAttribute", rc)
}

// Context is a device's primary context, which all users of the device in this process share. See
// [Device.RetainPrimary].
type Context struct {
	device *Device
	driver *Driver
	handle C.CUhandle // 0 after Release
}

// RetainPrimary creates or retains the device's primary context; [Context.Release] releases it. The flags apply to the
// whole process; a driver that cannot change them while the context is active keeps the old ones.
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

// Release releases the primary context; the last release in the process destroys the context and everything in it.
// Releasing twice does nothing.
func (c *Context) Release() error {
	if c.handle == 0 {
		return nil
	}
	c.handle = 0
	return c.check("cuDevicePrimaryCtxRelease", C.halox_primary_release(c.driver.table, c.device.id))
}

// Device returns the device of the context.
func (c *Context) Device() *Device { return c.device }

func (c *Context) check(call string, rc C.int) error {
	return c.driver.check(call, c.device.ordinal, rc)
}

// Enter makes the context current on the calling thread, to which the goroutine must be locked.
func (c *Context) Enter() error {
	return c.check("cuCtxSetCurrent", C.halox_ctx_enter(c.driver.table, c.handle))
}

// Synchronize waits for all work in the context. It must not be used in time steps.
func (c *Context) Synchronize() error {
	return c.check("cuCtxSynchronize", C.halox_ctx_synchronize(c.driver.table, c.handle))
}

// EnablePeerAccess lets kernels and copies in c use memory of peer, in that
// direction only. Enabling it twice is not an error.
func (c *Context) EnablePeerAccess(peer *Context) error {
	rc := C.halox_ctx_enable_peer(c.driver.table, c.handle, peer.handle)
	if Code(rc) == CodePeerAlreadyEnabled {
		return nil
	}
	return c.check("cuCtxEnablePeerAccess", rc)
}

// StreamPriorityRange returns the range of stream priorities. Smaller numbers are higher priorities.
func (c *Context) StreamPriorityRange() (least, greatest int, err error) {
	var l, g C.int
	rc := C.halox_ctx_priorities(c.driver.table, c.handle, &l, &g)
	return int(l), int(g), c.check("cuCtxGetStreamPriorityRange", rc)
}
