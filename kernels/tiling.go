package kernels

// tileReserve is what a block of tiles.cu needs of shared memory beside its tile.
const tileReserve = 1 << 10

// errandBytes are those of struct Errand of tiles.cu.
const errandBytes = 8

// tiling is a box cut into tiles, and the threads of a block: layers as wide and high as the
// largest tile, whose threads share its depth.
type tiling struct {
	size, tiles [3]int64 // along x, y and the depth
	block       [3]int64
	shared      int64 // bytes
}

// bestTiling cuts a box into tiles, no more than there are multiprocessors, so that a step
// takes the least by an estimate. ok is false where the tiles do not fit.
func bestTiling(dims int, size [3]int64, cores, shared, element int64) (best tiling, ok bool) {
	least := int64(0)
	var tiles [3]int64
	for tiles[0] = 1; tiles[0] <= min(cores, size[0]); tiles[0]++ {
		for tiles[1] = 1; tiles[0]*tiles[1] <= cores && tiles[1] <= size[1]; tiles[1]++ {
			for tiles[2] = 1; tiles[0]*tiles[1]*tiles[2] <= cores && tiles[2] <= size[2]; tiles[2]++ {
				t, fits := newTiling(dims, size, tiles, shared, element)
				if !fits {
					continue
				}
				if cost := t.cost(dims, element); !ok || cost < least {
					best, least, ok = t, cost, true
				}
			}
		}
	}
	return best, ok
}

// The most threads of a block, and of those the most layers.
const (
	mostTileThreads = 1024
	mostTileLayers  = 64
)

func newTiling(dims int, size, tiles [3]int64, shared, element int64) (t tiling, ok bool) {
	t = tiling{size: size, tiles: tiles}
	x, y, depth := t.largest(0), t.largest(1), t.largest(2)
	if x*y > mostTileThreads {
		return t, false
	}
	column := up(depth, min(mostTileThreads/(x*y), mostTileLayers))
	t.block = [3]int64{x, y, up(depth, column)}
	t.shared = (x + 2) * (depth + 2) * element
	if dims == 3 {
		t.shared *= y + 2
	}
	t.shared = up(t.shared, 16)*16 + t.packets(dims)*errandBytes
	return t, t.shared <= shared
}

// largest returns the points of the largest tile along an axis.
func (b tiling) largest(axis int) int64 { return up(b.size[axis], b.tiles[axis]) }

// packets returns those of the largest tile that has neighbours on all sides.
func (b tiling) packets(dims int) int64 {
	x, y, depth := b.largest(0), b.largest(1), b.largest(2)
	if dims == 2 {
		return 2 * (x + depth)
	}
	return 2 * (x*y + x*depth + y*depth)
}

// up returns a/b, rounded up.
func up(a, b int64) int64 { return (a + b - 1) / b }

// cost estimates the cycles of a step: those in which shared memory moves values, the
// trips of packets to the second-level cache, barriers. It puts the tilings in the order of
// what was measured on an H200, or nearly.
func (b tiling) cost(dims int, element int64) int64 {
	const barrier, trip = 150, 500
	threads, column := b.block[0]*b.block[1]*b.block[2], up(b.largest(2), b.block[2])
	accesses := int64(4)
	if dims == 3 {
		accesses = 6
	}
	shared := up(threads, 32) * column * accesses * element / 4
	if b.block[0]%16 != 0 { // warps that cross rows take more turns
		shared += shared / 2
	}
	packets := b.packets(dims)
	return shared + packets*element/8 + up(up(packets, threads), 2)*trip + up(column*element, 32)*barrier
}

// area returns the points of a side of the box.
func (b tiling) area(axis int) int64 { return b.size[0] * b.size[1] * b.size[2] / b.size[axis] }
