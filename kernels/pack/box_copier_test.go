package pack_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/pack"
)

// Pack takes exactly the box, in order, and Unpack puts it into exactly the
// box.
func TestPack(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		for _, size := range kerneltest.Shapes() {
			t.Run(fmt.Sprintf("size=%v", size), func(t *testing.T) { packAndUnpack(kerneltest.NewBench(t, s), size) })
		}
	})
}

func packAndUnpack(b *kerneltest.Bench, size domain.Vec) {
	box := domain.Box{Hi: size}
	copier := kerneltest.Must(pack.NewBoxCopier(b.Compiler, b.Device))(b.T)
	for _, dir := range domain.Directions(3) {
		part := domain.SendBox(box, dir, domain.UniformRadius(3, 1))
		l := kerneltest.Must(domain.NewLayout(box, domain.UniformRadius(3, 1), 8))(b.T)
		in := kerneltest.Noise(l.Length)
		field := b.Array(box, 3, in)
		buffer := kerneltest.Must(b.Device.Alloc(8 * (part.Points() + 2)))(b.T)
		defer buffer.Close()
		canary := kerneltest.Noise(part.Points() + 2)
		kerneltest.Put(b, buffer.All(), canary)
		span := buffer.Span(8, 8*part.Points())
		ghost := domain.GhostBox(box, dir, domain.UniformRadius(3, 1))
		packed := kerneltest.Must(copier.Copies("pack", pack.Pack(span, field, part)))(b.T)
		unpacked := kerneltest.Must(copier.Copies("unpack", pack.Unpack(field, ghost, span)))(b.T)
		b.Do(b.Stream.Launch(packed.Kernel), b.Stream.Launch(unpacked.Kernel))
		got, n := kerneltest.Get[float64](b, buffer.All()), 1
		if got[0] != canary[0] || got[len(got)-1] != canary[len(got)-1] {
			b.T.Fatal("pack wrote beside its buffer")
		}
		want := append([]float64(nil), in...)
		shift := ghost.Lo.Sub(part.Lo)
		kerneltest.EachPoint(part, func(p domain.Vec) {
			if got[n] != in[l.Offset(p)] {
				b.T.Fatalf("direction %v: point %v was packed as %v, not %v", dir, p, got[n], in[l.Offset(p)])
			}
			want[l.Offset(p.Add(shift))] = in[l.Offset(p)]
			n++
		})
		for i, v := range kerneltest.Get[float64](b, field.Data) {
			if v != want[i] {
				b.T.Fatalf("direction %v: element %d is %v after unpack, not %v", dir, i, v, want[i])
			}
		}
		b.Do(packed.Close(), unpacked.Close())
	}
}

// One launch makes many copies, of elements of any size, at any alignment.
func TestCopiesOfAnyElement(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := kerneltest.NewBench(t, s)
		copier := kerneltest.Must(pack.NewBoxCopier(b.Compiler, b.Device))(t)
		for _, size := range []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 48} {
			t.Run(fmt.Sprintf("element=%d", size), func(t *testing.T) { copiesOf(t, b, copier, size) })
		}
	})
}

func copiesOf(t *testing.T, b *kerneltest.Bench, copier *pack.BoxCopier, size int) {
	const elements = 4000
	bytes := int64(elements * size)
	src, dst := kerneltest.Must(b.Device.Alloc(bytes))(t), kerneltest.Must(b.Device.Alloc(bytes))(t)
	host := kerneltest.Must(b.Device.AllocPinned(bytes))(t)
	for i := range host.Bytes() {
		host.Bytes()[i] = byte(rand.Int())
	}
	in := append([]byte(nil), host.Bytes()...)
	b.Do(b.Stream.Copy(src.All(), host.All()), b.Stream.Copy(dst.All(), host.All()))
	want := append([]byte(nil), in...)
	var copies []pack.Copy
	for i := range int64(5) { // from boxes 13 elements apart to boxes 701 elements apart
		c := pack.Copy{
			Dst:         pack.Place{Data: dst.All(), First: 701 * i, Pitch: 11, Plane: 70 + i},
			Src:         pack.Place{Data: src.All(), First: 13 * i, Pitch: 17 + i, Plane: 230},
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
	k := kerneltest.Must(copier.Copies("copies", copies...))(t)
	b.Do(b.Stream.Launch(k.Kernel), b.Stream.Copy(host.All(), dst.All()))
	for i, v := range host.Bytes() {
		if v != want[i] {
			t.Fatalf("byte %d is %d, not %d", i, v, want[i])
		}
	}
	b.Do(k.Close(), src.Close(), dst.Close(), host.Close())
}

func TestRefusals(t *testing.T) {
	b := kerneltest.NewBench(t, testdevices.Host(t, 1))
	box := domain.Box{Hi: domain.Vec{8, 8, 8}}
	a := b.Array(box, 3, nil)
	copier := kerneltest.Must(pack.NewBoxCopier(b.Compiler, b.Device))(t)
	small := kerneltest.Must(b.Device.Alloc(8))(t)
	check := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	_, err := copier.Copies("pack", pack.Pack(small.All(), a, box))
	check("a buffer too small", err)
	_, err = copier.Copies("pack", pack.Pack(small.All(), a, domain.Box{}))
	check("an empty box", err)
	_, err = copier.Copies("none")
	check("no copy", err)
}
