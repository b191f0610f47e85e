package kernels_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
)

// Pack takes exactly the box, in order, and Unpack puts it into exactly the
// box.
func TestPack(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		for _, size := range shapes {
			t.Run(fmt.Sprintf("size=%v", size), func(t *testing.T) { packAndUnpack(newBench(t, s), size) })
		}
	})
}

func packAndUnpack(b *bench, size domain.Vec) {
	box := domain.Box{Hi: size}
	copier := must(b.compiler.NewBoxCopier(b.device))(b.t)
	for _, dir := range domain.Directions(3) {
		part := domain.SendBox(box, dir, domain.UniformRadius(3, 1))
		l := must(domain.NewLayout(box, domain.UniformRadius(3, 1), 8))(b.t)
		in := noise(l.Length)
		field := b.array(box, 3, in)
		buffer := must(b.device.Alloc(8 * (part.Points() + 2)))(b.t)
		defer buffer.Close()
		canary := noise(part.Points() + 2)
		b.put(buffer.All(), canary)
		span := buffer.Span(8, 8*part.Points())
		ghost := domain.GhostBox(box, dir, domain.UniformRadius(3, 1))
		pack := must(copier.Copies("pack", kernels.Pack(span, field, part)))(b.t)
		unpack := must(copier.Copies("unpack", kernels.Unpack(field, ghost, span)))(b.t)
		b.do(b.stream.Launch(pack.Kernel), b.stream.Launch(unpack.Kernel))
		got, n := b.get(buffer.All()), 1
		if got[0] != canary[0] || got[len(got)-1] != canary[len(got)-1] {
			b.t.Fatal("pack wrote beside its buffer")
		}
		want := append([]float64(nil), in...)
		shift := ghost.Lo.Sub(part.Lo)
		eachPoint(part, func(p domain.Vec) {
			if got[n] != in[l.Offset(p)] {
				b.t.Fatalf("direction %v: point %v was packed as %v, not %v", dir, p, got[n], in[l.Offset(p)])
			}
			want[l.Offset(p.Add(shift))] = in[l.Offset(p)]
			n++
		})
		for i, v := range b.get(field.Data) {
			if v != want[i] {
				b.t.Fatalf("direction %v: element %d is %v after unpack, not %v", dir, i, v, want[i])
			}
		}
		b.do(pack.Close(), unpack.Close())
	}
}

// One launch makes many copies, of elements of any size, at any alignment.
func TestCopiesOfAnyElement(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := newBench(t, s)
		copier := must(b.compiler.NewBoxCopier(b.device))(t)
		for _, size := range []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 48} {
			t.Run(fmt.Sprintf("element=%d", size), func(t *testing.T) { copiesOf(t, b, copier, size) })
		}
	})
}

func copiesOf(t *testing.T, b *bench, copier *kernels.BoxCopier, size int) {
	const elements = 4000
	bytes := int64(elements * size)
	src, dst := must(b.device.Alloc(bytes))(t), must(b.device.Alloc(bytes))(t)
	host := must(b.device.AllocPinned(bytes))(t)
	for i := range host.Bytes() {
		host.Bytes()[i] = byte(rand.Int())
	}
	in := append([]byte(nil), host.Bytes()...)
	b.do(b.stream.Copy(src.All(), host.All()), b.stream.Copy(dst.All(), host.All()))
	want := append([]byte(nil), in...)
	var copies []kernels.Copy
	for i := range int64(5) { // from boxes 13 elements apart to boxes 701 elements apart
		c := kernels.Copy{
			Dst:         kernels.Place{Data: dst.All(), First: 701 * i, Pitch: 11, Plane: 70 + i},
			Src:         kernels.Place{Data: src.All(), First: 13 * i, Pitch: 17 + i, Plane: 230},
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
	k := must(copier.Copies("copies", copies...))(t)
	b.do(b.stream.Launch(k.Kernel), b.stream.Copy(host.All(), dst.All()))
	for i, v := range host.Bytes() {
		if v != want[i] {
			t.Fatalf("byte %d is %d, not %d", i, v, want[i])
		}
	}
	b.do(k.Close(), src.Close(), dst.Close(), host.Close())
}
