// Package domain decomposes structured grids into subdomains. For every subdomain it computes the points it owns,
// the ghost points it needs from its neighbors, and the location of both in memory. It works on integers only and
// does not depend on devices.
//
// Axes are numbered x = 0, y = 1, z = 2. Boxes are half open and, unless a comment says otherwise, use the global
// indices of the grid. No other package computes the offset of a face.
package domain

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Vec holds one integer per axis: x, y, z.
type Vec [3]int

// Times formats sizes as "8 x 8 x 8".
func Times(sizes []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(sizes), "[]"), " ", " x ")
}

// Add returns v + w.
func (v Vec) Add(w Vec) Vec { return Vec{v[0] + w[0], v[1] + w[1], v[2] + w[2]} }

// Sub returns v - w.
func (v Vec) Sub(w Vec) Vec { return Vec{v[0] - w[0], v[1] - w[1], v[2] - w[2]} }

// Product returns the product of the three components. It saturates: a product above 2^62 in magnitude is
// math.MaxInt64 or math.MinInt64.
func (v Vec) Product() int64 {
	switch about := float64(v[0]) * float64(v[1]) * float64(v[2]); {
	case about > 1<<62:
		return math.MaxInt64
	case about < -1<<62:
		return math.MinInt64
	}
	return int64(v[0]) * int64(v[1]) * int64(v[2])
}

// Box is the half-open set of points Lo <= p < Hi.
type Box struct {
	Lo Vec `json:"lo"` // first point, inclusive
	Hi Vec `json:"hi"` // end, exclusive
}

// Size returns the number of points along each axis: at least 0, and at most math.MaxInt.
func (b Box) Size() Vec {
	var s Vec
	for a := range s {
		if b.Hi[a] <= b.Lo[a] {
			continue
		}
		if s[a] = b.Hi[a] - b.Lo[a]; s[a] < 0 { // overflow of 64 bits
			s[a] = math.MaxInt
		}
	}
	return s
}

// Points returns the number of points in the box, saturating at math.MaxInt64.
func (b Box) Points() int64 { return b.Size().Product() }

// Empty reports whether the box has no points.
func (b Box) Empty() bool { return b.Hi[0] <= b.Lo[0] || b.Hi[1] <= b.Lo[1] || b.Hi[2] <= b.Lo[2] }

// Contains reports whether p is in the box.
func (b Box) Contains(p Vec) bool {
	for a := range p {
		if p[a] < b.Lo[a] || p[a] >= b.Hi[a] {
			return false
		}
	}
	return true
}

// Covers reports whether every point of c is in the box. Every box covers an empty c.
func (b Box) Covers(c Box) bool {
	return c.Empty() || b.Intersect(c) == c
}

// Intersect returns the points in both boxes, which may be an empty box.
func (b Box) Intersect(c Box) Box {
	for a := range b.Lo {
		b.Lo[a] = max(b.Lo[a], c.Lo[a])
		b.Hi[a] = max(b.Lo[a], min(b.Hi[a], c.Hi[a]))
	}
	return b
}

// Shift moves the box by v.
func (b Box) Shift(v Vec) Box { return Box{b.Lo.Add(v), b.Hi.Add(v)} }

// Grow adds r.Minus layers below and r.Plus layers above on each axis.
func (b Box) Grow(r Radius) Box { return Box{b.Lo.Sub(r.Minus), b.Hi.Add(r.Plus)} }

// String returns the half-open range of each axis, such as [0,4)x[0,8)x[2,3).
func (b Box) String() string {
	return fmt.Sprintf("[%d,%d)x[%d,%d)x[%d,%d)", b.Lo[0], b.Hi[0], b.Lo[1], b.Hi[1], b.Lo[2], b.Hi[2])
}

// Direction points from a subdomain to a neighbor: -1, 0 or 1 per axis. A direction with one nonzero component is
// a face, with two an edge, with three a corner.
type Direction Vec

// Opposite returns the opposite direction.
func (d Direction) Opposite() Direction { return Direction{-d[0], -d[1], -d[2]} }

