package reduce_test

import (
	"math"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/reduce"
)

func TestNorms(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := kerneltest.NewBench(t, s)
		reducer := kerneltest.Must(reduce.NewNormReducer(b.Compiler, b.Device, kernels.Float64))(t)
		for _, size := range kerneltest.Shapes() {
			box := domain.Box{Hi: size}
			l := kerneltest.Must(domain.NewLayout(box, domain.UniformRadius(3, 1), 8))(t)
			next, last := kerneltest.Noise(l.Length), kerneltest.Noise(l.Length)
			red := kerneltest.Must(reducer.Norms(b.Array(box, 3, next), b.Array(box, 3, last), box))(t)
			b.Do(red.Queue(b.Stream))
			var want reduce.Norms
			kerneltest.EachPoint(box, func(p domain.Vec) {
				v, d := next[l.Offset(p)], next[l.Offset(p)]-last[l.Offset(p)]
				want.Add(reduce.Norms{MaxChange: math.Abs(d), SumChange2: d * d, Max: math.Abs(v), Sum2: v * v})
			})
			got := red.Result()
			if got.MaxChange != want.MaxChange || got.Max != want.Max ||
				!kerneltest.Near(got.SumChange2, want.SumChange2) || !kerneltest.Near(got.Sum2, want.Sum2) {
				t.Errorf("size %v: got %+v, want %+v", size, got, want)
			}
			b.Do(red.Queue(b.Stream))
			if again := red.Result(); again != got {
				t.Errorf("size %v: first %+v, then %+v", size, got, again)
			}
			if err := red.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A NaN or an infinity anywhere shows in the sums.
func TestNormsShowWhatIsNotFinite(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := kerneltest.NewBench(t, s)
		reducer := kerneltest.Must(reduce.NewNormReducer(b.Compiler, b.Device, kernels.Float64))(t)
		box := domain.Box{Hi: domain.Vec{33, 5, 7}}
		l := kerneltest.Must(domain.NewLayout(box, domain.UniformRadius(3, 1), 8))(t)
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			next := kerneltest.Noise(l.Length)
			next[l.Offset(domain.Vec{32, 4, 3})] = bad
			red := kerneltest.Must(reducer.Norms(b.Array(box, 3, next), b.Array(box, 3, kerneltest.Noise(l.Length)), box))(t)
			b.Do(red.Queue(b.Stream))
			if sum := red.Result().Sum2; !math.IsNaN(sum) && !math.IsInf(sum, 0) {
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
	reducer := kerneltest.Must(reduce.NewNormReducer(b.Compiler, b.Device, kernels.Float64))(t)
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
	_, err = reduce.NewNormReducer(b.Compiler, b.Device, "float16")
	check("half precision", err)
}
