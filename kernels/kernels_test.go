package kernels_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

const limit = 30 * time.Second

// bench is one device with arrays to try kernels on.
type bench struct {
	t        *testing.T
	device   *streams.Device
	stream   *streams.Stream
	compiler *kernels.Compiler
}

func newBench(t *testing.T, s *testdevices.Set) *bench {
	t.Helper()
	b := &bench{t: t, device: s.Devices[0], compiler: s.Compiler}
	b.stream = must(b.device.NewStream(streams.Normal))(t)
	return b
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// array makes an array over box with ghosts of one layer and puts values in
// it, padding included.
func (b *bench) array(box domain.Box, dims int, values []float64) kernels.Array {
	b.t.Helper()
	l := must(domain.NewLayout(box, domain.UniformRadius(dims, 1), 8))(b.t)
	m := must(b.device.Alloc(l.Bytes()))(b.t)
	b.t.Cleanup(func() { m.Close() })
	b.put(m.All(), values)
	return kernels.Array{Data: m.All(), Layout: l}
}

func (b *bench) put(dst streams.Span, values []float64) {
	b.t.Helper()
	host := must(b.device.AllocPinned(dst.Length))(b.t)
	defer host.Close()
	copy(streams.View[float64](host.Bytes()), values)
	b.do(b.stream.Copy(dst, host.All()))
}

func (b *bench) get(src streams.Span) []float64 {
	b.t.Helper()
	host := must(b.device.AllocPinned(src.Length))(b.t)
	defer host.Close()
	b.do(b.stream.Copy(host.All(), src))
	return append([]float64(nil), streams.View[float64](host.Bytes())...)
}

// do checks what was queued and waits for it.
func (b *bench) do(errs ...error) {
	b.t.Helper()
	for _, err := range append(errs, b.stream.Sync(limit)) {
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

func noise(n int64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rand.NormFloat64()
	}
	return v
}

// shapes are boxes that take every way through the kernels: streams in z with and
// without remainders, thin slabs, single points, boxes off the origin.
var shapes = []domain.Vec{{70, 19, 67}, {64, 4, 64}, {1, 33, 40}, {200, 1, 9}, {9, 300, 1}, {1, 1, 1}, {3, 1, 2}, {130, 130, 1}, {257, 3, 8}}

// Sweeps give the bits of a plain loop and touch nothing but their boxes.
func TestSweepBits(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		for _, spacing := range [][]float64{{0.1, 0.1}, {0.1, 0.2}, {0.1, 0.1, 0.1}, {0.1, 0.2, 0.3}} {
			star := must(stencil.Heat(spacing, 1, 1e-3))(t)
			for _, size := range shapes {
				if star.Dims == 2 && size[2] > 1 {
					size = domain.Vec{size[0], size[1] * size[2], 1}
				}
				t.Run(fmt.Sprintf("dims=%d/equal=%v/size=%v", star.Dims, star.Equal, size), func(t *testing.T) {
					sweepBits(newBench(t, s), star, size)
				})
			}
		}
	})
}

func sweepBits(b *bench, star stencil.StarWeights, size domain.Vec) {
	box := domain.Box{Lo: domain.Vec{5, -3, 2}, Hi: domain.Vec{5, -3, 2}.Add(size)}
	if star.Dims == 2 {
		box.Lo[2], box.Hi[2] = 0, 1
	}
	whole := []domain.Box{box}
	inner, slabs := domain.Split(box, domain.UniformRadius(star.Dims, 1))
	sweeper := must(b.compiler.NewSweeper(b.device, star.Stencil(), kernels.Float64))(b.t)
	for _, boxes := range [][]domain.Box{whole, slabs, {inner}} {
		if boxes[0].Empty() {
			continue
		}
		layout := must(domain.NewLayout(box, domain.UniformRadius(star.Dims, 1), 8))(b.t)
		in, before := noise(layout.Length), noise(layout.Length)
		src, dst := b.array(box, star.Dims, in), b.array(box, star.Dims, before)
		k := must(sweeper.Sweep(dst, src, boxes...))(b.t)
		b.do(b.stream.Launch(k))
		want := append([]float64(nil), before...)
		for _, box := range boxes {
			eachPoint(box, func(p domain.Vec) { want[layout.Offset(p)] = apply(star, layout, in, p) })
		}
		got := b.get(dst.Data)
		for i := range want {
			if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
				b.t.Fatalf("boxes %v, element %d: got %v, want %v", boxes, i, got[i], want[i])
			}
		}
	}
}

