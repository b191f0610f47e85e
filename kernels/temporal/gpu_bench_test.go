package temporal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/internal/timing"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// BenchmarkPasses times all kernels for passes on a GPU, between walls of three kinds: Gpoint/s counts each level of a point.
func BenchmarkPasses(b *testing.B) {
	set := testdevices.GPUs(b)
	for _, c := range []struct {
		dims, points int
		size         domain.Vec
		real         kernels.Real
	}{
		{3, 7, domain.Vec{512, 512, 512}, kernels.Float64},
		{3, 7, domain.Vec{768, 768, 768}, kernels.Float32},
		{2, 5, domain.Vec{16384, 16384, 1}, kernels.Float64},
		{2, 5, domain.Vec{16384, 16384, 1}, kernels.Float32},
		{3, 13, domain.Vec{512, 512, 512}, kernels.Float64},
		{3, 27, domain.Vec{512, 512, 512}, kernels.Float64},
	} {
		spacing := slices.Repeat([]float64{1}, c.dims)
		for _, kind := range stencil.Kinds(c.dims) {
			if kind.Points != c.points {
				continue
			}
			s, err := stencil.HeatOf(kind, spacing, 1, 0.05)
			if err != nil {
				b.Fatal(err)
			}
			benchmarkPasses(b, set, s, c.size, c.real)
		}
	}
}

func benchmarkPasses(b *testing.B, set *testdevices.Set, s stencil.Stencil, size domain.Vec, real kernels.Real) {
	must := func(err error) {
		if err != nil {
			b.Helper()
			b.Fatal(err)
		}
	}
	d, box, width := set.Devices[0], domain.Box{Hi: size}, domain.Radius{}
	for a := range s.Dims {
		width.Minus[a], width.Plus[a] = 12, 12
	}
	l, err := domain.NewLayout(box, width, real.Size())
	must(err)
	p, err := New(set.Compiler, d, s, real, l, Options{})
	must(err)
	p.gpu.compileAll()
	w, err := timing.New(d)
	must(err)
	defer w.Close()
	var arrays [2]kernels.Array
	for i := range arrays {
		m, err := d.Alloc(l.Bytes())
		must(err)
		defer m.Close()
		arrays[i] = kernels.Array{Data: m.All(), Layout: l}
		must(fillRandom(d, w.Stream, m, real))
	}
	for _, one := range p.gpu.candidates {
		for _, sides := range []Sides{{Fixed, Fixed, Fixed, Fixed, Fixed, Fixed}, {Mirror, Mirror, Mirror, Mirror, Mirror, Mirror}, {}} {
			b.Run(fmt.Sprintf("dims=%d/points=%d/%s/depth=%d/sides=%v/%v", s.Dims, s.Points(), real, one.depth, sides[0], one.program.Defines[1:]), func(b *testing.B) {
				spec := p.spec("pass", arrays[0], arrays[1], More{})
				must(p.gpu.prepare(&spec, one, arrays[0], arrays[1], box, sides, More{}))
				k, err := d.NewKernel(spec)
				must(err)
				defer k.Close()
				var took []float64
				for range 12 {
					t, err := w.Time(k)
					must(err)
					took = append(took, t.Seconds())
				}
				slices.Sort(took)
				for b.Loop() {
				}
				b.ReportMetric(float64(box.Points())*float64(one.depth)/took[len(took)/2]/1e9, "Gpoint/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// fillRandom fills memory with numbers that no memory can compress.
func fillRandom(d *streams.Device, s *streams.Stream, m *streams.Memory, real kernels.Real) error {
	const piece = 32 << 20
	host, err := d.AllocPinned(piece)
	if err != nil {
		return err
	}
	defer host.Close()
	if real == kernels.Float32 {
		fill(streams.View[float32](host.Bytes()))
	} else {
		fill(streams.View[float64](host.Bytes()))
	}
	for at := int64(0); at < m.Size(); at += piece {
		n := min(piece, m.Size()-at)
		if err := s.Copy(m.Span(at, n), host.Span(0, n)); err != nil {
			return err
		}
	}
	return s.Sync(kerneltest.Limit)
}

func fill[T rows.Float](v []T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range v {
		v[i] = T(rng.Float64() + 0.5)
	}
}
