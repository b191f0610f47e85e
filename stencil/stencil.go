package stencil

import (
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
)

// Stencil is a weighted sum of a point, c, and points around it. A sweep computes
//
//	Centre*c + Groups[0].Weight*(sum of its points) + Groups[1].Weight*(...) + ...
//
// from left to right: first the products of the centre and of each group, and these are
// added in the order of the groups. The sum of a group is that of its parts, in their
// order from the first, and the sum of a part that of its points, in theirs: parts that
// lie alike in several layers are so summed once for all. Every operation is rounded by
// itself, in the precision of the field, and the weights are rounded to it before. This is
// the order of every kernel and of the host, so that all give the same bits.
type Stencil struct {
	Dims   int
	Centre float64
	Groups []Group
}

// Group is points that have one weight.
type Group struct {
	Weight float64
	Parts  []Part
}

// Part is some points of a group, as offsets from the centre, which is not among them.
type Part []domain.Vec

// Offsets returns the points of all parts.
func (g Group) Offsets() []domain.Vec { return slices.Concat(g.Parts...) }

// Rate returns the multiple of the Laplacian that a sweep adds to a field: half the second moment of the weights along
// x, for weights that approximate the Laplacian on a grid of that spacing.
func (s Stencil) Rate(spacing []float64) (rate float64) {
	for _, g := range s.Groups {
		for _, o := range g.Offsets() {
			rate += g.Weight * float64(o[0]*o[0]) / 2
		}
	}
	return rate * spacing[0] * spacing[0]
}

// Points returns how many points the stencil has, the centre among them.
func (s Stencil) Points() int { return 1 + len(s.Offsets()) }

// Offsets returns all points of the stencil but the centre.
func (s Stencil) Offsets() (all []domain.Vec) {
	for _, g := range s.Groups {
		all = append(all, g.Offsets()...)
	}
	return all
}

// AxisRadius returns how far the stencil reaches along an axis, the same to both sides.
func (s Stencil) AxisRadius(axis int) int {
	radius := 0
	for _, g := range s.Groups {
		for _, part := range g.Parts {
			for _, o := range part {
				radius = max(radius, o[axis], -o[axis])
			}
		}
	}
	return radius
}

// Radius returns the radius along all axes: how many ghost layers a sweep reads.
func (s Stencil) Radius() domain.Radius {
	var r domain.Radius
	for a := range s.Dims {
		r.Minus[a], r.Plus[a] = s.AxisRadius(a), s.AxisRadius(a)
	}
	return r
}

// Check returns an error unless the stencil has 2 or 3 dimensions, finite weights, and
// points that are different, lie in these dimensions and are not the centre.
func (s Stencil) Check() error {
	if s.Dims != 2 && s.Dims != 3 {
		return fmt.Errorf("stencil: %d dimensions; must be 2 or 3", s.Dims)
	}
	if !finite(s.Centre) {
		return fmt.Errorf("stencil: the weight %v of the centre", s.Centre)
	}
	seen := []domain.Vec{{}}
	for _, g := range s.Groups {
		empty := func(p Part) bool { return len(p) == 0 }
		if !finite(g.Weight) || len(g.Parts) == 0 || slices.ContainsFunc(g.Parts, empty) {
			return fmt.Errorf("stencil: points %v with weight %v", g.Parts, g.Weight)
		}
	}
	for _, o := range s.Offsets() {
		if slices.Contains(seen, o) || (s.Dims == 2 && o[2] != 0) {
			return fmt.Errorf("stencil: the point %v is there already, or lies outside of %d dimensions", o, s.Dims)
		}
		seen = append(seen, o)
	}
	return nil
}

// Shape returns the stencil with all weights 1: two stencils of one shape read the
// same points in the same order.
func (s Stencil) Shape() Stencil {
	shape := Stencil{Dims: s.Dims, Centre: 1}
	for _, g := range s.Groups {
		shape.Groups = append(shape.Groups, Group{1, g.Parts})
	}
	return shape
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

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

// along returns the points d steps along each axis.
func along(dims, d int) Part {
	points := make(Part, dims)
	for a := range points {
		points[a][a] = d
	}
	return points
}

// box returns those points of a box around the centre, of that radius along all axes, that
// are wanted: a part for each layer of the last axis, upwards, and in it x fastest.
func box(dims, radius int, wanted func(domain.Vec) bool) (layers []Part) {
	low, high := domain.Vec{}, domain.Vec{}
	for a := range dims {
		low[a], high[a] = -radius, radius
	}
	for z := low[2]; z <= high[2]; z++ {
		for y := low[1]; y <= high[1]; y++ {
			for x := low[0]; x <= high[0]; x++ {
				o := domain.Vec{x, y, z}
				if !wanted(o) {
					continue
				}
				if n := len(layers); n == 0 || layers[n-1][0][dims-1] != o[dims-1] {
					layers = append(layers, nil)
				}
				layers[len(layers)-1] = append(layers[len(layers)-1], o)
			}
		}
	}
	return layers
}

func abs(n int) int { return max(n, -n) }
