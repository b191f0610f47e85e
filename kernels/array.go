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
