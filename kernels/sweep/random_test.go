package sweep

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// term is a term of a random point function: weight * access[component] at an offset.
type term struct {
	access, component int
	offset            domain.Vec
	weight            float64
}

// randomSample is a point function with one or two written accesses, each a weighted sum of values of random
// accesses at random offsets.
type randomSample struct {
	sample
	terms [][]term // of the written accesses, which come last
}

// random returns a number from -n to m.
func random(r *rand.Rand, n, m int) int { return r.IntN(n+m+1) - n }

func randomFootprint(r *rand.Rand, dims int) stencil.Footprint {
	var all []domain.Vec
	for range 1 + r.IntN(6) {
		var o domain.Vec
		for a := range dims {
			o[a] = random(r, 2, 3)
			if r.IntN(2) == 0 {
				o[a] = 0
			}
		}
		all = append(all, o)
	}
	return stencil.Offsets(all...)
}

func newRandomSample(seed uint64) *randomSample {
	r := rand.New(rand.NewPCG(seed, 7))
	s := &randomSample{}
	s.point.Name, s.point.Dims = "sums", 2+r.IntN(2)
	for i := range 1 + r.IntN(3) {
		a := Access{Name: fmt.Sprintf("a%d", i), Element: []domain.Element{"float64", "float32", "uint8", "int32"}[r.IntN(4)], Components: 1 + r.IntN(3)}
		if r.IntN(2) == 0 {
			a.Constant = [3]bool{r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0}
		}
		if r.IntN(2) == 0 {
			a.Footprint = randomFootprint(r, s.point.Dims)
		} else {
			for range a.Components {
				a.Footprints = append(a.Footprints, randomFootprint(r, s.point.Dims))
			}
		}
		s.accesses = append(s.accesses, a)
	}
	reads := len(s.accesses)
	for i := range 1 + r.IntN(2) {
		s.accesses = append(s.accesses, Access{Name: fmt.Sprintf("w%d", i), Element: []domain.Element{"float64", "float32"}[r.IntN(2)], Write: true})
		var terms []term
		for a := range reads {
			for q := range s.accesses[a].components() {
				for _, o := range s.accesses[a].footprint(q) {
					terms = append(terms, term{a, q, o, float64(1+r.IntN(8)) / 8})
				}
			}
		}
		r.Shuffle(len(terms), func(i, j int) { terms[i], terms[j] = terms[j], terms[i] })
		s.terms = append(s.terms, terms)
	}
	s.point.CUDA, s.point.Go = s.source(reads), s.counterpart(reads)
	return s
}

// source is the function in CUDA.
func (s *randomSample) source(reads int) string {
	var b strings.Builder
	b.WriteString("template <typename P> __device__ __forceinline__ void sums(P &p) {\n")
	for i, terms := range s.terms {
		fmt.Fprintf(&b, "\t{\n\t\tdouble sum = 0;\n")
		for _, t := range terms {
			fmt.Fprintf(&b, "\t\tsum = sum + %v * (double)p.at(a%d[%d], %d, %d, %d);\n", t.weight, t.access, t.component, t.offset[0], t.offset[1], t.offset[2])
		}
		fmt.Fprintf(&b, "\t\tp.set(w%d, sum);\n\t}\n", i)
	}
	return b.String() + "}\n"
}

// counterpart is the function in Go.
func (s *randomSample) counterpart(reads int) func(r *Row) {
	return func(r *Row) {
		for i, terms := range s.terms {
			sums := make([]float64, r.N)
			for _, t := range terms {
				a, o := s.accesses[t.access], t.offset
				for k, v := range asFloats(r, a, t.component, o) {
					sums[k] += float64(t.weight * v)
				}
			}
			name := fmt.Sprintf("w%d", i)
			if s.accesses[reads+i].Element == "float32" {
				for k, v := range sums {
					At[float32](r, name, 0, 0, 0)[k] = float32(v)
				}
			} else {
				copy(At[float64](r, name, 0, 0, 0), sums)
			}
		}
	}
}

// asFloats returns a row of any element type.
func asFloats(r *Row, a Access, q int, o domain.Vec) []float64 {
	switch a.Element {
	case "float64":
		return AtComponent[float64](r, a.Name, q, o[0], o[1], o[2])
	case "float32":
		return floats(AtComponent[float32](r, a.Name, q, o[0], o[1], o[2]))
	case "uint8":
		return floats(AtComponent[uint8](r, a.Name, q, o[0], o[1], o[2]))
	}
	return floats(AtComponent[int32](r, a.Name, q, o[0], o[1], o[2]))
}

func floats[T Number](v []T) (all []float64) {
	for _, x := range v {
		all = append(all, float64(x))
	}
	return all
}

