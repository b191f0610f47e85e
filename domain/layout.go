package domain

import (
	"fmt"
	"math"
)

// RowAlignment is the alignment in bytes of the first owned point of each row: one memory transaction of a GPU.
const RowAlignment = 128

// Layout describes where the owned points and ghosts of one subdomain are in a block of memory. x is the fastest
// axis, then y, then z. The gap between two rows holds the upper x ghosts of the first and the lower x ghosts of
// the second. Numbers are in elements and 64-bit, unless noted.
type Layout struct {
	Owned       Box    // owned points, global indices
	Width       Radius // ghost layers
	ElementSize int    // bytes
	Pitch       int64  // distance between rows
	Plane       int64  // distance between planes
	Length      int64  // size of the whole block
	first       int64  // offset of Owned.Lo
	padded      bool   // gaps between rows hold only ghosts and padding
	uniform     bool   // the points of a row share one element
}

// NewLayout returns a layout of the owned box with ghosts of the given width, for elements of elementSize bytes.
// The block size in bytes is a multiple of RowAlignment. It returns an error if a size is invalid or the block
// exceeds 2^61 bytes.
func NewLayout(owned Box, width Radius, elementSize int) (Layout, error) {
	if err := checkLayout(owned, width, elementSize); err != nil {
		return Layout{}, err
	}
	l := Layout{Owned: owned, Width: width, ElementSize: elementSize, padded: true}
	n := extents(owned, width)
	n[0] += 2 * RowAlignment // padding per row is less than two alignments
	if bytes := n[0] * n[1] * n[2] * float64(elementSize); !(bytes <= maxBytes) {
		return Layout{}, fmt.Errorf("domain: layout of %v, ghosts %v, %d bytes per element: must be at most 2^61 bytes",
			owned, width, elementSize)
	}
	size := owned.Grow(width).Size()
	lead := l.align(width.Minus[0])
	l.Pitch = l.align(size[0])
	l.Plane = l.Pitch * int64(size[1])
	l.first = lead + int64(width.Minus[1])*l.Pitch + int64(width.Minus[2])*l.Plane
	l.Length = lead + l.Plane*int64(size[2]) + l.align(width.Plus[0])
	return l, nil
}

// Constant returns a layout of a new block in which all points along some axes share their memory, without ghosts
// there: the points of a row along x, rows along y, planes along z.
func (l Layout) Constant(axes [3]bool) Layout {
	size, lead := l.Owned.Grow(l.Width).Size(), l.align(l.Width.Minus[0])
	for a := range axes {
		if axes[a] {
			size[a] = 1
		}
	}
	row, end := l.align(size[0]), l.align(l.Width.Plus[0])
	if l.uniform = axes[0]; l.uniform {
		row, lead, end = 1, 0, 0
	}
	l.Pitch, l.Plane = row, row*int64(size[1])
	l.Length = lead + l.Plane*int64(size[2]) + end
	if axes[1] {
		l.Pitch = 0
	}
	if axes[2] {
		l.Plane = 0
	}
	l.first = lead + int64(l.Width.Minus[1])*l.Pitch + int64(l.Width.Minus[2])*l.Plane
	return l
}

// checkLayout returns an error if the arguments of a layout are invalid.
func checkLayout(owned Box, width Radius, elementSize int) error {
	if owned.Empty() || elementSize < 1 {
		return fmt.Errorf("domain: layout: box must not be empty and elements must have at least 1 byte, got %v and %d",
			owned, elementSize)
	}
	const most = 1 << 60
	for a := range 3 {
		if owned.Lo[a] < -most || owned.Hi[a] > most {
			return fmt.Errorf("domain: layout: indices must be between -2^60 and 2^60, got %v", owned)
		}
	}
	return width.check()
}

// NewStridedLayout returns the layout of an existing array, in elements: its first owned point is at offset first,
// rows are pitch apart and planes plane apart. It returns an error if a ghost is outside the array, or if rows or
// planes overlap.
func NewStridedLayout(owned Box, width Radius, elementSize int, first, pitch, plane int64) (Layout, error) {
	if err := checkLayout(owned, width, elementSize); err != nil {
		return Layout{}, err
	}
	n := extents(owned, width)
	reach := math.Abs(float64(first)) + n[0] + n[1]*math.Abs(float64(pitch)) + n[2]*math.Abs(float64(plane))
	if !(reach*float64(elementSize) <= maxBytes) { // also rejects NaN, from 0 times infinity
		return Layout{}, fmt.Errorf(
			"domain: layout of %v with ghosts %v, %d bytes per element, pitch %d, plane %d and first "+
				"owned point at %d: must be within 2^61 bytes",
			owned,
			width,
			elementSize,
			pitch,
			plane,
			first,
		)
	}
	l := Layout{Owned: owned, Width: width, ElementSize: elementSize, Pitch: pitch, Plane: plane, first: first}
	full := owned.Grow(width)
	size := full.Size()
	if first < 0 || pitch < int64(size[0]) || plane < pitch*int64(size[1]) || l.Offset(full.Lo) < 0 {
		return Layout{}, fmt.Errorf(
			"domain: layout of %v points with ghosts: rows and planes must not overlap, got pitch %d, plane %d "+
				"and the first owned point at %d",
			size,
			pitch,
			plane,
			first,
		)
	}
	l.Length = l.Offset(full.Hi.Sub(Vec{1, 1, 1})) + 1
	return l, nil
}

