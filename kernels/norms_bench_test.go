package kernels_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/halox/halox/kernels"
)

// BenchmarkNorms times the norms over two cubes on one core, and beside them
// bytes.Equal, which reads the same memory and does next to nothing with it.
func BenchmarkNorms(b *testing.B) {
	const size = 256
	for _, real := range []kernels.Real{kernels.Float64, kernels.Float32} {
		variant := fmt.Sprintf("/type=%s/size=%d", real, size)
		b.Run("impl=read"+variant, func(b *testing.B) {
			d := newBed(b)
			next, last := d.array(cube(3, size), 3, real), d.array(cube(3, size), 3, real)
			took := fastest(b, func() error {
				bytes.Equal(next.Data.Memory.Bytes(), last.Data.Memory.Bytes())
				return nil
			})
			report(b, took, cube(3, size).Points())
		})
		b.Run("impl=host"+variant, func(b *testing.B) {
			d := newBed(b)
			reducer := ready(d.compiler.NewNormReducer(d.device, real))(b)
			next, last := d.array(cube(3, size), 3, real), d.array(cube(3, size), 3, real)
			red := ready(reducer.Norms(next, last, cube(3, size)))(b)
			defer red.Close()
			took := fastest(b, func() error { return errors.Join(red.Queue(d.stream), d.stream.Sync(limit)) })
			report(b, took, cube(3, size).Points())
		})
	}
}
