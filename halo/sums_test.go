package halo_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sums"
)

// A field has one sum and one L2, to the bit, on any cut, on host devices and by CUDA.
func TestSumsDependOnTheFieldAlone(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	size := domain.Vec{37, 18, 13}
	var plain float64 // L2 of float64 without a shift
	for _, of := range []struct {
		element    halo.Element
		shift, odd int // powers of two of all points, and of those in half of the grid
	}{
		{halo.Float64, 0, 0}, {halo.Float32, 0, 0}, {halo.Complex128, 0, 0},
		{halo.Float64, 800, 0}, {halo.Float64, -800, 0}, {halo.Complex128, 600, -300}, {halo.Float64, -460, 80},
	} {
		e, want := of.element, map[halo.Op][]float64{}
		value := func(at domain.Vec) float64 {
			n := at[0] + size[0]*(at[1]+size[1]*at[2])
			return math.Ldexp(math.Sin(float64(n)), n*7919%90-60+of.shift+at[2]/7*of.odd)
		}
		check := func(t *testing.T, set *testdevices.Set, cut domain.Vec) {
			s := star(3)
			s.Element = e
			f := openField(t, place(t, set, size[:], [3]bool{}, cut), s)
			values := take(t, f)
			values.each(func(rank, v int, at domain.Vec) { values.set(rank, v, at, value(at)*float64(1-3*v)) })
			values.put(t)
			for _, op := range []halo.Op{halo.Sum, halo.L2} {
				r := must(halo.Reduce(f, set.Compiler, op))(t)
				got := r.Floats
				for _, c := range r.Complexes {
					got = append(got, real(c), imag(c))
				}
				if want[op] == nil {
					want[op] = slices.Clone(got)
				}
				if !slices.Equal(got, want[op]) {
					t.Errorf("%s of %s on cut %v: %v, not %v", op, e, cut, got, want[op])
				}
			}
		}
		for _, cut := range []domain.Vec{{1, 1, 1}, {1, 1, 3}, {2, 2, 1}, {3, 1, 1}, {1, 5, 1}, {3, 2, 2}} {
			if of.shift != 0 && cut[1] > 1 { // few are enough
				continue
			}
			t.Run(fmt.Sprintf("element=%s/shift=%d/cut=%v", e, of.shift, cut), func(t *testing.T) {
				check(t, testdevices.Host(t, cut[0]*cut[1]*cut[2]), cut)
				if cut[0]*cut[1]*cut[2] <= 4 {
					check(t, testdevices.CPU(t, cut[0]*cut[1]*cut[2]), cut)
				}
			})
		}
		switch l2 := want[halo.L2][0]; {
		case e == halo.Float64 && of.shift == 0:
			plain = l2
		case e == halo.Float64 && of.odd == 0 && l2 != math.Ldexp(plain, of.shift):
			t.Errorf("L2 times 2^%d is %v, not %v", of.shift, l2, math.Ldexp(plain, of.shift))
		}
	}
}

// Fast sums are right up to rounding.
func TestFastSums(t *testing.T) {
	testdevices.Each(t, 3, func(t *testing.T, set *testdevices.Set) {
		f := openField(t, place(t, set, []int{33, 17, 9}, [3]bool{}, domain.Vec{1, 1, 3}), star(3))
		values := take(t, f)
		values.each(func(rank, v int, at domain.Vec) { values.set(rank, v, at, 1/(1+scatter(0, rank, v, at))) })
		values.put(t)
		for _, op := range []halo.Op{halo.Sum, halo.L2} {
			want := must(halo.Reduce(f, set.Compiler, op))(t).Floats[0]
			if got := must(halo.Reduce(f, set.Compiler, op, sums.Fast))(t).Floats[0]; math.Abs(got-want) > 1e-12*want {
				t.Errorf("fast %s: %v, not %v", op, got, want)
			}
		}
	})
}