// Source and Go counterpart of random point functions agree.
func TestRandomPointFunctions(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) {
		first := uint64(0)
		if testdevices.OnCPU(set.Devices[0]) {
			first = 6 // others than in the sequential runs
		}
		for _, seed := range testdevices.Again(1, testdevices.Some(2, []uint64{first, first + 1, first + 2, first + 3, first + 4, first + 5})) {
			t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { checkSample(t, set, newRandomSample(seed).sample) })
		}
	})
}

// bed holds arrays of a CPU device for all accesses of a sample, with numbers that depend on their location.
type bed struct {
	t      *testing.T
	set    *testdevices.Set
	stream *streams.Stream
	sample sample
	arrays Arrays
	owned  domain.Box
}

func newBed(t *testing.T, s sample, owned domain.Box) *bed {
	t.Helper()
	set := testdevices.Host(t, 1)
	b := &bed{t: t, set: set, sample: s, owned: owned}
	stream := test.Must(set.Devices[0].NewStream(streams.Normal))(t)
	b.stream = stream
	for i, a := range s.accesses {
		var all []kernels.Array
		for q := range a.components() {
			width := a.footprint(q).Radius()
			width.Plus[0] += i % 2
			l := test.Must(domain.NewLayout(owned, width, a.Element.Size()))(t).Constant(a.Constant)
			m := test.Must(set.Devices[0].Alloc(l.Bytes()))(t)
			all = append(all, kernels.Array{Data: m.All(), Layout: l})
		}
		b.arrays = append(b.arrays, all)
	}
	return b
}

// number is what a test puts at a point of an array.
func number(access, component int, p domain.Vec) float64 {
	return float64(((access*5+component)*7+p[0]*3+p[1]*11+p[2]*13)%97 + 100)
}

// valueOf is number for an access, which has one value along its constant axes.
func (s *sample) valueOf(access, component int, p domain.Vec) float64 {
	for axis, constant := range s.accesses[access].Constant {
		if constant {
			p[axis] = 0
		}
	}
	return number(access, component, p)
}

// fillArray stores numbers at all points of an array, including ghosts.
func fillArray[T Number](s *sample, a kernels.Array, access, component int) {
	v, full := values[T](&a), a.Layout.Owned.Grow(a.Layout.Width)
	for z := full.Lo[2]; z < full.Hi[2]; z++ {
		for y := full.Lo[1]; y < full.Hi[1]; y++ {
			for x := full.Lo[0]; x < full.Hi[0]; x++ {
				v[a.Layout.Offset(domain.Vec{x, y, z})] = T(int64(s.valueOf(access, component, domain.Vec{x, y, z})))
			}
		}
	}
}

// Sweeps of random point functions on a CPU device match plain loops over the global coordinates.
func TestSweepsMatchPlainLoops(t *testing.T) {
	for seed := range uint64(20) {
		s := newRandomSample(seed)
		owned := domain.Box{Lo: domain.Vec{4, 5, 6}, Hi: domain.Vec{13, 9, 11}}
		if s.point.Dims == 2 {
			owned.Lo[2], owned.Hi[2] = 0, 1
		}
		b := newBed(t, s.sample, owned)
		for i, a := range s.accesses {
			for q, array := range b.arrays[i] {
				map[domain.Element]func(*sample, kernels.Array, int, int){
					"float64": fillArray[float64], "float32": fillArray[float32], "uint8": fillArray[uint8], "int32": fillArray[int32],
				}[a.Element](&s.sample, array, i, q)
			}
		}
		sweeper := test.Must(New(b.set.Compiler, b.set.Devices[0], s.point, s.accesses))(t)
		inner := owned
		inner.Lo[0]++
		launch := test.Must(sweeper.Sweep("sums", b.arrays, inner))(t)
		test.Check(t, errors.Join(b.stream.Launch(launch.Kernel), b.stream.Sync(checkLimit)))
		b.compare(s, inner)
	}
}

// compare checks every point that was written.
func (b *bed) compare(s *randomSample, swept domain.Box) {
	b.t.Helper()
	reads := len(s.accesses) - len(s.terms)
	for i, terms := range s.terms {
		a := b.arrays[reads+i][0]
		for z := b.owned.Lo[2]; z < b.owned.Hi[2]; z++ {
			for y := b.owned.Lo[1]; y < b.owned.Hi[1]; y++ {
				for x := b.owned.Lo[0]; x < b.owned.Hi[0]; x++ {
					p := domain.Vec{x, y, z}
					want := number(reads+i, 0, p)
					if swept.Contains(p) {
						want = 0
						for _, t := range terms {
							want += t.weight * s.valueOf(t.access, t.component, p.Add(t.offset))
						}
					}
					got, at := 0.0, a.Layout.Offset(p)
					if s.accesses[reads+i].Element == "float32" {
						got, want = float64(values[float32](&a)[at]), float64(float32(want))
					} else {
						got = values[float64](&a)[at]
					}
					if got != want {
						b.t.Fatalf("%s at %v: got %v, want %v: %+v", s.accesses[reads+i].Name, p, got, want, terms)
					}
				}
			}
		}
	}
}