func eachPoint(b domain.Box, f func(p domain.Vec)) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			for x := b.Lo[0]; x < b.Hi[0]; x++ {
				f(domain.Vec{x, y, z})
			}
		}
	}
}

// apply is the star at one point, as stencil.StarWeights defines it.
func apply(s stencil.StarWeights, l domain.Layout, v []float64, p domain.Vec) float64 {
	at := func(a, d int) float64 {
		q := p
		q[a] += d
		return v[l.Offset(q)]
	}
	c := s.Centre * v[l.Offset(p)]
	if s.Equal {
		sum := at(0, 1) + at(1, 1)
		if s.Dims == 3 {
			sum += at(2, 1)
		}
		sum += at(0, -1)
		sum += at(1, -1)
		if s.Dims == 3 {
			sum += at(2, -1)
		}
		return c + float64(s.Axis[0]*sum)
	}
	for a := range s.Dims {
		c += float64(s.Axis[a] * (at(a, 1) + at(a, -1)))
	}
	return c
}

func TestNorms(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := newBench(t, s)
		reducer := must(b.compiler.NewNormReducer(b.device, kernels.Float64))(t)
		for _, size := range shapes {
			box := domain.Box{Hi: size}
			l := must(domain.NewLayout(box, domain.UniformRadius(3, 1), 8))(t)
			next, last := noise(l.Length), noise(l.Length)
			red := must(reducer.Norms(b.array(box, 3, next), b.array(box, 3, last), box))(t)
			b.do(red.Queue(b.stream))
			var want kernels.Norms
			eachPoint(box, func(p domain.Vec) {
				v, d := next[l.Offset(p)], next[l.Offset(p)]-last[l.Offset(p)]
				want.Add(kernels.Norms{MaxChange: math.Abs(d), SumChange2: d * d, Max: math.Abs(v), Sum2: v * v})
			})
			got := red.Result()
			if got.MaxChange != want.MaxChange || got.Max != want.Max ||
				!near(got.SumChange2, want.SumChange2) || !near(got.Sum2, want.Sum2) {
				t.Errorf("size %v: got %+v, want %+v", size, got, want)
			}
			b.do(red.Queue(b.stream))
			if again := red.Result(); again != got {
				t.Errorf("size %v: first %+v, then %+v", size, got, again)
			}
			if err := red.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) }

