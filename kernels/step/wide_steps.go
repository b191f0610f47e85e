package step

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// NewWideTileGroup is NewTileGroup with so many steps between two exchanges, from 2 on. Ghosts of neighbours are at
// least as wide, with edges and corners; stores are those after the last step of a group. Behind walls, ghosts beside
// those of neighbours are as those beside owned points: they keep their values, or all of a side are the points before
// it. The fields have whole ghosts before and after each launch. The error says what of this is not there, or does not
// fit.
func NewWideTileGroup(
	c *kernels.Compiler, s stencil.Stencil, real kernels.Real, mode sums.Mode, ranks []TileRank, steps int,
	limit time.Duration,
) (n *WideTileGroup, err error) {
	n = &WideTileGroup{tileRanks: newTileRanks(c, s, real, mode, ranks, limit), steps: steps}
	if err := n.cut(); err != nil {
		return nil, err
	}
	ghosts, err := n.findGhosts()
	if err != nil {
		return nil, err
	}
	if err := n.connect(n.neighbours(ghosts), maxWideNeighbours); err != nil {
		return nil, err
	}
	if err := n.list(ghosts); err != nil {
		return nil, err
	}
	made := n
	defer func() {
		if err != nil {
			n, err = nil, errors.Join(err, made.Close())
		}
	}()
	for i, rank := range ranks {
		if err := n.flags.Open(i, &n.resources); err != nil {
			return nil, err
		}
		if n.inbox[i], err = streams.Upload(rank.Device, n.emptyInbox()); err != nil {
			return nil, err
		}
		n.resources.Add(n.inbox[i])
		programs := n.programs(i)
		c.BeginSteps(rank.Device, programs[:]...)
	}
	n.tables = make([]wideTables, len(ranks))
	for i := range ranks {
		if err := n.upload(i); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// cut cuts all fields into tiles.
func (n *WideTileGroup) cut() error {
	if _, ok := n.stencil.AsStar(); !ok || n.real.Size() == 0 {
		return fmt.Errorf("%w: tiles are of stars of radius 1 and of reals", ErrNoTiles)
	}
	if n.steps < 2 {
		return fmt.Errorf("step: %d steps between two exchanges of tiles with wide ghosts", n.steps)
	}
	for i, rank := range n.ranks {
		if rank.Device == nil {
			return fmt.Errorf("step: rank %d has no device", i)
		}
		if rank.Device.GoKernels || rank.Fields[0].Layout != rank.Fields[1].Layout || !rank.Fields[0].Layout.Padded() {
			return fmt.Errorf("%w: tiles are of GPUs, and of fields of one layout", ErrNoTiles)
		}
		if most := 64; len(rank.Stores) > most {
			return fmt.Errorf("%w: rank %d has %d stores; %d are possible", ErrNoTiles, i, len(rank.Stores), most)
		}
		r, err := n.wideRank(i)
		if err != nil {
			return fmt.Errorf("%w: rank %d: %w", ErrNoTiles, i, err)
		}
		room := tileRoom{int64(rank.Device.Cores), rank.Device.Shared - wideReserve}
		box, ok := bestWideTiling(n.stencil.Dims, n.size(i), r.wide(), int64(n.real.Size()), int64(n.steps), room)
		if !ok {
			return fmt.Errorf(
				"%w: %v points on device %v do not fit twice into the shared memory of %d multiprocessors, with ghosts %d wide around each tile",
				ErrNoTiles, rank.Fields[0].Layout.Owned.Size(), rank.Device, rank.Device.Cores, n.steps)
		}
		r.cut(box.tiles)
		n.ranksOf, n.boxes = append(n.ranksOf, r), append(n.boxes, box)
	}
	return nil
}

// emptyInbox returns the words of an inbox in which no packet is of an exchange that its place waits for: places of
// even exchanges begin with an odd number.
func (n *WideTileGroup) emptyInbox() []uint64 {
	even := n.odd * n.packetBytes() / 8
	words := make([]uint64, 2*even)
	for w := range even {
		words[w] = 1 << 32
	}
	return words
}

// PrepareChecks is that of TileGroup.
func (n *WideTileGroup) PrepareChecks() (ok bool, err error) {
	if n.checks != nil {
		return true, nil
	}
	for i := range n.ranks {
		b := &n.boxes[i]
		if _, ok := b.checking(); !ok || b.size[0]*b.size[1]*b.size[2] > checkedSum {
			return false, nil
		}
	}
	for i, rank := range n.ranks {
		n.compiler.BeginSteps(rank.Device, n.checkedProgram(i))
	}
	return true, n.makeChecks(n.Tiles)
}

// Steps is that of TileGroup.
func (n *WideTileGroup) Steps(rank int, norms [2]streams.Span) (s *TileSteps, err error) {
	s = &TileSteps{group: &n.tileRanks, rank: rank, wide: int64(n.steps), launches: -1}
	programs, box := n.programs(rank), &n.boxes[rank]
	if s.plain, err = n.load(rank, programs[0], box, "wide_tile_steps", norms); err != nil {
		return nil, err
	}
	if s.measured, err = n.load(rank, programs[1], box, "wide_tile_steps_norms", norms); err != nil {
		return nil, err
	}
	if n.checks != nil {
		b, _ := box.checking()
		s.checked, err = n.load(rank, n.checkedProgram(rank), &b, "wide_tile_steps_checked", norms)
	}
	return s, err
}

// upload puts the lists of a rank on its device.
func (n *WideTileGroup) upload(i int) (err error) {
	var copies []ghostCopy
	for _, c := range n.copies(i) {
		one := ghostCopy{lo: c.lo, hi: c.hi, strides: launch.StridesOf(n.ranks[c.to].Fields[0].Layout)}
		for f, a := range n.ranks[c.to].Fields {
			one.field[f] = addressOf(a, c.ghost)
		}
		copies = append(copies, one)
	}
	inboxes := make([]uint64, hereCode+1)
	inboxes[hereCode] = n.inbox[i].Address()
	var neighbours []flags.Neighbour
	for at, other := range n.flags.Neighbours(i) {
		inboxes[at] = n.inbox[other].Address()
		neighbours = append(neighbours, n.flags.Counts(i, at, 0, n.tilesNear(other, i)))
	}
	t, l, d := &n.tables[i], &n.lists[i], n.ranks[i].Device
	return errors.Join(
		put(&t.tiles, n, d, l.tiles), put(&t.items, n, d, l.items), put(&t.senders, n, d, l.senders),
		put(&t.copies, n, d, copies), put(&t.inboxes, n, d, inboxes), put(&t.neighbours, n, d, neighbours),
	)
}

// put uploads a table, of one entry at least.
func put[T any](to **streams.Memory, n *WideTileGroup, d *streams.Device, table []T) error {
	if len(table) == 0 {
		table = make([]T, 1)
	}
	m, err := streams.Upload(d, table)
	if err == nil {
		*to = m
		n.resources.Add(m)
	}
	return err
}

// tilesNear returns how many tiles of a rank deal with another.
func (n *WideTileGroup) tilesNear(i, other int) (tiles int64) {
	for _, t := range n.lists[i].tiles {
		if t.near>>n.code(i, other)&1 > 0 {
			tiles++
		}
	}
	return tiles
}

// load makes a launch ready.
func (n *WideTileGroup) load(
	i int, p kernels.Program, box *wideTiling, name string, norms [2]streams.Span,
) (k tileKernel, err error) {
	t, l, rank := &n.tables[i], &n.lists[i], n.ranks[i]
	arg := &wideArgs{
		strides: launch.StridesOf(
			rank.Fields[0].Layout), tiles: t.tiles.Address(), items: t.items.Address(), senders: t.senders.Address(),
		copies: t.copies.Address(), odd: n.odd, inboxes: t.inboxes.Address(),
		neighbours: t.neighbours.Address(), neighbourCount: int64(len(n.flags.Neighbours(i))),
		limit: n.limit.Nanoseconds(), failed: n.flags.Report(i).Address(),
	}
	for a, sides := range n.ranksOf[i].mirrors {
		for high, mirrors := range sides {
			if mirrors {
				arg.mirrors[a][high] = 1
			}
		}
	}
	spec := n.spec(i, n.Tiles(i), box.block(), box.shared(l.most))
	spec.Uses = append(spec.Uses, t.tiles.All(), t.items.All(), t.senders.All(), t.copies.All(), t.inboxes.All(),
		t.neighbours.All())
	arg.field, arg.norms = n.uses(&spec, i, norms)
	for _, other := range n.flags.Neighbours(i) {
		spec.Reaches = append(spec.Reaches, n.inbox[other].All())
		for _, a := range n.ranks[other].Fields {
			spec.Reaches = append(spec.Reaches, a.Data)
		}
	}
	if n.checks != nil {
		arg.checks = n.checkArgs(&spec, i)
	}
	return n.make(i, p, name, spec, launch.Argument(arg), unsafe.Offsetof(arg.span))
}

// programs returns those of a rank.
func (n *WideTileGroup) programs(i int) [2]kernels.Program {
	return widePrograms(n.stencil, n.real, &n.boxes[i], n.mode)
}

// checkedProgram returns that of a rank with checks.
func (n *WideTileGroup) checkedProgram(i int) kernels.Program {
	b, _ := n.boxes[i].checking()
	return checkedWideTiles(n.stencil, n.real, &b, n.mode)
}
