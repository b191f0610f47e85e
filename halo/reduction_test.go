package halo_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/p2p"
	"pgregory.net/rapid"
)

var ops = []halo.Op{halo.Sum, halo.Min, halo.Max, halo.L2}

// reduceOwned computes an operation over one value of the owned points in the simplest way.
func reduceOwned(p *picture, op halo.Op, value int) float64 {
	var sum, squares float64
	least, most := math.Inf(1), math.Inf(-1)
	p.each(func(rank, v int, at domain.Vec) {
		if x := p.get(rank, v, at); v == value && p.owned(rank).Contains(at) {
			sum, squares, least, most = sum+x, squares+x*x, min(least, x), max(most, x)
		}
	})
	return map[halo.Op]float64{halo.Sum: sum, halo.L2: squares, halo.Min: least, halo.Max: most}[op]
}

// wanted returns the expected result of a reduction.
func wanted(p *picture, op halo.Op) (r halo.Result) {
	parts, _ := p.parts()
	for c := range max(1, p.field.Spec.Components) {
		v := reduceOwned(p, op, c*parts)
		imaginary := 0.0
		if parts == 2 {
			imaginary = reduceOwned(p, op, 2*c+1)
		}
		switch e := p.field.Spec.Element; {
		case op == halo.L2:
			r.Floats = append(r.Floats, math.Sqrt(v+imaginary))
		case parts == 2:
			r.Complexes = append(r.Complexes, complex(v, imaginary))
		case e == halo.Int32 || e == halo.Int64:
			r.Ints = append(r.Ints, int64(v))
		default:
			r.Floats = append(r.Floats, v)
		}
	}
	return r
}

// Over random fields of integers, for which all sums are exact, reductions include every owned point once and
// no ghost, and run after earlier queued work.
func TestReductions(t *testing.T) {
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		rapid.Check(t, func(t *rapid.T) {
			p := drawPlace(t, set, 9)
			f := openField(t, p, drawNumbers(t, 0, p))
			op := rapid.SampledFrom(ops).Draw(t, "op")
			made, err := halo.NewReduction(f, set.Compiler, op)
			if e := f.Spec.Element; (e == domain.Complex64 || e == domain.Complex128) && (op == halo.Min || op == halo.Max) {
				if err == nil {
					t.Fatalf("%s of %s was accepted", op, e)
				}
				return
			}
			test.Check(t, err)
			t.Cleanup(func() { done(t, nil, made.Close()) })
			at := openStreams(t, p)
			for round := range 2 {
				values := take(t, f)
				values.each(func(rank, v int, at domain.Vec) {
					x := scatter(round, rank, v, at) - 20
					if !values.owned(rank).Contains(at) {
						x = 1e6 * (x + 0.5)
					}
					values.set(rank, v, at, x)
				})
				values.put(t)
				done(t, at, made.Queue(at))
				sameResult(t, made.Result(), wanted(values, op))
				once := must(halo.Reduce(f, set.Compiler, op))(t)
				sameResult(t, once, wanted(values, op))
			}
		})
	})
}

