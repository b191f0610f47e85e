package step

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// wideTiles are the tiles of several steps between exchanges: their ghosts are as wide as these steps read.
type wideTiles struct {
	*tileRanks
	steps   int        // between exchanges
	ranksOf []wideRank // by rank
	boxes   []wideTiling
	lists   []wideLists
	odd     int64 // packets of even exchanges, for which each inbox has space
	tables  []wideTables
}

// wideTables holds the lists of a rank on its device.
type wideTables struct{ tiles, items, senders, copies, inboxes, neighbors *streams.Memory }

// wideLists lists the packets that the tiles of a rank send and receive.
type wideLists struct {
	tiles   []wideTile
	items   []uint64 // struct Item of wide_tile.cuh
	senders []uint8  // one per item
	most    int64    // items of a tile
}

// count returns the number of tiles of a rank.
func (w *wideTiles) count(rank int) int64 { return int64(len(w.lists[rank].tiles)) }

// wideRank is the box of a rank with wide ghosts, along the axes of tiles, relative to its first point.
type wideRank struct {
	size    [3]int
	inside  [3][2]bool    // whether there is a neighbor behind a side
	mirrors [3][2]bool    // whether ghosts behind it mirror the points inside; otherwise they keep their values
	owners  [27]wideOwner // by codeOf a direction: owner of the ghosts there
	bounds  [3][]int      // first points of tiles, followed by the size
	tileAt  [3][]int      // index of the tile along an axis that contains a point
}

// wideOwner is a rank, and the offset from a ghost to its point there.
type wideOwner struct {
	known bool
	rank  int
	shift [3]int
}

// codeOf numbers directions.
func codeOf(d [3]int) int { return 13 + d[0] + 3*d[1] + 9*d[2] }

// wide reports along which axes there are neighbors.
func (r *wideRank) wide() (wide [3]bool) {
	for a := range wide {
		wide[a] = r.inside[a][0] || r.inside[a][1]
	}
	return wide
}

// cut divides the box into the given number of tiles along each axis.
func (r *wideRank) cut(tiles [3]int64) {
	for a := range tiles {
		for i := range int(tiles[a]) + 1 {
			r.bounds[a] = append(r.bounds[a], r.size[a]*i/int(tiles[a]))
		}
		for i := range int(tiles[a]) {
			for range r.bounds[a][i+1] - r.bounds[a][i] {
				r.tileAt[a] = append(r.tileAt[a], i)
			}
		}
	}
}

// tileOf returns the tile that contains a point, and its first point.
func (r *wideRank) tileOf(p [3]int) (tile int, lo [3]int) {
	at := [3]int{r.tileAt[0][p[0]], r.tileAt[1][p[1]], r.tileAt[2][p[2]]}
	for a := range at {
		lo[a] = r.bounds[a][at[a]]
	}
	return at[0] + (len(r.bounds[0])-1)*(at[1]+(len(r.bounds[1])-1)*at[2]), lo
}

// wideReserve is the shared memory in bytes that a block of wide_tiles.cu needs besides its tile: struct Tile, and
// the sums of a block.
const wideReserve = 4 << 10

// maxCells is the largest number of cells of a tile: items have 16 bits for a cell.
const maxCells = 1 << 16

// wideTiling is a box divided into tiles with ghosts as wide as several steps read, and the threads of a block,
// see wide_tile.cuh.
type wideTiling struct {
	dims           int
	element, steps int64
	size, tiles    [3]int64 // along x, y and the depth
	ghosts         [3]int64 // on each side of a tile
	layers         int64    // of threads
}

