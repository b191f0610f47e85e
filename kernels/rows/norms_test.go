package rows

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// statedNorms is what the doc comment of AddRow says, in another order: lane
// after lane, and the fold written out.
func statedNorms[T Float](new, old []T) Norms {
	var change, value, largestChange, largest [8]float64
	for lane := range 8 {
		for i := lane; i < len(new); i += 8 {
			v := float64(new[i])
			d := v - float64(old[i])
			change[lane] += rounded(d * d)
			value[lane] += rounded(v * v)
			largestChange[lane] = max(largestChange[lane], math.Abs(d))
			largest[lane] = max(largest[lane], math.Abs(v))
		}
	}
	sum := func(l [8]float64) float64 {
		return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
	}
	top := func(l [8]float64) float64 {
		return max(l[0], l[1], l[2], l[3], l[4], l[5], l[6], l[7])
	}
	return Norms{top(largestChange), sum(change), top(largest), sum(value)}
}

func sameNorms(a, b Norms) bool {
	return same(a.MaxChange, b.MaxChange) && same(a.SumChange2, b.SumChange2) &&
		same(a.Max, b.Max) && same(a.Sum2, b.Sum2)
}

func TestNormsGiveTheStatedBits(t *testing.T) {
	t.Run("type=float64", testNorms[float64])
	t.Run("type=float32", testNorms[float32])
}

func testNorms[T Float](t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, set := range usable() {
		t.Run(fmt.Sprintf("set=%v", set), func(t *testing.T) {
			for n := range 131 {
				for _, odd := range []int{0, 40, 4} {
					new, old := random[T](r, n, r.IntN(17), odd), random[T](r, n, r.IntN(17), odd)
					var l lanes
					accumulate(set, &l, new, old)
					if got, want := l.fold(), statedNorms(new, old); !sameNorms(got, want) {
						t.Fatalf("n=%d: %+v, not %+v", n, got, want)
					}
				}
			}
		})
	}
}

func TestAddRowGathersRows(t *testing.T) {
	var n Norms
	AddRow(&n, []float32{1, 2}, []float32{1, 4, 99})
	AddRow(&n, nil, []float32{99})
	AddRow(&n, []float64{-3}, []float64{-2})
	if want := (Norms{MaxChange: 2, SumChange2: 5, Max: 3, Sum2: 14}); n != want {
		t.Errorf("%+v, not %+v", n, want)
	}
}

func TestNormsKeepNaN(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tests := []struct {
		name     string
		new, old float64
		want     Norms
	}{
		{"a new NaN spoils all", nan, 0, Norms{nan, nan, nan, nan}},
		{"an old NaN spoils the change", 0, nan, Norms{nan, nan, 1, 19}},
		{"an infinity that stays spoils the change", inf, inf, Norms{nan, nan, inf, inf}},
		{"a new infinity is the largest", inf, 0, Norms{inf, inf, inf, inf}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for at := range 20 {
				new, old := make([]float64, 20), make([]float64, 20)
				for i := range new {
					new[i] = 1
				}
				new[at], old[at] = test.new, test.old
				var n Norms
				AddRow(&n, new, old)
				AddRow(&n, []float64{0}, []float64{0}) // nor does it vanish later
				if !sameNorms(n, test.want) {
					t.Errorf("at %d: %+v, not %+v", at, n, test.want)
				}
			}
		})
	}
}

func FuzzNorms(f *testing.F) {
	f.Add(uint64(1), uint16(19), uint8(5))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, odd uint8) {
		r := rand.New(rand.NewPCG(seed, 0))
		length := int(n % 2048)
		new, old := random[float32](r, length, r.IntN(17), int(odd)), random[float32](r, length, r.IntN(17), int(odd))
		for _, set := range usable() {
			var l lanes
			accumulate(set, &l, new, old)
			if got, want := l.fold(), statedNorms(new, old); !sameNorms(got, want) {
				t.Errorf("%v, n=%d: %+v, not %+v", set, length, got, want)
			}
		}
	})
}
