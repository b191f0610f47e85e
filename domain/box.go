package domain

import (
	"fmt"
	"math"
)

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