func sameResult(t tb, got, want halo.Result) {
	near := func(g, w float64) bool { return math.Abs(g-w) <= 1e-14*math.Abs(w) }
	if !slices.EqualFunc(got.Floats, want.Floats, near) || !slices.Equal(got.Ints, want.Ints) ||
		!slices.Equal(got.Complexes, want.Complexes) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

// Sums of float32 are accumulated in float64, rounded sums are bitwise reproducible, and every operation
// propagates NaN.
func TestReductionsOfReals(t *testing.T) {
	testdevices.Each(t, 3, func(t *testing.T, set *testdevices.Set) {
		p := place(t, set, []int{33, 17, 9}, [3]bool{}, domain.Vec{1, 1, 3})
		s := star(3)
		s.Element = halo.Float32
		f := openField(t, p, s)
		values := take(t, f)
		values.each(func(rank, v int, at domain.Vec) { values.set(rank, v, at, 1+1/(1+scatter(0, rank, v, at))) })
		values.set(0, 0, domain.Vec{3, 4, 2}, 1<<27)
		values.put(t)
		first := must(halo.Reduce(f, set.Compiler, halo.Sum))(t)
		if want := reduceOwned(values, halo.Sum, 0); math.Abs(first.Floats[0]-want) > 1e-12*want {
			t.Errorf("the sum is %v, not %v", first.Floats[0], want)
		}
		if again, err := halo.Reduce(f, set.Compiler, halo.Sum); err != nil || again.Floats[0] != first.Floats[0] {
			t.Errorf("first %v, then %v: %v", first, again, err)
		}
		for _, at := range []domain.Vec{{0, 0, 0}, {32, 16, 8}, {5, 6, 4}} {
			old := values.copyOf()
			values.set(at[2]/3, 0, at, math.NaN())
			values.put(t)
			values = old
			for _, op := range ops {
				if got, err := halo.Reduce(f, set.Compiler, op); err != nil || !math.IsNaN(got.Floats[0]) {
					t.Errorf("%s over a NaN at %v is %v: %v", op, at, got, err)
				}
			}
		}
	})
}

// Values at the limits of the range are preserved, integer sums wrap, and a subdomain may have a single
// point.
func TestReductionsAtTheEndsOfTheRange(t *testing.T) {
	inf, most := math.Inf(1), math.MaxInt64
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := place(t, set, []int{1, 2}, [3]bool{}, domain.Vec{1, 2, 1})
		for _, c := range []struct {
			op     halo.Op
			values [2]int64
			want   int64
		}{
			{halo.Sum, [2]int64{int64(most), 1}, math.MinInt64},
			{halo.Min, [2]int64{int64(most), math.MinInt64}, math.MinInt64},
			{halo.Max, [2]int64{math.MinInt64, math.MinInt64}, math.MinInt64},
			{halo.Min, [2]int64{int64(most), int64(most)}, int64(most)},
		} {
			if got := reduceTwo(t, set, p, halo.Int64, c.op, c.values).Ints[0]; got != c.want {
				t.Errorf("%s of %v is %d, not %d", c.op, c.values, got, c.want)
			}
		}
		for _, c := range []struct {
			op     halo.Op
			values [2]float64
			want   float64
		}{
			{halo.Min, [2]float64{inf, inf}, inf},
			{halo.Max, [2]float64{-inf, -inf}, -inf},
			{halo.Sum, [2]float64{inf, 1}, inf},
			{halo.L2, [2]float64{1e200, 0}, 1e200},
			{halo.L2, [2]float64{0x3p900, 0x4p900}, 0x5p900},
			{halo.L2, [2]float64{0x3p-900, -0x4p-900}, 0x5p-900},
			{halo.L2, [2]float64{0, 5e-324}, 5e-324},
			{halo.L2, [2]float64{0x3p-900, 1}, 1},
			{halo.L2, [2]float64{0x3p900, 1}, 0x3p900},
			{halo.L2, [2]float64{0, 0}, 0},
			{halo.L2, [2]float64{-inf, 1e-200}, inf},
			{halo.L2, [2]float64{math.MaxFloat64, math.MaxFloat64}, inf},
			{halo.Max, [2]float64{math.Copysign(0, -1), 0}, 0},
		} {
			if got := reduceTwo(t, set, p, halo.Float64, c.op, c.values).Floats[0]; got != c.want {
				t.Errorf("%s of %v is %v, not %v", c.op, c.values, got, c.want)
			}
		}
	})
}

// reduceTwo reduces a field of two points.
func reduceTwo[T int64 | float64](t *testing.T, set *testdevices.Set, p *halo.Placement, e domain.Element, op halo.Op, values [2]T) halo.Result {
	t.Helper()
	f := openField(t, p, halo.Spec{Name: "u", Element: e})
	done(t, nil, halo.Write(f, f.Cut.Grid.Box(), values[:]))
	return must(halo.Reduce(f, set.Compiler, op))(t)
}

// Sums and L2 norms are bitwise independent of the decomposition and of the backend.
func TestSumsDependOnlyOnTheField(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	size := domain.Vec{37, 18, 13}
	var plain float64 // L2 of float64 without a shift
	for _, of := range []struct {
		element    domain.Element
		shift, odd int // powers of two of all points, and of the points in half of the grid
	}{
		{halo.Float64, 0, 0}, {halo.Float32, 0, 0}, {domain.Complex128, 0, 0},
		{halo.Float64, 800, 0}, {halo.Float64, -800, 0}, {domain.Complex128, 600, -300}, {halo.Float64, -460, 80},
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
					t.Errorf("%s of %s on decomposition %v: %v, want %v", op, e, cut, got, want[op])
				}
			}
		}
		for _, cut := range []domain.Vec{{1, 1, 1}, {1, 1, 3}, {2, 2, 1}, {3, 1, 1}, {1, 5, 1}, {3, 2, 2}} {
			if of.shift != 0 && cut[1] > 1 { // few cases are enough
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

// Fast sums are correct up to rounding.
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

var paths = []p2p.Path{p2p.Peer, p2p.Staged, p2p.Direct}

// Over random grids, decompositions, fields and paths, every owned point gets the sum of its copies in
// ghosts, twice over two exchanges, and no ghost changes.
func TestAccumulatorAddsEveryImage(t *testing.T) {
	testdevices.Each(t, 5, func(t *testing.T, set *testdevices.Set) {
		rapid.Check(t, func(t *rapid.T) {
			p := drawPlace(t, set, 9)
			var specs []halo.Spec
			for i := range rapid.IntRange(1, 3).Draw(t, "fields") {
				specs = append(specs, drawNumbers(t, i, p))
			}
			plan := must(halo.NewPlan(p, set.Links, rapid.SampledFrom(paths).Draw(t, "path"), specs...))(t)
			var fields []*halo.Field
			var want []*picture
			for i, s := range specs {
				f := openField(t, p, s)
				before := take(t, f)
				before.each(func(rank, v int, at domain.Vec) { before.set(rank, v, at, scatter(i, rank, v, at)) })
				before.put(t)
				fields, want = append(fields, f), append(want, twiceAdded(before))
			}
			reverse := open(halo.NewAccumulator(plan, set.Compiler, fields...))(t)
			at := openStreams(t, p)
			done(t, at, reverse.Exchange(at), reverse.Start(at), reverse.Wait(at))
			for i, f := range fields {
				same(t, take(t, f), want[i])
			}
		})
	})
}

// A contiguous face, with padding and boundary ghosts between its rows, is added like a packed one.
func TestAccumulatorOfContiguousFaces(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := place(t, set, []int{5, 4, 6}, [3]bool{}, domain.Vec{1, 1, 2})
		s := halo.Spec{Name: "u", Element: halo.Int32, Width: domain.UniformRadius(3, 2)}
		for _, path := range paths {
			t.Run(fmt.Sprintf("path=%s", path), func(t *testing.T) {
				plan := must(halo.NewPlan(p, set.Links, path, s))(t)
				if !plan.Messages[0].Contiguous {
					t.Fatal("the face is not contiguous")
				}
				f := openField(t, p, s)
				before := take(t, f)
				before.each(func(rank, v int, at domain.Vec) { before.set(rank, v, at, scatter(0, rank, v, at)) })
				before.put(t)
				reverse := open(halo.NewAccumulator(plan, set.Compiler, f))(t)
				at := openStreams(t, p)
				done(t, at, reverse.Exchange(at), reverse.Exchange(at))
				same(t, take(t, f), twiceAdded(before))
			})
		}
	})
}

