// Package step runs many time steps in one launch, with a field that stays on the multiprocessors. A TileGroup
// divides the boxes of some devices into tiles, one per thread block, and TileSteps launches the steps of one
// device. Tiles send each other the values of their faces along with step numbers, also over links.
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

// TileRank is the part of one device in steps whose field stays on the multiprocessors. Step n reads
// Fields[(n-1)%2] and writes Fields[n%2].
type TileRank struct {
	Device *streams.Device      // the GPU
	Fields [2]kernels.Array     // both with the same layout
	Stores []kernels.GhostStore // stores of boundary points into ghosts; default none
}

// ErrNoTiles means that the fields do not fit on the multiprocessors, or that tiles do not support the stores.
var ErrNoTiles = errors.New("step: the fields cannot stay on the multiprocessors")

// sideStore is the destination of the points at a side: ghosts at a side of a rank. store is its index in the
// rank's list, or -1 if there is none.
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

// tileRanks are the ranks of a TileGroup, and the common state of both kinds of tiles.
type tileRanks struct {
	resources streams.Resources
	compiler  *kernels.Compiler
	stencil   stencil.Stencil
	real      domain.Element
	mode      sums.Mode
	ranks     []TileRank
	limit     time.Duration
	flags     *flags.Network // a line per neighbor, which counts launches of its tiles that store into ghosts here
	inbox     []*streams.Memory
	checks    []checkRoom // by rank; nil before PrepareChecks
}

// faceTiles are the tiles of steps with an exchange after each: their ghosts are one point wide.
type faceTiles struct {
	*tileRanks
	boxes []tiling // by rank
	sides [][3][2]sideStore
}

// maxFaces is the number of sides of a rank.
const maxFaces = 6

// count returns the number of tiles of a rank.
func (f *faceTiles) count(rank int) int64 {
	t := f.boxes[rank].tiles
	return t[0] * t[1] * t[2]
}

// Close frees the memory. Closing twice is allowed.
func (t *tileRanks) Close() error { return t.resources.Close() }

// tileReserve is the shared memory in bytes that a block of tiles.cu needs besides its tile.
const tileReserve = 1 << 10

// itemBytes is the size of struct FaceItem of tile.cuh.
const itemBytes = 8

// tiling is a box divided into tiles, and the threads of a block: layers as wide and high as the largest tile,
// whose threads share its depth; or, if registers hold a part, one layer of threads with several rows each.
type tiling struct {
	dims        int
	element     int64    // bytes
	size, tiles [3]int64 // along x, y and the depth
	block       [3]int64
	regLayers   int64 // layers of each tile in registers; shared memory holds the others
	shared      int64 // bytes
}

// tileRoom is the capacity of a GPU for tiles: multiprocessors, and bytes of shared memory per block.
type tileRoom struct{ cores, shared int64 }

// bestTiling divides a box into tiles, at most one per multiprocessor, with the least estimated time per step. ok
// is false if the tiles do not fit.
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

// Limits of a block: threads and layers; and if registers hold a part, the largest and smallest number of threads,
// the largest number of layers, and the largest number of bytes of points per thread.
const (
	maxTileThreads = 1024
	maxTileLayers  = 64

	maxRegThreads = 512
	minRegThreads = 256
	maxRegLayers  = 32
	maxRegBytes   = 160
)

// hold stores whole tiles in shared memory, if they fit.
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

// holdPart stores as few layers of tiles as possible in registers, and the others in shared memory. A thread of
// such tiles is at one face along each axis at most. They have no list of items, which would pay off only for half
// of a block.
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

// rows returns the number of rows per thread.
func (b *tiling) rows() int64 {
	if b.regLayers > 0 && b.dims == 3 {
		return 2
	}
	return 1
}

// maxRegLayersOf returns the largest number of layers of a tile in registers.
func maxRegLayersOf(dims int, element int64) int64 {
	b := tiling{dims: dims, regLayers: 1}
	return min(maxRegBytes/(b.rows()*element), maxRegLayers)
}

// whole reports whether shared memory holds all layers.
func (b *tiling) whole() bool { return b.regLayers == 0 }

// held returns the layers of the largest tile in shared memory.
func (b *tiling) held() int64 { return b.largest(2) - b.regLayers }

