package kernels_test

import (
	"math"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// bed is one host device to time kernels on. Its stream is one goroutine, so
// that what is timed runs on one core.
type bed struct {
	b        *testing.B
	device   *streams.Device
	stream   *streams.Stream
	compiler *kernels.Compiler
}

func newBed(b *testing.B) *bed {
	set := testdevices.Host(b, 1)
	d := set.Devices[0]
	return &bed{b, d, ready(d.NewStream(streams.Normal))(b), set.Compiler}
}

// ready ends the benchmark if what it was to use could not be made.
func ready[T any](v T, err error) func(b *testing.B) T {
	return func(b *testing.B) T {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
		return v
	}
}

// array makes an array over box, ghosts of one layer included, with ordinary
// numbers in every element.
func (d *bed) array(box domain.Box, dims int, real kernels.Real) kernels.Array {
	d.b.Helper()
	l := ready(domain.NewLayout(box, domain.UniformRadius(dims, 1), real.Size()))(d.b)
	m := ready(d.device.Alloc(l.Bytes()))(d.b)
	if real == kernels.Float32 {
		fill(streams.View[float32](m.Bytes()))
	} else {
		fill(streams.View[float64](m.Bytes()))
	}
	return kernels.Array{Data: m.All(), Layout: l}
}

func fill[T float32 | float64](v []T) {
	for i := range v {
		v[i] = T(i % 17)
	}
}

// fastest times the launches, queued one after the other and waited for.
func (d *bed) fastest(launches ...*streams.Kernel) float64 {
	return fastest(d.b, func() error {
		for _, k := range launches {
			if err := d.stream.Launch(k); err != nil {
				return err
			}
		}
		return d.stream.Sync(limit)
	})
}

// fastest runs the step over and over and returns the shortest time in
// nanoseconds: whatever else a machine does only ever makes one longer.
func fastest(b *testing.B, step func() error) float64 {
	b.Helper()
	best := math.Inf(1)
	for b.Loop() {
		start := time.Now()
		if err := step(); err != nil {
			b.Fatal(err)
		}
		best = min(best, float64(time.Since(start)))
	}
	return best
}

// report gives the time of one step over so many points, and the rate.
func report(b *testing.B, nanoseconds float64, points int64) {
	b.ReportMetric(nanoseconds, "ns/op")
	b.ReportMetric(float64(points)*1e3/nanoseconds, "Mpoint/s")
}

// cube is a box of n points along each axis.
func cube(dims, n int) domain.Box {
	box := domain.Box{Hi: domain.Vec{n, n, n}}
	if dims == 2 {
		box.Hi[2] = 1
	}
	return box
}
