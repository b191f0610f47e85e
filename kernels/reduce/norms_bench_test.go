package reduce_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sums"
)

// BenchmarkNorms times the norms over two cubes on one core, and beside them
// bytes.Equal, which reads the same memory and does next to nothing with it.
func BenchmarkNorms(b *testing.B) {
	const size = 256
	for _, real := range []kernels.Real{kernels.Float64, kernels.Float32} {
		variant := fmt.Sprintf("/type=%s/size=%d", real, size)
		b.Run("impl=read"+variant, func(b *testing.B) {
			d := kerneltest.NewBed(b)
			next, last := d.Array(kerneltest.Cube(size), 3, real), d.Array(kerneltest.Cube(size), 3, real)
			took := kerneltest.Fastest(b, func() error {
				bytes.Equal(next.Data.Memory.Bytes(), last.Data.Memory.Bytes())
				return nil
			})
			kerneltest.Report(b, took, kerneltest.Cube(size).Points())
		})
		for _, mode := range []sums.Mode{sums.Reproducible, sums.Fast} {
			b.Run(fmt.Sprintf("impl=host%s/sums=%s", variant, mode), func(b *testing.B) {
				d := kerneltest.NewBed(b)
				reducer := kerneltest.Must(reduce.NewNormReducer(d.Compiler, d.Device, real, mode))(b)
				next, last := d.Array(kerneltest.Cube(size), 3, real), d.Array(kerneltest.Cube(size), 3, real)
				red := kerneltest.Must(reducer.Norms(next, last, kerneltest.Cube(size)))(b)
				defer red.Close()
				took := kerneltest.Fastest(b, func() error { return errors.Join(red.Queue(d.Stream), d.Stream.Sync(kerneltest.Limit)) })
				kerneltest.Report(b, took, kerneltest.Cube(size).Points())
			})
		}
	}
}
