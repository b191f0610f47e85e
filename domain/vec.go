package domain

// Vec is one integer an axis: x, y, z.
type Vec [3]int

// Add returns v + w.
func (v Vec) Add(w Vec) Vec { return Vec{v[0] + w[0], v[1] + w[1], v[2] + w[2]} }

// Sub returns v - w.
func (v Vec) Sub(w Vec) Vec { return Vec{v[0] - w[0], v[1] - w[1], v[2] - w[2]} }

// Product returns the product of the three numbers, in 64 bits.
func (v Vec) Product() int64 { return int64(v[0]) * int64(v[1]) * int64(v[2]) }
