//go:build linux && cgo

package cuda

// #include "calls.h"
import "C"

import "fmt"

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
