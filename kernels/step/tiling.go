package step

import "github.com/halox/halox/kernels/sums"

// tileReserve is what a block of tiles.cu needs of shared memory beside its tile.
const tileReserve = 1 << 10

// itemBytes are those of struct FaceItem of tile.cuh.
const itemBytes = 8

// tiling is a box cut into tiles, and the threads of a block: layers as wide and high as the
// largest tile, whose threads share its depth; or one layer where registers hold a part, of
// threads that have several rows.
type tiling struct {
	dims        int
	element     int64    // bytes
	size, tiles [3]int64 // along x, y and the depth
	block       [3]int64
	regLayers   int64 // layers that registers hold of each tile; shared memory holds the others
	shared      int64 // bytes
}

// tileRoom is what a GPU has for tiles: multiprocessors, and shared memory of each for one
// block, in bytes.
type tileRoom struct{ cores, shared int64 }

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

// The most threads of a block, and of those the most layers; and where registers hold a part,
// the most threads, the fewest, the most layers, and the most bytes that the points of a thread take.
const (
	maxTileThreads = 1024
	maxTileLayers  = 64

	maxRegThreads = 512
	minRegThreads = 256
	maxRegLayers  = 32
	maxRegBytes   = 160
)

// hold has shared memory hold whole tiles, if they fit.
func (b *tiling) hold(room tileRoom) bool {
	x, y, depth := b.largest(0), b.largest(1), b.largest(2)
	if x*y > maxTileThreads {
		return false
	}
	b.regLayers = 0
	column := ceil(depth, min(maxTileThreads/(x*y), maxTileLayers))
	b.block = [3]int64{x, y, ceil(depth, column)}
	b.share()
	return b.shared <= room.shared
}

// holdPart has registers hold as few layers of tiles as can be, and shared memory the others.
// A thread of such tiles is at one face along each axis at most. They have no list of items:
// they are worth it where they take half of a block.
func (b *tiling) holdPart(room tileRoom) bool {
	x, y, least := b.largest(0), b.largest(1), b.size[2]/b.tiles[2]
	if b.size[0]/b.tiles[0] < 2 || b.dims == 3 && b.size[1]/b.tiles[1] < 3 {
		return false
	}
	b.regLayers = 1
	b.block = [3]int64{x, ceil(y, b.rows()), 1}
	if threads := b.threads(); threads > maxRegThreads || threads < minRegThreads {
		return false
	}
	for ; b.regLayers < min(least, mostRegLayers(b.dims, b.element)+1); b.regLayers++ {
		if b.share(); b.shared <= room.shared {
			return true
		}
	}
	return false
}

// rows returns how many a thread has.
func (b *tiling) rows() int64 {
	if b.regLayers > 0 && b.dims == 3 {
		return 2
	}
	return 1
}

// mostRegLayers returns the most layers of a tile that registers may hold.
func mostRegLayers(dims int, element int64) int64 {
	b := tiling{dims: dims, regLayers: 1}
	return min(maxRegBytes/(b.rows()*element), maxRegLayers)
}

// whole reports whether shared memory holds all layers.
func (b *tiling) whole() bool { return b.regLayers == 0 }

// held returns the layers that shared memory holds of the largest tile.
func (b *tiling) held() int64 { return b.largest(2) - b.regLayers }

func (b *tiling) threads() int64 { return b.block[0] * b.block[1] * b.block[2] }

// plane returns how many cells layers are apart in shared memory, with ghosts around them: an
// odd number, so that points above each other lie in different banks.
func (b *tiling) plane() int64 {
	if b.dims == 2 {
		return (b.block[0] + 2) | 1
	}
	return (b.block[0]+2)*(b.block[1]*b.rows()+2) | 1
}

// share counts the bytes of shared memory: cells for the layers that are held and the ghosts
// around them; for layers in registers two by which threads see them, and the ghosts beside
// them; for a list of items where threads form several layers; in the end for a sum of
// each thread.
func (b *tiling) share() {
	x, y, layers := b.block[0], b.block[1]*b.rows(), b.held()
	beside := 2 * y
	if b.dims == 3 {
		beside += 2 * x
	}
	cells := b.plane() * layers
	if b.whole() {
		cells += b.plane() * 2
	} else {
		cells += 2*x*y + (b.regLayers|1)*beside
	}
	b.shared = ceil(cells*b.element, 16) * 16
	if b.block[2] > 1 {
		b.shared += b.packets() * itemBytes
	}
	b.shared = max(b.shared, b.threads()*sums.Bytes)
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

// cost estimates the cycles of a step: those in which shared memory moves values, the trips of
// packets, barriers. It puts the tilings in the order of what was measured on an H200, or nearly.
func (b *tiling) cost() int64 {
	const barrier, trip = 150, 500
	threads, column := b.threads()*b.rows(), ceil(b.largest(2), b.block[2])
	accesses := int64(4)
	if b.dims == 3 {
		accesses = 7 - b.rows()
	}
	shared := ceil(threads, 32) * column * accesses * b.element / 4
	if b.block[0]%16 != 0 { // warps that cross rows take more turns
		shared += shared / 2
	}
	packets := b.packets()
	return shared + packets*b.element/8 + ceil(ceil(packets, threads), 2)*trip + (ceil(column*b.element, 32)+b.regLayers)*barrier
}

// ceil returns n/by, rounded up.
func ceil[T int | int64](n, by T) T { return (n + by - 1) / by }

// area returns the points of a side of the box.
func (b *tiling) area(axis int) int64 { return b.size[0] * b.size[1] * b.size[2] / b.size[axis] }
