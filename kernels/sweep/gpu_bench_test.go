package sweep

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// gpuCase is a point function to time on a GPU, on so many points along each axis.
type gpuCase struct {
	sample
	name string
	n    int
}

func gpuCases(b *testing.B) []gpuCase {
	all := []gpuCase{
		{waveSample(), "wave", 512}, {latticeSample(), "lattice", 192},
		{graySample("float64"), "gray/type=float64", 8192}, {graySample("float32"), "gray/type=float32", 8192},
	}
	for _, dims := range []int{2, 3} {
		for _, kind := range stencil.Kinds(dims) {
			for _, real := range []kernels.Real{kernels.Float64, kernels.Float32} {
				s, err := stencil.HeatOf(kind, []float64{1, 1, 1}[:dims], 1, 0.1)
				if err != nil {
					b.Fatal(err)
				}
				p, accesses, err := Linear(s, real)
				if err != nil {
					b.Fatal(err)
				}
				n := map[int]int{2: 8192, 3: 512}[dims]
				all = append(all, gpuCase{sample{p, accesses}, fmt.Sprintf("linear/dims=%d/points=%d/shape=%s/type=%s", dims, kind.Points, kind.Shape, real), n})
			}
		}
	}
	return all
}

// BenchmarkPointFunctionsOnGPU times sweeps of the whole box between arrays on the first GPU: in the
// default shape, with norms and reductions, and in the shape that a tuner finds. of-copy is the
// share of the rate of a copy from device to device that a sweep reaches if each array counts as
// read or written once.
func BenchmarkPointFunctionsOnGPU(b *testing.B) {
	set := testdevices.GPUs(b)
	for _, c := range gpuCases(b) {
		b.Run(fmt.Sprintf("%s/size=%d", c.name, c.n), func(b *testing.B) { benchmarkOnGPU(b, set, c) })
	}
}

func benchmarkOnGPU(b *testing.B, set *testdevices.Set, c gpuCase) {
	d := set.Devices[0]
	fatal := func(err error) {
		if err != nil {
			b.Helper()
			b.Fatal(err)
		}
	}
	plan, err := newPlan(c.point, c.accesses)
	fatal(err)
	k := &checker{compiler: set.Compiler, device: d, host: d, plan: plan, form: plan.form()}
	owned := domain.Box{Hi: domain.Vec{c.n, c.n, c.n}}
	if c.point.Dims == 2 {
		owned.Hi[2] = 1
	}
	arrays, err := k.arrays(owned, layoutCase{same: true, grow: func(int) int { return 0 }})
	fatal(err)
	bytes := int64(0)
	w, err := newTimer(d)
	fatal(err)
	defer w.resources.Close()
	for _, a := range arrays {
		fatal(fillRandom(d, w.stream, a))
		bytes += owned.Points() * int64(a.Layout.ElementSize)
		defer a.Data.Memory.Close()
	}
	first := arrays[0].Data
	half := min(first.Length, arrays[len(arrays)-1].Data.Length)
	copied := fastest(b, w, func() error {
		return w.stream.Copy(arrays[len(arrays)-1].Data.Memory.Span(0, half), first.Memory.Span(0, half))
	})
	rate := float64(2*half) / copied
	report := func(name string, step func() error) {
		b.Run(name, func(b *testing.B) {
			took := fastest(b, w, step)
			b.ReportMetric(took*1e6, "us")
			b.ReportMetric(float64(bytes)/took/rate, "of-copy")
			b.ReportMetric(float64(bytes)/took/1e9, "GB/s")
			b.ReportMetric(0, "ns/op")
		})
	}
	s, err := New(set.Compiler, d, c.point, c.accesses)
	fatal(err)
	prepare := func(name string) {
		l, err := s.Sweep("sweep", plan.split(arrays), owned)
		fatal(err)
		report(name, func() error { return w.stream.Launch(l.Kernel) })
		if plan.totals() == 0 {
			return
		}
		all, total, err := s.Measure(plan.split(arrays), Portion{"sweep", []domain.Box{owned}})
		fatal(err)
		report(name+"/norms=true", func() error {
			if err := w.stream.Launch(all[0].Kernel); err != nil {
				return err
			}
			return total.Queue(w.stream)
		})
	}
	prepare("way=default")
	t, err := s.Tune(plan.split(arrays), owned, 2*time.Second)
	fatal(err)
	prepare(fmt.Sprintf("way=tuned/block=%dx%d/layers=%d/single=%t", t.Shape.Block[0], t.Shape.Block[1], t.Shape.Layers, t.Shape.Single))
	if l := c.point.linear; l != nil {
		before(b, set, *l, arrays, owned, report, w)
	}
}

