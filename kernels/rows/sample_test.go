package rows

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// canary is a value that no test computes. It fills what must not be touched.
const canary = -12345.678

// edges are the values at which floating point stops being simple.
func edges[T Float]() []T {
	smallest, largest := math.SmallestNonzeroFloat64, math.MaxFloat64
	if unsafe.Sizeof(T(0)) == 4 {
		smallest, largest = math.SmallestNonzeroFloat32, math.MaxFloat32
	}
	return []T{
		0, T(math.Copysign(0, -1)), T(smallest), T(-smallest), T(12345 * smallest),
		T(largest), T(-largest), T(math.Inf(1)), T(math.Inf(-1)), T(math.NaN()),
	}
}

// random returns n points that start so many points into an allocation, so
// that they are aligned in every way. About one point in odd is one of edges;
// none is if odd is 0.
func random[T Float](r *rand.Rand, n, offset, odd int) []T {
	special := edges[T]()
	row := make([]T, offset+n)[offset:]
	for i := range row {
		row[i] = T(r.NormFloat64() * math.Pow(2, float64(r.IntN(20)-10)))
		if odd > 0 && r.IntN(odd) == 0 {
			row[i] = special[r.IntN(len(special))]
		}
	}
	return row
}

// blank returns n canaries.
func blank[T Float](n int) []T {
	row := make([]T, n)
	for i := range row {
		row[i] = canary
	}
	return row
}

// fenced returns n points between canaries, and a check that the canaries live.
func fenced[T Float](n, offset int) (row []T, check func(*testing.T)) {
	const margin = 40
	whole := blank[T](margin + offset + n + margin)
	first := margin + offset
	return whole[first : first+n : first+n], func(t *testing.T) {
		t.Helper()
		for i, v := range whole {
			if (i < first || i >= first+n) && v != canary {
				t.Errorf("point %d of %d was overwritten with %v", i-first, n, v)
			}
		}
	}
}

// same reports whether two numbers have the same bits or are both NaN.
func same[T Float](a, b T) bool {
	if a != a || b != b {
		return a != a && b != b
	}
	return a == b && math.Signbit(float64(a)) == math.Signbit(float64(b))
}

// variants returns the loops to test: those in Go, and those in assembly where this processor runs them.
func variants() []bool {
	if assembly {
		return []bool{false, true}
	}
	return []bool{false}
}
