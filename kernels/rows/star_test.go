package rows

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// inputs are the rows that a stencil reads.
type inputs[T Float] struct{ center, south, north, below, above []T }

// star is one of the package's stencils: how to run it on a band, through the exported function or in one of
// variants, and the expected value of one point.
type star[T Float] struct {
	name  string
	call  func(dst []T, in inputs[T], b Band, w [4]T)
	in    func(assembly bool, dst []T, in inputs[T], b Band, w [4]T)
	point func(c, xm, xp, ym, yp, zm, zp T, w [4]T) T
}

// stencils contains the order of operations a second time, one operation per line, independent of the tested
// loops.
func stencils[T Float]() []star[T] {
	return []star[T]{
		{
			name: "Star5",
			call: func(dst []T, in inputs[T], b Band, w [4]T) {
				Star5(dst, in.center, in.south, in.north, b, w[0], w[1])
			},
			in: func(assembly bool, dst []T, in inputs[T], b Band, w [4]T) {
				star5(assembly, dst, in.center, in.south, in.north, b, w[0], w[1])
			},
			point: func(c, xm, xp, ym, yp, _, _ T, w [4]T) T {
				sum := xp + yp
				sum += xm
				sum += ym
				left, right := w[0]*c, w[1]*sum
				return rounded(left) + rounded(right)
			},
		},
		{
			name: "Star7",
			call: func(dst []T, in inputs[T], b Band, w [4]T) {
				Star7(dst, in.center, in.south, in.north, in.below, in.above, b, w[0], w[1])
			},
			in: func(assembly bool, dst []T, in inputs[T], b Band, w [4]T) {
				star7(assembly, dst, in.center, in.south, in.north, in.below, in.above, b,
					w[0], w[1])
			},
			point: func(c, xm, xp, ym, yp, zm, zp T, w [4]T) T {
				sum := xp + yp
				sum += zp
				sum += xm
				sum += ym
				sum += zm
				left, right := w[0]*c, w[1]*sum
				return rounded(left) + rounded(right)
			},
		},
		{
			name: "Star5Axes",
			call: func(dst []T, in inputs[T], b Band, w [4]T) {
				Star5Axes(dst, in.center, in.south, in.north, b, w[0], w[1], w[2])
			},
			in: func(assembly bool, dst []T, in inputs[T], b Band, w [4]T) {
				star5Axes(assembly, dst, in.center, in.south, in.north, b, w[0], w[1], w[2])
			},
			point: func(c, xm, xp, ym, yp, _, _ T, w [4]T) T {
				x, y := xp+xm, yp+ym
				out := rounded(w[0] * c)
				out += rounded(w[1] * x)
				out += rounded(w[2] * y)
				return out
			},
		},
		{
			name: "Star7Axes",
			call: func(dst []T, in inputs[T], b Band, w [4]T) {
				Star7Axes(dst, in.center, in.south, in.north, in.below, in.above, b, w[0], w[1], w[2], w[3])
			},
			in: func(assembly bool, dst []T, in inputs[T], b Band, w [4]T) {
				star7Axes(assembly, dst, in.center, in.south, in.north, in.below, in.above, b,
					w[0], w[1], w[2], w[3])
			},
			point: func(c, xm, xp, ym, yp, zm, zp T, w [4]T) T {
				x, y, z := xp+xm, yp+ym, zp+zm
				out := rounded(w[0] * c)
				out += rounded(w[1] * x)
				out += rounded(w[2] * y)
				out += rounded(w[3] * z)
				return out
			},
		},
	}
}

// rounded is a call that prevents fusing across it.
//
//go:noinline
func rounded[T Float](v T) T { return v }

