package stencil

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
)

// Footprint is the points that are read around a point, as offsets from it. An empty footprint
// of what is read is the point alone.
type Footprint []domain.Vec

// Point is the footprint of what is read at the point alone.
func Point() Footprint { return Footprint{{}} }

// Offsets is the footprint of the given offsets: each once, x fastest.
func Offsets(offsets ...domain.Vec) Footprint {
	sorted := slices.SortedFunc(slices.Values(offsets), func(a, b domain.Vec) int {
		return slices.Compare([]int{a[2], a[1], a[0]}, []int{b[2], b[1], b[0]})
	})
	return slices.Compact(sorted)
}

// Star is the footprint of the points up to radius steps along each of the first dims axes, which
// are 2*dims*radius+1.
func Star(dims, radius int) Footprint {
	offsets := []domain.Vec{{}}
	for d := 1; d <= radius; d++ {
		offsets = append(append(offsets, along(dims, d)...), along(dims, -d)...)
	}
	return Offsets(offsets...)
}

// Box is the footprint of all points up to radius steps along each of the first dims axes.
func Box(dims, radius int) Footprint {
	return Offsets(slices.Concat(box(dims, radius, func(domain.Vec) bool { return true })...)...)
}

// Footprint returns the points that the stencil reads.
func (s Stencil) Footprint() Footprint { return Offsets(append(s.Offsets(), domain.Vec{})...) }

// Has reports whether the offset is among those read.
func (f Footprint) Has(o domain.Vec) bool { return slices.Contains(f, o) }

// Join returns the offsets of both.
func (f Footprint) Join(g Footprint) Footprint { return Offsets(slices.Concat(f, g)...) }

// Radius returns how far the footprint reaches in - and in + directions.
func (f Footprint) Radius() (r domain.Radius) {
	for _, o := range f {
		for a, d := range o {
			r.Minus[a], r.Plus[a] = max(r.Minus[a], -d), max(r.Plus[a], d)
		}
	}
	return r
}

// Axes returns along how many axes an offset of the footprint differs from the point, at most:
// with 1 it needs neighbours across faces, with 2 across edges too, with 3 across corners.
func (f Footprint) Axes() (most int) {
	for _, o := range f {
		axes := 0
		for _, d := range o {
			if d != 0 {
				axes++
			}
		}
		most = max(most, axes)
	}
	return most
}

// Check returns an error unless all offsets lie in so many dimensions.
func (f Footprint) Check(dims int) error {
	for _, o := range f {
		for a := dims; a < 3; a++ {
			if o[a] != 0 {
				return fmt.Errorf("stencil: the offset %v in %d dimensions", o, dims)
			}
		}
	}
	return nil
}
