package halo_test

import (
	"io"
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// numbers are the numeric elements.
var numbers = []domain.Element{halo.Float32, halo.Float64, halo.Int32, halo.Int64, domain.Complex64, domain.Complex128}

// drawNumbers draws a field of numbers that fits the placement.
func drawNumbers(t *rapid.T, i int, p *halo.Placement) halo.Spec {
	s := drawSpec(t, i, p)
	s.Element = rapid.SampledFrom(numbers).Draw(t, "number")
	return s
}

// drawCut draws a grid of up to most points along an axis, and a decomposition of it.
func drawCut(t *rapid.T, most int) *domain.Decomposition {
	dims := rapid.IntRange(2, 3).Draw(t, "dims")
	var periodic [3]bool
	size, parts := make([]int, dims), domain.Vec{1, 1, 1}
	for a := range dims {
		size[a] = rapid.IntRange(1, most).Draw(t, "size")
		periodic[a] = rapid.Bool().Draw(t, "periodic")
		parts[a] = rapid.IntRange(1, min(3, size[a])).Draw(t, "parts")
	}
	return cut(t, size, periodic, parts)
}

// drawPlace draws a decomposition and assigns its subdomains to devices.
func drawPlace(t *rapid.T, set *testdevices.Set, most int) *halo.Placement {
	return placeOn(t, set, drawCut(t, most))
}

// tb is a test, a rapid case, or a program of several processes.
type tb interface {
	rapid.TB
	Cleanup(func())
}

// must returns a function that returns the value, or fails the test on an error.
func must[T any](v T, err error) func(t tb) T {
	return func(t tb) T {
		t.Helper()
		test.Check(t, err)
		return v
	}
}

// open is must for values that are closed at the end of the test.
func open[T io.Closer](v T, err error) func(t tb) T {
	return func(t tb) T {
		t.Helper()
		must(v, err)(t)
		t.Cleanup(func() { v.Close() })
		return v
	}
}

// errorOf returns only the error.
func errorOf[T any](_ T, err error) error { return err }

// openField allocates a field until the end of the test.
func openField(t tb, p *halo.Placement, s halo.Spec) *halo.Field { return open(halo.NewField(p, s))(t) }

// openStreams makes one stream per subdomain.
func openStreams(t tb, p *halo.Placement) (at []*streams.Stream) {
	for _, d := range p.Devices {
		at = append(at, open(d.NewStream(streams.Normal))(t))
	}
	return at
}

// done waits for all streams and checks the errors of queued work.
func done(t tb, at []*streams.Stream, errs ...error) {
	for _, s := range at {
		errs = append(errs, s.Sync(testLimit))
	}
	for _, err := range errs {
		test.Check(t, err)
	}
}

// picture is a copy of a field of numbers, including ghosts, on the host. The values of a point are its
// components, with two parts each if they are complex.
type picture struct {
	field *halo.Field
	data  [][][]byte // by rank, then by array
}

// take copies the field to the host.
func take(t tb, f *halo.Field) *picture {
	p := &picture{field: f, data: make([][][]byte, len(f.Parts))}
	p.move(t, func(s *streams.Stream, host *streams.Memory, rank, array int) {
		done(t, []*streams.Stream{s}, s.Copy(host.All(), f.Array(rank, array).Data))
		p.data[rank] = append(p.data[rank], slices.Clone(host.Bytes()))
	})
	return p
}

// put copies the picture to the field.
func (p *picture) put(t tb) {
	p.move(t, func(s *streams.Stream, host *streams.Memory, rank, array int) {
		copy(host.Bytes(), p.data[rank][array])
		done(t, []*streams.Stream{s}, s.Copy(p.field.Array(rank, array).Data, host.All()))
	})
}

// move calls f for every array of the field, with pinned memory of its size.
func (p *picture) move(t tb, f func(s *streams.Stream, host *streams.Memory, rank, array int)) {
	for rank, d := range p.field.Placement.Devices {
		s := must(d.NewStream(streams.Normal))(t)
		for array := range p.arrays() {
			host := must(d.AllocPinned(p.field.Array(rank, array).Data.Length))(t)
			f(s, host, rank, array)
			done(t, nil, host.Close())
		}
		done(t, nil, s.Close())
	}
}

func (p *picture) arrays() int {
	if p.field.Spec.SoA {
		return max(1, p.field.Spec.Components)
	}
	return 1
}

// parts returns how many parts a component has, and the bytes of one.
func (p *picture) parts() (n, size int) {
	e := p.field.Spec.Element
	if e == domain.Complex64 || e == domain.Complex128 {
		return 2, e.Size() / 2
	}
	return 1, e.Size()
}

// values returns how many values a point has.
func (p *picture) values() int {
	n, _ := p.parts()
	return n * max(1, p.field.Spec.Components)
}

// bytes returns the bytes of one value of a point.
func (p *picture) bytes(rank, value int, at domain.Vec) []byte {
	n, size := p.parts()
	array := 0
	if p.field.Spec.SoA {
		array, value = value/n, value%n
	}
	l := p.field.Array(rank, array).Layout
	first := int(l.Offset(at))*l.ElementSize + value*size
	return p.data[rank][array][first : first+size]
}

func (p *picture) get(rank, value int, at domain.Vec) float64 {
	b := p.bytes(rank, value, at)
	switch e := p.field.Spec.Element; {
	case e == halo.Int32:
		return float64(streams.View[int32](b)[0])
	case e == halo.Int64:
		return float64(streams.View[int64](b)[0])
	case len(b) == 4:
		return float64(streams.View[float32](b)[0])
	}
	return streams.View[float64](b)[0]
}

func (p *picture) set(rank, value int, at domain.Vec, v float64) {
	b := p.bytes(rank, value, at)
	switch e := p.field.Spec.Element; {
	case e == halo.Int32:
		streams.View[int32](b)[0] = int32(v)
	case e == halo.Int64:
		streams.View[int64](b)[0] = int64(v)
	case len(b) == 4:
		streams.View[float32](b)[0] = float32(v)
	default:
		streams.View[float64](b)[0] = v
	}
}

// owned returns the box of a rank.
func (p *picture) owned(rank int) domain.Box { return p.field.Cut.Subdomains[rank].Box }

// each calls f for every value of every point, including ghosts.
func (p *picture) each(f func(rank, value int, at domain.Vec)) {
	for rank := range p.field.Parts {
		box := p.owned(rank).Grow(p.field.Spec.Width)
		eachPoint(box, func(at domain.Vec) {
			for v := range p.values() {
				f(rank, v, at)
			}
		})
	}
}

func eachPoint(b domain.Box, f func(at domain.Vec)) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			for x := b.Lo[0]; x < b.Hi[0]; x++ {
				f(domain.Vec{x, y, z})
			}
		}
	}
}

