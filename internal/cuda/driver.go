//go:build linux && cgo

package cuda

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "calls.h"
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
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
