package reduce_test

import (
	"fmt"
	"math"
	"slices"
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

// Totals include every value of the box exactly once, for any shape, and no others. Results for the same box are
// bitwise identical.
func TestTotals(t *testing.T) {
	testdevices.InTurn(t, 2, 4)
	eachMode(t, func(t *testing.T, b *kerneltest.Bench, mode sums.Mode) {
		for _, values := range []int{1, 3} { // per point
			t.Run(fmt.Sprintf("values=%d", values), func(t *testing.T) {
				for i, total := range []func(){
					func() { totalsOf[float32](t, b, mode, "float32", values, 4) },
					func() { totalsOf[float64](t, b, mode, "float64", values, 8) },
					func() { totalsOf[int32](t, b, mode, "int32", values, 4) },
					func() { totalsOf[int64](t, b, mode, "int64", values, 8) },
					func() { totalsOf[float32](t, b, mode, "complex64", 2*values, 4) },
				} {
					if testdevices.Turn(i+values/2, 2, 2) { // each type with one of the numbers of values
						total()
					}
				}
			})
		}
	})
}

func totalsOf[T float32 | float64 | int32 | int64](t *testing.T, b *kerneltest.Bench, mode sums.Mode, number domain.Element, scalars, size int) {
	reducer := test.Must(reduce.NewReducer(b.Compiler, b.Device, number, mode))(t)
	whole := number == "int32" || number == "int64"
	if (whole && mode == sums.Fast || number == "float64" && scalars == 1 || number != "float64" && scalars == 3) && testdevices.OnCPU(b.Device) && !testdevices.Long() {
		return // integers have no modes; others have one number of values each
	}
	for i, shape := range kerneltest.Shapes() {
		if testdevices.OnCPU(b.Device) && !testdevices.Turn(i+scalars, 6, 6) {
			continue
		}
		box := domain.Box{Lo: domain.Vec{2, -1, 3}, Hi: domain.Vec{2, -1, 3}.Add(shape)}
		l := test.Must(domain.NewLayout(box, domain.UniformRadius(3, 1), scalars*size))(t)
		values := make([]T, int(l.Length)*scalars)
		for i, v := range kerneltest.Noise(int64(len(values))) {
			values[i] = T(1e6 * v)
		}
		if v, ok := any(values).([]float64); ok && i%2 == 1 {
			spread(v, 150)
		}
		a := kernels.Array{Data: kerneltest.Upload(b, values), Layout: l}
		for _, op := range []reduce.Op{reduce.Sum, reduce.Squares, reduce.Min, reduce.Max} {
			totals := test.Must(reducer.Over(op, a, box))(t)
			b.Do(totals.Queue(b.Stream))
			got := resultsOf(totals, op, whole)
			for v := range scalars {
				want, size := total(op, values, l, box, v, scalars)
				if sum := op == reduce.Sum || op == reduce.Squares; got[v] != want && !(sum && mode == sums.Fast && math.Abs(got[v]-want) <= 1e-12*size) {
					t.Fatalf("%s of %s over %v, value %d of %d: got %v, want %v", op, number, shape, v, scalars, got[v], want)
				}
			}
			b.Do(totals.Queue(b.Stream))
			if again := resultsOf(totals, op, whole); !slices.Equal(again, got) {
				t.Fatalf("%s of %s over %v: first %v, then %v", op, number, shape, got, again)
			}
			b.Do(totals.Close())
		}
	}
}

// resultsOf returns the totals of integers or of reals.
func resultsOf(totals *reduce.Reduction, op reduce.Op, whole bool) (all []float64) {
	switch {
	case op == reduce.Squares || op == reduce.Sum && !whole:
		for _, s := range totals.Sums() {
			all = append(all, s.Value())
		}
	case whole:
		for _, v := range totals.Ints() {
			all = append(all, float64(v))
		}
	default:
		all = append(all, totals.Floats()...)
	}
	return all
}

// total computes one total directly, and the magnitude of the summed values.
func total[T float32 | float64 | int32 | int64](op reduce.Op, values []T, l domain.Layout, box domain.Box, v, scalars int) (want, size float64) {
	first := true
	var whole int64
	var sum sums.Sum
	kerneltest.EachPoint(box, func(p domain.Vec) {
		value := values[int(l.Offset(p))*scalars+v]
		x := float64(value)
		switch {
		case op == reduce.Sum:
			whole += int64(value)
			sums.Reproducible.Add(&sum, []float64{x})
			size += math.Abs(x)
		case op == reduce.Squares:
			sums.Reproducible.Add(&sum, []float64{float64(x * x)})
			size += x * x
		case first, op == reduce.Min && x < want, op == reduce.Max && x > want:
			want = x
		}
		first = false
	})
	if op != reduce.Sum && op != reduce.Squares {
		return want, size
	}
	if _, ok := any(values).([]int64); ok && op == reduce.Sum {
		return float64(whole), size
	}
	return sum.Value(), size
}

// Sums of integers are exact and wrap; the largest and smallest integers are preserved.
func TestTotalsOfLargeNumbers(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := kerneltest.NewBench(t, s)
		box := domain.Box{Hi: domain.Vec{2, 2, 1}}
		l := test.Must(domain.NewLayout(box, domain.Radius{}, 8))(t)
		values := make([]int64, l.Length)
		for i, v := range []int64{math.MaxInt64, 3, -5, math.MinInt64 + 7} {
			values[l.Offset(domain.Vec{i % 2, i / 2, 0})] = v
		}
		reducer := test.Must(reduce.NewReducer(b.Compiler, b.Device, "int64", sums.Reproducible))(t)
		a := kernels.Array{Data: kerneltest.Upload(b, values), Layout: l}
		for op, want := range map[reduce.Op]int64{reduce.Sum: 4, reduce.Min: math.MinInt64 + 7, reduce.Max: math.MaxInt64} {
			totals := test.Must(reducer.Over(op, a, box))(t)
			b.Do(totals.Queue(b.Stream))
			if got := totals.Ints()[0]; got != want {
				t.Errorf("%s: got %d, want %d", op, got, want)
			}
		}
	})
}

