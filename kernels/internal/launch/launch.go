// Package launch makes the launches of halox's own kernels ready: their arguments, their grids of
// threads, and how they are told where the points of a field lie.
package launch

import (
	"unsafe"

	"github.com/halox/halox/streams"
)

// New makes a launch of a kernel of halox ready: each waits by itself for what is queued before it,
// see grid_dependency_wait in device.cuh.
func New(d *streams.Device, spec streams.KernelSpec) (*streams.Kernel, error) {
	spec.Early = true
	return d.NewKernel(spec)
}

// Argument returns the bytes of a kernel's parameter. Its fields are all of
// 8 bytes, so that Go and C lay it out alike.
func Argument[T any](arg *T) []byte {
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(arg)), unsafe.Sizeof(*arg))...)
}

// Values returns what lies in memory as the CPU sees it.
func Values[T any](s streams.Span) []T {
	return streams.View[T](s.Memory.Bytes()[s.Offset : s.Offset+s.Length])
}

// BlockSize is how many threads a block has, where nothing speaks for another number.
const BlockSize = 256

// FlatGrid returns the blocks along x for points of work, a point a thread up
// to some multiple of what a GPU holds at once.
func FlatGrid(points int64) int {
	const most = 4096
	return int(min(most, (points+BlockSize-1)/BlockSize))
}
