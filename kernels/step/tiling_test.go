package step

import "testing"

// A box is cut into no more tiles than there are multiprocessors, each with no more
// threads and no more memory than a block may have; registers hold what shared memory cannot,
// but no more than there are, or the box is not cut.
func TestTilings(t *testing.T) {
	room := tileRoom{cores: 132, shared: 227<<10 - tileReserve}
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
		{3, [3]int64{127, 253, 123}, 8, "in part"},
		{3, [3]int64{131, 257, 125}, 8, "no"},
		{3, [3]int64{253, 255, 121}, 4, "in part"},
		{3, [3]int64{259, 255, 129}, 4, "no"},
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
		height, layer := b.block[1]*b.rows(), b.largest(0)*b.largest(1)
		cells, beside := b.largest(0)+2, 2*b.largest(1)
		if c.dims == 3 {
			cells, beside = cells*(b.largest(1)+2), beside+2*b.largest(0)
		}
		cells *= b.held()
		if b.whole() {
			cells += 2 * layer
		} else {
			cells += 2*layer + b.regLayers*beside
		}
		need := c.element * cells
		if b.block[2] > 1 {
			need += 8 * b.packets()
		}
		if tiles > room.cores || threads > 1024 || b.block[2] > 64 || b.shared > room.shared || b.shared < need {
			t.Errorf("%v: %+v", c.size, b)
		}
		if !b.whole() && (threads > 512 || b.block[2] > 1 || b.regLayers*b.rows()*c.element > 160 || b.regLayers > 32 || b.regLayers >= c.size[2]/b.tiles[2]) {
			t.Errorf("%v: %+v", c.size, b)
		}
		if b.block[0] < b.largest(0) || height < b.largest(1) || b.block[2] > b.largest(2) {
			t.Errorf("%v: threads %v for tiles of up to %d x %d x %d", c.size, b.block, b.largest(0), b.largest(1), b.largest(2))
		}
		t.Logf("%v of %d bytes: %+v", c.size, c.element, b)
	}
}

// Blocks that take norms within a launch are whole warps at least, however small the tiles of a GPU with many multiprocessors are.
func TestTilesHaveRoomForChecks(t *testing.T) {
	room := tileRoom{cores: 132, shared: 227<<10 - tileReserve}
	for _, c := range []struct {
		dims int
		size [3]int64
	}{{3, [3]int64{1, 1, 1}}, {2, [3]int64{33, 1, 47}}, {2, [3]int64{5, 1, 4}}, {3, [3]int64{6, 7, 8}}, {3, [3]int64{9, 20, 31}}, {3, [3]int64{64, 64, 64}}, {2, [3]int64{1024, 1, 1024}}} {
		b, ok := bestTiling(c.dims, c.size, 8, room)
		if !ok {
			t.Fatalf("no tiles of %v", c.size)
		}
		checked, ok := b.checking(room.shared)
		if threads := checked.threads(); !ok || threads < 32 || threads > 512 || checked.shared < b.plane()*b.largest(2)*8 {
			t.Errorf("%v: %t, %+v", c.size, ok, checked)
		}
	}
}
