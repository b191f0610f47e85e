package kernels

import "testing"

// A box is cut into no more tiles than there are multiprocessors, each with no more
// threads and no more memory than a block may have; a box that shared memory cannot hold
// is not cut.
func TestTilings(t *testing.T) {
	const cores, shared = 132, 227<<10 - tileReserve
	for _, c := range []struct {
		dims    int
		size    [3]int64
		element int64
		fits    bool
	}{
		{3, [3]int64{1, 1, 1}, 8, true},
		{3, [3]int64{64, 64, 16}, 8, true},
		{3, [3]int64{67, 61, 59}, 8, true},
		{3, [3]int64{128, 128, 128}, 8, true},
		{3, [3]int64{256, 256, 64}, 4, true},
		{3, [3]int64{1, 70001, 2}, 4, true},
		{3, [3]int64{256, 256, 64}, 8, false},
		{2, [3]int64{1, 1, 1}, 8, true},
		{2, [3]int64{4096, 1, 1024}, 4, true},
		{2, [3]int64{3, 1, 500000}, 8, true},
		{2, [3]int64{4096, 1, 2048}, 4, false},
	} {
		b, ok := bestTiling(c.dims, c.size, cores, shared, c.element)
		if ok != c.fits {
			t.Errorf("%v of %d bytes: cut %v", c.size, c.element, ok)
		}
		if !ok {
			continue
		}
		tiles, threads, cells := b.tiles[0]*b.tiles[1]*b.tiles[2], b.block[0]*b.block[1]*b.block[2], c.element
		for axis := range b.tiles {
			if b.tiles[axis]*b.largest(axis) < b.size[axis] {
				t.Errorf("%v: %d tiles of %d along axis %d", c.size, b.tiles[axis], b.largest(axis), axis)
			}
			if c.dims == 3 || axis != 1 {
				cells *= b.largest(axis) + 2
			}
		}
		if tiles > cores || threads > 1024 || b.block[2] > 64 || b.shared > shared || b.shared < cells+8*b.packets(c.dims) {
			t.Errorf("%v: %+v", c.size, b)
		}
		if b.block[0] < b.largest(0) || b.block[1] < b.largest(1) || b.block[2] > b.largest(2) {
			t.Errorf("%v: threads %v for tiles of up to %d x %d x %d", c.size, b.block, b.largest(0), b.largest(1), b.largest(2))
		}
	}
}