// bestWideTiling divides a box into tiles, at most one per multiprocessor, with the least estimated time per group
// of steps. wide tells along which axes the box itself has wide ghosts. ok is false if the tiles do not fit.
func bestWideTiling(
	dims int, size [3]int64, wide [3]bool, element, steps int64, room tileRoom,
) (best wideTiling, ok bool) {
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

// surround sets the ghosts of tiles: as many layers as steps if there are neighbors, and one behind physical
// faces.
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

// share divides the planes of a tile among as many layers of threads as possible.
func (b *wideTiling) share(threads int64) bool {
	layers := threads / b.columns()
	if layers == 0 {
		return false
	}
	b.layers = layers
	b.layers = ceil(b.extent(2)-2, b.column())
	return b.column() <= maxColumn
}

// maxColumn is the largest number of points per thread: the number of terms that its sums support.
const maxColumn = 1 << 10

// largest returns the points of the largest tile along an axis, extent those including its ghosts.
func (b *wideTiling) largest(axis int) int64 { return ceil(b.size[axis], b.tiles[axis]) }
func (b *wideTiling) extent(axis int) int64  { return b.largest(axis) + 2*b.ghosts[axis] }

// plane returns the distance of planes in cells: an odd number.
func (b *wideTiling) plane() int64 { return b.extent(0)*b.extent(1) | 1 }
func (b *wideTiling) cells() int64 { return b.plane() * b.extent(2) }

// columns returns the threads of a layer, in whole warps: one for each cell of the swept rows.
func (b *wideTiling) columns() int64 {
	swept := b.extent(0) * b.extent(1)
	if b.dims == 3 {
		swept -= 2 * b.extent(0)
	}
	return ceil(swept, warpThreads) * warpThreads
}

// column returns the number of cells per thread.
func (b *wideTiling) column() int64  { return ceil(b.extent(2)-2, b.layers) }
func (b *wideTiling) threads() int64 { return b.columns() * b.layers }
func (b *wideTiling) block() [3]int64 {
	return [3]int64{b.columns(), b.layers, 1}
}

// shared returns the bytes of shared memory: two copies of the tile, and the given items.
func (b *wideTiling) shared(items int64) int64 {
	return ceil(2*b.cells()*b.element, 16)*16 + items*itemBytes
}

// ball returns the number of ghosts of the largest tile from neighbors, if it has neighbors on all possible sides:
// a layer for each offset whose length, counted along the axes, is at most the number of steps.
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

// cost estimates the cycles of a group: those in which shared memory moves values, the latency of packets,
// barriers.
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

// checking returns the tiling with threads for norms within a launch; ok is false if there are too few.
func (b wideTiling) checking() (c wideTiling, ok bool) {
	ok = b.share(maxCheckThreads)
	return b, ok
}

// wideArgs is struct Tiles of wide_tile.cuh, wideTile its struct WideTile, ghostCopy its struct GhostCopy.
type (
	wideArgs struct {
		span          tileSpan `cu:"inline"`
		field         [2]uint64
		strides       launch.Strides
		mirrors       [3][2]int64
		tiles         uint64
		items         uint64
		senders       uint64
		copies        uint64
		odd           int64
		inboxes       uint64
		neighbors     uint64
		neighborCount int64
		norms         [2]uint64
		limit         int64
		failed        uint64
		checks        tileChecks
	}
	wideTile struct {
		lo, n, from, to [3]int32
		sent, received  int32
		items, packets  int64
		near, copies    uint64
	}
	ghostCopy struct {
		lo, hi  [3]int32
		field   [2]uint64
		strides launch.Strides
	}
)

// wideCopy is a set of points of a rank that are also ghosts of a rank. ghost is the location of the first point
// of its box there.
type wideCopy struct {
	to     int
	lo, hi [3]int32
	ghost  domain.Vec
}

// maxWideNeighbors is NEIGHBORS of wide_tile.cuh, the largest number of neighbors of a rank. hereCode is HERE: the
// code by which items name the rank itself.
const (
	maxWideNeighbors = 26
	hereCode         = maxWideNeighbors
)

// wideProgram runs groups of steps of a field in shared memory, with the threads of a tiling.
func wideProgram(s stencil.Stencil, r domain.Element, b *wideTiling, v variant, mode sums.Mode) kernels.Program {
	defines := []string{
		fmt.Sprintf("STEPS=%d", b.steps), fmt.Sprintf("WIDTH=%d", b.extent(0)), fmt.Sprintf("HEIGHT=%d", b.extent(1)),
		fmt.Sprintf("PLANES=%d", b.extent(2)), fmt.Sprintf("GHOSTS_X=%d", b.ghosts[0]),
		fmt.Sprintf("GHOSTS_Y=%d", b.ghosts[1]), fmt.Sprintf("GHOSTS_DEPTH=%d", b.ghosts[2]),
		fmt.Sprintf("LAYERS=%d", b.layers),
	}
	return stepProgram("wide_tiles.cu", s, r, append(defines, v.defines(mode)...),
		kernels.Mirror{Name: "Tiles", Value: wideArgs{}},
		kernels.Mirror{Name: "WideTile", Value: wideTile{}},
		kernels.Mirror{Name: "GhostCopy", Value: ghostCopy{}},
		kernels.Mirror{Name: "sizeof(Item)", Value: itemBytes},
		kernels.Mirror{Name: "HERE", Value: hereCode},
		kernels.Mirror{Name: "COLUMNS", Value: int(b.columns())},
		kernels.Mirror{Name: "PLANE", Value: int(b.plane())},
		kernels.Mirror{Name: "COLUMN", Value: int(b.column())},
	)
}