// same fails the test at the first value in which two pictures differ.
func same(t tb, got, want *picture) {
	got.each(func(rank, value int, at domain.Vec) {
		if g, w := got.get(rank, value, at), want.get(rank, value, at); math.Float64bits(g) != math.Float64bits(w) {
			t.Fatalf("field %q (%s), subdomain %d, which owns %v: value %d of point %v is %v, not %v",
				got.field.Spec.Name, got.field.Spec.Element, rank, got.owned(rank), value, at, g, w)
		}
	})
}

// copyOf returns a picture of the same values.
func (p *picture) copyOf() *picture {
	c := &picture{field: p.field}
	for _, arrays := range p.data {
		c.data = append(c.data, nil)
		for _, a := range arrays {
			c.data[len(c.data)-1] = append(c.data[len(c.data)-1], slices.Clone(a))
		}
	}
	return c
}

// imageOf returns the owned point of a field, and its rank, that a ghost of a subdomain's component is a copy
// of; ok is false if an exchange does not update it.
func imageOf(f *halo.Field, component int, own domain.Box, ghost domain.Vec) (rank int, q domain.Vec, ok bool) {
	q = ghost
	across := 0
	width := f.Spec.WidthOf(component)
	for a, n := range f.Cut.Grid.Size {
		if ghost[a] < own.Lo[a]-width.Minus[a] || ghost[a] >= own.Hi[a]+width.Plus[a] {
			return 0, q, false
		}
		if ghost[a] < own.Lo[a] || ghost[a] >= own.Hi[a] {
			across++
		}
		if q[a] < 0 || q[a] >= n {
			if !f.Cut.Grid.Periodic[a] {
				return 0, q, false
			}
			q[a] = (q[a] + n) % n
		}
	}
	for _, s := range f.Cut.Subdomains {
		if s.Box.Contains(q) {
			return s.Rank, q, across > 0 && across <= int(f.Spec.Connectivity)+1
		}
	}
	return 0, q, false
}

// scatter returns a pseudorandom number below 64.
func scatter(seed, rank, value int, at domain.Vec) float64 {
	h := uint64(seed)
	for _, n := range []int{rank, value, at[0], at[1], at[2]} {
		h = (h ^ uint64(n+100)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return float64(h % 64)
}
