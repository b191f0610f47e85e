package domain

import (
	"fmt"
	"math"
)

// RowAlignment is the alignment in bytes of the first owned point of each row:
// a memory transaction of a GPU.
const RowAlignment = 128

// Layout says where the points of one subdomain, its ghosts included, lie in
// one block of memory. x runs fastest, then y, then z. Rows are Pitch elements
// apart and planes Plane elements; the gap between two rows holds the upper x
// ghosts of the first and the lower x ghosts of the second. All numbers are
// in elements and 64-bit.
type Layout struct {
	Owned       Box
	Width       Radius // ghost layers
	ElementSize int    // bytes
	Pitch       int64
	Plane       int64
	Length      int64 // elements of the whole block
	first       int64 // offset of Owned.Lo
	padded      bool  // between rows lies nothing but their ghosts
}

// NewLayout lays out the owned box with ghosts of the given width, for elements
// of any size in bytes. Length is a whole multiple of RowAlignment in bytes.
func NewLayout(owned Box, width Radius, elementSize int) (Layout, error) {
	if err := checkLayout(owned, width, elementSize); err != nil {
		return Layout{}, err
	}
	l := Layout{Owned: owned, Width: width, ElementSize: elementSize, padded: true}
	n := extents(owned, width)
	n[0] += 2 * RowAlignment // rows are padded by less than two alignments
	if bytes := n[0] * n[1] * n[2] * float64(elementSize); !(bytes <= maxBytes) {
		return Layout{}, fmt.Errorf("domain: %v with ghosts %v, %d bytes each, are more than 2^61 bytes", owned, width,
			elementSize)
	}
	size := owned.Grow(width).Size()
	lead := l.align(width.Minus[0])
	l.Pitch = l.align(size[0])
	l.Plane = l.Pitch * int64(size[1])
	l.first = lead + int64(width.Minus[1])*l.Pitch + int64(width.Minus[2])*l.Plane
	l.Length = lead + l.Plane*int64(size[2]) + l.align(width.Plus[0])
	return l, nil
}

// checkLayout returns an error for what no layout is of.
func checkLayout(owned Box, width Radius, elementSize int) error {
	if owned.Empty() || elementSize < 1 {
		return fmt.Errorf("domain: layout of the box %v with elements of %d bytes", owned, elementSize)
	}
	const most = 1 << 60
	for a := range 3 {
		if owned.Lo[a] < -most || owned.Hi[a] > most {
			return fmt.Errorf("domain: layout of the box %v: indices lie between -2^60 and 2^60", owned)
		}
	}
	return width.check()
}

// NewStridedLayout is the layout of an array that is there already: its first
// owned point lies first elements after its start, rows are pitch and planes plane
// elements apart. Ghosts must lie within the array and rows and planes must not
// overlap.
func NewStridedLayout(owned Box, width Radius, elementSize int, first, pitch, plane int64) (Layout, error) {
	if err := checkLayout(owned, width, elementSize); err != nil {
		return Layout{}, err
	}
	n := extents(owned, width)
	reach := math.Abs(float64(first)) + n[0] + n[1]*math.Abs(float64(pitch)) + n[2]*math.Abs(float64(plane))
	if !(reach*float64(elementSize) <= maxBytes) { // nor infinitely many times nothing
		return Layout{}, fmt.Errorf(
			"domain: %v with ghosts %v, %d bytes each, in rows %d and planes %d elements apart, "+
				"the first owned point at %d, reach over more than 2^61 bytes",
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
			"domain: %v points with ghosts do not fit into rows %d and planes %d elements apart, "+
				"the first owned point at %d",
			size,
			pitch,
			plane,
			first,
		)
	}
	l.Length = l.Offset(full.Hi.Sub(Vec{1, 1, 1})) + 1
	return l, nil
}

// maxBytes is how far an array may reach: sums of places and sizes stay within 64 bits.
const maxBytes = 1 << 61

// extents returns how many points there are along each axis, ghosts included, which may be more than an int holds;
// infinitely many where they have no indices of 62 bits.
func extents(owned Box, width Radius) (n [3]float64) {
	for a := range n {
		lo, hi := float64(owned.Lo[a])-float64(width.Minus[a]), float64(owned.Hi[a])+float64(width.Plus[a])
		if n[a] = hi - lo; max(-lo, hi) > maxBytes {
			n[a] = math.Inf(1)
		}
	}
	return n
}

// align rounds n elements up until they take whole multiples of RowAlignment
// bytes.
func (l Layout) align(n int) int64 {
	shared := min(RowAlignment, l.ElementSize&-l.ElementSize) // the greatest common divisor with a power of two
	unit := int64(RowAlignment / shared)
	return (int64(n) + unit - 1) / unit * unit
}

// Offset returns the place of point p, which is owned or a ghost, in elements.
func (l Layout) Offset(p Vec) int64 {
	q := p.Sub(l.Owned.Lo)
	return l.first + int64(q[0]) + int64(q[1])*l.Pitch + int64(q[2])*l.Plane
}

// Bytes returns the size of the whole block in bytes.
func (l Layout) Bytes() int64 { return l.Length * int64(l.ElementSize) }

// Fits reports whether the block fits into so many bytes, also where a layout was not made here and its size is
// beyond 64 bits.
func (l Layout) Fits(bytes int64) bool {
	return l.ElementSize > 0 && l.Length >= 0 && l.Length <= bytes/int64(l.ElementSize)
}

// Range returns the smallest run of elements, offset and length, that holds
// every point of b.
func (l Layout) Range(b Box) (offset, length int64) {
	if b.Empty() {
		return 0, 0
	}
	offset = l.Offset(b.Lo)
	return offset, l.Offset(b.Hi.Sub(Vec{1, 1, 1})) + 1 - offset
}

// Padded reports whether nothing but ghosts and padding lies between rows and planes,
// as NewLayout has it. What lies there in a layout of the caller's may be theirs.
func (l Layout) Padded() bool { return l.padded }

// Padding returns how many elements beside each row of b, ghosts at one end of
// x, are padding that fills up the sectors of memory that the ghosts lie in: before
// the row at the lower end, after it at the upper. It is 0 where the row is aligned
// otherwise, where the ghosts of two rows share a sector, and in layouts of callers,
// whose padding may be theirs.
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

// Contiguous reports whether the run of elements that holds b may be copied as
// one piece to a subdomain of the same row length: besides b it holds at most
// padding and ghosts of the axes marked idle, those that no exchange writes.
func (l Layout) Contiguous(b Box, idle [3]bool) bool {
	size := b.Size()
	whole := func(a int) bool {
		return idle[a] && b.Lo[a] == l.Owned.Lo[a] && b.Hi[a] == l.Owned.Hi[a]
	}
	rows := size[1]*size[2] == 1 || whole(0)
	planes := size[2] == 1 || whole(1)
	return rows && planes
}
