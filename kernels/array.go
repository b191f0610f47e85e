// Package kernels holds what all code that runs on devices has in common: the CUDA C++ sources under
// cu/, the Compiler that compiles a Program of them when a GPU needs it and keeps it in a cache, and
// arrays as kernels see them. Each kernel has a host version, in Go, of the same bits; fast sums alone are taken in
// another order, and exp, sin and the like rounded in another way.
//
// Launch and Points make kernels of the caller's own ready, from a Source. Those of halox itself are
// made ready by the packages below: pack copies and adds, reduce makes one number of many, flags has
// devices wait for each other, sweep computes point functions, and step makes many steps on chip.
// Each launch is a streams.Kernel with its arguments fixed, so that queuing it costs nothing but the
// launch.
package kernels

import (
	"fmt"

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

// Holds returns an error unless the array's memory fits its layout and the box
// lies in it.
func (a Array) Holds(box domain.Box) error {
	if !a.Layout.Fits(a.Data.Length) {
		return fmt.Errorf("kernels: %d bytes hold no array of %d", a.Data.Length, a.Layout.Bytes())
	}
	if full := a.Layout.Owned.Grow(a.Layout.Width); !full.Covers(box) {
		return fmt.Errorf("kernels: box %v lies outside of %v", box, full)
	}
	return nil
}

// Span returns the smallest piece of memory that holds the box.
func (a Array) Span(box domain.Box) streams.Span {
	offset, n := a.Layout.Range(box)
	size := int64(a.Layout.ElementSize)
	return a.Data.Memory.Span(a.Data.Offset+offset*size, n*size)
}

// Number is the type of a value that kernels add and compare: "float32",
// "float64", "int32", "int64", "complex64" or "complex128".
type Number string

// GhostStore says where boundary points go beside their own place: into the ghosts of a rank, maybe the same one.
// A value v changes on its way behind faces, once for each axis at most, in fields of reals. Where the field is odd
// about a face, Odd says where, from each point, the value of that face lies, a ghost of this rank that no store
// writes: v becomes 2*face - v. Then v becomes Factor*v + Shift for each of Scales.
type GhostStore struct {
	Send, Ghost domain.Box // of equal size, owned by this rank and ghosts of the other
	To          int        // rank
	Odd         []domain.Vec
	Scales      []Scale
}

// Scale makes a ghost of another value v: Factor*v + Shift, rounded after each operation to the type of the field.
type Scale struct{ Factor, Shift float64 }

// Copies reports whether the ghosts are copies of the points.
func (s *GhostStore) Copies() bool { return len(s.Odd)+len(s.Scales) == 0 }
