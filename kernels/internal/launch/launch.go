// Package launch prepares the launches of halox's own kernels: their arguments, their grids of threads, and the
// layout of fields.
package launch

import (
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// New prepares a launch of a kernel of halox. Each of these kernels waits for earlier work itself, see
// grid_dependency_wait in device.cuh.
func New(d *streams.Device, spec streams.KernelSpec) (*streams.Kernel, error) {
	spec.Early = true
	return d.NewKernel(spec)
}

// Argument returns the bytes of a kernel parameter, which has the same layout in Go and C, as a kernels.Mirror
// checks.
func Argument[T any](arg *T) []byte {
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(arg)), unsafe.Sizeof(*arg))...)
}

// Values returns the content of memory as seen by the CPU.
func Values[T any](s streams.Span) []T {
	return streams.View[T](s.Memory.Bytes()[s.Offset : s.Offset+s.Length])
}

// BlockSize is the default number of threads per block.
const BlockSize = 256

// FlatGrid returns the number of blocks along x for points of work: one thread per point, up to some multiple of
// the resident threads of a GPU.
func FlatGrid(points int64) int {
	const most = 4096
	return int(min(most, (points+BlockSize-1)/BlockSize))
}

// Region is struct Region of common.cuh: the first point of a box and its numbers of points.
type Region struct {
	first, nx, ny, nz int64
}

// RegionOf returns the region of a box.
func RegionOf(l domain.Layout, b domain.Box) Region {
	n := b.Size()
	return Region{l.Offset(b.Lo), int64(n[0]), int64(n[1]), int64(n[2])}
}

// Strides is struct Strides of common.cuh.
type Strides struct {
	pitch, plane int64
}

// StridesOf returns the strides of a layout.
func StridesOf(l domain.Layout) Strides { return Strides{l.Pitch, l.Plane} }

// EachRow calls f with the offset of the first point of every row of the box, in memory order.
func EachRow(l domain.Layout, b domain.Box, f func(first int64)) {
	if b.Empty() {
		return
	}
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			f(l.Offset(domain.Vec{b.Lo[0], y, z}))
		}
	}
}