// fastest returns the seconds that a step takes on the device: the least, of some rounds, of the
// mean over the steps of a round.
func fastest(b *testing.B, w *timer, step func() error) float64 {
	const rounds, steps = 6, 10
	best := math.Inf(1)
	for range rounds {
		must := func(err error) {
			if err != nil {
				b.Fatal(err)
			}
		}
		must(w.stream.Record(w.start))
		for range steps {
			must(step())
		}
		must(w.stream.Record(w.end))
		must(w.end.Sync(tuneLimit))
		took, err := w.end.Since(w.start)
		must(err)
		best = min(best, took.Seconds()/steps)
	}
	return best
}

// fillRandom fills an array with numbers that no memory can compress.
func fillRandom(d *streams.Device, s *streams.Stream, a kernels.Array) error {
	piece := min(a.Data.Length, 32<<20) / 8 * 8
	host, err := d.AllocPinned(piece)
	if err != nil {
		return err
	}
	defer host.Close()
	state := uint32(12345)
	next := func() float64 {
		state = state*1664525 + 1013904223
		return 0.5 + float64(state>>8)/(1<<24)
	}
	if a.Layout.ElementSize == 4 {
		for i, v := 0, streams.View[float32](host.Bytes()); i < len(v); i++ {
			v[i] = float32(next())
		}
	} else {
		for i, v := 0, streams.View[float64](host.Bytes()); i < len(v); i++ {
			v[i] = next()
		}
	}
	for at := int64(0); at < a.Data.Length; at += piece {
		n := min(piece, a.Data.Length-at)
		if err := s.Copy(a.Data.Memory.Span(at, n), host.Span(0, n)); err != nil {
			return err
		}
	}
	return s.Sync(tuneLimit)
}

// before times kernels.Sweeper.
func before(b *testing.B, set *testdevices.Set, l stencil.Stencil, arrays []kernels.Array, owned domain.Box, report func(string, func() error), w *timer) {
	real := map[int]kernels.Real{4: kernels.Float32, 8: kernels.Float64}[arrays[0].Layout.ElementSize]
	s, err := set.Compiler.NewSweeper(set.Devices[0], l, real)
	if err != nil {
		b.Fatal(err)
	}
	prepare := func(name string) {
		k, err := s.Sweep(arrays[1], arrays[0], owned)
		if err != nil {
			b.Fatal(err)
		}
		report(name, func() error { return w.stream.Launch(k) })
		all, total, err := s.Measure(arrays[1], arrays[0], kernels.BoxSet{Name: "sweep", Boxes: []domain.Box{owned}})
		if err != nil {
			b.Fatal(err)
		}
		report(name+"/norms=true", func() error {
			if err := w.stream.Launch(all[0]); err != nil {
				return err
			}
			return total.Queue(w.stream)
		})
	}
	prepare("before=true/way=default")
	t, err := s.Tune(arrays[1], arrays[0], owned, 2*time.Second)
	if err != nil {
		b.Fatal(err)
	}
	prepare(fmt.Sprintf("before=true/way=tuned/block=%dx%d/layers=%d", t.Shape.Block[0], t.Shape.Block[1], t.Shape.Layers))
}
