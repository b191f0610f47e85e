package datatype

import (
	"errors"
	"math"
)

// errOverflow is what a number past 63 bits is refused with.
var errOverflow = errors.New("a displacement, size or bound does not fit in 64 bits")

// checked computes with 64-bit integers and remembers whether one overflowed.
type checked struct{ overflow bool }

func (c *checked) add(a, b int64) int64 {
	sum := a + b
	if (a < 0) == (b < 0) && (sum < 0) != (a < 0) {
		c.overflow = true
	}
	return sum
}

func (c *checked) sub(a, b int64) int64 {
	difference := a - b
	if (a < 0) != (b < 0) && (difference < 0) != (a < 0) {
		c.overflow = true
	}
	return difference
}

func (c *checked) mul(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	product := a * b
	if product/b != a || (a == -1 && b == math.MinInt64) || (b == -1 && a == math.MinInt64) {
		c.overflow = true
	}
	return product
}
