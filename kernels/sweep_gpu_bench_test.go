package kernels_test

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

// gpuCase is a sweep to time on a GPU.
type gpuCase struct {
	kind stencil.Kind
	dims int
	real kernels.Real
	n    int
}

func (c gpuCase) String() string {
	return fmt.Sprintf("dims=%d/points=%d/shape=%s/type=%s/size=%d", c.dims, c.kind.Points, c.kind.Shape, c.real, c.n)
}

// gpuCases are all kinds, each in sizes far larger than the caches, and a smaller one.
func gpuCases() []gpuCase {
	sizes := map[int]map[kernels.Real][]int{
		2: {kernels.Float32: {16384, 4096}, kernels.Float64: {8192, 16384}},
		3: {kernels.Float32: {768, 512}, kernels.Float64: {512, 256}},
	}
	var all []gpuCase
	for _, dims := range []int{2, 3} {
		for _, kind := range stencil.Kinds(dims) {
			for _, real := range []kernels.Real{kernels.Float64, kernels.Float32} {
				for _, n := range sizes[dims][real] {
					all = append(all, gpuCase{kind, dims, real, n})
				}
			}
		}
	}
	return all
}

// gpuBed is one GPU to time sweeps on.
type gpuBed struct {
	b          *testing.B
	device     *streams.Device
	compiler   *kernels.Compiler
	stream     *streams.Stream
	start, end *streams.Event
}

// BenchmarkSweepOnGPU times sweeps there and back between two arrays on the first GPU: of
// the whole box, of the interior and the boundary region in two launches, of the whole with
// norms, and with the shape that a tuner finds. of-copy is the share of the rate of a copy
// between the same arrays, from device to device, that a sweep reaches if each point counts
// as read once and written once.
func BenchmarkSweepOnGPU(b *testing.B) {
	set := testdevices.GPUs(b)
	d := set.Devices[0]
	for _, c := range gpuCases() {
		b.Run(c.String(), func(b *testing.B) {
			g := &gpuBed{b: b, device: d, compiler: set.Compiler}
			g.stream = ready(d.NewStream(streams.Normal))(b)
			g.start, g.end = ready(d.NewTimedEvent())(b), ready(d.NewTimedEvent())(b)
			defer func() { g.stream.Close(); g.start.Close(); g.end.Close() }()
			g.sweeps(c)
		})
	}
}

// sweeps times one case in all its ways.
func (g *gpuBed) sweeps(c gpuCase) {
	spacing := []float64{1, 1, 1}[:c.dims]
	s := ready(stencil.HeatOf(c.kind, spacing, 1, 0.1))(g.b)
	box := cube(c.dims, c.n)
	var pair [2]kernels.Array
	for i := range pair {
		l := ready(domain.NewLayout(box, s.Radius(), c.real.Size()))(g.b)
		m := ready(g.device.Alloc(l.Bytes()))(g.b)
		defer m.Close()
		pair[i] = kernels.Array{Data: m.All(), Layout: l}
		g.random(pair[i], c.real)
	}
	var open streams.Resources
	defer open.Close()
	sweeper := ready(g.compiler.NewSweeper(g.device, s, c.real))(g.b)
	// A copy of as many bytes as the points have.
	points := pair[0].Data.Memory.Span(0, box.Points()*int64(c.real.Size()))
	copied := g.time(func(i int) error {
		return g.stream.Copy(pair[i%2].Data.Memory.Span(0, points.Length), pair[(i+1)%2].Data.Memory.Span(0, points.Length))
	})
	report := func(name string, step func(i int) error) {
		outer := g.b
		defer func() { g.b = outer }()
		outer.Run(name, func(b *testing.B) {
			g.b = b
			took := g.time(step)
			b.ReportMetric(took*1e6, "us")
			b.ReportMetric(copied/took, "of-copy")
			b.ReportMetric(float64(box.Points())*2*float64(c.real.Size())/took/1e9, "GB/s")
			b.ReportMetric(0, "ns/op")
		})
	}
	prepare := func(sets ...kernels.BoxSet) (plain, measured func(i int) error) {
		var sweeps, norms [2][]*streams.Kernel
		var total [2]*kernels.NormReduction
		for i := range 2 {
			var err error
			for _, p := range sets {
				sweeps[i] = append(sweeps[i], ready(sweeper.Sweep(pair[i], pair[1-i], p.Boxes...))(g.b))
				open.Add(sweeps[i][len(sweeps[i])-1])
			}
			if norms[i], total[i], err = sweeper.Measure(pair[i], pair[1-i], sets...); err != nil {
				g.b.Fatal(err)
			}
			open.Add(total[i])
		}
		plain = func(i int) error { return g.launch(sweeps[i%2]) }
		measured = func(i int) error {
			if err := g.launch(norms[i%2]); err != nil {
				return err
			}
			return total[i%2].Queue(g.stream)
		}
		return plain, measured
	}
	inner, slabs := domain.Split(box, s.Radius())
	whole := kernels.BoxSet{Name: "all", Boxes: []domain.Box{box}}
	plain, measured := prepare(whole)
	report("way=default", plain)
	report("way=default/norms=true", measured)
	plain, measured = prepare(kernels.BoxSet{Name: "slabs", Boxes: slabs}, kernels.BoxSet{Name: "inner", Boxes: []domain.Box{inner}})
	report("way=split", plain)
	report("way=split/norms=true", measured)
	tuning, err := sweeper.Tune(pair[0], pair[1], box, time.Second)
	if err != nil {
		g.b.Fatal(err)
	}
	plain, measured = prepare(whole)
	tuned := fmt.Sprintf("way=tuned/block=%dx%d/layers=%d", tuning.Shape.Block[0], tuning.Shape.Block[1], tuning.Shape.Layers)
	report(tuned, plain)
	report(tuned+"/norms=true", measured)
}

func (g *gpuBed) launch(all []*streams.Kernel) error {
	for _, k := range all {
		if err := g.stream.Launch(k); err != nil {
			return err
		}
	}
	return nil
}

// time returns the seconds that a step takes on the device: the least, of some rounds, of
// the mean over the steps of a round.
func (g *gpuBed) time(step func(i int) error) float64 {
	g.b.Helper()
	const rounds, steps = 8, 20
	best := math.Inf(1)
	for range rounds {
		g.must(g.stream.Record(g.start))
		for i := range steps {
			g.must(step(i))
		}
		g.must(g.stream.Record(g.end))
		g.must(g.stream.Sync(limit))
		best = min(best, ready(g.end.Since(g.start))(g.b).Seconds()/steps)
	}
	return best
}

func (g *gpuBed) must(err error) {
	g.b.Helper()
	if err != nil {
		g.b.Fatal(err)
	}
}

// random fills an array, piece by piece, with numbers that no memory can compress.
func (g *gpuBed) random(a kernels.Array, real kernels.Real) {
	piece := min(a.Data.Length, 64<<20)
	host := ready(g.device.AllocPinned(piece))(g.b)
	defer host.Close()
	state := uint32(12345)
	next := func() float64 {
		state = state*1664525 + 1013904223
		return float64(state>>8) / (1 << 24)
	}
	if real == kernels.Float32 {
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
		g.must(g.stream.Copy(a.Data.Memory.Span(at, n), host.Span(0, n)))
	}
	g.must(g.stream.Sync(limit))
}