func TestTotalErrors(t *testing.T) {
	b := kerneltest.NewBench(t, testdevices.Host(t, 1))
	if _, err := reduce.NewReducer(b.Compiler, b.Device, "float16", sums.Reproducible); err == nil {
		t.Error("half precision: got no error")
	}
	a := b.Array(domain.Box{Hi: domain.Vec{8, 8, 8}}, 3, nil)
	reducer := test.Must(reduce.NewReducer(b.Compiler, b.Device, "float64", sums.Reproducible))(t)
	complexes := test.Must(reduce.NewReducer(b.Compiler, b.Device, "complex128", sums.Reproducible))(t)
	for what, err := range map[string]error{
		"a box beyond the ghosts":   second(reducer.Over(reduce.Sum, a, a.Layout.Owned.Shift(domain.Vec{2, 0, 0}))),
		"an empty box":              second(reducer.Over(reduce.Sum, a, domain.Box{})),
		"unknown operation":         second(reducer.Over("mean", a, a.Layout.Owned)),
		"elements of half a number": second(complexes.Over(reduce.Sum, a, a.Layout.Owned)),
	} {
		if err == nil {
			t.Errorf("%s: got no error", what)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Sums are correct for the largest and smallest numbers, and propagate non-finite values.
func TestSumsOfExtremes(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := kerneltest.NewBench(t, s)
		reducer := test.Must(reduce.NewReducer(b.Compiler, b.Device, "float64", sums.Reproducible))(t)
		box := domain.Box{Hi: domain.Vec{40, 9, 5}}
		l := test.Must(domain.NewLayout(box, domain.UniformRadius(3, 1), 8))(t)
		largest, inf := math.MaxFloat64, math.Inf(1)
		for name, some := range map[string][]float64{
			"zeros": {0}, "one sign": {1, 3e-5, 1e-20}, "denormal": {5e-324, -1e-310, 3e-308, 2e-320}, "all magnitudes": {1e300, -1e-300, 1, 1e-20, -1e20, 1e154},
			"the largest": {largest / 4096, -largest / 4096, 1e290, 1}, "too large": {largest, 1}, "cancellation": {largest, -largest, 1e292, 3},
			"an infinity": {inf, 1, largest}, "infinities": {inf, -inf}, "negative infinity": {-inf, 2, 0}, "NaN": {math.NaN(), inf, 1},
		} {
			values := make([]float64, l.Length)
			i := 0
			kerneltest.EachPoint(box, func(p domain.Vec) {
				values[l.Offset(p)] = some[i%len(some)]
				i++
			})
			for _, op := range []reduce.Op{reduce.Sum, reduce.Squares} {
				totals := test.Must(reducer.Over(op, b.Array(box, 3, values), box))(t)
				b.Do(totals.Queue(b.Stream))
				want, _ := total(op, values, l, box, 0, 1)
				if got := totals.Sums()[0].Value(); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
					t.Errorf("%s of numbers %s: got %v, want %v", op, name, got, want)
				}
				b.Do(totals.Close())
			}
		}
	})
}

