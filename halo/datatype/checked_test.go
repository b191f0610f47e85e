package datatype

import (
	"math"
	"testing"
)

func TestCheckedArithmetic(t *testing.T) {
	cases := []struct {
		a, b     int64
		sum, mul bool // overflow
	}{
		{math.MaxInt64, 1, true, false},
		{math.MaxInt64, -1, false, false},
		{math.MinInt64, -1, true, true},
		{-1, math.MinInt64, true, true},
		{math.MinInt64, 1, false, false},
		{math.MinInt64, 0, false, false},
		{1 << 32, 1 << 31, false, true},
		{1 << 31, 1 << 31, false, false},
		{-1 << 32, 1 << 31, false, false},
		{-1 << 32, 1<<31 + 1, false, true},
	}
	for _, c := range cases {
		var sum, mul checked
		sum.add(c.a, c.b)
		mul.mul(c.a, c.b)
		if sum.overflow != c.sum || mul.overflow != c.mul {
			t.Errorf("%d and %d: overflows %t and %t, not %t and %t", c.a, c.b, sum.overflow, mul.overflow, c.sum, c.mul)
		}
	}
}
