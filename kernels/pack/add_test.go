package pack_test

import (
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/pack"
)

// One launch adds boxes of numbers of all types, and changes nothing else.
func TestAdds(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := kerneltest.NewBench(t, s)
		copier := test.Must(pack.NewBoxCopier(b.Compiler, b.Device))(t)
		for _, values := range []int{1, 3} { // per element
			t.Run(fmt.Sprintf("values=%d", values), func(t *testing.T) {
				adds := []sums{
					newSums[float32](b, "float32", values, 4), newSums[float64](b, "float64", values, 8),
					newSums[int32](b, "int32", values, 4), newSums[int64](b, "int64", values, 8),
					newSums[float32](b, "complex64", 2*values, 4), newSums[float64](b, "complex128", 2*values, 8),
				}
				var all []pack.Add
				for _, a := range adds {
					all = append(all, a.add)
				}
				k := test.Must(copier.Adds("adds", all...))(t)
				b.Do(b.Stream.Launch(k.Kernel))
				for _, a := range adds {
					a.check()
				}
				b.Do(k.Close())
			})
		}
	})
}

// sums is one addition and its expected result.
type sums struct {
	add   pack.Add
	check func()
}

// newSums adds boxes of integers in rows of 11 elements to boxes in rows of 9.
func newSums[T float32 | float64 | int32 | int64](b *kerneltest.Bench, number domain.Element, scalars, size int) sums {
	const elements = 400
	c := pack.Copy{
		Dst:  pack.Place{First: 5, Pitch: 9, Plane: 50},
		Src:  pack.Place{First: 3, Pitch: 11, Plane: 60},
		Size: domain.Vec{7, 4, 3}, ElementSize: scalars * size,
	}
	dst, src := make([]T, elements*scalars), make([]T, elements*scalars)
	for i := range dst {
		dst[i], src[i] = T(i%251), T(1000+i)
	}
	c.Dst.Data, c.Src.Data = kerneltest.Upload(b, dst), kerneltest.Upload(b, src)
	for z := range c.Size[2] {
		for y := range c.Size[1] {
			for i := range c.Size[0] * scalars {
				to := (5+9*y+50*z)*scalars + i
				dst[to] += src[(3+11*y+60*z)*scalars+i]
			}
		}
	}
	return sums{pack.Add{Copy: c, Number: number}, func() { holds(b, c.Dst.Data, dst, "%s", number) }}
}

// A row is copied to every row of a box, and nowhere else.
func TestRepeat(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := kerneltest.NewBench(t, s)
		copier := test.Must(pack.NewBoxCopier(b.Compiler, b.Device))(t)
		for _, size := range kerneltest.Shapes() {
			box := domain.Box{Hi: size}
			l := test.Must(domain.NewLayout(box, domain.UniformRadius(3, 1), 8))(t)
			want := kerneltest.Noise(l.Length)
			field := b.Array(box, 3, want)
			row := test.Must(copier.NewRow([]byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, size[0]))(t) // 1.0
			k := test.Must(copier.Copies("repeat", pack.Repeat(field, box, row.All())))(t)
			b.Do(b.Stream.Launch(k.Kernel))
			kerneltest.EachPoint(box, func(p domain.Vec) { want[l.Offset(p)] = 1 })
			holds(b, field.Data, want, "size %v", size)
			b.Do(k.Close(), row.Close())
		}
	})
}
