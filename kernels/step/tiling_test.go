package step

import (
	"testing"
)

// A box is divided into at most one tile per multiprocessor, within the limits of threads and memory per block.
// Registers hold the layers that shared memory cannot, within their capacity; otherwise there is no tiling.
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
			t.Errorf("%v of %d bytes: got fits %s", c.size, c.element, how)
		}
		if !ok {
			continue
		}
		tiles, threads := b.tiles[0]*b.tiles[1]*b.tiles[2], b.block[0]*b.block[1]*b.block[2]
		for axis := range b.tiles {
			if b.tiles[axis]*b.largest(axis) < b.size[axis] {
				t.Errorf("%v: got %d tiles of %d along axis %d", c.size, b.tiles[axis], b.largest(axis), axis)
			}
		}
		height, layer := b.block[1]*b.rows(), b.largest(0)*b.largest(1)
		cells, border := b.largest(0)+2, 2*b.largest(1)
		if c.dims == 3 {
			cells, border = cells*(b.largest(1)+2), border+2*b.largest(0)
		}
		cells *= b.held()
		if b.whole() {
			cells += 2 * layer
		} else {
			cells += 2*layer + b.regLayers*border
		}
		need := c.element * cells
		if b.block[2] > 1 {
			need += 8 * b.packets()
		}
		if tiles > room.cores || threads > 1024 || b.block[2] > 64 || b.shared > room.shared || b.shared < need {
			t.Errorf("%v: got %+v", c.size, b)
		}
		if !b.whole() && (threads > 512 || b.block[2] > 1 || b.regLayers*b.rows()*c.element > 160 || b.regLayers > 32 || b.regLayers >= c.size[2]/b.tiles[2]) {
			t.Errorf("%v: got %+v", c.size, b)
		}
		if b.block[0] < b.largest(0) || height < b.largest(1) || b.block[2] > b.largest(2) {
			t.Errorf("%v: got threads %v for tiles of up to %d x %d x %d", c.size, b.block, b.largest(0), b.largest(1), b.largest(2))
		}
		t.Logf("%v of %d bytes: %+v", c.size, c.element, b)
	}
}

// Blocks that compute norms within a launch have whole warps, even if the tiles of a GPU with many multiprocessors
// are small.
func TestTilesHaveRoomForChecks(t *testing.T) {
	room := tileRoom{cores: 132, shared: 227<<10 - tileReserve}
	for _, c := range []struct {
		dims int
		size [3]int64
	}{{3, [3]int64{1, 1, 1}}, {2, [3]int64{33, 1, 47}}, {2, [3]int64{5, 1, 4}}, {3, [3]int64{6, 7, 8}}, {3, [3]int64{9, 20, 31}}, {3, [3]int64{64, 64, 64}}, {2, [3]int64{1024, 1, 1024}}} {
		b, ok := bestTiling(c.dims, c.size, 8, room)
		if !ok {
			t.Fatalf("bestTiling of %v: got false", c.size)
		}
		checked, ok := b.checking(room.shared)
		if threads := checked.threads(); !ok || threads < 32 || threads > 512 || checked.shared < b.plane()*b.largest(2)*8 {
			t.Errorf("%v: got %t, %+v", c.size, ok, checked)
		}
	}
}

