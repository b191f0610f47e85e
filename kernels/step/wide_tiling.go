package step

// wideReserve is what a block of wide_tiles.cu needs of shared memory beside its tile: struct Tile, and the sums of a block.
const wideReserve = 4 << 10

// maxCells is how many cells a tile has at most: items have 16 bits for the number of one.
const maxCells = 1 << 16

// wideTiling is a box cut into tiles with ghosts as wide as several steps read, and the threads of a block, see wide_tile.cuh.
type wideTiling struct {
	dims           int
	element, steps int64
	size, tiles    [3]int64 // along x, y and the depth
	ghosts         [3]int64 // on each side of a tile
	layers         int64    // of threads
}

// bestWideTiling cuts a box into tiles, no more than there are multiprocessors, so that a group of steps takes the least by an
// estimate. wide says along which axes the box itself has wide ghosts. ok is false where the tiles do not fit.
func bestWideTiling(dims int, size [3]int64, wide [3]bool, element, steps int64, room tileRoom) (best wideTiling, ok bool) {
	least, cores := int64(0), room.cores
	var tiles [3]int64
	for tiles[0] = 1; tiles[0] <= min(cores, size[0]); tiles[0]++ {
		for tiles[1] = 1; tiles[0]*tiles[1] <= cores && tiles[1] <= size[1]; tiles[1]++ {
			for tiles[2] = 1; tiles[0]*tiles[1]*tiles[2] <= cores && tiles[2] <= size[2]; tiles[2]++ {
				b := wideTiling{dims: dims, element: element, steps: steps, size: size, tiles: tiles}
				b.surround(wide)
				if !b.share(maxTileThreads) || b.cells() > maxCells || b.shared(b.ball()) > room.shared {
					continue
				}
				if cost := b.cost(); !ok || cost < least {
					best, least, ok = b, cost, true
				}
			}
		}
	}
	return best, ok
}

// surround gives tiles ghosts: as many as steps where there are neighbours, and the one behind a wall elsewhere.
func (b *wideTiling) surround(wide [3]bool) {
	for a := range b.ghosts {
		switch {
		case b.dims == 2 && a == 1:
			b.ghosts[a] = 0
		case wide[a] || b.tiles[a] > 1:
			b.ghosts[a] = b.steps
		default:
			b.ghosts[a] = 1
		}
	}
}

// share shares the planes of a tile among as many layers of threads as there may be.
func (b *wideTiling) share(threads int64) bool {
	layers := threads / b.columns()
	if layers == 0 {
		return false
	}
	b.layers = layers
	b.layers = ceil(b.extent(2)-2, b.column())
	return b.column() <= maxColumn
}

// maxColumn is how many points a thread has at most: as many as its sums have terms.
const maxColumn = 1 << 10

// largest returns the points of the largest tile along an axis, extent those with its ghosts.
func (b *wideTiling) largest(axis int) int64 { return ceil(b.size[axis], b.tiles[axis]) }
func (b *wideTiling) extent(axis int) int64  { return b.largest(axis) + 2*b.ghosts[axis] }

// plane returns how many cells planes are apart: an odd number.
func (b *wideTiling) plane() int64 { return b.extent(0)*b.extent(1) | 1 }
func (b *wideTiling) cells() int64 { return b.plane() * b.extent(2) }

// columns returns the threads of a layer, whole warps: one for each cell of the rows that are swept.
func (b *wideTiling) columns() int64 {
	swept := b.extent(0) * b.extent(1)
	if b.dims == 3 {
		swept -= 2 * b.extent(0)
	}
	return ceil(swept, warpThreads) * warpThreads
}

// column returns how many cells a thread has.
func (b *wideTiling) column() int64  { return ceil(b.extent(2)-2, b.layers) }
func (b *wideTiling) threads() int64 { return b.columns() * b.layers }
func (b *wideTiling) block() [3]int64 {
	return [3]int64{b.columns(), b.layers, 1}
}

// shared counts the bytes of shared memory: the tile twice, and so many items.
func (b *wideTiling) shared(items int64) int64 {
	return ceil(2*b.cells()*b.element, 16)*16 + items*itemBytes
}

// ball returns how many ghosts the largest tile has from neighbours, if it has some on all sides where there may be: a layer for each offset that
// is no longer than the steps, counted along the axes.
func (b *wideTiling) ball() (ghosts int64) {
	reach := func(axis int) int64 {
		if b.ghosts[axis] < b.steps {
			return 0
		}
		return b.steps
	}
	for z := -reach(2); z <= reach(2); z++ {
		for y := -reach(1); y <= reach(1); y++ {
			for x := -reach(0); x <= reach(0); x++ {
				offset := [3]int64{x, y, z}
				long, layer := int64(0), int64(1)
				for a, o := range offset {
					if long += max(o, -o); o == 0 {
						layer *= b.largest(a)
					}
				}
				if 0 < long && long <= b.steps {
					ghosts += layer
				}
			}
		}
	}
	return ghosts
}

// cost estimates the cycles of a group: those in which shared memory moves values, the trips of packets, barriers.
func (b *wideTiling) cost() (cycles int64) {
	const barrier, trip, turn = 100, 400, 120
	accesses := int64(2 * b.dims)
	for left := range b.steps {
		rows, planes := b.largest(1), b.largest(2)
		if b.ghosts[1] == b.steps {
			rows += 2 * left
		}
		if b.ghosts[2] == b.steps {
			planes += 2 * left
		}
		warps := ceil(b.extent(0)*rows, warpThreads) + 1
		cycles += warps*planes*accesses*b.element/4 + ceil(b.column()*b.element, 32)*turn + barrier
	}
	items := b.ball()
	return cycles + items*b.element/8 + ceil(items, 2*b.threads())*trip
}

// checking returns the tiling with the threads of blocks that take norms within a launch; ok is false where these are too few.
func (b wideTiling) checking() (c wideTiling, ok bool) {
	ok = b.share(maxCheckThreads)
	return b, ok
}

// exchangesIn returns how many exchanges a launch of so many steps has, see Place of wide_tiles.cu.
func exchangesIn(steps, wide int64) int64 {
	if 1 < steps && steps <= wide {
		return 1
	}
	return (steps - 1) / wide
}