func (b *tiling) threads() int64 { return b.block[0] * b.block[1] * b.block[2] }

// plane returns the distance of layers in shared memory in cells, including ghosts: an odd number, so that points
// above each other are in different banks.
func (b *tiling) plane() int64 {
	if b.dims == 2 {
		return (b.block[0] + 2) | 1
	}
	return (b.block[0]+2)*(b.block[1]*b.rows()+2) | 1
}

// share computes the bytes of shared memory: cells for the layers in shared memory and their ghosts; for layers in
// registers, two through which threads exchange values, and their ghosts; a list of items if threads form several
// layers; at the end a sum per thread.
func (b *tiling) share() {
	x, y, layers := b.block[0], b.block[1]*b.rows(), b.held()
	border := 2 * y
	if b.dims == 3 {
		border += 2 * x
	}
	cells := b.plane() * layers
	if b.whole() {
		cells += b.plane() * 2
	} else {
		cells += 2*x*y + (b.regLayers|1)*border
	}
	b.shared = ceil(cells*b.element, 16) * 16
	if b.block[2] > 1 {
		b.shared += b.packets() * itemBytes
	}
	b.shared = max(b.shared, b.threads()*sums.Bytes)
}

// largest returns the points of the largest tile along an axis.
func (b *tiling) largest(axis int) int64 { return ceil(b.size[axis], b.tiles[axis]) }

// packets returns the number of packets of the largest tile that has neighbors on all sides.
func (b *tiling) packets() int64 {
	x, y, depth := b.largest(0), b.largest(1), b.largest(2)
	if b.dims == 2 {
		return 2 * (x + depth)
	}
	return 2 * (x*y + x*depth + y*depth)
}

// cost estimates the cycles of a step: those in which shared memory moves values, the latency of packets,
// barriers. Its order of tilings is nearly the order measured on an H200.
func (b *tiling) cost() int64 {
	const barrier, trip = 150, 500
	threads, column := b.threads()*b.rows(), ceil(b.largest(2), b.block[2])
	accesses := int64(4)
	if b.dims == 3 {
		accesses = 7 - b.rows()
	}
	shared := ceil(threads, 32) * column * accesses * b.element / 4
	if b.block[0]%16 != 0 { // warps that span rows take more cycles
		shared += shared / 2
	}
	packets := b.packets()
	return shared + packets*b.element/8 + ceil(ceil(packets, threads),
		2)*trip + (ceil(column*b.element, 32)+b.regLayers)*barrier
}

// ceil returns n/by, rounded up.
func ceil[T int | int64](n, by T) T { return (n + by - 1) / by }

// area returns the number of points of a side of the box.
func (b *tiling) area(axis int) int64 { return b.size[0] * b.size[1] * b.size[2] / b.size[axis] }

// axisOf returns the axis of a field for an axis of tiles: in two dimensions tiles are one point deep along their
// second axis, which the field does not have.
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

// sideStores finds the sides from which a rank's stores take points.
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

// sideOf finds the side of a box from which a store takes its points, and the side of the other box with its
// ghosts: the opposite one, or the same behind a physical face. If a box is one point thick, a store of a rank to
// itself matches both, and counts as one behind a physical face, which needs no store at the other side.
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

// packetBytes is the size of a packet: each 4 bytes of a value come with 4 bytes of the step number.
func (t *tileRanks) packetBytes() int64 { return 2 * int64(t.real.Size()) }

// slot returns the location in the inbox of a rank of packets of even steps that cross a boundary between tiles,
// or one of its sides, upwards or downwards.
func (f *faceTiles) slot(i, axis int, cut int64, down int) int64 {
	b := &f.boxes[i]
	return f.inboxOffset(i, axis) + (cut*2+int64(down))*2*b.area(axis)*f.packetBytes()
}

// inboxOffset returns the offset of the packets of an axis, or of their end for the axis after the last.
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

// emptyInbox returns the words of an inbox without valid packets: locations of even steps begin with an odd
// number.
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

// checkRoom holds the results of the checks of a rank.
type checkRoom struct {
	votes *streams.Memory
	tiles *streams.Memory // norms of tiles, as packets
	voted *streams.Memory // addresses of the votes of all ranks
	host  *streams.Memory // norms by check, and the report
}
