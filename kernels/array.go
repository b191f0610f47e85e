// Package kernels contains the common parts of all code that runs on devices: the CUDA C++ sources under cu/, the
// Compiler that compiles a Program of them when a GPU needs it and caches it, and arrays as kernels access them.
// Each kernel has a bitwise identical Go counterpart, except that fast sums have another order, and exp, sin and
// the like are rounded differently.
//
// Launch and Points prepare user kernels from a Source. The kernels of halox are prepared by the packages below:
// pack copies and adds, reduce reduces many numbers to one, flags makes devices wait for each other, sweep
// computes point functions, and step runs many steps on chip. Each launch is a streams.Kernel with fixed
// arguments, so that queuing it costs only the launch.
package kernels

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// Array is one subdomain of a field including ghosts: memory and the layout of the points in it.
type Array struct {
	Data   streams.Span  // Layout.Bytes() bytes
	Layout domain.Layout // points and ghosts
}

// Holds returns an error unless the memory of the array fits its layout and contains the box.
func (a Array) Holds(box domain.Box) error {
	if !a.Layout.Fits(a.Data.Length) {
		return fmt.Errorf("kernels: array: must have at least %d bytes, got %d", a.Layout.Bytes(), a.Data.Length)
	}
	if full := a.Layout.Owned.Grow(a.Layout.Width); !full.Covers(box) {
		return fmt.Errorf("kernels: box %v: must be within %v", box, full)
	}
	return nil
}

// Span returns the smallest range of memory that contains the box.
func (a Array) Span(box domain.Box) streams.Span {
	offset, n := a.Layout.Range(box)
	size := int64(a.Layout.ElementSize)
	return a.Data.Memory.Span(a.Data.Offset+offset*size, n*size)
}

// GhostStore describes an additional store of boundary points into ghosts of a rank, possibly the same one. In fields
// of reals, a value v may be transformed at physical faces, at most once per axis: v becomes 2*face - v if the field is
// odd about a face, and is then transformed by each of Affines.
type GhostStore struct {
	Send, Ghost domain.Box // of equal size: owned points of this rank and ghosts of the other
	To          int        // rank of the ghosts
	// Odd is the offset from each point to the value of the face, a ghost of this rank that no store writes; default
	// none.
	Odd     []domain.Vec
	Affines []Affine // applied in order; default none
}

// Affine transforms a value v to a ghost: Factor*v + Weight*g, rounded after each operation to the type of the field.
// g is the value of Given at offset By from the point of v, or in pack.Reflector from the ghost. It is read when the
// ghost is set.
type Affine struct {
	Factor, Weight float64    // dimensionless
	Given          Array      // of the field's type, on the device that sets the ghost
	FactorAt       int64      // distance in elements from g to the factor, in place of Factor; default 0: Factor
	By             domain.Vec // offset in points
}

// Holds returns an error unless there are values for the ghosts that are made from points of a box.
func (a *Affine) Holds(box domain.Box) error {
	last := a.Given
	last.Data.Length -= a.FactorAt * int64(last.Layout.ElementSize)
	return last.Holds(box.Shift(a.By))
}

// Copies reports whether the ghosts are copies of the points.
func (s *GhostStore) Copies() bool { return len(s.Odd)+len(s.Affines) == 0 }
