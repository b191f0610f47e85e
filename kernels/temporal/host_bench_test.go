package temporal

import (
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
)

// BenchmarkHostPass compares passes of several depths with a sweep, which is depth 1.
func BenchmarkHostPass(b *testing.B) {
	for _, c := range []struct {
		spacing []float64
		size    domain.Vec
	}{{[]float64{1, 1, 1}, domain.Vec{512, 512, 256}}, {[]float64{1, 1}, domain.Vec{8192, 8192, 1}}} {
		s, err := stencil.HeatOf(stencil.Kinds(len(c.spacing))[0], c.spacing, 1, 0.1)
		if err != nil {
			b.Fatal(err)
		}
		for _, depth := range []int{1, 2, 4, 6, 8} {
			benchmarkHost[float64](b, s, c.size, depth)
			benchmarkHost[float32](b, s, c.size, depth)
		}
	}
}

func benchmarkHost[T rows.Float](b *testing.B, s stencil.Stencil, size domain.Vec, depth int) {
	var zero T
	box := domain.Box{Hi: size}
	l, err := domain.NewLayout(box, s.Radius(), int(sizeOf(zero)))
	if err != nil {
		b.Fatal(err)
	}
	from, to := make([]T, l.Length), make([]T, l.Length)
	for i := range from {
		from[i] = T(i % 7)
	}
	clear(to)
	h := newHostPass(s, Sides{Fixed, Fixed, Fixed, Fixed, Fixed, Fixed}, from, to, l, l, box, depth, domain.Vec{})
	h.room = make([]T, h.rooms)
	b.Run(fmt.Sprintf("dims=%d/bytes=%d/depth=%d", s.Dims, sizeOf(zero), depth), func(b *testing.B) {
		for b.Loop() {
			h.run()
		}
		b.ReportMetric(float64(box.Points())*float64(depth)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gpoint/s")
	})
}
