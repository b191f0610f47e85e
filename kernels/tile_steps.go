package kernels

import (
	"fmt"
	"unsafe"

	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/streams"
)

// tileArgs is struct Tiles of tile.cuh, tileSide its struct Side.
type (
	tileArgs struct {
		span        tileSpan `cu:"inline"`
		field       [2]uint64
		strides     strides
		size, tiles [3]int64
		held        int64
		side        [3][2]tileSide
		inbox       [3]uint64
		neighbour   [maxFaces]flags.Neighbour
		norms       [2]uint64
		limit       int64
		failed      uint64
	}
	tileSide struct {
		out     uint64
		ghost   [2]uint64
		strides strides
		other   int64
	}
)

// nobody is what a side has instead of a neighbour where nothing is stored; -1 is the rank
// itself.
const nobody = -2

// tileSpan is the first step of a launch, how many it makes, and how many launches were before.
type tileSpan struct{ first, count, launch int64 }

// TileSteps launches the steps of one rank. All ranks queue the same steps, each by one thread. A rank that
// fails leaves the others waiting, up to their limit.
type TileSteps struct {
	group    *TileGroup
	rank     int
	plain    tileKernel
	measured tileKernel // the same, which takes the norms of its last step on the way
	launches int64
}

// tileKernel is a launch, and where its argument says what it makes.
type tileKernel struct {
	kernel *streams.Kernel
	span   *tileSpan
}

// Steps makes the steps of a rank ready. norms is where steps that write Fields[0] and those that write
// Fields[1] leave their norms, four numbers of 8 bytes a tile: the largest change, the sum of its squares,
// the largest magnitude, the sum of squares.
func (n *TileGroup) Steps(rank int, norms [2]streams.Span) (s *TileSteps, err error) {
	s = &TileSteps{group: n, rank: rank, launches: -1}
	plain, measured := n.programs(rank)
	if s.plain, err = s.load(plain, "tile_steps", norms); err != nil {
		return nil, err
	}
	if s.measured, err = s.load(measured, "tile_steps_norms", norms); err != nil {
		return nil, err
	}
	return s, nil
}

// programs returns those of a rank, without norms and with them.
func (n *TileGroup) programs(i int) (plain, measured Program) {
	d, both := n.ranks[i].Device, tilesPrograms(n.stencil, n.real, &n.boxes[i])
	return n.compiler.injectFault(d, both[0]), n.compiler.injectFault(d, both[1])
}

// load makes a launch ready.
func (s *TileSteps) load(p Program, name string, norms [2]streams.Span) (k tileKernel, err error) {
	n, i := s.group, s.rank
	rank, box := n.ranks[i], &n.boxes[i]
	found, err := n.compiler.load(rank.Device, p, name)
	if err != nil {
		return k, err
	}
	report := n.flags.Report(i)
	spec := streams.KernelSpec{
		Name: "resident", Work: streams.Sweep, Function: found[0], Shared: int(box.shared), Cooperative: true,
		Grid:  [3]int{int(n.Tiles(i)), 1, 1},
		Block: [3]int{int(box.block[0]), int(box.block[1]), int(box.block[2])},
		Uses:  []streams.Span{n.flags.Memory(i).All(), report.All(), n.inbox[i].All()},
	}
	arg := &tileArgs{
		strides: stridesOf(rank.Fields[0].Layout), size: box.size, tiles: box.tiles, held: box.held(),
		limit: n.limit.Nanoseconds(), failed: report.Address(),
	}
	for f, a := range rank.Fields {
		arg.field[f], arg.norms[f] = a.pointAddress(a.Layout.Owned.Lo), norms[f].Address()
		spec.Uses = append(spec.Uses, a.Data, norms[f])
	}
	for axis := range arg.inbox {
		arg.inbox[axis] = n.inbox[i].Address() + uint64(n.inboxOffset(i, axis))
		for high := range 2 {
			arg.side[axis][high] = n.tileSide(&spec, i, axis, high)
		}
	}
	for at, other := range n.flags.Neighbours(i) {
		_, its := n.flags.Pair(i, at, 0)
		arg.neighbour[at] = n.flags.Counts(i, at, 0, n.tilesToward(other, i))
		spec.Reaches = append(spec.Reaches, its)
	}
	spec.Argument = argument(arg)
	if k.kernel, err = newKernel(rank.Device, spec); err != nil {
		return k, err
	}
	n.resources.Add(k.kernel)
	k.span = &streams.View[tileSpan](k.kernel.Argument()[unsafe.Offsetof(arg.span):][:unsafe.Sizeof(tileSpan{})])[0]
	return k, nil
}

// tileSide describes a side of a rank: where its points go, and whom the ghosts behind it
// come from, who is the rank that it stores into.
func (n *TileGroup) tileSide(spec *streams.KernelSpec, i, axis, high int) tileSide {
	st := n.sides[i][axis][high]
	if st.store < 0 {
		return tileSide{other: nobody}
	}
	send, ghost := n.ranks[i].Stores[st.store].Send, n.ranks[i].Stores[st.store].Ghost
	at := tileSide{out: n.sideSlot(st.to, axis, st.high), other: int64(n.flags.Place(st.to, i))}
	first := ghost.Lo.Sub(send.Lo.Sub(n.ranks[i].Fields[0].Layout.Owned.Lo))
	for f, a := range n.ranks[st.to].Fields {
		at.ghost[f], at.strides = a.pointAddress(first), stridesOf(a.Layout)
		spec.Reaches = append(spec.Reaches, a.Data)
	}
	spec.Reaches = append(spec.Reaches, n.inbox[st.to].All())
	return at
}

// MaxTileSteps is how many steps a launch may make.
const MaxTileSteps = 1 << 30

// Queue queues steps, the first of which has a number, from 1: that after those queued before. With norms
// the last leaves them. It returns an error also if the device has waited in vain before.
func (s *TileSteps) Queue(at *streams.Stream, first, steps int64, norms bool) error {
	if first < 1 || steps < 1 || steps > MaxTileSteps {
		return fmt.Errorf("kernels: %d steps from %d in one launch", steps, first)
	}
	if err := s.Err(); err != nil {
		return err
	}
	k := s.plain
	if norms {
		k = s.measured
	}
	s.launches++
	*k.span = tileSpan{first, steps, s.launches}
	return at.Launch(k.kernel)
}

// Err returns an error if the device has waited in vain for a neighbour, or its thread blocks for each
// other.
func (s *TileSteps) Err() error { return s.group.flags.Err(s.rank, "a step") }
