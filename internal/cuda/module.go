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

// Launch is a kernel launch that is ready to go any number of times. Make one
// with [NewLaunch].
type Launch struct {
	c *C.halox_launch // C memory; nil after Free
}

// NewLaunch prepares to run fn on grid blocks of block threads with shared
// bytes of dynamic shared memory. The kernel takes one parameter by value, a
// struct whose bytes arg holds with the padding that C gives it; an empty arg
// is for a kernel without parameters. An error says which limit was passed.
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

// Arg is the argument that the next launch passes. The driver copies it during
// the launch, so it may be changed between launches, but not during one. The
// slice is C memory and dies with Free.
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

// SetEarly says whether the kernel may begin while what was queued before it still
// ends. Such a kernel waits itself before it touches memory, in every thread
// (griddepcontrol.wait), which GPUs of compute capability 9.0 and later know.
func (l *Launch) SetEarly(early bool) {
	l.c.early = 0
	if early {
		l.c.early = 1
	}
}

// SetCooperative says whether all blocks of the kernel run at the same time, as those must that wait for
// each other. The driver refuses a launch of more blocks than fit, see [Context.OccupancyMaxActiveBlocks].
func (l *Launch) SetCooperative(cooperative bool) {
	l.c.cooperative = 0
	if cooperative {
		l.c.cooperative = 1
	}
}

// Launch puts the kernel on the stream, which belongs to c as the kernel does.
// A launch that was freed fails with [CodeInvalidHandle].
func (c *Context) Launch(l *Launch, s Stream) error {
	return c.check("cuLaunchKernelEx", C.halox_launch_kernel(c.driver.table, c.handle, l.c, C.CUhandle(s), 1))
}

// LaunchLate is [Context.Launch] of a kernel that does not begin before what is queued
// before it has ended, whatever SetEarly said.
func (c *Context) LaunchLate(l *Launch, s Stream) error {
	return c.check("cuLaunchKernelEx", C.halox_launch_kernel(c.driver.table, c.handle, l.c, C.CUhandle(s), 0))
}
