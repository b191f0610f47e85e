package zarr

import (
	"iter"

	"github.com/halox/halox/domain"
)

// An index counts points or chunks along time, z, y and x; axes that an array lacks have one point.
type index [4]int

// span is the half-open range of indices lo <= i < hi.
type span struct{ lo, hi index }

func (s span) intersect(t span) span {
	for a := range s.lo {
		s.lo[a] = max(s.lo[a], t.lo[a])
		s.hi[a] = max(s.lo[a], min(s.hi[a], t.hi[a]))
	}
	return s
}

func (s span) size() (n index) {
	for a := range n {
		n[a] = s.hi[a] - s.lo[a]
	}
	return n
}

func (s span) points() int {
	n := s.size()
	return n[0] * n[1] * n[2] * n[3]
}

// all iterates over the indices in C order.
func (s span) all() iter.Seq[index] {
	return func(yield func(index) bool) {
		var i index
		for i[0] = s.lo[0]; i[0] < s.hi[0]; i[0]++ {
			for i[1] = s.lo[1]; i[1] < s.hi[1]; i[1]++ {
				for i[2] = s.lo[2]; i[2] < s.hi[2]; i[2]++ {
					for i[3] = s.lo[3]; i[3] < s.hi[3]; i[3]++ {
						if !yield(i) {
							return
						}
					}
				}
			}
		}
	}
}

// position returns the position of an index in C order.
func (s span) position(i index) (at int) {
	for a := range i {
		at = at*(s.hi[a]-s.lo[a]) + i[a] - s.lo[a]
	}
	return at
}

// cell returns the points of the chunk with an index, of chunks of a size.
func cell(i, size index) (s span) {
	for a := range i {
		s.lo[a] = i[a] * size[a]
		s.hi[a] = s.lo[a] + size[a]
	}
	return s
}

// cells returns the indices of the chunks of a size that intersect a span, which is not empty.
func (s span) cells(size index) span {
	for a := range size {
		s.lo[a] /= size[a]
		s.hi[a] = (s.hi[a]-1)/size[a] + 1
	}
	return s
}

// box returns the axes of a grid, x first.
func (s span) box() domain.Box {
	return domain.Box{Lo: domain.Vec{s.lo[3], s.lo[2], s.lo[1]}, Hi: domain.Vec{s.hi[3], s.hi[2], s.hi[1]}}
}

// spanOf returns a box of a level.
func spanOf(level int, b domain.Box) span {
	return span{index{level, b.Lo[2], b.Lo[1], b.Lo[0]}, index{level + 1, b.Hi[2], b.Hi[1], b.Hi[0]}}
}

// divide halves counts, rounding up, until the product of counts and units has at most a number of bytes. It takes the
// longest axis each time, and prefers y and z to x.
func divide(count, unit index, element, bytes int) index {
	for {
		about, longest := float64(element), 0
		length := func(a int) int {
			if a == 3 {
				return count[a] * unit[a] / 2
			}
			return count[a] * unit[a]
		}
		for a := range count {
			about *= float64(count[a]) * float64(unit[a])
			if count[a] > 1 && (count[longest] == 1 || length(a) > length(longest)) {
				longest = a
			}
		}
		if about <= float64(bytes) || count[longest] == 1 {
			return count
		}
		count[longest] = (count[longest] + 1) / 2
	}
}

// copySpan copies the elements of a span between two arrays in C order, which hold the spans of their values.
func copySpan(s span, dst []byte, to span, src []byte, from span, element int) {
	row := (s.hi[3] - s.lo[3]) * element
	starts := s
	starts.hi[3] = s.lo[3] + 1
	for i := range starts.all() {
		copy(dst[to.position(i)*element:][:row], src[from.position(i)*element:])
	}
}
