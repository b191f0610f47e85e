package pack_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/pack"
)

// Pack copies exactly the points of the box, in order, and Unpack writes exactly those.
func TestPack(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		for _, size := range kerneltest.Shapes() {
			t.Run(fmt.Sprintf("size=%v", size), func(t *testing.T) { packAndUnpack(kerneltest.NewBench(t, s), size) })
		}
	})
}

func packAndUnpack(b *kerneltest.Bench, size domain.Vec) {
	box := domain.Box{Hi: size}
	copier := test.Must(pack.NewBoxCopier(b.Compiler, b.Device))(b.T)
	for _, dir := range domain.Directions(3) {
		part := domain.SendBox(box, dir, domain.UniformRadius(3, 1))
		l := test.Must(domain.NewLayout(box, domain.UniformRadius(3, 1), 8))(b.T)
		in := kerneltest.Noise(l.Length)
		field := b.Array(box, 3, in)
		message := kerneltest.Noise(part.Points() + 2) // with one more number on either side
		buffer := kerneltest.Upload(b, message)
		span := buffer.Memory.Span(8, 8*part.Points())
		ghost := domain.GhostBox(box, dir, domain.UniformRadius(3, 1))
		packed := test.Must(copier.Copies("pack", pack.Pack(span, field, part)))(b.T)
		unpacked := test.Must(copier.Copies("unpack", pack.Unpack(field, ghost, span)))(b.T)
		b.Do(b.Stream.Launch(packed.Kernel), b.Stream.Launch(unpacked.Kernel))
		want, n := slices.Clone(in), 1
		shift := ghost.Lo.Sub(part.Lo)
		kerneltest.EachPoint(part, func(p domain.Vec) {
			message[n], want[l.Offset(p.Add(shift))] = in[l.Offset(p)], in[l.Offset(p)]
			n++
		})
		holds(b, buffer, message, "direction %v, packed", dir)
		holds(b, field.Data, want, "direction %v, unpacked", dir)
		b.Do(packed.Close(), unpacked.Close())
	}
}

// One launch performs many copies, of elements of any size and alignment.
func TestCopiesOfAnyElement(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := kerneltest.NewBench(t, s)
		copier := test.Must(pack.NewBoxCopier(b.Compiler, b.Device))(t)
		for _, size := range []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 48} {
			t.Run(fmt.Sprintf("element=%d", size), func(t *testing.T) {
				on := *b
				on.T = t
				copiesOf(&on, copier, size)
			})
		}
	})
}

func copiesOf(b *kerneltest.Bench, copier *pack.BoxCopier, size int) {
	in, want := random(4000*int64(size)), random(4000*int64(size))
	src, dst := kerneltest.Upload(b, in), kerneltest.Upload(b, want)
	var copies []pack.Copy
	for i := range int64(5) { // from boxes at a distance of 13 elements to boxes at a distance of 701
		c := pack.Copy{
			Dst:         pack.Place{Data: dst, First: 701 * i, Pitch: 11, Plane: 70 + i},
			Src:         pack.Place{Data: src, First: 13 * i, Pitch: 17 + i, Plane: 230},
			Size:        domain.Vec{1 + 2*int(i), 5, 4},
			ElementSize: size,
		}
		copies = append(copies, c)
		for z := range int64(4) {
			for y := range int64(5) {
				to, from := c.Dst.First+y*c.Dst.Pitch+z*c.Dst.Plane, c.Src.First+y*c.Src.Pitch+z*c.Src.Plane
				n := int64(c.Size[0])
				copy(want[to*int64(size):(to+n)*int64(size)], in[from*int64(size):])
			}
		}
	}
	k := test.Must(copier.Copies("copies", copies...))(b.T)
	b.Do(b.Stream.Launch(k.Kernel))
	holds(b, dst, want, "copied")
	b.Do(k.Close())
}

// Copies, additions and rows that exceed their memory, also beyond 64 bits, or are empty, are rejected.
func TestCopyErrors(t *testing.T) {
	b := kerneltest.NewBench(t, testdevices.Host(t, 1))
	copier := test.Must(pack.NewBoxCopier(b.Compiler, b.Device))(t)
	a := b.Array(domain.Box{Hi: domain.Vec{8, 8, 8}}, 3, nil)
	m := test.Must(b.Device.Alloc(1 << 10))(t)
	whole := pack.Pack(a.Data, a, a.Layout.Owned)
	small := whole
	small.Dst.Data.Length = 8
	at := pack.Place{Data: m.All(), Pitch: 8, Plane: 64}
	far := pack.Place{Data: m.All(), Pitch: 1 << 62, Plane: 8}
	last := pack.Place{Data: m.All(), First: math.MaxInt64}
	large := domain.Vec{1 << 32, 1 << 32, 2}
	copies := func(all ...pack.Copy) error {
		_, err := copier.Copies("copies", all...)
		return err
	}
	adds := func(all ...pack.Add) error {
		_, err := copier.Adds("adds", all...)
		return err
	}
	row := func(n int) error {
		_, err := copier.NewRow(make([]byte, 8), n)
		return err
	}
	beyond := kernels.Array{Data: m.All(), Layout: domain.Layout{Owned: domain.Box{Hi: domain.Vec{1, 1, 1}}, ElementSize: 8, Length: 1 << 61}}
	for name, err := range map[string]error{
		"no copy":                   copies(),
		"a buffer too small":        copies(pack.Pack(m.Span(0, 8), a, a.Layout.Owned)),
		"an empty box":              copies(pack.Pack(m.Span(0, 8), a, domain.Box{})),
		"rows":                      copies(pack.Copy{Dst: far, Src: at, Size: domain.Vec{1, 5, 1}, ElementSize: 1}),
		"elements":                  copies(pack.Copy{Dst: at, Src: at, Size: domain.Vec{2, 1, 1}, ElementSize: 1 << 62}),
		"a first element":           copies(pack.Copy{Dst: at, Src: last, Size: domain.Vec{1, 1, 1}, ElementSize: 4}),
		"negative sizes":            copies(pack.Copy{Dst: at, Src: at, Size: domain.Vec{-1, -1, 1}, ElementSize: 1}),
		"a dense box":               copies(pack.Copy{Dst: pack.Dense(m.All(), large), Src: at, Size: large, ElementSize: 1}),
		"points and bytes":          copies(pack.Copy{Dst: at, Src: at, Size: domain.Vec{1 << 32, 1, 1}, ElementSize: 1 << 32}),
		"no addition":               adds(),
		"unknown number":            adds(pack.Add{Copy: whole, Number: "8 bytes"}),
		"elements of half a number": adds(pack.Add{Copy: whole, Number: "complex128"}),
		"memory too small":          adds(pack.Add{Copy: small, Number: "float64"}),
		"a row of -1 elements":      row(-1),
		"a row of no elements":      row(0),
		"a row beyond 64 bits":      row(math.MaxInt),
		"an array beyond 64 bits":   beyond.Holds(beyond.Layout.Owned),
	} {
		if err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
