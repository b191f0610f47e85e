package temporal

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Passes with norms of their last step, or of all steps, have the same bits as others, and their norms are bitwise
// those of the reference over any box of stored points, however it is divided.
func TestPassesComputeNorms(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	eachGPU(t, 1, func(t *testing.T, set *testdevices.Set) {
		rng := rand.New(rand.NewPCG(7, 8))
		b := kerneltest.NewBench(t, set)
		all := testdevices.Again(3, stencils(t))
		every := 4
		if testdevices.OnCPU(b.Device) {
			all, every = testdevices.Some(3, all), 2 // each program takes a second to compile
		}
		for i, s := range all {
			if testdevices.Turn(i, every, 2) {
				tryNorms[float32](t, b, s, domain.Float32, rng)
			}
			if testdevices.Turn(i+1, every, 2) {
				tryNorms[float64](t, b, s, domain.Float64, rng)
			}
		}
	})
}

// tryNorms tests passes with the norms of their last step and of all steps.
func tryNorms[T rows.Float](t *testing.T, b *kerneltest.Bench, s stencil.Stencil, real domain.Element, rng *rand.Rand) {
	tryPasses[T](t, b, s, real, Options{Norms: 1}, []int{2, 3, 4}, 1, rng)
	for depth := 2; depth <= MaxNorms; depth++ {
		tryPasses[T](t, b, s, real, Options{Norms: depth}, []int{depth}, 1, rng)
	}
}

// normRoom is memory for the norms of the last steps of passes; empty without norms.
type normRoom struct {
	parts *reduce.NormParts
	spans []streams.Span
}

func newNormRoom(b *kerneltest.Bench, real domain.Element, norms int, most int64) (r normRoom) {
	if norms == 0 {
		return r
	}
	reducer := test.Must(reduce.NewNormReducer(b.Compiler, b.Device, real, sums.Reproducible))(b.T)
	r.parts = test.Must(reducer.Parts(norms, most))(b.T)
	for n := range norms {
		r.spans = append(r.spans, r.parts.Span(n))
	}
	return r
}

// checkNorms compares the norms of a pass of the given number of blocks with those of the reference, and closes
// the memory.
func checkNorms[T rows.Float](t *testing.T, b *kerneltest.Bench, p *problem[T], room normRoom, blocks int64, of domain.Box) {
	t.Helper()
	if room.parts == nil {
		return
	}
	join := test.Must(room.parts.Join(len(room.spans), blocks))(t)
	b.Do(join.Queue(b.Stream))
	for n, got := range join.Results() {
		if want := p.norms(p.depth-n, of); got.MaxChange != want.MaxChange || got.Max != want.Max ||
			got.Sum2.Value() != want.Sum2.Value() || got.SumChange2.Value() != want.SumChange2.Value() {
			t.Errorf("norms of step %d over %v: got %+v, want %+v", p.depth-n, of, got, want)
		}
	}
	b.Do(join.Close())
	b.Do(room.parts.Close())
}

// randomBox returns a box within another.
func randomBox(all domain.Box, rng *rand.Rand) (b domain.Box) {
	for a, n := range all.Size() {
		lo := rng.IntN(n)
		b.Lo[a] = all.Lo[a] + lo*rng.IntN(2)
		b.Hi[a] = b.Lo[a] + 1 + rng.IntN(all.Hi[a]-b.Lo[a])
	}
	return b
}

// A thread with more terms than a running sum supports folds them on the way: many layers per block, with large
// and small values.
func TestNormsOfLongMarches(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	eachGPU(t, 1, func(t *testing.T, set *testdevices.Set) {
		b := kerneltest.NewBench(t, set)
		rng := rand.New(rand.NewPCG(9, 10))
		s := test.Must(stencil.HeatOf(stencil.Kinds(2)[0], []float64{0.1, 0.1}, 1, 1e-3))(t)
		size := domain.Vec{9, 9000, 1} // groups of 4 rows, of each of which a thread has one or two points
		sides := Sides{Fixed, Mirror, Fixed, Mirror}
		p := newProblem[float64](t, s, sides, size, 2, rng)
		for i := range p.from {
			p.from[i] *= math.Ldexp(1, 30*(i/20000))
		}
		passes := test.Must(New(b.Compiler, b.Device, s, domain.Float64, p.layout, Options{Norms: 1}))(t)
		reducer := test.Must(reduce.NewNormReducer(b.Compiler, b.Device, domain.Float64, sums.Reproducible))(t)
		room := test.Must(reducer.Parts(1, passes.Parts(p.box, sides)))(t)
		defer func() { b.Do(room.Close()) }()
		from, to := array(b, p.layout, p.from), array(b, p.layout, p.to)
		cores := b.Device.Cores
		b.Device.Cores = 1 // one block processes all rows
		defer func() { b.Device.Cores = cores }()
		k, n, err := passes.Pass("pass", from, to, p.box, sides, 2, More{Box: p.box, Parts: []streams.Span{room.Span(0)}})
		test.Check(t, err)
		join := test.Must(room.Join(1, n))(t)
		b.Do(b.Stream.Launch(k))
		b.Do(join.Queue(b.Stream))
		if got, want := join.Result(), p.norms(2, p.box); got.Sum2.Value() != want.Sum2.Value() || got.SumChange2.Value() != want.SumChange2.Value() {
			t.Errorf("norms of %d parts: got %+v, want %+v", n, got, want)
		}
		b.Do(k.Close())
		b.Do(join.Close())
	})
}
