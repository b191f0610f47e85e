package kernels

import (
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/streams"
)

// tileArgs is struct Tiles of tile.cuh, tileSide its struct Side.
type (
	tileArgs struct {
		span        stepSpan `cu:"inline"`
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

// tiled is the boxes of all ranks as tiles that stay on the multiprocessors.
type tiled struct {
	boxes []tiling
	sides [][3][2]sideStore // by rank, axis of the tiles, low and high
	inbox []*streams.Memory
}

// sideStore is where the points at a side go: ghosts at a side of a rank. store is its
// place in the rank's list; -1 where they go nowhere.
type sideStore struct {
	store, to int
	high      bool
}

// tile returns the ranks as tiles, nil where that cannot be: the stencil is
// a star of one point, the devices are GPUs, every store is of one whole side and to whoever
// stores back, and every box fits.
func (n *stepGroup) tile() *tiled {
	if _, ok := n.stencil.AsStar(); !ok {
		return nil
	}
	t := &tiled{inbox: make([]*streams.Memory, len(n.ranks))}
	for i, rank := range n.ranks {
		sides, ok := n.sideStores(i)
		if !ok || rank.Device.Backend != streams.CUDA {
			return nil
		}
		room := tileRoom{int64(rank.Device.Cores), rank.Device.Shared - tileReserve}
		box, ok := bestTiling(n.stencil.Dims, n.tileSize(i), int64(n.real.Size()), room)
		if !ok {
			return nil
		}
		t.boxes, t.sides = append(t.boxes, box), append(t.sides, sides)
	}
	for i := range t.sides {
		for axis := range t.sides[i] {
			for high, s := range t.sides[i][axis] {
				if s.store < 0 {
					continue
				}
				back := t.sides[s.to][axis][side(s.high)]
				if back.store < 0 || back.to != i || side(back.high) != high {
					return nil
				}
			}
		}
	}
	return t
}

func side(high bool) int {
	if high {
		return 1
	}
	return 0
}

// axisOf returns the axis of a field that an axis of tiles is: in two dimensions tiles are
// one point deep along their second, which no field has then.
func (n *stepGroup) axisOf(axis int) int {
	if n.stencil.Dims == 2 && axis > 0 {
		return 3 - axis
	}
	return axis
}

func (n *stepGroup) tileSize(i int) (size [3]int64) {
	owned := n.ranks[i].Fields[0].Layout.Owned.Size()
	for axis := range size {
		size[axis] = int64(owned[n.axisOf(axis)])
	}
	return size
}

// sideStores finds the sides that a rank's stores take points from.
func (n *stepGroup) sideStores(i int) (sides [3][2]sideStore, ok bool) {
	for axis := range sides {
		sides[axis] = [2]sideStore{{store: -1}, {store: -1}}
	}
	width := domain.UniformRadius(n.stencil.Dims, 1)
	owned := n.ranks[i].Fields[0].Layout.Owned
	for k, st := range n.ranks[i].Stores {
		if len(st.Odd) > 0 {
			return sides, false
		}
		axis, high, there, found := n.sideOf(st, owned, width)
		if !found || sides[axis][high].store >= 0 {
			return sides, false
		}
		sides[axis][high] = sideStore{k, st.To, there == 1}
	}
	return sides, true
}

// sideOf finds the side of a box that a store takes its points from, and at which side of the
// other its ghosts are: the opposite one, or behind a wall the same. Where a box is one point
// thick both would do.
func (n *stepGroup) sideOf(st GhostStore, owned domain.Box, width domain.Radius) (axis, high, there int, found bool) {
	other := n.ranks[st.To].Fields[0].Layout.Owned
	for same := range 2 {
		for axis := range 3 {
			for high := range 2 {
				var from, to domain.Direction
				there := high
				if same == 0 {
					there = 1 - high
				}
				from[n.axisOf(axis)], to[n.axisOf(axis)] = 2*high-1, 2*there-1
				if n.axisOf(axis) < n.stencil.Dims && st.Send == domain.SendBox(owned, from, width) && st.Ghost == domain.GhostBox(other, to, width) {
					return axis, high, there, true
				}
			}
		}
	}
	return 0, 0, 0, false
}

// packetBytes are those of a packet: each 4 bytes of a value come with 4 of the step.
func (n *stepGroup) packetBytes() int64 { return 2 * int64(n.real.Size()) }

// slot returns where in the inbox of a rank packets of even steps lie that cross a cut
// between tiles, or one of its sides, upwards or downwards.
func (n *stepGroup) slot(i, axis int, cut int64, down int) int64 {
	b := &n.tiled.boxes[i]
	return n.inboxOffset(i, axis) + (cut*2+int64(down))*2*b.area(axis)*n.packetBytes()
}

// inboxOffset returns where the packets of an axis begin, and for one axis more their end.
func (n *stepGroup) inboxOffset(i, axis int) (bytes int64) {
	b := &n.tiled.boxes[i]
	for a := range axis {
		if n.axisOf(a) >= n.stencil.Dims {
			continue
		}
		bytes += (b.tiles[a] + 1) * 4 * b.area(a) * n.packetBytes()
	}
	return bytes
}

// sideSlot returns the address of the packets for the ghosts of a side.
func (n *stepGroup) sideSlot(i, axis int, high bool) uint64 {
	cut := int64(0)
	if high {
		cut = n.tiled.boxes[i].tiles[axis]
	}
	return n.tiled.inbox[i].Address() + uint64(n.slot(i, axis, cut, side(high)))
}

// tilesToward returns how many tiles of a rank store into ghosts of another.
func (n *stepGroup) tilesToward(i, other int) (tiles int64) {
	b := &n.tiled.boxes[i]
	for axis := range b.tiles {
		for _, s := range n.tiled.sides[i][axis] {
			if s.store >= 0 && s.to == other {
				tiles += b.tiles[0] * b.tiles[1] * b.tiles[2] / b.tiles[axis]
			}
		}
	}
	return tiles
}

// tilesOf returns the programs of a rank whose field stays on its multiprocessors, without
// norms and with them.
func (c *Compiler) tilesOf(n *stepGroup, i int) (plain, measured Program) {
	d, both := n.ranks[i].Device, tilesPrograms(n.stencil, n.real, &n.tiled.boxes[i])
	return c.injectFault(d, both[0]), c.injectFault(d, both[1])
}

// tilesOnGPU makes the launch of such a rank, and another with norms.
func (s *Stepper) tilesOnGPU(c *Compiler, n *stepGroup, i int) error {
	rank, box := n.ranks[i], &n.tiled.boxes[i]
	plain, measured := c.tilesOf(n, i)
	hold, err := c.load(rank.Device, plain, "tile_steps")
	if err != nil {
		return err
	}
	holdNorms, err := c.load(rank.Device, measured, "tile_steps"+withNorms)
	if err != nil {
		return err
	}
	tiles := box.tiles[0] * box.tiles[1] * box.tiles[2]
	if err := s.addNorms(c, n.real, tiles); err != nil {
		return err
	}
	spec := streams.KernelSpec{
		Name: "tile steps", Work: streams.Sweep, Function: hold[0], Shared: int(box.shared), Cooperative: true,
		Grid:  [3]int{int(tiles), 1, 1},
		Block: [3]int{int(box.block[0]), int(box.block[1]), int(box.block[2])},
		Uses:  []streams.Span{n.flags.Memory(i).All(), s.failed.All(), n.tiled.inbox[i].All()},
	}
	arg := &tileArgs{
		strides: stridesOf(rank.Fields[0].Layout), size: box.size, tiles: box.tiles, held: box.held(),
		limit: n.limit.Nanoseconds(), failed: s.failed.Address(),
	}
	for f, a := range rank.Fields {
		arg.field[f], arg.norms[f] = a.pointAddress(a.Layout.Owned.Lo), slotsOf(s.norms[f].result)
		spec.Uses = append(spec.Uses, a.Data, s.norms[f].result.All())
	}
	for axis := range arg.inbox {
		arg.inbox[axis] = n.tiled.inbox[i].Address() + uint64(n.inboxOffset(i, axis))
		for high := range 2 {
			arg.side[axis][high] = n.tileSide(&spec, i, axis, high)
		}
	}
	for at, k := range n.flags.Neighbours(i) {
		_, its := n.flags.Pair(i, at, 0)
		arg.neighbour[at] = n.flags.Counts(i, at, 0, n.tilesToward(k, i))
		spec.Reaches = append(spec.Reaches, its)
	}
	spec.Argument = argument(arg)
	if s.plain, err = s.stepKernel(spec, unsafe.Offsetof(arg.span)); err != nil {
		return err
	}
	spec.Function = holdNorms[0]
	s.measured, err = s.stepKernel(spec, unsafe.Offsetof(arg.span))
	return err
}

// tileSide describes a side of a rank: where its points go, and whom the ghosts behind it
// come from, who is the rank that it stores into.
func (n *stepGroup) tileSide(spec *streams.KernelSpec, i, axis, high int) tileSide {
	st := n.tiled.sides[i][axis][high]
	if st.store < 0 {
		return tileSide{other: nobody}
	}
	send, ghost := n.ranks[i].Stores[st.store].Send, n.ranks[i].Stores[st.store].Ghost
	at := tileSide{out: n.sideSlot(st.to, axis, st.high), other: int64(n.flags.Place(st.to, i))}
	first := ghost.Lo.Sub(n.fromOwned(i, send).Lo)
	for f, a := range n.ranks[st.to].Fields {
		at.ghost[f], at.strides = a.pointAddress(first), stridesOf(a.Layout)
		spec.Reaches = append(spec.Reaches, a.Data)
	}
	spec.Reaches = append(spec.Reaches, n.tiled.inbox[st.to].All())
	return at
}
