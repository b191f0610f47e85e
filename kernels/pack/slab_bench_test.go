package pack_test

import (
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// BenchmarkSlab times the copies of a step at one face of a cube, on a host device.
// The points of the face lie in a plane of memory (z), in rows (y) or apart (x).
func BenchmarkSlab(b *testing.B) {
	const size = 256
	for _, op := range []struct {
		name string
		make func(d *kerneltest.Bed, field kernels.Array, slab domain.Box) *streams.Kernel
	}{{"pack", packSlab}, {"unpack", unpackSlab}} {
		for axis, name := range []string{"x", "y", "z"} {
			b.Run(fmt.Sprintf("op=%s/axis=%s/type=float64/size=%d", op.name, name, size), func(b *testing.B) {
				d, slab := kerneltest.NewBed(b), kerneltest.Cube(size)
				field := d.Array(slab, 3, kernels.Float64)
				slab.Hi[axis] = 1
				kerneltest.Report(b, d.Fastest(op.make(d, field, slab)), slab.Points())
			})
		}
	}
}

func packSlab(d *kerneltest.Bed, field kernels.Array, slab domain.Box) *streams.Kernel {
	copier := kerneltest.Must(pack.NewBoxCopier(d.Compiler, d.Device))(d.B)
	return kerneltest.Must(copier.Copies("pack", pack.Pack(buffer(d, slab), field, slab)))(d.B).Kernel
}

func unpackSlab(d *kerneltest.Bed, field kernels.Array, slab domain.Box) *streams.Kernel {
	copier := kerneltest.Must(pack.NewBoxCopier(d.Compiler, d.Device))(d.B)
	return kerneltest.Must(copier.Copies("unpack", pack.Unpack(field, slab, buffer(d, slab))))(d.B).Kernel
}

// buffer has room for the points of the slab.
func buffer(d *kerneltest.Bed, slab domain.Box) streams.Span {
	return kerneltest.Must(d.Device.Alloc(8 * slab.Points()))(d.B).All()
}
