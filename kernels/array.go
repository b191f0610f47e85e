package kernels

import (
	"fmt"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// Real is the type of a field's elements.
type Real string

// The types that can be swept.
const (
	Float32 Real = "float32"
	Float64 Real = "float64"
)

// Size returns the size of an element in bytes, 0 if r is none of the types.
func (r Real) Size() int {
	switch r {
	case Float32:
		return 4
	case Float64:
		return 8
	}
	return 0
}

// Array is one subdomain of a field, ghosts included: memory and how the
// points lie in it. Data has Layout.Bytes() bytes.
type Array struct {
	Data   streams.Span
	Layout domain.Layout
}

// holds returns an error unless the array's memory fits its layout and the box
// lies in it.
func (a Array) holds(box domain.Box) error {
	if a.Data.Length < a.Layout.Bytes() {
		return fmt.Errorf("kernels: %d bytes hold no array of %d", a.Data.Length, a.Layout.Bytes())
	}
	if full := a.Layout.Owned.Grow(a.Layout.Width); !full.Covers(box) {
		return fmt.Errorf("kernels: box %v lies outside of %v", box, full)
	}
	return nil
}

// Holds returns an error unless the array's memory fits its layout and the box lies in it.
func (a Array) Holds(box domain.Box) error { return a.holds(box) }

// Span returns the smallest piece of memory that holds the box.
func (a Array) Span(box domain.Box) streams.Span {
	offset, n := a.Layout.Range(box)
	size := int64(a.Layout.ElementSize)
	return a.Data.Memory.Span(a.Data.Offset+offset*size, n*size)
}

// address returns where a GPU finds the first element.
func (a Array) address() uint64 { return a.Data.Address() }

// pointAddress returns where a GPU finds a point, which may be a ghost.
func (a Array) pointAddress(p domain.Vec) uint64 {
	return a.address() + uint64(a.Layout.Offset(p)*int64(a.Layout.ElementSize))
}

// view returns the elements as the CPU sees them.
func view[T any](s streams.Span) []T {
	return streams.View[T](s.Memory.Bytes()[s.Offset : s.Offset+s.Length])
}

// region is struct Region of common.cuh.
type region struct {
	first, nx, ny, nz int64
}

// strides is struct Strides of common.cuh.
type strides struct {
	pitch, plane int64
}

func regionOf(l domain.Layout, b domain.Box) region {
	n := b.Size()
	return region{l.Offset(b.Lo), int64(n[0]), int64(n[1]), int64(n[2])}
}

func stridesOf(l domain.Layout) strides { return strides{l.Pitch, l.Plane} }

// maxRegions is how many boxes one launch may work on.
const maxRegions = 6

// argument returns the bytes of a kernel's parameter. Its fields are all of
// 8 bytes, so that Go and C lay it out alike.
func argument[T any](arg *T) []byte {
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(arg)), unsafe.Sizeof(*arg))...)
}

// eachRow calls f with the place of the first point of every row of the box,
// in order of memory.
func eachRow(l domain.Layout, b domain.Box, f func(first int64)) {
	eachBand(l, b, func(first int64, count int) {
		for range count {
			f(first)
			first += l.Pitch
		}
	})
}

// eachBand calls f with the place of the first point of count rows of the box
// that follow each other along y, for all its rows in order of memory. count is
// at most some dozens, so that nobody waits long for a loop that cannot be
// interrupted.
func eachBand(l domain.Layout, b domain.Box, f func(first int64, count int)) {
	const most = 64
	if b.Empty() {
		return
	}
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y += most {
			f(l.Offset(domain.Vec{b.Lo[0], y, z}), min(most, b.Hi[1]-y))
		}
	}
}

const blockSize = 256

// flatGrid returns the blocks along x for points of work, a point a thread up
// to some multiple of what a GPU holds at once.
func flatGrid(points int64) int {
	const most = 4096
	return int(min(most, (points+blockSize-1)/blockSize))
}