// A box is divided into at most one tile per multiprocessor. Two copies with ghosts fit in shared memory along
// with their items, and blocks have whole warps with a thread per swept cell. Otherwise there is no tiling.
func TestWideTilings(t *testing.T) {
	room := tileRoom{cores: 132, shared: 227<<10 - wideReserve}
	for _, c := range []struct {
		dims           int
		size           [3]int64
		wide           [3]bool
		element, steps int64
		fits           bool
	}{
		{3, [3]int64{1, 1, 1}, [3]bool{}, 8, 2, true},
		{3, [3]int64{64, 64, 16}, [3]bool{false, false, true}, 8, 4, true},
		{3, [3]int64{64, 64, 64}, [3]bool{}, 8, 4, true},
		{3, [3]int64{67, 61, 59}, [3]bool{true, true, true}, 8, 3, true},
		{3, [3]int64{128, 128, 32}, [3]bool{false, false, true}, 8, 2, true},
		{3, [3]int64{128, 128, 32}, [3]bool{false, false, true}, 8, 3, true},
		{3, [3]int64{128, 128, 32}, [3]bool{false, false, true}, 8, 4, false},
		{3, [3]int64{128, 128, 64}, [3]bool{false, false, true}, 4, 2, true},
		{3, [3]int64{256, 256, 64}, [3]bool{}, 4, 2, false},
		{2, [3]int64{1, 1, 1}, [3]bool{true, false, true}, 8, 4, true},
		{2, [3]int64{1024, 1, 1024}, [3]bool{}, 4, 8, true},
		{2, [3]int64{1030, 1, 517}, [3]bool{true, false, true}, 8, 3, true},
		{2, [3]int64{3, 1, 100000}, [3]bool{}, 8, 2, true},
		{2, [3]int64{4096, 1, 4096}, [3]bool{}, 4, 2, false},
	} {
		b, ok := bestWideTiling(c.dims, c.size, c.wide, c.element, c.steps, room)
		if ok != c.fits {
			t.Errorf("%v of %d bytes with %d steps: got fits %t", c.size, c.element, c.steps, ok)
		}
		if !ok {
			continue
		}
		cells, swept, ball := int64(1), int64(1), b.ball()
		for a, n := range b.tiles {
			ghosts, most := int64(1), (c.size[a]+n-1)/n
			switch {
			case c.dims == 2 && a == 1:
				ghosts = 0
			case c.wide[a] || n > 1:
				ghosts = c.steps
			}
			if cells *= most + 2*ghosts; a < c.dims-1 && (c.dims == 2 || a == 0) {
				swept *= most + 2*ghosts
			} else if c.dims == 3 && a == 1 {
				swept *= most + 2*ghosts - 2
			}
		}
		threads := b.threads()
		if b.tiles[0]*b.tiles[1]*b.tiles[2] > room.cores || threads > 1024 || threads%32 > 0 || b.columns() < swept || b.column()*b.layers < b.extent(2)-2 ||
			b.shared(ball) > room.shared || b.shared(ball) < 2*cells*c.element+8*ball || b.cells() < cells {
			t.Errorf("%v with %d steps: got %+v of %d threads", c.size, c.steps, b, threads)
		}
		if checked, ok := b.checking(); !ok || checked.threads() > 512 || checked.shared(ball) != b.shared(ball) {
			t.Errorf("%v with %d steps: got %+v with checks, %t", c.size, c.steps, checked, ok)
		}
		t.Logf("%v of %d bytes with %d steps: %+v, %d threads", c.size, c.element, c.steps, b, threads)
	}
}

// The ghosts of a tile are all points around it at a distance of at most the number of steps.
func TestGhostsOfATile(t *testing.T) {
	for steps := int64(2); steps < 6; steps++ {
		b := wideTiling{dims: 3, steps: steps, size: [3]int64{5, 7, 3}, tiles: [3]int64{1, 1, 1}, ghosts: [3]int64{steps, steps, steps}}
		want := int64(0)
		far := func(p, n int64) int64 { return max(0, -p, p-n+1) }
		for z := -steps; z < 3+steps; z++ {
			for y := -steps; y < 7+steps; y++ {
				for x := -steps; x < 5+steps; x++ {
					if d := far(x, 5) + far(y, 7) + far(z, 3); 0 < d && d <= steps {
						want++
					}
				}
			}
		}
		if got := b.ball(); got != want {
			t.Errorf("%d steps: got %d ghosts, want %d", steps, got, want)
		}
	}
}

// A launch has an exchange after each group except the last. The first group is short if needed, and has one step
// in a launch of few.
func TestExchangesOfALaunch(t *testing.T) {
	for wide := int64(2); wide < 6; wide++ {
		for steps := int64(1); steps < 40; steps++ {
			first := (steps-1)%wide + 1
			if steps <= wide {
				first = 1
			}
			exchanges := int64(0)
			for made := first; made < steps; made += wide {
				exchanges++
			}
			if got := exchangesIn(steps, wide); got != exchanges {
				t.Errorf("%d steps in groups of %d: got %d exchanges, want %d", steps, wide, got, exchanges)
			}
		}
	}
}
