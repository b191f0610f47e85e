package kernels_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// One launch adds boxes of numbers of every type, and touches nothing else.
func TestAdds(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := newBench(t, s)
		copier := must(b.compiler.NewBoxCopier(b.device))(t)
		for _, values := range []int{1, 3} { // an element
			t.Run(fmt.Sprintf("values=%d", values), func(t *testing.T) {
				adds := []*sums{
					newSums[float32](b, "float32", values, 4), newSums[float64](b, "float64", values, 8),
					newSums[int32](b, "int32", values, 4), newSums[int64](b, "int64", values, 8),
					newSums[float32](b, "complex64", 2*values, 4), newSums[float64](b, "complex128", 2*values, 8),
				}
				var all []kernels.Add
				for _, a := range adds {
					all = append(all, a.add)
				}
				k := must(copier.Adds("adds", all...))(t)
				b.do(b.stream.Launch(k.Kernel))
				for _, a := range adds {
					a.check()
				}
				b.do(k.Close())
			})
		}
	})
}

// sums is one addition and what it must give.
type sums struct {
	add   kernels.Add
	check func()
}

// newSums adds boxes of whole numbers in rows of 11 elements to boxes in rows of 9.
func newSums[T float32 | float64 | int32 | int64](b *bench, number kernels.Number, scalars, size int) *sums {
	const elements = 400
	c := kernels.Copy{
		Dst:  kernels.Place{First: 5, Pitch: 9, Plane: 50},
		Src:  kernels.Place{First: 3, Pitch: 11, Plane: 60},
		Size: domain.Vec{7, 4, 3}, ElementSize: scalars * size,
	}
	dst, src := make([]T, elements*scalars), make([]T, elements*scalars)
	for i := range dst {
		dst[i], src[i] = T(i%251), T(1000+i)
	}
	c.Dst.Data, c.Src.Data = putOf(b, dst), putOf(b, src)
	for z := range c.Size[2] {
		for y := range c.Size[1] {
			for i := range c.Size[0] * scalars {
				to := (5+9*y+50*z)*scalars + i
				dst[to] += src[(3+11*y+60*z)*scalars+i]
			}
		}
	}
	return &sums{kernels.Add{Copy: c, Number: number}, func() {
		for i, got := range getOf[T](b, c.Dst.Data) {
			if got != dst[i] {
				b.t.Fatalf("%s: scalar %d is %v, not %v", number, i, got, dst[i])
			}
		}
	}}
}

// putOf returns device memory of the values.
func putOf[T any](b *bench, values []T) streams.Span {
	bytes := int64(len(values)) * int64(unsafe.Sizeof(values[0]))
	host, m := must(b.device.AllocPinned(bytes))(b.t), must(b.device.Alloc(bytes))(b.t)
	defer host.Close()
	b.t.Cleanup(func() { m.Close() })
	copy(streams.View[T](host.Bytes()), values)
	b.do(b.stream.Copy(m.All(), host.All()))
	return m.All()
}

// getOf returns the values in device memory.
func getOf[T any](b *bench, s streams.Span) []T {
	host := must(b.device.AllocPinned(s.Length))(b.t)
	defer host.Close()
	b.do(b.stream.Copy(host.All(), s))
	return append([]T(nil), streams.View[T](host.Bytes())...)
}

func TestAddRefusals(t *testing.T) {
	b := newBench(t, testdevices.Host(t, 1))
	copier := must(b.compiler.NewBoxCopier(b.device))(t)
	a := b.array(domain.Box{Hi: domain.Vec{8, 8, 8}}, 3, nil)
	whole := kernels.Pack(a.Data, a, a.Layout.Owned)
	small := whole
	small.Dst.Data.Length = 8
	for what, add := range map[string]kernels.Add{
		"no number":                 {Copy: whole, Number: "8 bytes"},
		"elements of half a number": {Copy: whole, Number: "complex128"},
		"memory too small":          {Copy: small, Number: "float64"},
	} {
		if _, err := copier.Adds("adds", add); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	if _, err := copier.Adds("none"); err == nil {
		t.Error("no addition was accepted")
	}
}

// A row is put into every row of a box, and nowhere else.
func TestRepeat(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := newBench(t, s)
		copier := must(b.compiler.NewBoxCopier(b.device))(t)
		for _, size := range shapes {
			box := domain.Box{Hi: size}
			l := must(domain.NewLayout(box, domain.UniformRadius(3, 1), 8))(t)
			want := noise(l.Length)
			field := b.array(box, 3, want)
			row := must(copier.NewRow([]byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, size[0]))(t) // 1.0
			k := must(copier.Copies("repeat", kernels.Repeat(field, box, row.All())))(t)
			b.do(b.stream.Launch(k.Kernel))
			eachPoint(box, func(p domain.Vec) { want[l.Offset(p)] = 1 })
			for i, v := range b.get(field.Data) {
				if v != want[i] {
					t.Fatalf("size %v: element %d is %v, not %v", size, i, v, want[i])
				}
			}
			b.do(k.Close(), row.Close())
		}
	})
}
