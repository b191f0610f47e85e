package pack

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// narrowly is divide of tree.cu with 32 bits.
func narrowly(n int64, q division) int64 {
	return int64(uint64(uint32(n+n)) * uint64(q.narrow) >> 32 >> q.shift)
}

// Products and shifts give quotients, around every power of two and multiple, with 64 and with 32 bits.
func TestDivision(t *testing.T) {
	divisors := []int64{3, 5, 7, 10, 641, 1e9 + 7, 6700417, math.MaxInt64}
	for b := range 63 {
		power := int64(1) << b
		divisors = append(divisors, power, power+1, max(1, power-1), 1+rand.Int64N(power))
	}
	for _, d := range divisors {
		q := divisionBy(d)
		if back := divisionOf(q.words()); back != q {
			t.Fatalf("%+v becomes %+v in words", q, back)
		}
		for _, n := range dividends(d) {
			if got := q.of(n); got != n/d {
				t.Fatalf("%d / %d = %d, not %d", n, d, n/d, got)
			}
			if got := narrowly(n, q); n < 1<<31 && d <= 1<<31 && got != n/d {
				t.Fatalf("%d / %d = %d, not %d with 32 bits", n, d, n/d, got)
			}
		}
	}
}

// dividends returns numbers around multiples of d, small, below the limits and random.
func dividends(d int64) (all []int64) {
	for _, around := range []int64{0, d, 2 * d, 1<<31 - 1, 1<<31 - 1 - (1<<31-1)%d, math.MaxInt64, math.MaxInt64 - math.MaxInt64%d} {
		for n := around - 2; n <= around+2 || n < around && n > 0; n++ {
			if n >= 0 {
				all = append(all, n)
			}
			if n == math.MaxInt64 {
				break
			}
		}
	}
	for range 200 {
		all = append(all, rand.Int64()>>rand.IntN(bits.UintSize-1))
	}
	return all
}
