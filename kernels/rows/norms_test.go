package rows

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/kernels/sums"
)

// statedNorms is the definition in the doc comment of AddRow for fast sums, in another order: lane after lane, and
// the fold written out.
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
	return Norms{top(largestChange), sums.Plain(sum(change)), top(largest), sums.Plain(sum(value))}
}

func sameNorms(a, b Norms) bool {
	return same(a.MaxChange, b.MaxChange) && same(a.SumChange2.Value(), b.SumChange2.Value()) &&
		same(a.Max, b.Max) && same(a.Sum2.Value(), b.Sum2.Value())
}

func TestFastNormsMatchTheDefinition(t *testing.T) {
	t.Run("type=float64", testNorms[float64])
	t.Run("type=float32", testNorms[float32])
}

func testNorms[T Float](t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, assembly := range variants() {
		t.Run(fmt.Sprintf("assembly=%v", assembly), func(t *testing.T) {
			for n := range 131 {
				for _, odd := range []int{0, 40, 4} {
					new, old := random[T](r, n, r.IntN(17), odd), random[T](r, n, r.IntN(17), odd)
					var l lanes
					accumulate(assembly, &l, new, old)
					if got, want := l.fold(), statedNorms(new, old); !sameNorms(got, want) {
						t.Fatalf("n=%d: got %+v, want %+v", n, got, want)
					}
				}
			}
		})
	}
}

func modes() []sums.Mode { return []sums.Mode{sums.Reproducible, sums.Fast} }

func TestAddRowAccumulates(t *testing.T) {
	for _, mode := range modes() {
		var n Norms
		AddRow(&n, []float32{1, 2}, []float32{1, 4, 99}, mode)
		AddRow(&n, nil, []float32{99}, mode)
		AddRow(&n, []float64{-3}, []float64{-2}, mode)
		if want := (Norms{MaxChange: 2, SumChange2: sums.Plain(5), Max: 3, Sum2: sums.Plain(14)}); !sameNorms(n, want) {
			t.Errorf("%s: got %+v, want %+v", mode, n, want)
		}
	}
}

// The norms of a row are those of its pieces, and its sums those of package sums.
func TestNormsOfPieces(t *testing.T) {
	t.Run("type=float64", testPieces[float64])
	t.Run("type=float32", testPieces[float32])
}

func testPieces[T Float](t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, n := range []int{1, 7, 8, 9, 100, 511, 512, 513, 5000, 70001} {
		for _, odd := range []int{0, 40, 4} {
			new, old := random[T](r, n, r.IntN(17), odd), random[T](r, n, r.IntN(17), odd)
			var whole, pieces, want Norms
			AddRow(&whole, new, old, sums.Reproducible)
			for i := 0; i < n; {
				end := min(n, i+1+r.IntN(n))
				AddRow(&pieces, new[i:end], old[i:end], sums.Reproducible)
				i = end
			}
			for i, v := range new {
				d := float64(v) - float64(old[i])
				want.MaxChange, want.Max = max(want.MaxChange, math.Abs(d)), max(want.Max, math.Abs(float64(v)))
				sums.Reproducible.Add(&want.SumChange2, []float64{rounded(d * d)})
				sums.Reproducible.Add(&want.Sum2, []float64{rounded(float64(v) * float64(v))})
			}
			if !sameNorms(whole, want) || !sameNorms(pieces, want) {
				t.Fatalf("n=%d: got %+v, in pieces %+v, want %+v", n, whole, pieces, want)
			}
		}
	}
}

func TestNormsPropagateNaN(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tests := []struct {
		name                                 string
		new, old                             float64
		maxChange, sumChange2, largest, sum2 float64
	}{
		{"a new NaN makes all norms NaN", nan, 0, nan, nan, nan, nan},
		{"an old NaN makes the change NaN", 0, nan, nan, nan, 1, 19},
		{"an unchanged infinity makes the change NaN", inf, inf, nan, nan, inf, inf},
		{"a new infinity is the largest", inf, 0, inf, inf, inf, inf},
	}
	for _, test := range tests {
		want := Norms{test.maxChange, sums.Plain(test.sumChange2), test.largest, sums.Plain(test.sum2)}
		for _, mode := range modes() {
			t.Run(fmt.Sprintf("sums=%s/%s", mode, test.name), func(t *testing.T) {
				for at := range 20 {
					new, old := make([]float64, 20), make([]float64, 20)
					for i := range new {
						new[i] = 1
					}
					new[at], old[at] = test.new, test.old
					var n Norms
					AddRow(&n, new, old, mode)
					AddRow(&n, []float64{0}, []float64{0}, mode) // later rows do not remove it
					if !sameNorms(n, want) {
						t.Errorf("at %d: got %+v, want %+v", at, n, want)
					}
				}
			})
		}
	}
}

func FuzzNorms(f *testing.F) {
	f.Add(uint64(1), uint16(19), uint8(5))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, odd uint8) {
		r := rand.New(rand.NewPCG(seed, 0))
		length := int(n % 2048)
		new, old := random[float32](r, length, r.IntN(17), int(odd)), random[float32](r, length, r.IntN(17), int(odd))
		for _, assembly := range variants() {
			var l lanes
			accumulate(assembly, &l, new, old)
			if got, want := l.fold(), statedNorms(new, old); !sameNorms(got, want) {
				t.Errorf("%v, n=%d: got %+v, want %+v", assembly, length, got, want)
			}
		}
	})
}
