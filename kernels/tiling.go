package kernels

// tileReserve is what a block of tiles.cu needs of shared memory beside its tile.
const tileReserve = 1 << 10

// errandBytes are those of struct Errand of tile.cuh.
const errandBytes = 8

// tiling is a box cut into tiles, and the threads of a block: layers as wide and high as the
// largest tile, whose threads share its depth.
type tiling struct {
	dims        int
	element     int64    // bytes
	size, tiles [3]int64 // along x, y and the depth
	block       [3]int64
	held        int64 // layers that shared memory holds of a tile; the rest is in the second-level cache
	shared      int64 // bytes
}

// tileRoom is what a GPU has for tiles: multiprocessors, shared memory of each for one block,
// and a second-level cache, in bytes.
type tileRoom struct{ cores, shared, cache int64 }

// bestTiling cuts a box into tiles, no more than there are multiprocessors, so that a step
// takes the least by an estimate. ok is false where the tiles do not fit.
func bestTiling(dims int, size [3]int64, element int64, room tileRoom) (best tiling, ok bool) {
	least, cores := int64(0), room.cores
	var tiles [3]int64
	for tiles[0] = 1; tiles[0] <= min(cores, size[0]); tiles[0]++ {
		for tiles[1] = 1; tiles[0]*tiles[1] <= cores && tiles[1] <= size[1]; tiles[1]++ {
			for tiles[2] = 1; tiles[0]*tiles[1]*tiles[2] <= cores && tiles[2] <= size[2]; tiles[2]++ {
				t := tiling{dims: dims, element: element, size: size, tiles: tiles}
				if !t.hold(room) && !t.holdPart(room) {
					continue
				}
				if cost := t.cost(); !ok || cost < least {
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

// hold has shared memory hold whole tiles, if they fit.
func (b *tiling) hold(room tileRoom) bool {
	x, y, depth := b.largest(0), b.largest(1), b.largest(2)
	if x*y > mostTileThreads {
		return false
	}
	column := ceil(depth, min(mostTileThreads/(x*y), mostTileLayers))
	b.block, b.held = [3]int64{x, y, ceil(depth, column)}, depth
	b.share()
	return b.shared <= room.shared
}

// holdPart has shared memory hold what fits of the layers of tiles, at least half, and the
// second-level cache the rest of both fields, and all packets. Such tiles have one layer of
// threads, and no list of errands: these are many enough to be worth it where they take half of
// a block.
func (b *tiling) holdPart(room tileRoom) bool {
	x, y, depth := b.largest(0), b.largest(1), b.largest(2)
	if x*y > mostTileThreads || x*y < mostTileThreads/2 {
		return false
	}
	b.block = [3]int64{x, y, 1}
	b.held = 0
	b.share()
	least := b.shared
	b.held = depth
	b.share()
	if b.shared > room.shared { // each layer needs as much as the others
		b.held = (room.shared - least) * depth / (b.shared - least)
		b.share()
	}
	if b.held < ceil(depth, 2) || b.shared > room.shared {
		return false
	}
	all := b.tiles[0] * b.tiles[1] * b.tiles[2]
	return all*(2*b.rest()*b.element+4*b.packets()*b.element) <= room.cache
}

// whole reports whether shared memory holds all layers.
func (b *tiling) whole() bool { return b.held == b.largest(2) }

// rest returns the points of a tile that shared memory does not hold.
func (b *tiling) rest() int64 { return b.largest(0) * b.largest(1) * (b.largest(2) - b.held) }

// share counts the bytes of shared memory: cells for the layers that are held and the ghosts
// around them, for the ghosts beside the rest, and for a list of errands where threads form
// several layers; in the end all threads' norms.
func (b *tiling) share() {
	x, y := b.block[0], b.block[1]
	cells, beside := (x+2)*(b.held+2), 2*y
	if b.dims == 3 {
		cells, beside = cells*(y+2), beside+2*x
	}
	cells += (b.largest(2) - b.held) * beside
	b.shared = ceil(cells*b.element, 16) * 16
	if b.block[2] > 1 {
		b.shared += b.packets() * errandBytes
	}
	b.shared = max(b.shared, x*y*b.block[2]*normsBytes)
}

// largest returns the points of the largest tile along an axis.
func (b *tiling) largest(axis int) int64 { return ceil(b.size[axis], b.tiles[axis]) }

// packets returns those of the largest tile that has neighbours on all sides.
func (b *tiling) packets() int64 {
	x, y, depth := b.largest(0), b.largest(1), b.largest(2)
	if b.dims == 2 {
		return 2 * (x + depth)
	}
	return 2 * (x*y + x*depth + y*depth)
}

// cost estimates the cycles of a step: those in which shared memory and the first-level cache
// move values, the trips of packets and of what is not held to the second-level cache,
// barriers. It puts the tilings in the order of what was measured on an H200, or nearly.
func (b *tiling) cost() int64 {
	const barrier, trip = 150, 500
	threads, column := b.block[0]*b.block[1]*b.block[2], ceil(b.largest(2), b.block[2])
	accesses := int64(4)
	if b.dims == 3 {
		accesses = 6
	}
	shared := ceil(threads, 32) * column * accesses * b.element / 4
	if b.block[0]%16 != 0 { // warps that cross rows take more turns
		shared += shared / 2
	}
	packets := b.packets()
	return shared + b.rest()*b.element/16 + packets*b.element/8 + ceil(ceil(packets, threads), 2)*trip + ceil(column*b.element, 32)*barrier
}

// area returns the points of a side of the box.
func (b *tiling) area(axis int) int64 { return b.size[0] * b.size[1] * b.size[2] / b.size[axis] }
