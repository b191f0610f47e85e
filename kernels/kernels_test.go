package kernels_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/rows"
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

func (b *bench) put(dst streams.Span, values []float64) { putInto(b, dst, values) }

func (b *bench) get(src streams.Span) []float64 { return getFrom[float64](b, src) }

// do checks what was queued and waits for it.
func (b *bench) do(errs ...error) {
	b.t.Helper()
	for _, err := range append(errs, b.stream.Sync(limit)) {
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// putInto and getFrom copy values to a device and back.
func putInto[T any](b *bench, dst streams.Span, values []T) {
	b.t.Helper()
	host := must(b.device.AllocPinned(dst.Length))(b.t)
	copy(streams.View[T](host.Bytes()), values)
	b.do(b.stream.Copy(dst, host.All()), b.stream.Sync(limit), host.Close())
}

func getFrom[T any](b *bench, src streams.Span) []T {
	b.t.Helper()
	host := must(b.device.AllocPinned(src.Length))(b.t)
	b.do(b.stream.Copy(host.All(), src))
	values := append([]T(nil), streams.View[T](host.Bytes())...)
	b.do(host.Close())
	return values
}

func randomsOf[T rows.Float](n int64) []T {
	v := make([]T, n)
	for i, x := range noise(n) {
		v[i] = T(x)
	}
	return v
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

func eachPoint(b domain.Box, f func(p domain.Vec)) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			for x := b.Lo[0]; x < b.Hi[0]; x++ {
				f(domain.Vec{x, y, z})
			}
		}
	}
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
	copier := must(b.compiler.NewBoxCopier(b.device))(t)
	reducer := must(b.compiler.NewNormReducer(b.device, kernels.Float64))(t)
	small := must(b.device.Alloc(8))(t)
	check := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	_, err := copier.Copies("pack", kernels.Pack(small.All(), a, box))
	check("a buffer too small", err)
	_, err = copier.Copies("pack", kernels.Pack(small.All(), a, domain.Box{}))
	check("an empty box", err)
	_, err = copier.Copies("none")
	check("no copy", err)
	_, err = reducer.Norms(a, other, box)
	check("norms between layouts", err)
	_, err = reducer.Norms(a, a, box.Shift(domain.Vec{2, 0, 0}))
	check("norms beyond the ghosts", err)
	_, err = b.compiler.NewNormReducer(b.device, "float16")
	check("half precision", err)
}
