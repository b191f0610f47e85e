// Package domain cuts structured grids into subdomains and says, for every
// subdomain, which points it owns, which points it needs of others, and where
// all of them lie in memory. It works on integers only and knows no device.
//
// Axes are numbered x = 0, y = 1, z = 2. Boxes are half open and, unless a
// comment says otherwise, in the global indices of the grid. Nothing outside
// this package works out an offset of a face.
package domain

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Vec is one integer an axis: x, y, z.
type Vec [3]int

// Times writes sizes as "8 x 8 x 8".
func Times(sizes []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(sizes), "[]"), " ", " x ")
}

// Add returns v + w.
func (v Vec) Add(w Vec) Vec { return Vec{v[0] + w[0], v[1] + w[1], v[2] + w[2]} }

// Sub returns v - w.
func (v Vec) Sub(w Vec) Vec { return Vec{v[0] - w[0], v[1] - w[1], v[2] - w[2]} }

// Product returns the product of the three numbers; one beyond 2^62 either way is
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
	Lo Vec `json:"lo"`
	Hi Vec `json:"hi"`
}

// Size returns the number of points along each axis; never negative, and math.MaxInt
// where it is more.
func (b Box) Size() Vec {
	var s Vec
	for a := range s {
		if b.Hi[a] <= b.Lo[a] {
			continue
		}
		if s[a] = b.Hi[a] - b.Lo[a]; s[a] < 0 { // beyond 64 bits
			s[a] = math.MaxInt
		}
	}
	return s
}

// Points returns the number of points in the box, at most the greatest int64.
func (b Box) Points() int64 { return b.Size().Product() }

// Empty reports whether the box has no point.
func (b Box) Empty() bool { return b.Hi[0] <= b.Lo[0] || b.Hi[1] <= b.Lo[1] || b.Hi[2] <= b.Lo[2] }

// Contains reports whether p lies in the box.
func (b Box) Contains(p Vec) bool {
	for a := range p {
		if p[a] < b.Lo[a] || p[a] >= b.Hi[a] {
			return false
		}
	}
	return true
}

// Covers reports whether every point of c lies in the box. An empty c is
// covered by any box.
func (b Box) Covers(c Box) bool {
	return c.Empty() || b.Intersect(c) == c
}

// Intersect returns the points in both boxes. Where there are none the result
// is empty.
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

// String gives the half-open range of each axis, as [0,4)x[0,8)x[2,3).
func (b Box) String() string {
	return fmt.Sprintf("[%d,%d)x[%d,%d)x[%d,%d)", b.Lo[0], b.Hi[0], b.Lo[1], b.Hi[1], b.Lo[2], b.Hi[2])
}

// Direction points from a subdomain to a neighbour: -1, 0 or 1 an axis. One
// nonzero component is a face, two an edge, three a corner.
type Direction Vec

// Opposite returns the direction that leads back.
func (d Direction) Opposite() Direction { return Direction{-d[0], -d[1], -d[2]} }

// Axis returns the axis of a face direction, or -1 for an edge, a corner or no
// direction at all.
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

// Positive reports whether the first nonzero component is +1. Of a direction
// and its opposite exactly one is positive.
func (d Direction) Positive() bool {
	for _, c := range d {
		if c != 0 {
			return c > 0
		}
	}
	return false
}

// String names the direction by its signed axes: "x-", "y+z-".
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

// Directions returns all 3^dims - 1 directions: faces first, then edges, then
// corners.
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

// Leading returns which of several directions stands for all of them, where one subdomain has
// another as its neighbour in each, as around a ring of two: in the order of Directions the first,
// as seen from the subdomain of the higher rank. So a message and the one in return have opposite
// directions.
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

// Radius is how far something reaches from a point, per direction: Minus
// layers towards smaller indices and Plus layers towards larger ones, an axis
// each. It is the radius of a stencil, or the width of a ghost region.
type Radius struct {
	Minus, Plus Vec
}

// maxLayers is more than any device holds.
const maxLayers = 1 << 31

// Max returns the larger of two radii on each side.
func (r Radius) Max(s Radius) Radius {
	for a := range 3 {
		r.Minus[a], r.Plus[a] = max(r.Minus[a], s.Minus[a]), max(r.Plus[a], s.Plus[a])
	}
	return r
}

// Min returns the smaller of two radii on each side.
func (r Radius) Min(s Radius) Radius {
	for a := range 3 {
		r.Minus[a], r.Plus[a] = min(r.Minus[a], s.Minus[a]), min(r.Plus[a], s.Plus[a])
	}
	return r
}

// Contains reports whether the radius is at least as large as another on each side.
func (r Radius) Contains(s Radius) bool { return r.Max(s) == r }

// check returns an error if the radius is negative somewhere, or has 2^31 layers or more.
func (r Radius) check() error {
	for a := range 3 {
		if r.Minus[a] < 0 || r.Plus[a] < 0 {
			return fmt.Errorf("domain: a width of %v in - and %v in + directions: neither may be negative", r.Minus,
				r.Plus)
		}
		if r.Minus[a] >= maxLayers || r.Plus[a] >= maxLayers {
			return fmt.Errorf("domain: a width of %v in - and %v in + directions: must be less than 2^31 layers",
				r.Minus, r.Plus)
		}
	}
	return nil
}

// UniformRadius returns radius r in both directions of the first dims axes and
// 0 on the others.
func UniformRadius(dims, r int) Radius {
	var u Radius
	for a := range dims {
		u.Minus[a], u.Plus[a] = r, r
	}
	return u
}