// Norms are bitwise those of the points; fast sums up to rounding.
func TestNorms(t *testing.T) {
	eachMode(t, func(t *testing.T, b *kerneltest.Bench, mode sums.Mode) {
		reducer := test.Must(reduce.NewNormReducer(b.Compiler, b.Device, domain.Float64, mode))(t)
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

// sameSums compares a sum with the expected one, bitwise in reproducible mode.
func sameSums(mode sums.Mode, got, want sums.Sum) bool {
	if mode == sums.Fast {
		return kerneltest.Near(got.Value(), want.Value())
	}
	return got.Value() == want.Value()
}

// A NaN or an infinity anywhere propagates to the sums.
func TestNormsPropagateNonFiniteValues(t *testing.T) {
	eachMode(t, func(t *testing.T, b *kerneltest.Bench, mode sums.Mode) {
		reducer := test.Must(reduce.NewNormReducer(b.Compiler, b.Device, domain.Float64, mode))(t)
		box := domain.Box{Hi: domain.Vec{33, 5, 7}}
		l := test.Must(domain.NewLayout(box, domain.UniformRadius(3, 1), 8))(t)
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			next := kerneltest.Noise(l.Length)
			next[l.Offset(domain.Vec{32, 4, 3})] = bad
			red := test.Must(reducer.Norms(b.Array(box, 3, next), b.Array(box, 3, kerneltest.Noise(l.Length)), box))(t)
			b.Do(red.Queue(b.Stream))
			if sum := red.Result().Sum2.Value(); !math.IsNaN(sum) && !math.IsInf(sum, 0) {
				t.Errorf("%v must propagate, got %v", bad, sum)
			}
		}
	})
}

func TestNormErrors(t *testing.T) {
	b := kerneltest.NewBench(t, testdevices.Host(t, 1))
	box := domain.Box{Hi: domain.Vec{8, 8, 8}}
	a := b.Array(box, 3, nil)
	other := b.Array(domain.Box{Hi: domain.Vec{8, 8, 9}}, 3, nil)
	reducer := test.Must(reduce.NewNormReducer(b.Compiler, b.Device, domain.Float64, sums.Reproducible))(t)
	check := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: got no error", what)
		}
	}
	_, err := reducer.Norms(a, other, box)
	check("norms between layouts", err)
	_, err = reducer.Norms(a, a, box.Shift(domain.Vec{2, 0, 0}))
	check("norms beyond the ghosts", err)
	_, err = reduce.NewNormReducer(b.Compiler, b.Device, "float16", sums.Reproducible)
	check("half precision", err)
}
