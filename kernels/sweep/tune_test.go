package sweep

import (
	"testing"

	"github.com/halox/halox/domain"
)

// Shapes for a very large box are timed on some of its layers.
func TestTimedBox(t *testing.T) {
	for _, c := range []struct {
		dims   int
		size   domain.Vec
		layers int
	}{
		{3, domain.Vec{64, 64, 64}, 64},
		{3, domain.Vec{512, 512, 512}, 256},
		{3, domain.Vec{1024, 1024, 1024}, 64},
		{3, domain.Vec{4096, 4096, 100}, 64},
		{3, domain.Vec{8, 8, 1 << 21}, 1 << 20},
		{2, domain.Vec{1024, 1024, 1}, 1024},
		{2, domain.Vec{16384, 16384, 1}, 4096},
		{2, domain.Vec{1 << 30, 100, 1}, 64},
	} {
		n := &plan{point: Point{Dims: c.dims}}
		want := c.size
		want[c.dims-1] = c.layers
		lo := domain.Vec{3, 5, 7}
		if c.dims == 2 {
			lo[2] = 0
		}
		if got := n.timedBox(domain.Box{Lo: lo, Hi: lo.Add(c.size)}); got != (domain.Box{Lo: lo, Hi: lo.Add(want)}) {
			t.Errorf("%d dimensions, %v: got %v", c.dims, c.size, got)
		}
	}
}
