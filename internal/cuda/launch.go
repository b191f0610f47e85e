//go:build linux && cgo

package cuda

// #cgo noescape halox_launch_kernel
// #cgo nocallback halox_launch_kernel
// #include <stdlib.h>
// #include "calls.h"
import "C"

import (
	"errors"
	"unsafe"
)

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