// twiceAdded returns the picture with every ghost added twice to its image.
func twiceAdded(before *picture) *picture {
	after := before.copyOf()
	parts, _ := before.parts()
	before.each(func(rank, v int, at domain.Vec) {
		if owner, q, ok := imageOf(before.field, v/parts, before.owned(rank), at); ok {
			after.set(owner, v, q, after.get(owner, v, q)+2*before.get(rank, v, at))
		}
	})
	return after
}

// The reverse exchange is the adjoint of the exchange: if E(u) are the ghosts that an exchange makes of owned
// points u, and R(g) the result of a reverse exchange of ghosts g, then E(u).g = u.R(g).
func TestAccumulatorIsTheAdjoint(t *testing.T) {
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		rapid.Check(t, func(t *rapid.T) {
			p := drawPlace(t, set, 9)
			s := drawNumbers(t, 0, p)
			plan := must(halo.NewPlan(p, set.Links, rapid.SampledFrom(paths).Draw(t, "path"), s))(t)
			f, g := openField(t, p, s), openField(t, p, s)
			forward := open(halo.NewExchanger(plan, set.Compiler, f))(t)
			reverse := open(halo.NewAccumulator(plan, set.Compiler, g))(t)
			u, ghosts := take(t, f), take(t, g)
			u.each(func(rank, v int, at domain.Vec) {
				owned := u.owned(rank).Contains(at)
				u.set(rank, v, at, 0)
				ghosts.set(rank, v, at, 0)
				if owned {
					u.set(rank, v, at, scatter(1, rank, v, at))
				} else {
					ghosts.set(rank, v, at, scatter(2, rank, v, at))
				}
			})
			u.put(t)
			ghosts.put(t)
			at := openStreams(t, p)
			done(t, at, forward.Exchange(at), reverse.Exchange(at))
			eu, rg := take(t, f), take(t, g)
			var left, right float64
			u.each(func(rank, v int, at domain.Vec) {
				if u.owned(rank).Contains(at) {
					right += u.get(rank, v, at) * rg.get(rank, v, at)
				} else {
					left += eu.get(rank, v, at) * ghosts.get(rank, v, at)
				}
			})
			if left != right {
				t.Fatalf("E(u).g = %v, u.R(g) = %v", left, right)
			}
		})
	})
}

// Points at edges and corners are images of several ghosts; rounded sums are bitwise reproducible.
func TestAccumulatorKeepsItsOrder(t *testing.T) {
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		p := place(t, set, []int{6, 6, 6}, [3]bool{true, true, true}, domain.Vec{2, 2, 1})
		s := halo.Spec{Name: "u", Element: halo.Float32, Width: domain.UniformRadius(3, 2), Connectivity: halo.Corners}
		for _, path := range paths {
			t.Run(fmt.Sprintf("path=%s", path), func(t *testing.T) {
				plan := must(halo.NewPlan(p, set.Links, path, s))(t)
				f := openField(t, p, s)
				reverse := open(halo.NewAccumulator(plan, set.Compiler, f))(t)
				at := openStreams(t, p)
				before := take(t, f)
				before.each(func(rank, v int, at domain.Vec) { before.set(rank, v, at, 1/(1+scatter(3, rank, v, at))) })
				var first *picture
				for range 5 {
					before.put(t)
					done(t, at, reverse.Exchange(at))
					if got := take(t, f); first == nil {
						first = got
					} else {
						same(t, got, first)
					}
				}
			})
		}
	})
}
