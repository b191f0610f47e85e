package step

import "testing"

// A box is cut into no more tiles than there are multiprocessors, which with ghosts on all sides where there are some fit twice into shared memory beside
// their items, with blocks of whole warps that have a thread for each cell that is swept; or it is not cut.
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
			t.Errorf("%v of %d bytes with %d steps: fits %t", c.size, c.element, c.steps, ok)
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
			t.Errorf("%v with %d steps: %+v of %d threads", c.size, c.steps, b, threads)
		}
		if checked, ok := b.checking(); !ok || checked.threads() > 512 || checked.shared(ball) != b.shared(ball) {
			t.Errorf("%v with %d steps: %+v with checks, %t", c.size, c.steps, checked, ok)
		}
		t.Logf("%v of %d bytes with %d steps: %+v, %d threads", c.size, c.element, c.steps, b, threads)
	}
}

// The ghosts of a tile are as many as there are points around it that lie no farther than the steps.
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
			t.Errorf("%d steps: %d ghosts, not %d", steps, got, want)
		}
	}
}

// A launch has an exchange after each group but the last, of which the first is as short as the others need, and has one step in a launch of few.
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
				t.Errorf("%d steps in groups of %d: %d exchanges, not %d", steps, wide, got, exchanges)
			}
		}
	}
}