// A NaN or an infinity anywhere shows in the sums.
func TestNormsShowWhatIsNotFinite(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := newBench(t, s)
		reducer := must(b.compiler.NewNormReducer(b.device, kernels.Float64))(t)
		box := domain.Box{Hi: domain.Vec{33, 5, 7}}
		l := must(domain.NewLayout(box, domain.UniformRadius(3, 1), 8))(t)
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			next := noise(l.Length)
			next[l.Offset(domain.Vec{32, 4, 3})] = bad
			red := must(reducer.Norms(b.array(box, 3, next), b.array(box, 3, noise(l.Length)), box))(t)
			b.do(red.Queue(b.stream))
			if sum := red.Result().Sum2; !math.IsNaN(sum) && !math.IsInf(sum, 0) {
				t.Errorf("%v went unseen: %v", bad, sum)
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	b := newBench(t, testdevices.Host(t, 1))
	box := domain.Box{Hi: domain.Vec{8, 8, 8}}
	a := b.array(box, 3, nil)
	other := b.array(domain.Box{Hi: domain.Vec{8, 8, 9}}, 3, nil)
	star := must(stencil.Laplace([]float64{1, 1, 1}))(t)
	sweeper := must(b.compiler.NewSweeper(b.device, star.Stencil(), kernels.Float64))(t)
	copier := must(b.compiler.NewBoxCopier(b.device))(t)
	reducer := must(b.compiler.NewNormReducer(b.device, kernels.Float64))(t)
	small := must(b.device.Alloc(8))(t)
	check := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	_, err := sweeper.Sweep(a, other, box)
	check("a sweep between layouts", err)
	_, err = sweeper.Sweep(a, a)
	check("a sweep over nothing", err)
	_, err = sweeper.Sweep(a, a, box.Shift(domain.Vec{1, 0, 0}))
	check("a sweep beyond the ghosts", err)
	_, err = copier.Copies("pack", kernels.Pack(small.All(), a, box))
	check("a buffer too small", err)
	_, err = copier.Copies("pack", kernels.Pack(small.All(), a, domain.Box{}))
	check("an empty box", err)
	_, err = copier.Copies("none")
	check("no copy", err)
	_, err = reducer.Norms(a, other, box)
	check("norms between layouts", err)
	_, err = b.compiler.NewSweeper(b.device, star.Stencil(), "float16")
	check("half precision", err)
}

// Sweeps that take norms on their way give the bits of those that do not, and norms of
// what they swept, whatever the boxes; always the same ones.
func TestMeasure(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := newBench(t, s)
		star := must(stencil.Heat([]float64{0.1, 0.1, 0.1}, 1, 1e-3))(t).Stencil()
		sweeper := must(b.compiler.NewSweeper(b.device, star, kernels.Float64))(t)
		reducer := must(b.compiler.NewNormReducer(b.device, kernels.Float64))(t)
		sizes := append(shapes, domain.Vec{300, 300, 70})
		if testdevices.OnCPU(b.device) {
			sizes = shapes
		}
		for _, size := range sizes {
			box := domain.Box{Hi: size}
			l := must(domain.NewLayout(box, domain.UniformRadius(3, 1), 8))(t)
			in := noise(l.Length)
			src, dst, plain := b.array(box, 3, in), b.array(box, 3, in), b.array(box, 3, in)
			b.do(b.stream.Launch(must(sweeper.Sweep(plain, src, box))(t)))
			red := must(reducer.Norms(plain, src, box))(t)
			b.do(red.Queue(b.stream))
			want := red.Result()
			sets := []kernels.BoxSet{{Name: "all", Boxes: []domain.Box{box}}}
			if inner, slabs := domain.Split(box, domain.UniformRadius(3, 1)); !inner.Empty() {
				sets = []kernels.BoxSet{{Name: "slabs", Boxes: slabs}, {Name: "inner", Boxes: []domain.Box{inner}}}
			}
			launches, total, err := sweeper.Measure(dst, src, sets...)
			if err != nil {
				t.Fatal(err)
			}
			var first kernels.Norms
			for i := range 3 {
				for _, k := range launches {
					b.do(b.stream.Launch(k))
				}
				b.do(total.Queue(b.stream))
				got := total.Result()
				if i == 0 {
					first = got
				}
				if got != first || got.MaxChange != want.MaxChange || got.Max != want.Max ||
					!near(got.SumChange2, want.SumChange2) || !near(got.Sum2, want.Sum2) {
					t.Errorf("size %v: got %+v, at first %+v, want %+v", size, got, first, want)
				}
			}
			swept := b.get(dst.Data)
			for i, v := range b.get(plain.Data) {
				if math.Float64bits(v) != math.Float64bits(swept[i]) {
					t.Fatalf("size %v: element %d is %v with norms, %v without", size, i, swept[i], v)
				}
			}
			b.do(red.Close(), total.Close())
		}
	})
}