// Axis returns the axis of a face direction, or -1 if the direction is not a face.
func (d Direction) Axis() int {
	axis := -1
	for a, c := range d {
		if c == 0 {
			continue
		}
		if axis >= 0 {
			return -1
		}
		axis = a
	}
	return axis
}

// Positive reports whether the first nonzero component is +1. It is true for exactly one of a direction and its
// opposite.
func (d Direction) Positive() bool {
	for _, c := range d {
		if c != 0 {
			return c > 0
		}
	}
	return false
}

// String returns the signed axes of the direction: "x-", "y+z-".
func (d Direction) String() string {
	name := ""
	for a, c := range d {
		if c != 0 {
			name += string("xyz"[a]) + string("- +"[c+1])
		}
	}
	return name
}

// Faces returns the 2*dims face directions in the order x-, x+, y-, y+, z-, z+.
func Faces(dims int) []Direction {
	var faces []Direction
	for a := range dims {
		for _, c := range []int{-1, 1} {
			var d Direction
			d[a] = c
			faces = append(faces, d)
		}
	}
	return faces
}

// Directions returns all 3^dims - 1 directions: faces, then edges, then corners.
func Directions(dims int) []Direction {
	byKind := [4][]Direction{1: Faces(dims)}
	for n := range 27 {
		d := Direction{n%3 - 1, n/3%3 - 1, n/9 - 1}
		kind := 0
		inside := true
		for a, c := range d {
			kind += c * c
			inside = inside && (a < dims || c == 0)
		}
		if inside && kind > 1 {
			byKind[kind] = append(byKind[kind], d)
		}
	}
	return append(append(byKind[1], byKind[2]...), byKind[3]...)
}

// Leading returns the direction that represents several directions in which one subdomain has the same neighbor,
// as around a ring of two: the first in the order of Directions, as seen from the subdomain with the higher rank.
// A message and its reply therefore have opposite directions.
func Leading(from, to int, several []Direction) Direction {
	for _, d := range Directions(3) {
		if from < to {
			d = d.Opposite()
		}
		if slices.Contains(several, d) {
			return d
		}
	}
	return Direction{}
}

// Radius is the reach from a point in layers: the radius of a stencil, or the width of a ghost region.
type Radius struct {
	Minus Vec // layers towards smaller indices, per axis; default 0
	Plus  Vec // layers towards larger indices, per axis; default 0
}

// maxLayers is more than any device can hold.
const maxLayers = 1 << 31

// Max returns the larger radius on each side.
func (r Radius) Max(s Radius) Radius {
	for a := range 3 {
		r.Minus[a], r.Plus[a] = max(r.Minus[a], s.Minus[a]), max(r.Plus[a], s.Plus[a])
	}
	return r
}

// Min returns the smaller radius on each side.
func (r Radius) Min(s Radius) Radius {
	for a := range 3 {
		r.Minus[a], r.Plus[a] = min(r.Minus[a], s.Minus[a]), min(r.Plus[a], s.Plus[a])
	}
	return r
}

// Contains reports whether r is at least as large as s on each side.
func (r Radius) Contains(s Radius) bool { return r.Max(s) == r }

// check returns an error if a component is negative or at least 2^31 layers.
func (r Radius) check() error {
	for a := range 3 {
		if r.Minus[a] < 0 || r.Plus[a] < 0 {
			return fmt.Errorf("domain: halo width: must be at least 0 layers, got %v in - and %v in + directions",
				r.Minus, r.Plus)
		}
		if r.Minus[a] >= maxLayers || r.Plus[a] >= maxLayers {
			return fmt.Errorf("domain: halo width: must be less than 2^31 layers, got %v in - and %v in + directions",
				r.Minus, r.Plus)
		}
	}
	return nil
}

// UniformRadius returns radius r in both directions of the first dims axes and 0 on the others.
func UniformRadius(dims, r int) Radius {
	var u Radius
	for a := range dims {
		u.Minus[a], u.Plus[a] = r, r
	}
	return u
}
