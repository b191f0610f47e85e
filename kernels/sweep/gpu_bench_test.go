package sweep

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
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
		{waveSample(), "wave", 512}, {latticeSample(), "lattice", 192}, {lbmSample(lbmSource, 192), "lbm", 192},
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
	for _, size := range []domain.Vec{{192, 192, 192}, {64, 128, 64}} {
		b.Run(fmt.Sprintf("lbm-variants/size=%dx%dx%d", size[0], size[1], size[2]), func(b *testing.B) { benchmarkLBM(b, set, size, 1<<30) })
	}
}

// benchmarkLBM times lbmSource and lbmByDirection by groups and by single points, under several launch
// bounds each, in blocks of several shapes. The copy is one of so many bytes: a single array of a small box
// lies in the second-level cache.
func benchmarkLBM(b *testing.B, set *testdevices.Set, size domain.Vec, large int64) {
	owned := domain.Box{Hi: size}
	on := newGPUArrays(b, set, lbmSample(lbmSource, int64(size[1])), owned)
	defer on.close()
	from, err := on.device.Alloc(large)
	on.must(err)
	defer from.Close()
	to, err := on.device.Alloc(large)
	on.must(err)
	defer to.Close()
	on.timeCopy(b, to, from, large)
	for _, c := range []struct{ name, source string }{{"direction", lbmByDirection}, {"pair", lbmSource}} {
		s := lbmSample(c.source, int64(size[1]))
		for _, bounds := range []struct{ group, single launchBounds }{
			{launchBounds{256, 1}, launchBounds{256, 1}}, {launchBounds{128, 3}, launchBounds{128, 4}},
			{launchBounds{128, 4}, launchBounds{128, 5}}, {launchBounds{128, 5}, launchBounds{128, 6}},
			{launchBounds{128, 6}, launchBounds{128, 7}}, {launchBounds{128, 7}, launchBounds{128, 8}},
		} {
			sweeper, err := New(set.Compiler, on.device, s.point, s.accesses)
			on.must(err)
			sweeper.form.bounds, sweeper.form.singles.bounds = bounds.group, bounds.single
			for _, single := range []bool{false, true} {
				these, _ := sweeper.form.boundsOf(single)
				for _, block := range [][2]int{{128, 1}, {64, 2}, {32, 4}} {
					sweeper.shape = Shape{Block: block, Layers: 1, Single: single}
					l, err := sweeper.Sweep("sweep", on.plan.split(on.arrays), owned)
					on.must(err)
					name := fmt.Sprintf("by=%s/single=%t/bounds=%dx%d/block=%dx%d", c.name, single, these.threads, these.blocks, block[0], block[1])
					on.report(b, name, func() error { return on.timer.Stream.Launch(l.Kernel) })
					on.must(l.Close())
				}
			}
		}
	}
}

// gpuArrays are those of a sample on a GPU, filled with random numbers, and the rate of a copy there.
type gpuArrays struct {
	device *streams.Device
	plan   *plan
	arrays []kernels.Array
	timer  *flags.Timer
	points int64
	bytes  int64   // of all arrays, without ghosts
	rate   float64 // bytes that a copy reads and writes in a second
	must   func(error)
}

func newGPUArrays(b *testing.B, set *testdevices.Set, s sample, owned domain.Box) *gpuArrays {
	on := &gpuArrays{device: set.Devices[0], points: owned.Points(), must: func(err error) {
		if err != nil {
			b.Helper()
			b.Fatal(err)
		}
	}}
	var err error
	on.plan, err = newPlan(s.point, s.accesses)
	on.must(err)
	k := &checker{compiler: set.Compiler, device: on.device, host: on.device, plan: on.plan, form: on.plan.form()}
	on.arrays, err = k.arrays(owned, layoutCase{same: true, grow: func(int) int { return 0 }})
	on.must(err)
	on.timer, err = flags.NewTimer(on.device, time.Minute)
	on.must(err)
	for _, a := range on.arrays {
		on.must(fillRandom(on.device, on.timer.Stream, a))
		on.bytes += on.points * int64(a.Layout.ElementSize)
	}
	from, to := on.arrays[0].Data, on.arrays[len(on.arrays)-1].Data
	on.timeCopy(b, to.Memory, from.Memory, min(from.Length, to.Length))
	return on
}

// timeCopy sets the rate of a copy.
func (on *gpuArrays) timeCopy(b *testing.B, to, from *streams.Memory, bytes int64) {
	copied := fastest(b, on.timer, func() error {
		return on.timer.Stream.Copy(to.Span(0, bytes), from.Span(0, bytes))
	})
	on.rate = float64(2*bytes) / copied
}

func (on *gpuArrays) close() {
	on.timer.Close()
	for _, a := range on.arrays {
		a.Data.Memory.Close()
	}
}

func (on *gpuArrays) report(b *testing.B, name string, step func() error) {
	b.Run(name, func(b *testing.B) {
		took := fastest(b, on.timer, step)
		b.ReportMetric(took*1e6, "us")
		b.ReportMetric(float64(on.bytes)/took/on.rate, "of-copy")
		b.ReportMetric(float64(on.bytes)/took/1e9, "GB/s")
		b.ReportMetric(float64(on.points)/took/1e9, "Gupdates/s")
		b.ReportMetric(0, "ns/op")
	})
}

func benchmarkOnGPU(b *testing.B, set *testdevices.Set, c gpuCase) {
	owned := domain.Box{Hi: domain.Vec{c.n, c.n, c.n}}
	if c.point.Dims == 2 {
		owned.Hi[2] = 1
	}
	on := newGPUArrays(b, set, c.sample, owned)
	defer on.close()
	d, plan, arrays, w, fatal := on.device, on.plan, on.arrays, on.timer, on.must
	report := func(name string, step func() error) { on.report(b, name, step) }
	s, err := New(set.Compiler, d, c.point, c.accesses)
	fatal(err)
	prepare := func(name string) {
		l, err := s.Sweep("sweep", plan.split(arrays), owned)
		fatal(err)
		report(name, func() error { return w.Stream.Launch(l.Kernel) })
		if plan.totals() == 0 {
			return
		}
		all, total, err := s.Measure(plan.split(arrays), Portion{"sweep", []domain.Box{owned}})
		fatal(err)
		report(name+"/norms=true", func() error {
			if err := w.Stream.Launch(all[0].Kernel); err != nil {
				return err
			}
			return total.Queue(w.Stream)
		})
	}
	prepare("way=default")
	t, err := s.Tune(plan.split(arrays), owned, 2*time.Second)
	fatal(err)
	prepare(fmt.Sprintf("way=tuned/block=%dx%d/layers=%d/single=%t", t.Shape.Block[0], t.Shape.Block[1], t.Shape.Layers, t.Shape.Single))
}

// fastest returns the seconds that a step takes on the device: the least, of some rounds, of the
// mean over the steps of a round.
func fastest(b *testing.B, w *flags.Timer, step func() error) float64 {
	const rounds, steps = 6, 10
	best := math.Inf(1)
	for range rounds {
		must := func(err error) {
			if err != nil {
				b.Fatal(err)
			}
		}
		must(w.Stream.Record(w.Start))
		for range steps {
			must(step())
		}
		must(w.Stream.Record(w.End))
		must(w.End.Sync(time.Minute))
		took, err := w.End.Since(w.Start)
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
	return s.Sync(time.Minute)
}
