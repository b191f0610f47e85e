package step

import (
	"fmt"
	"unsafe"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// newWideTiles divides the fields of ranks into tiles with ghosts as wide as the given steps read.
func newWideTiles(t *tileRanks, steps int) (*wideTiles, error) {
	w := &wideTiles{tileRanks: t, steps: steps}
	if err := w.cut(); err != nil {
		return nil, err
	}
	ghosts, err := w.findGhosts()
	if err != nil {
		return nil, err
	}
	if err := w.connect(w.neighbors(ghosts), maxWideNeighbors); err != nil {
		return nil, err
	}
	return w, w.list(ghosts)
}

// cut divides all fields into tiles.
func (w *wideTiles) cut() error {
	for i, rank := range w.ranks {
		if most := 64; len(rank.Stores) > most {
			return fmt.Errorf("%w: rank %d: number of stores must be at most %d, got %d", ErrNoTiles, i, most,
				len(rank.Stores))
		}
		r, err := w.wideRank(i)
		if err != nil {
			return fmt.Errorf("%w: rank %d: %w", ErrNoTiles, i, err)
		}
		room := tileRoom{int64(rank.Device.Cores), rank.Device.Shared - wideReserve}
		box, ok := bestWideTiling(w.stencil.Dims, w.size(i), r.wide(), int64(w.real.Size()), int64(w.steps), room)
		if !ok {
			return fmt.Errorf(
				"%w: two copies of %v points on device %v must fit in the shared memory of %d multiprocessors, "+
					"with ghosts %d wide around each tile",
				ErrNoTiles, rank.Fields[0].Layout.Owned.Size(), rank.Device, rank.Device.Cores, w.steps)
		}
		r.cut(box.tiles)
		w.ranksOf, w.boxes = append(w.ranksOf, r), append(w.boxes, box)
	}
	return nil
}

// emptyInbox returns the words of an inbox without valid packets: locations of even exchanges begin with an odd
// number.
func (w *wideTiles) emptyInbox(int) []uint64 {
	even := w.odd * w.packetBytes() / 8
	words := make([]uint64, 2*even)
	for w := range even {
		words[w] = 1 << 32
	}
	return words
}

// upload copies the lists of all ranks to their devices, and allocates the inboxes.
func (w *wideTiles) upload() error {
	w.tables = make([]wideTables, len(w.ranks))
	for i := range w.ranks {
		w.uploadRank(i)
	}
	return w.resources.Err()
}

func (w *wideTiles) uploadRank(i int) {
	var copies []ghostCopy
	for _, c := range w.copies(i) {
		one := ghostCopy{lo: c.lo, hi: c.hi, strides: launch.StridesOf(w.ranks[c.to].Fields[0].Layout)}
		for f, a := range w.ranks[c.to].Fields {
			one.field[f] = addressOf(a, c.ghost)
		}
		copies = append(copies, one)
	}
	inboxes := make([]uint64, hereCode+1)
	inboxes[hereCode] = w.inbox[i].Address()
	var neighbors []flags.Neighbor
	for at, other := range w.flags.Neighbors(i) {
		inboxes[at] = w.inbox[other].Address()
		neighbors = append(neighbors, w.flags.Counts(i, at, 0, w.tilesNear(other, i)))
	}
	t, l, d := &w.tables[i], &w.lists[i], w.ranks[i].Device
	t.tiles, t.items, t.senders = put(w, d, l.tiles), put(w, d, l.items), put(w, d, l.senders)
	t.copies, t.inboxes, t.neighbors = put(w, d, copies), put(w, d, inboxes), put(w, d, neighbors)
}

// put uploads a table of at least one entry.
func put[T any](w *wideTiles, d *streams.Device, table []T) (m *streams.Memory) {
	if len(table) == 0 {
		table = make([]T, 1)
	}
	streams.Into(&w.resources, &m)(streams.Upload(d, table))
	return m
}

// tilesNear returns how many tiles of a rank communicate with another.
func (w *wideTiles) tilesNear(i, other int) (tiles int64) {
	for _, t := range w.lists[i].tiles {
		if t.near>>w.code(i, other)&1 > 0 {
			tiles++
		}
	}
	return tiles
}

// launch prepares the kernel of a rank.
func (w *wideTiles) launch(i int, v variant, norms [2]streams.Span) (tileKernel, error) {
	t, l, rank, box := &w.tables[i], &w.lists[i], w.ranks[i], w.tiling(i, v)
	arg := &wideArgs{
		strides: launch.StridesOf(rank.Fields[0].Layout), tiles: t.tiles.Address(), items: t.items.Address(),
		senders: t.senders.Address(), copies: t.copies.Address(), odd: w.odd, inboxes: t.inboxes.Address(),
		neighbors: t.neighbors.Address(), neighborCount: int64(len(w.flags.Neighbors(i))),
		limit: w.limit.Nanoseconds(), failed: w.flags.Report(i).Address(),
	}
	for a, sides := range w.ranksOf[i].mirrors {
		for high, mirrors := range sides {
			if mirrors {
				arg.mirrors[a][high] = 1
			}
		}
	}
	spec := w.spec(i, w.count(i), box.block(), box.shared(l.most))
	spec.Uses = append(spec.Uses, t.tiles.All(), t.items.All(), t.senders.All(), t.copies.All(), t.inboxes.All(),
		t.neighbors.All())
	arg.field, arg.norms = w.uses(&spec, i, norms)
	for _, other := range w.flags.Neighbors(i) {
		spec.Reaches = append(spec.Reaches, w.inbox[other].All())
		for _, a := range w.ranks[other].Fields {
			spec.Reaches = append(spec.Reaches, a.Data)
		}
	}
	if w.checks != nil {
		arg.checks = w.checkArgs(&spec, i)
	}
	return w.load(i, w.program(i, v), spec, launch.Argument(arg), unsafe.Offsetof(arg.span))
}

// program returns the program of a rank.
func (w *wideTiles) program(i int, v variant) kernels.Program {
	return wideProgram(w.stencil, w.real, w.tiling(i, v), v, w.mode)
}

// tiling returns the tiling of a rank, with other threads for a kernel with norms of intermediate steps.
func (w *wideTiles) tiling(i int, v variant) *wideTiling {
	b := w.boxes[i]
	if v == allNorms {
		b, _ = b.checking()
	}
	return &b
}

// canCheck reports whether the tiles of a rank have space for checks.
func (w *wideTiles) canCheck(i int) bool {
	b := &w.boxes[i]
	_, ok := b.checking()
	return ok && b.size[0]*b.size[1]*b.size[2] <= checkedSum
}
