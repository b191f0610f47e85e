package kernels

import "testing"

// A box is cut into no more tiles than there are multiprocessors, each with no more
// threads and no more memory than a block may have; what shared memory cannot hold lies in the
// second-level cache, or the box is not cut.
func TestTilings(t *testing.T) {
	room := tileRoom{cores: 132, shared: 227<<10 - tileReserve, cache: 60 << 20}
	for _, c := range []struct {
		dims    int
		size    [3]int64
		element int64
		fits    string
	}{
		{3, [3]int64{1, 1, 1}, 8, "whole"},
		{3, [3]int64{64, 64, 16}, 8, "whole"},
		{3, [3]int64{67, 61, 59}, 8, "whole"},
		{3, [3]int64{128, 128, 128}, 8, "whole"},
		{3, [3]int64{256, 256, 64}, 4, "whole"},
		{3, [3]int64{1, 70001, 2}, 4, "whole"},
		{3, [3]int64{256, 256, 64}, 8, "in part"},
		{3, [3]int64{131, 257, 125}, 8, "in part"},
		{3, [3]int64{259, 255, 129}, 4, "in part"},
		{3, [3]int64{256, 256, 128}, 8, "no"},
		{2, [3]int64{1, 1, 1}, 8, "whole"},
		{2, [3]int64{4096, 1, 1024}, 4, "whole"},
		{2, [3]int64{3, 1, 500000}, 8, "whole"},
		{2, [3]int64{4096, 1, 2048}, 4, "in part"},
		{2, [3]int64{1030, 1, 4099}, 8, "in part"},
		{2, [3]int64{2050, 1, 4101}, 4, "in part"},
		{2, [3]int64{4096, 1, 4096}, 4, "no"},
	} {
		b, ok := bestTiling(c.dims, c.size, c.element, room)
		how := "no"
		if ok && b.whole() {
			how = "whole"
		} else if ok {
			how = "in part"
		}
		if how != c.fits {
			t.Errorf("%v of %d bytes: fits %s", c.size, c.element, how)
		}
		if !ok {
			continue
		}
		tiles, threads := b.tiles[0]*b.tiles[1]*b.tiles[2], b.block[0]*b.block[1]*b.block[2]
		for axis := range b.tiles {
			if b.tiles[axis]*b.largest(axis) < b.size[axis] {
				t.Errorf("%v: %d tiles of %d along axis %d", c.size, b.tiles[axis], b.largest(axis), axis)
			}
		}
		cells, layer := (b.largest(0)+2)*(b.held+2), b.largest(0)*b.largest(1)
		beside := 2 * b.largest(1)
		if c.dims == 3 {
			cells, beside = cells*(b.largest(1)+2), beside+2*b.largest(0)
		}
		need := c.element * (cells + (b.largest(2)-b.held)*beside)
		if b.block[2] > 1 {
			need += 8 * b.packets()
		}
		if tiles > room.cores || threads > 1024 || b.block[2] > 64 || b.shared > room.shared || b.shared < need {
			t.Errorf("%v: %+v", c.size, b)
		}
		if rest := 2 * tiles * layer * (b.largest(2) - b.held) * c.element; rest > room.cache || rest > 0 && (b.block[2] > 1 || 2*b.held < b.largest(2)) {
			t.Errorf("%v: %d bytes in the cache, %+v", c.size, rest, b)
		}
		if b.block[0] < b.largest(0) || b.block[1] < b.largest(1) || b.block[2] > b.largest(2) {
			t.Errorf("%v: threads %v for tiles of up to %d x %d x %d", c.size, b.block, b.largest(0), b.largest(1), b.largest(2))
		}
		t.Logf("%v of %d bytes: %+v", c.size, c.element, b)
	}
}
