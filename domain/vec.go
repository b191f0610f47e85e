package domain

import "math"

// Vec is one integer an axis: x, y, z.
type Vec [3]int

// Add returns v + w.
func (v Vec) Add(w Vec) Vec { return Vec{v[0] + w[0], v[1] + w[1], v[2] + w[2]} }

// Sub returns v - w.
func (v Vec) Sub(w Vec) Vec { return Vec{v[0] - w[0], v[1] - w[1], v[2] - w[2]} }

// Product returns the product of the three numbers, of positive ones at most the greatest int64.
func (v Vec) Product() int64 { return times(times(int64(v[0]), int64(v[1])), int64(v[2])) }

// times returns a product, or of two positive numbers the greatest int64 where it is beyond that.
func times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}
