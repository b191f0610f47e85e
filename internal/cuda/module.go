//go:build linux && cgo

package cuda

// #cgo noescape halox_launch_kernel
// #cgo nocallback halox_launch_kernel
// #include <stdlib.h>
// #include "calls.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// jitLogSize is the size of the buffer for the driver's error log.
const jitLogSize = 16 << 10

// ModuleLoad loads a cubin or PTX text. The driver's log is part of the error.
func (c *Context) ModuleLoad(image []byte) (Module, error) {
	// The driver does not get a length: PTX must end in a zero, which has no effect after a cubin.
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

// ModuleUnload unloads the module with its functions.
func (c *Context) ModuleUnload(m Module) error {
	return c.check("cuModuleUnload", C.halox_module_unload(c.driver.table, c.handle, C.CUhandle(m)))
}

// ModuleFunction returns a kernel by its name in the image.
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

// FunctionAttribute returns the value of an attribute of a kernel.
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

// OccupancyMaxActiveBlocks returns how many blocks with the given number of threads and bytes of dynamic shared memory
// a multiprocessor can run at the same time.
func (c *Context) OccupancyMaxActiveBlocks(f Function, blockSize int, dynShared uint64) (int, error) {
	var n C.int
	rc := C.halox_occupancy(c.driver.table, c.handle, &n, C.CUhandle(f), C.int(blockSize), C.size_t(dynShared))
	return int(n), c.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", rc)
}

// Launch is a prepared kernel launch that can be queued any number of times. See [NewLaunch].
type Launch struct {
	c *C.halox_launch // C memory; nil after Free
}

// NewLaunch prepares a launch of fn with grid blocks of block threads and shared bytes of dynamic shared memory. The
// kernel takes one parameter by value, a struct whose bytes are arg, with C's padding; arg is empty for a kernel
// without parameters. Errors name the exceeded limit.
func NewLaunch(fn Function, grid, block Dim3, shared uint32, arg []byte) (*Launch, error) {
	if err := CheckGeometry(grid, block, len(arg)); err != nil {
		return nil, err
	}
	c := C.halox_launch_new(C.CUhandle(fn), C.size_t(len(arg)))
	if c == nil {
		return nil, errors.New("prepare a launch: out of host memory")
	}
	c.grid = [3]C.uint{C.uint(grid.X), C.uint(grid.Y), C.uint(grid.Z)}
	c.block = [3]C.uint{C.uint(block.X), C.uint(block.Y), C.uint(block.Z)}
	c.shared = C.uint(shared)
	l := &Launch{c: c}
	copy(l.Arg(), arg)
	return l, nil
}

// Arg returns the argument of the next launch. The driver copies it during the launch, so it may be changed between
// launches, but not during one. The slice is C memory that Free frees.
func (l *Launch) Arg() []byte {
	if l.c == nil {
		return nil
	}
	return unsafe.Slice((*byte)(l.c.params[0]), int(l.c.arg_size))
}

// Free frees the prepared launch. Freeing twice does nothing.
func (l *Launch) Free() {
	C.free(unsafe.Pointer(l.c))
	l.c = nil
}

// SetEarly sets whether the kernel may begin before earlier work has ended. Every thread of such a kernel must wait
// (griddepcontrol.wait, compute capability 9.0 and later) before it accesses memory.
func (l *Launch) SetEarly(early bool) {
	l.c.early = 0
	if early {
		l.c.early = 1
	}
}

// SetCooperative sets whether all blocks of the kernel run at the same time, which blocks that wait for each other
// require. The driver rejects launches of more blocks than fit, see [Context.OccupancyMaxActiveBlocks].
func (l *Launch) SetCooperative(cooperative bool) {
	l.c.cooperative = 0
	if cooperative {
		l.c.cooperative = 1
	}
}

// Launch queues the kernel on the stream; both belong to c. A freed launch fails with [CodeInvalidHandle].
func (c *Context) Launch(l *Launch, s Stream) error {
	return c.check("cuLaunchKernelEx", C.halox_launch_kernel(c.driver.table, c.handle, l.c, C.CUhandle(s), 1))
}

// LaunchLate is [Context.Launch] of a kernel that does not begin before earlier work has ended, regardless of SetEarly.
func (c *Context) LaunchLate(l *Launch, s Stream) error {
	return c.check("cuLaunchKernelEx", C.halox_launch_kernel(c.driver.table, c.handle, l.c, C.CUhandle(s), 0))
}
