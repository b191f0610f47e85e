//go:build linux && cgo

package cuda

// #include <stdlib.h>
// #include "calls.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// jitLogSize is what the driver gets to say why an image does not load.
const jitLogSize = 16 << 10

// ModuleLoad loads a cubin or PTX text. The driver's log is part of the error.
func (c *Context) ModuleLoad(image []byte) (Module, error) {
	// The driver gets no length: PTX must end in a zero, and a cubin, which
	// knows its length, does not mind one.
	text := append(image[:len(image):len(image)], 0)
	var log [jitLogSize]C.char
	var m C.CUhandle
	rc := C.halox_module_load(c.driver.table, c.handle, &m, unsafe.Pointer(&text[0]), &log[0], C.size_t(len(log)))
	if rc == 0 {
		return Module(m), nil
	}
	e := c.driver.failure("cuModuleLoadDataEx", c.device.ordinal, rc)
	log[len(log)-1] = 0
	if said := C.GoString(&log[0]); said != "" {
		e.Text += ": " + said
	}
	return 0, e
}

// ModuleUnload gives the module and its functions up.
func (c *Context) ModuleUnload(m Module) error {
	return c.check("cuModuleUnload", C.halox_module_unload(c.driver.table, c.handle, C.CUhandle(m)))
}

// ModuleFunction finds a kernel by the name that it has in the image.
func (c *Context) ModuleFunction(m Module, name string) (Function, error) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var f C.CUhandle
	rc := C.halox_module_function(c.driver.table, c.handle, &f, C.CUhandle(m), cname)
	err := c.check("cuModuleGetFunction", rc)
	if errors.Is(err, CodeNotFound) {
		err = fmt.Errorf("kernel %q: %w", name, err)
	}
	return Function(f), err
}

// FunctionAttribute is the value of one attribute of a kernel.
func (c *Context) FunctionAttribute(f Function, a FuncAttribute) (int, error) {
	var v C.int
	rc := C.halox_function_attribute(c.driver.table, c.handle, &v, C.int(a), C.CUhandle(f))
	return int(v), c.check("cuFuncGetAttribute", rc)
}

// FunctionSetAttribute sets [FuncMaxDynamicShared], which must be raised before
// a launch with more than 48 KiB, or [FuncPreferredCarveout].
func (c *Context) FunctionSetAttribute(f Function, a FuncAttribute, value int) error {
	rc := C.halox_function_set_attribute(c.driver.table, c.handle, C.CUhandle(f), C.int(a), C.int(value))
	return c.check("cuFuncSetAttribute", rc)
}

// OccupancyMaxActiveBlocks is how many blocks of the given number of threads
// and bytes of dynamic shared memory one multiprocessor holds at a time.
func (c *Context) OccupancyMaxActiveBlocks(f Function, blockSize int, dynShared uint64) (int, error) {
	var n C.int
	rc := C.halox_occupancy(c.driver.table, c.handle, &n, C.CUhandle(f), C.int(blockSize), C.size_t(dynShared))
	return int(n), c.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", rc)
}
