package reduce_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/reduce"
)

// Totals see every value of the box once, whatever its shape, and nothing beside
// it; the same box gives the same bits.
func TestTotals(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := kerneltest.NewBench(t, s)
		for _, values := range []int{1, 3} { // a point
			t.Run(fmt.Sprintf("values=%d", values), func(t *testing.T) {
				totalsOf[float32](t, b, "float32", values, 4)
				totalsOf[float64](t, b, "float64", values, 8)
				totalsOf[int32](t, b, "int32", values, 4)
				totalsOf[int64](t, b, "int64", values, 8)
				totalsOf[float32](t, b, "complex64", 2*values, 4)
			})
		}
	})
}

func totalsOf[T float32 | float64 | int32 | int64](t *testing.T, b *kerneltest.Bench, number kernels.Number, scalars, size int) {
	reducer := kerneltest.Must(reduce.NewReducer(b.Compiler, b.Device, number))(t)
	whole := number == "int32" || number == "int64"
	for i, shape := range kerneltest.Shapes() {
		if testdevices.OnCPU(b.Device) && (i+scalars)%3 != 0 {
			continue
		}
		box := domain.Box{Lo: domain.Vec{2, -1, 3}, Hi: domain.Vec{2, -1, 3}.Add(shape)}
		l := kerneltest.Must(domain.NewLayout(box, domain.UniformRadius(3, 1), scalars*size))(t)
		values := make([]T, int(l.Length)*scalars)
		for i, v := range kerneltest.Noise(int64(len(values))) {
			values[i] = T(1e6 * v)
		}
		a := kernels.Array{Data: kerneltest.Upload(b, values), Layout: l}
		for _, op := range []reduce.Op{reduce.Sum, reduce.Squares, reduce.Min, reduce.Max} {
			totals := kerneltest.Must(reducer.Over(op, a, box))(t)
			b.Do(totals.Queue(b.Stream))
			got := append([]float64(nil), totals.Floats()...)
			if whole && op != reduce.Squares {
				for i, v := range totals.Ints() {
					got[i] = float64(v)
				}
			}
			for v := range scalars {
				want, size := total(op, values, l, box, v, scalars)
				if math.Abs(got[v]-want) > 1e-12*size {
					t.Fatalf("%s of %s over %v, value %d of %d: %v, not %v", op, number, shape, v, scalars, got[v], want)
				}
			}
			b.Do(totals.Queue(b.Stream))
			for v, again := range totals.Floats() {
				if !whole && again != got[v] {
					t.Fatalf("%s of %s over %v: first %v, then %v", op, number, shape, got[v], again)
				}
			}
			b.Do(totals.Close())
		}
	}
}

// total computes one in the plainest way, and the size of what was summed.
func total[T float32 | float64 | int32 | int64](op reduce.Op, values []T, l domain.Layout, box domain.Box, v, scalars int) (want, size float64) {
	first := true
	kerneltest.EachPoint(box, func(p domain.Vec) {
		x := float64(values[int(l.Offset(p))*scalars+v])
		switch {
		case op == reduce.Sum:
			want, size = want+x, size+math.Abs(x)
		case op == reduce.Squares:
			want, size = want+x*x, size+x*x
		case first, op == reduce.Min && x < want, op == reduce.Max && x > want:
			want = x
		}
		first = false
	})
	return want, size
}

// Sums of whole numbers are exact and wrap; the largest and smallest are kept.
func TestTotalsOfLargeNumbers(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := kerneltest.NewBench(t, s)
		box := domain.Box{Hi: domain.Vec{2, 2, 1}}
		l := kerneltest.Must(domain.NewLayout(box, domain.Radius{}, 8))(t)
		values := make([]int64, l.Length)
		for i, v := range []int64{math.MaxInt64, 3, -5, math.MinInt64 + 7} {
			values[l.Offset(domain.Vec{i % 2, i / 2, 0})] = v
		}
		reducer := kerneltest.Must(reduce.NewReducer(b.Compiler, b.Device, "int64"))(t)
		a := kernels.Array{Data: kerneltest.Upload(b, values), Layout: l}
		for op, want := range map[reduce.Op]int64{reduce.Sum: 4, reduce.Min: math.MinInt64 + 7, reduce.Max: math.MaxInt64} {
			totals := kerneltest.Must(reducer.Over(op, a, box))(t)
			b.Do(totals.Queue(b.Stream))
			if got := totals.Ints()[0]; got != want {
				t.Errorf("%s is %d, not %d", op, got, want)
			}
		}
	})
}

func TestTotalRefusals(t *testing.T) {
	b := kerneltest.NewBench(t, testdevices.Host(t, 1))
	if _, err := reduce.NewReducer(b.Compiler, b.Device, "float16"); err == nil {
		t.Error("half precision was accepted")
	}
	a := b.Array(domain.Box{Hi: domain.Vec{8, 8, 8}}, 3, nil)
	reducer := kerneltest.Must(reduce.NewReducer(b.Compiler, b.Device, "float64"))(t)
	complexes := kerneltest.Must(reduce.NewReducer(b.Compiler, b.Device, "complex128"))(t)
	for what, err := range map[string]error{
		"a box beyond the ghosts":   second(reducer.Over(reduce.Sum, a, a.Layout.Owned.Shift(domain.Vec{2, 0, 0}))),
		"an empty box":              second(reducer.Over(reduce.Sum, a, domain.Box{})),
		"no operation":              second(reducer.Over("mean", a, a.Layout.Owned)),
		"elements of half a number": second(complexes.Over(reduce.Sum, a, a.Layout.Owned)),
	} {
		if err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
}

func second[T any](_ T, err error) error { return err }
