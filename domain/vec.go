package domain

import "math"

// Vec is one integer an axis: x, y, z.
type Vec [3]int

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
