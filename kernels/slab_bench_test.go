package kernels_test

import (
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// BenchmarkSlab times the copies of a step at one face of a cube, on a host device.
// The points of the face lie in a plane of memory (z), in rows (y) or apart (x).
func BenchmarkSlab(b *testing.B) {
	const size = 256
	for _, op := range []struct {
		name string
		make func(d *bed, field kernels.Array, slab domain.Box) *streams.Kernel
	}{{"pack", packSlab}, {"unpack", unpackSlab}} {
		for axis, name := range []string{"x", "y", "z"} {
			b.Run(fmt.Sprintf("op=%s/axis=%s/type=float64/size=%d", op.name, name, size), func(b *testing.B) {
				d, slab := newBed(b), cube(3, size)
				field := d.array(slab, 3, kernels.Float64)
				slab.Hi[axis] = 1
				report(b, d.fastest(op.make(d, field, slab)), slab.Points())
			})
		}
	}
}

func packSlab(d *bed, field kernels.Array, slab domain.Box) *streams.Kernel {
	copier := ready(d.compiler.NewBoxCopier(d.device))(d.b)
	return ready(copier.Copies("pack", kernels.Pack(d.buffer(slab), field, slab)))(d.b).Kernel
}

func unpackSlab(d *bed, field kernels.Array, slab domain.Box) *streams.Kernel {
	copier := ready(d.compiler.NewBoxCopier(d.device))(d.b)
	return ready(copier.Copies("unpack", kernels.Unpack(field, slab, d.buffer(slab))))(d.b).Kernel
}

// buffer has room for the points of the slab.
func (d *bed) buffer(slab domain.Box) streams.Span {
	return ready(d.device.Alloc(8 * slab.Points()))(d.b).All()
}
