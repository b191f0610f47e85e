package reduce_test

import (
	"math"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/sums"
)

// Norms are those of the points, to the bit; fast sums up to rounding.
func TestNorms(t *testing.T) {
	eachMode(t, func(t *testing.T, b *kerneltest.Bench, mode sums.Mode) {
		reducer := test.Must(reduce.NewNormReducer(b.Compiler, b.Device, kernels.Float64, mode))(t)
		for i, size := range append(kerneltest.Shapes(), domain.Vec{70000, 1, 1}) {
			box := domain.Box{Hi: size}
			l := test.Must(domain.NewLayout(box, domain.UniformRadius(3, 1), 8))(t)
			next, last := kerneltest.Noise(l.Length), kerneltest.Noise(l.Length)
			if i%2 == 1 {
				spread(next, 150)
				spread(last, 100)
			}
			red := test.Must(reducer.Norms(b.Array(box, 3, next), b.Array(box, 3, last), box))(t)
			b.Do(red.Queue(b.Stream))
			var want reduce.Norms
			kerneltest.EachPoint(box, func(p domain.Vec) {
				o := l.Offset(p)
				rows.AddRow(&want, next[o:o+1], last[o:o+1], sums.Reproducible)
			})
			got := red.Result()
			if got.MaxChange != want.MaxChange || got.Max != want.Max || !sameSums(mode, got.SumChange2, want.SumChange2) || !sameSums(mode, got.Sum2, want.Sum2) {
				t.Errorf("size %v: got %+v, want %+v", size, got, want)
			}
			b.Do(red.Queue(b.Stream))
			if again := red.Result(); again != got {
				t.Errorf("size %v: first %+v, then %+v", size, got, again)
			}
			test.Report(t, red.Close())
		}
	})
}

func eachMode(t *testing.T, test func(t *testing.T, b *kerneltest.Bench, mode sums.Mode)) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		for _, mode := range []sums.Mode{sums.Reproducible, sums.Fast} {
			t.Run("sums="+string(mode), func(t *testing.T) { test(t, kerneltest.NewBench(t, s), mode) })
		}
	})
}

// spread multiplies numbers by powers of two, from 2^-most to 2^most.
func spread(values []float64, most int) {
	for i := range values {
		values[i] = math.Ldexp(values[i], i*7919%(2*most+1)-most)
	}
}

// sameSums wants a reproducible sum as it was expected.
func sameSums(mode sums.Mode, got, want sums.Sum) bool {
	if mode == sums.Fast {
		return kerneltest.Near(got.Value(), want.Value())
	}
	return got.Value() == want.Value()
}

// A NaN or an infinity anywhere shows in the sums.
func TestNormsShowWhatIsNotFinite(t *testing.T) {
	eachMode(t, func(t *testing.T, b *kerneltest.Bench, mode sums.Mode) {
		reducer := test.Must(reduce.NewNormReducer(b.Compiler, b.Device, kernels.Float64, mode))(t)
		box := domain.Box{Hi: domain.Vec{33, 5, 7}}
		l := test.Must(domain.NewLayout(box, domain.UniformRadius(3, 1), 8))(t)
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			next := kerneltest.Noise(l.Length)
			next[l.Offset(domain.Vec{32, 4, 3})] = bad
			red := test.Must(reducer.Norms(b.Array(box, 3, next), b.Array(box, 3, kerneltest.Noise(l.Length)), box))(t)
			b.Do(red.Queue(b.Stream))
			if sum := red.Result().Sum2.Value(); !math.IsNaN(sum) && !math.IsInf(sum, 0) {
				t.Errorf("%v went unseen: %v", bad, sum)
			}
		}
	})
}

func TestNormRefusals(t *testing.T) {
	b := kerneltest.NewBench(t, testdevices.Host(t, 1))
	box := domain.Box{Hi: domain.Vec{8, 8, 8}}
	a := b.Array(box, 3, nil)
	other := b.Array(domain.Box{Hi: domain.Vec{8, 8, 9}}, 3, nil)
	reducer := test.Must(reduce.NewNormReducer(b.Compiler, b.Device, kernels.Float64, sums.Reproducible))(t)
	check := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	_, err := reducer.Norms(a, other, box)
	check("norms between layouts", err)
	_, err = reducer.Norms(a, a, box.Shift(domain.Vec{2, 0, 0}))
	check("norms beyond the ghosts", err)
	_, err = reduce.NewNormReducer(b.Compiler, b.Device, "float16", sums.Reproducible)
	check("half precision", err)
}
