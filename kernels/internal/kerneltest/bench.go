// Package kerneltest contains helpers shared by the tests of the packages of kernels: a device with arrays to run
// kernels on, one to time them on, and checks of all programs that a package compiles.
package kerneltest

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Limit is how long tests wait for a device.
const Limit = 5 * time.Minute

// Bench is one device with arrays to run kernels on.
type Bench struct {
	T        *testing.T
	Device   *streams.Device
	Stream   *streams.Stream
	Compiler *kernels.Compiler
}

// NewBench returns a bench on the first device of a set.
func NewBench(t *testing.T, s *testdevices.Set) *Bench {
	t.Helper()
	b := &Bench{T: t, Device: s.Devices[0], Compiler: s.Compiler}
	b.Stream = test.Must(b.Device.NewStream(streams.Normal))(t)
	return b
}

// Array creates an array over box with ghosts of one layer and stores values in it, including padding.
func (b *Bench) Array(box domain.Box, dims int, values []float64) kernels.Array {
	b.T.Helper()
	l := test.Must(domain.NewLayout(box, domain.UniformRadius(dims, 1), 8))(b.T)
	m := test.Must(b.Device.Alloc(l.Bytes()))(b.T)
	b.T.Cleanup(func() { m.Close() })
	Put(b, m.All(), values)
	return kernels.Array{Data: m.All(), Layout: l}
}

// Do checks the errors of queuing and waits for the work.
func (b *Bench) Do(errs ...error) {
	b.T.Helper()
	for _, err := range append(errs, b.Stream.Sync(Limit)) {
		if err != nil {
			b.T.Fatal(err)
		}
	}
}

// Put copies values to the device of a bench, or into pinned memory.
func Put[T any](b *Bench, dst streams.Span, values []T) {
	b.T.Helper()
	if dst.Memory.Pinned() {
		copy(pinned[T](dst), values)
		return
	}
	host := test.Must(b.Device.AllocPinned(dst.Length))(b.T)
	copy(streams.View[T](host.Bytes()), values)
	b.Do(b.Stream.Copy(dst, host.All()), b.Stream.Sync(Limit), host.Close())
}

// Upload allocates memory for values and copies them to it.
func Upload[T any](b *Bench, values []T) streams.Span {
	b.T.Helper()
	m := test.Must(b.Device.Alloc(int64(len(values)) * int64(unsafe.Sizeof(values[0]))))(b.T)
	b.T.Cleanup(func() { m.Close() })
	Put(b, m.All(), values)
	return m.All()
}

// pinned returns the values in pinned memory.
func pinned[T any](s streams.Span) []T {
	return streams.View[T](s.Memory.Bytes()[s.Offset:][:s.Length])
}

// Get copies values from memory of the device.
func Get[T any](b *Bench, src streams.Span) []T {
	b.T.Helper()
	if src.Memory.Pinned() {
		return append([]T(nil), pinned[T](src)...)
	}
	host := test.Must(b.Device.AllocPinned(src.Length))(b.T)
	b.Do(b.Stream.Copy(host.All(), src))
	values := append([]T(nil), streams.View[T](host.Bytes())...)
	b.Do(host.Close())
	return values
}

// Noise returns random numbers.
func Noise(n int64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rand.NormFloat64()
	}
	return v
}

// Shapes returns boxes that cover all branches of the kernels: streams in z with and without remainders, thin
// slabs, single points, boxes off the origin.
func Shapes() []domain.Vec {
	return []domain.Vec{
		{70, 19, 67}, {64, 4, 64}, {1, 33, 40}, {200, 1, 9}, {9, 300, 1}, {1, 1, 1}, {3, 1, 2}, {130, 130, 1},
		{257, 3, 8},
	}
}

// EachPoint calls f for every point of a box.
func EachPoint(b domain.Box, f func(p domain.Vec)) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			for x := b.Lo[0]; x < b.Hi[0]; x++ {
				f(domain.Vec{x, y, z})
			}
		}
	}
}

// Near reports whether sums taken in different orders agree.
func Near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) }

// Apply is a stencil at one point, where at is the value at an offset, summed as stencil.Stencil defines it.
func Apply[T float32 | float64](s stencil.Stencil, at func(o domain.Vec) T) T {
	u := T(T(s.Center) * at(domain.Vec{}))
	for _, g := range s.Groups {
		var sum T
		for i, part := range g.Parts {
			one := at(part[0])
			for _, o := range part[1:] {
				one += at(o)
			}
			if i == 0 {
				sum = one
			} else {
				sum += one
			}
		}
		u += T(T(g.Weight) * sum)
	}
	return u
}
