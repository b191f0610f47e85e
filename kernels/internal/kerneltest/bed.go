package kerneltest

import (
	"math"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Bed is one host device to time kernels on. Its stream is one goroutine, so
// that what is timed runs on one core.
type Bed struct {
	B        *testing.B
	Device   *streams.Device
	Stream   *streams.Stream
	Compiler *kernels.Compiler
}

// NewBed returns one.
func NewBed(b *testing.B) *Bed {
	set := testdevices.Host(b, 1)
	d := set.Devices[0]
	return &Bed{b, d, Must(d.NewStream(streams.Normal))(b), set.Compiler}
}

// Array makes an array over box, ghosts of one layer included, with ordinary
// numbers in every element.
func (d *Bed) Array(box domain.Box, dims int, real kernels.Real) kernels.Array {
	d.B.Helper()
	l := Must(domain.NewLayout(box, domain.UniformRadius(dims, 1), real.Size()))(d.B)
	m := Must(d.Device.Alloc(l.Bytes()))(d.B)
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

// Fastest runs the step over and over and returns the shortest time in
// nanoseconds: whatever else a machine does only ever makes one longer.
func Fastest(b *testing.B, step func() error) float64 {
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

// Report gives the time of one step over so many points, and the rate.
func Report(b *testing.B, nanoseconds float64, points int64) {
	b.ReportMetric(nanoseconds, "ns/op")
	b.ReportMetric(float64(points)*1e3/nanoseconds, "Mpoint/s")
}

// Cube is a box of n points along each of three axes.
func Cube(n int) domain.Box { return domain.Box{Hi: domain.Vec{n, n, n}} }
