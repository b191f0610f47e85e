package step

import (
	"errors"
	"unsafe"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

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
func (n *WideTileGroup) load(i int, p kernels.Program, box *wideTiling, name string, norms [2]streams.Span) (k tileKernel, err error) {
	t, l, rank := &n.tables[i], &n.lists[i], n.ranks[i]
	arg := &wideArgs{
		strides: launch.StridesOf(rank.Fields[0].Layout), tiles: t.tiles.Address(), items: t.items.Address(), senders: t.senders.Address(),
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
	spec.Uses = append(spec.Uses, t.tiles.All(), t.items.All(), t.senders.All(), t.copies.All(), t.inboxes.All(), t.neighbours.All())
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