// verify fails if dst differs from the stencil of the inputs, or if elements between the rows were changed.
func verify[T Float](t *testing.T, s star[T], dst []T, in inputs[T], b Band, w [4]T) {
	t.Helper()
	for i, got := range dst {
		want := T(canary)
		if i%b.Pitch < b.Points {
			want = s.point(in.center[i+1], in.center[i], in.center[i+2],
				in.south[i], in.north[i], in.below[i], in.above[i], w)
		}
		if !same(got, want) {
			t.Errorf("%+v: element %d: got %v, want %v", b, i, got, want)
			return
		}
	}
}

// draw returns random inputs for n points, each with a random alignment.
func draw[T Float](r *rand.Rand, n, odd int) (inputs[T], [4]T) {
	row := func(n int) []T { return random[T](r, n, r.IntN(17), odd) }
	return inputs[T]{row(n + 2), row(n), row(n), row(n), row(n)}, [4]T(random[T](r, 4, 0, 0))
}

// band returns one to four rows, with or without a gap between them.
func band(r *rand.Rand, points int) Band {
	return Band{Points: points, Count: 1 + r.IntN(4), Pitch: max(1, points) + r.IntN(3)}
}

func TestStencilsMatchTheDefinition(t *testing.T) {
	t.Run("type=float64", testStencils[float64])
	t.Run("type=float32", testStencils[float32])
}

func testStencils[T Float](t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range stencils[T]() {
		for _, assembly := range variants() {
			t.Run(fmt.Sprintf("%s/assembly=%v", s.name, assembly), func(t *testing.T) {
				for n := 1; n <= 130; n++ {
					for _, odd := range []int{0, 40, 4} {
						b := band(r, n)
						in, w := draw[T](r, b.span(s.name), odd)
						dst, check := fenced[T](b.span(s.name), r.IntN(17))
						s.in(assembly, dst, in, b, w)
						verify(t, s, dst, in, b, w)
						check(t)
					}
				}
			})
		}
	}
}

// A NaN propagates exactly to its neighbors, at any position.
func TestNaNPropagatesToNeighbors(t *testing.T) {
	const n = 37
	r := rand.New(rand.NewPCG(3, 4))
	for _, s := range stencils[float64]() {
		for _, assembly := range variants() {
			for at := range n + 2 {
				in, w := draw[float64](r, n, 0)
				in.center[at] = math.NaN()
				dst, _ := fenced[float64](n, 0)
				s.in(assembly, dst, in, Band{n, 1, n}, w)
				for i, v := range dst {
					if near := at >= i && at <= i+2; near != (v != v) {
						t.Fatalf("%s in %v: NaN in center[%d] makes dst[%d] %v", s.name, assembly, at, i, v)
					}
				}
			}
		}
	}
}

func TestExportedStencils(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range stencils[float32]() {
		for _, n := range []int{0, 1, 100} {
			b := band(r, n)
			in, w := draw[float32](r, b.span(s.name), 0)
			dst, check := fenced[float32](b.span(s.name), 0)
			s.call(dst, in, b, w)
			verify(t, s, dst, in, b, w)
			check(t)
		}
		s.call(nil, inputs[float32]{}, Band{}, [4]float32{})
	}
}

func FuzzStencils(f *testing.F) {
	f.Add(uint64(1), uint16(8), uint8(0))
	f.Add(uint64(2), uint16(257), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, odd uint8) {
		fuzzStencils[float64](t, seed, int(n%2048), int(odd))
		fuzzStencils[float32](t, seed, int(n%2048), int(odd))
	})
}

func fuzzStencils[T Float](t *testing.T, seed uint64, n, odd int) {
	r := rand.New(rand.NewPCG(seed, 0))
	b := band(r, n)
	in, w := draw[T](r, b.span("fuzz"), odd)
	for _, s := range stencils[T]() {
		for _, assembly := range variants() {
			dst, check := fenced[T](b.span("fuzz"), r.IntN(17))
			if n > 0 {
				s.in(assembly, dst, in, b, w)
			}
			verify(t, s, dst, in, b, w)
			check(t)
		}
	}
}
