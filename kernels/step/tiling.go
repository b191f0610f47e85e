// Package step runs many time steps in one launch, with a field that stays on the multiprocessors. A TileGroup cuts the
// boxes of some devices into tiles, one for each thread block, and TileSteps launches the steps of one device. Tiles
// send each other the values of their faces with the numbers of steps, over links too.
package step

import (
	"errors"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// TileRank is one device's part of steps whose field stays on the multiprocessors. Step n reads
// Fields[(n-1)%2] and writes Fields[n%2].
type TileRank struct {
	Device *streams.Device
	Fields [2]kernels.Array // of one layout
	Stores []kernels.GhostStore
}

// ErrNoTiles says that the fields do not fit on the multiprocessors, or that tiles cannot exchange
// what is stored.
var ErrNoTiles = errors.New("step: the fields do not stay on the multiprocessors")

// sideStore is where the points at a side go: ghosts at a side of a rank. store is its
// place in the rank's list; -1 where they go nowhere.
type sideStore struct {
	store, to int
	high      bool
}

func side(high bool) int {
	if high {
		return 1
	}
	return 0
}

// tileRanks are the ranks of a TileGroup, and what tiles of either kind share.
type tileRanks struct {
	resources streams.Resources
	compiler  *kernels.Compiler
	stencil   stencil.Stencil
	real      kernels.Real
	mode      sums.Mode
	ranks     []TileRank
	limit     time.Duration
	flags     *flags.Network // a line for each neighbour, counting launches of its tiles that store into ghosts here
	inbox     []*streams.Memory
	checks    []checkRoom // by rank; nil before PrepareChecks
}

// faceTiles are the tiles of steps with an exchange after each: their ghosts are one point wide.
type faceTiles struct {
	*tileRanks
	boxes []tiling // by rank
	sides [][3][2]sideStore
}

// maxFaces is how many sides a rank has.
const maxFaces = 6

// count returns how many tiles a rank has.
func (f *faceTiles) count(rank int) int64 {
	t := f.boxes[rank].tiles
	return t[0] * t[1] * t[2]
}

// Close frees its memory. Closing twice is not an error.
func (t *tileRanks) Close() error { return t.resources.Close() }

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
	for ; b.regLayers < min(least, maxRegLayersOf(b.dims, b.element)+1); b.regLayers++ {
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

// maxRegLayersOf returns the most layers of a tile that registers may hold.
func maxRegLayersOf(dims int, element int64) int64 {
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
	return shared + packets*b.element/8 + ceil(ceil(packets, threads),
		2)*trip + (ceil(column*b.element, 32)+b.regLayers)*barrier
}

// ceil returns n/by, rounded up.
func ceil[T int | int64](n, by T) T { return (n + by - 1) / by }

// area returns the points of a side of the box.
func (b *tiling) area(axis int) int64 { return b.size[0] * b.size[1] * b.size[2] / b.size[axis] }

// axisOf returns the axis of a field that an axis of tiles is: in two dimensions tiles are
// one point deep along their second, which no field has then.
func (t *tileRanks) axisOf(axis int) int {
	if t.stencil.Dims == 2 && axis > 0 {
		return 3 - axis
	}
	return axis
}

func (t *tileRanks) size(i int) (size [3]int64) {
	owned := t.ranks[i].Fields[0].Layout.Owned.Size()
	for axis := range size {
		size[axis] = int64(owned[t.axisOf(axis)])
	}
	return size
}

// sideStores finds the sides that a rank's stores take points from.
func (f *faceTiles) sideStores(i int) (sides [3][2]sideStore, ok bool) {
	for axis := range sides {
		sides[axis] = [2]sideStore{{store: -1}, {store: -1}}
	}
	width := domain.UniformRadius(f.stencil.Dims, 1)
	owned := f.ranks[i].Fields[0].Layout.Owned
	for k, st := range f.ranks[i].Stores {
		if !st.Copies() {
			return sides, false
		}
		axis, high, there, found := f.sideOf(i, st, owned, width)
		if !found || sides[axis][high].store >= 0 {
			return sides, false
		}
		sides[axis][high] = sideStore{k, st.To, there == 1}
	}
	return sides, true
}

// sideOf finds the side of a box that a store takes its points from, and at which side of the other its ghosts are: the
// opposite one, or behind a wall the same. Where a box is one point thick a store of a rank to itself fits both. It is
// taken as one behind a wall, which needs no store at the other side.
func (f *faceTiles) sideOf(
	rank int, st kernels.GhostStore, owned domain.Box, width domain.Radius,
) (axis, high, there int, found bool) {
	other := f.ranks[st.To].Fields[0].Layout.Owned
	order := []int{0, 1}
	if st.To == rank {
		order = []int{1, 0}
	}
	for _, same := range order {
		for axis := range 3 {
			for high := range 2 {
				var from, to domain.Direction
				there := high
				if same == 0 {
					there = 1 - high
				}
				from[f.axisOf(axis)], to[f.axisOf(axis)] = 2*high-1, 2*there-1
				if f.axisOf(axis) < f.stencil.Dims && st.Send == domain.SendBox(owned, from, width) &&
					st.Ghost == domain.GhostBox(other, to, width) {
					return axis, high, there, true
				}
			}
		}
	}
	return 0, 0, 0, false
}

// packetBytes are those of a packet: each 4 bytes of a value come with 4 of the step.
func (t *tileRanks) packetBytes() int64 { return 2 * int64(t.real.Size()) }

// slot returns where in the inbox of a rank packets of even steps lie that cross a cut
// between tiles, or one of its sides, upwards or downwards.
func (f *faceTiles) slot(i, axis int, cut int64, down int) int64 {
	b := &f.boxes[i]
	return f.inboxOffset(i, axis) + (cut*2+int64(down))*2*b.area(axis)*f.packetBytes()
}

// inboxOffset returns where the packets of an axis begin, and for one axis more their end.
func (f *faceTiles) inboxOffset(i, axis int) (bytes int64) {
	b := &f.boxes[i]
	for a := range axis {
		if f.axisOf(a) >= f.stencil.Dims {
			continue
		}
		bytes += (b.tiles[a] + 1) * 4 * b.area(a) * f.packetBytes()
	}
	return bytes
}

// emptyInbox returns the words of an inbox in which no packet is of a step that its place waits for: places
// of even steps begin with an odd one.
func (f *faceTiles) emptyInbox(i int) []uint64 {
	words := make([]uint64, f.inboxOffset(i, len(f.boxes[i].tiles))/8)
	for axis, tiles := range f.boxes[i].tiles {
		if f.axisOf(axis) >= f.stencil.Dims {
			continue
		}
		places := f.boxes[i].area(axis) * f.packetBytes() / 8
		for cut := range tiles + 1 {
			for down := range 2 {
				even := f.slot(i, axis, cut, down) / 8
				for w := range places {
					words[even+w] = 1 << 32
				}
			}
		}
	}
	return words
}

// sideSlot returns the address of the packets for the ghosts of a side.
func (f *faceTiles) sideSlot(i, axis int, high bool) uint64 {
	cut := int64(0)
	if high {
		cut = f.boxes[i].tiles[axis]
	}
	return f.inbox[i].Address() + uint64(f.slot(i, axis, cut, side(high)))
}

// tilesToward returns how many tiles of a rank store into ghosts of another.
func (f *faceTiles) tilesToward(i, other int) (tiles int64) {
	b := &f.boxes[i]
	for axis := range b.tiles {
		for _, s := range f.sides[i][axis] {
			if s.store >= 0 && s.to == other {
				tiles += b.tiles[0] * b.tiles[1] * b.tiles[2] / b.tiles[axis]
			}
		}
	}
	return tiles
}

// checkRoom is what the checks of a rank leave.
type checkRoom struct {
	votes *streams.Memory
	tiles *streams.Memory // norms of tiles, as packets
	voted *streams.Memory // addresses of the votes of all ranks
	host  *streams.Memory // norms by check, and the report
}
