// Package launch makes the launches of halox's own kernels ready: their arguments, their grids of
// threads, and how they are told where the points of a field lie.
package launch

import (
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// New makes a launch of a kernel of halox ready: each waits by itself for what is queued before it,
// see grid_dependency_wait in device.cuh.
func New(d *streams.Device, spec streams.KernelSpec) (*streams.Kernel, error) {
	spec.Early = true
	return d.NewKernel(spec)
}

// Argument returns the bytes of a kernel's parameter, which Go and C lay out alike: a kernels.Mirror checks it.
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

// Region is struct Region of common.cuh: where the points of a box begin, and how many they are.
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

// StridesOf returns those of a layout.
func StridesOf(l domain.Layout) Strides { return Strides{l.Pitch, l.Plane} }

// EachRow calls f with the place of the first point of every row of the box,
// in order of memory.
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
