package stencil

import (
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
)

// Stencil is a weighted sum of a point, c, and points around it. A sweep computes
//
//	Center*c + Groups[0].Weight*(sum of its points) + Groups[1].Weight*(...) + ...
//
// from left to right: the products of the center and of each group are computed first, and added in the order of
// the groups. The sum of a group is the sum of its parts in order, and the sum of a part is that of its points in
// order. Parts that recur in several layers are therefore summed only once. Every operation is rounded
// individually in the precision of the field, and the weights are rounded to it beforehand. All kernels and the
// CPU code use this order, so their results are bitwise identical.
type Stencil struct {
	Dims   int     // 2 or 3
	Center float64 // weight of the center
	Groups []Group // points with equal weights; none is the center
}

// Group is a set of points with the same weight.
type Group struct {
	Weight float64 // dimensionless factor
	Parts  []Part  // at least one, each with at least one point
}

// Part is a subset of a group, as offsets from the center, which is not included.
type Part []domain.Vec

// Offsets returns the points of all parts.
func (g Group) Offsets() []domain.Vec { return slices.Concat(g.Parts...) }

// Rate returns the multiple of the Laplacian that a sweep adds to a field: half the second moment of the weights
// along x, for weights that approximate the Laplacian on a grid of the given spacing.
func (s Stencil) Rate(spacing []float64) (rate float64) {
	for _, g := range s.Groups {
		for _, o := range g.Offsets() {
			rate += g.Weight * float64(o[0]*o[0]) / 2
		}
	}
	return rate * spacing[0] * spacing[0]
}

// Points returns the number of points of the stencil, including the center.
func (s Stencil) Points() int { return 1 + len(s.offsets()) }

// Operations returns the number of operations per point, as papers count: a product for the center and for each group
// of points with the same weight, and a sum for each point except one.
func (s Stencil) Operations() int { return len(s.Groups) + s.Points() }

// offsets returns all points of the stencil except the center.
func (s Stencil) offsets() (all []domain.Vec) {
	for _, g := range s.Groups {
		all = append(all, g.Offsets()...)
	}
	return all
}

// AxisRadius returns the reach of the stencil along an axis, the same in both directions.
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

// Radius returns the radius along all axes: the number of ghost layers that a sweep reads.
func (s Stencil) Radius() domain.Radius {
	var r domain.Radius
	for a := range s.Dims {
		r.Minus[a], r.Plus[a] = s.AxisRadius(a), s.AxisRadius(a)
	}
	return r
}

// Check returns an error unless the stencil has 2 or 3 dimensions, finite weights, and distinct points within
// these dimensions that are not the center.
func (s Stencil) Check() error {
	if s.Dims != 2 && s.Dims != 3 {
		return fmt.Errorf("stencil: number of dimensions: must be 2 or 3, got %d", s.Dims)
	}
	if !finite(s.Center) {
		return fmt.Errorf("stencil: weight of the center: must be finite, got %v", s.Center)
	}
	seen := []domain.Vec{{}}
	for _, g := range s.Groups {
		empty := func(p Part) bool { return len(p) == 0 }
		if !finite(g.Weight) || len(g.Parts) == 0 || slices.ContainsFunc(g.Parts, empty) {
			return fmt.Errorf("stencil: group %v: must have points and a finite weight, got %v", g.Parts, g.Weight)
		}
	}
	for _, o := range s.offsets() {
		if slices.Contains(seen, o) || (s.Dims == 2 && o[2] != 0) {
			return fmt.Errorf("stencil: point %v: must be unique and within %d dimensions", o, s.Dims)
		}
		seen = append(seen, o)
	}
	return nil
}

// Shape returns the stencil with all weights 1: two stencils of one shape read the same points in the same order.
func (s Stencil) Shape() Stencil {
	shape := Stencil{Dims: s.Dims, Center: 1}
	for _, g := range s.Groups {
		shape.Groups = append(shape.Groups, Group{1, g.Parts})
	}
	return shape
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Footprint is the set of offsets that are read around a point. An empty footprint means the point itself.
type Footprint []domain.Vec

// Point returns the footprint of the point itself.
func Point() Footprint { return Footprint{{}} }

// Offsets returns the footprint of the given offsets: each once, in the order of x, then y, then z.
func Offsets(offsets ...domain.Vec) Footprint {
	sorted := slices.SortedFunc(slices.Values(offsets), func(a, b domain.Vec) int {
		return slices.Compare([]int{a[2], a[1], a[0]}, []int{b[2], b[1], b[0]})
	})
	return slices.Compact(sorted)
}

// Star returns the footprint of the 2*dims*radius+1 points up to radius steps along each of the first dims axes.
func Star(dims, radius int) Footprint {
	offsets := []domain.Vec{{}}
	for d := 1; d <= radius; d++ {
		offsets = append(append(offsets, along(dims, d)...), along(dims, -d)...)
	}
	return Offsets(offsets...)
}

// Box returns the footprint of all points up to radius steps along each of the first dims axes.
func Box(dims, radius int) Footprint {
	return Offsets(slices.Concat(box(dims, radius, func(domain.Vec) bool { return true })...)...)
}

// Footprint returns the points that the stencil reads.
func (s Stencil) Footprint() Footprint { return Offsets(append(s.offsets(), domain.Vec{})...) }

// Has reports whether the footprint contains the offset.
func (f Footprint) Has(o domain.Vec) bool { return slices.Contains(f, o) }

// Join returns the union of both footprints.
func (f Footprint) Join(g Footprint) Footprint { return Offsets(slices.Concat(f, g)...) }

// Radius returns the reach of the footprint in - and + directions.
func (f Footprint) Radius() (r domain.Radius) {
	for _, o := range f {
		for a, d := range o {
			r.Minus[a], r.Plus[a] = max(r.Minus[a], -d), max(r.Plus[a], d)
		}
	}
	return r
}

// Axes returns the largest number of axes along which an offset is nonzero: 1 needs neighbors across faces, 2
// across edges too, 3 across corners.
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

// Check returns an error unless all offsets are within dims dimensions.
func (f Footprint) Check(dims int) error {
	for _, o := range f {
		for a := dims; a < 3; a++ {
			if o[a] != 0 {
				return fmt.Errorf("stencil: offset %v: must be within %d dimensions", o, dims)
			}
		}
	}
	return nil
}

// along returns the points d steps away along each axis.
func along(dims, d int) Part {
	points := make(Part, dims)
	for a := range points {
		points[a][a] = d
	}
	return points
}

// box returns the points of the box of the given radius around the center for which wanted is true: one part per
// layer of the last axis, in ascending order, each with x fastest.
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