// maxBytes bounds the extent of an array so that offsets and sizes fit in 64 bits.
const maxBytes = 1 << 61

// extents returns the number of points along each axis, including ghosts. It may exceed an int, and is infinite if
// the indices exceed 62 bits.
func extents(owned Box, width Radius) (n [3]float64) {
	for a := range n {
		lo, hi := float64(owned.Lo[a])-float64(width.Minus[a]), float64(owned.Hi[a])+float64(width.Plus[a])
		if n[a] = hi - lo; max(-lo, hi) > maxBytes {
			n[a] = math.Inf(1)
		}
	}
	return n
}

// align rounds n elements up to a multiple of RowAlignment bytes.
func (l Layout) align(n int) int64 {
	shared := min(RowAlignment, l.ElementSize&-l.ElementSize) // greatest common divisor with a power of two
	unit := int64(RowAlignment / shared)
	return (int64(n) + unit - 1) / unit * unit
}

// Offset returns the offset in elements of p, an owned point or a ghost.
func (l Layout) Offset(p Vec) int64 {
	q := p.Sub(l.Owned.Lo)
	if l.uniform {
		q[0] = 0
	}
	return l.first + int64(q[0]) + int64(q[1])*l.Pitch + int64(q[2])*l.Plane
}

// Uniform reports whether the points of each row share one element, see Constant.
func (l Layout) Uniform() bool { return l.uniform }

// Bytes returns the size of the whole block in bytes.
func (l Layout) Bytes() int64 { return l.Length * int64(l.ElementSize) }

// Fits reports whether the block fits in the given number of bytes. It is safe for layouts not built by this
// package, whose size may exceed 64 bits.
func (l Layout) Fits(bytes int64) bool {
	return l.ElementSize > 0 && l.Length >= 0 && l.Length <= bytes/int64(l.ElementSize)
}

// Range returns the offset and length, in elements, of the smallest range that holds every point of b.
func (l Layout) Range(b Box) (offset, length int64) {
	if b.Empty() {
		return 0, 0
	}
	offset = l.Offset(b.Lo)
	return offset, l.Offset(b.Hi.Sub(Vec{1, 1, 1})) + 1 - offset
}

// Padded reports whether the gaps between rows and planes hold only ghosts and padding, as in layouts from
// NewLayout. In a layout from NewStridedLayout they may hold data of the caller.
func (l Layout) Padded() bool { return l.padded }

// Padding returns how many elements next to each row of b, ghosts at one end of x, are padding that completes
// their memory sectors: before the row at the lower end, after it at the upper end. It is 0 if the rows are
// aligned differently, if the ghosts of two rows share a sector, and in layouts from NewStridedLayout.
func (l Layout) Padding(b Box, sector int) (before, after int) {
	n, w := l.Owned.Size()[0], [2]int{l.Width.Minus[0], l.Width.Plus[0]}
	unit := sector / l.ElementSize
	if !l.padded || unit*l.ElementSize != sector || b.Size()[0] < 1 {
		return 0, 0
	}
	fill := func(w int) int { return (w+unit-1)/unit*unit - w }
	if int64(n+w[0]+fill(w[0])+w[1]+fill(w[1])) > l.Pitch {
		return 0, 0
	}
	switch {
	case b.Hi[0] == l.Owned.Lo[0] && b.Size()[0] == w[0]:
		return fill(w[0]), 0
	case b.Lo[0] == l.Owned.Hi[0] && b.Size()[0] == w[1] && n%unit == 0:
		return 0, fill(w[1])
	}
	return 0, 0
}

// Contiguous reports whether Range(b) may be copied as one piece to a subdomain of the same row length: apart from b,
// it holds at most padding and ghosts of the axes marked idle, which no exchange writes.
func (l Layout) Contiguous(b Box, idle [3]bool) bool {
	size := b.Size()
	whole := func(a int) bool {
		return idle[a] && b.Lo[a] == l.Owned.Lo[a] && b.Hi[a] == l.Owned.Hi[a]
	}
	rows := size[1]*size[2] == 1 || whole(0)
	planes := size[2] == 1 || whole(1)
	return rows && planes
}
