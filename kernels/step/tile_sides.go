package step

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
)

// axisOf returns the axis of a field that an axis of tiles is: in two dimensions tiles are
// one point deep along their second, which no field has then.
func (n *tileRanks) axisOf(axis int) int {
	if n.stencil.Dims == 2 && axis > 0 {
		return 3 - axis
	}
	return axis
}

func (n *tileRanks) size(i int) (size [3]int64) {
	owned := n.ranks[i].Fields[0].Layout.Owned.Size()
	for axis := range size {
		size[axis] = int64(owned[n.axisOf(axis)])
	}
	return size
}

// sideStores finds the sides that a rank's stores take points from.
func (n *TileGroup) sideStores(i int) (sides [3][2]sideStore, ok bool) {
	for axis := range sides {
		sides[axis] = [2]sideStore{{store: -1}, {store: -1}}
	}
	width := domain.UniformRadius(n.stencil.Dims, 1)
	owned := n.ranks[i].Fields[0].Layout.Owned
	for k, st := range n.ranks[i].Stores {
		if len(st.Odd) > 0 {
			return sides, false
		}
		axis, high, there, found := n.sideOf(i, st, owned, width)
		if !found || sides[axis][high].store >= 0 {
			return sides, false
		}
		sides[axis][high] = sideStore{k, st.To, there == 1}
	}
	return sides, true
}

// sideOf finds the side of a box that a store takes its points from, and at which side of the
// other its ghosts are: the opposite one, or behind a wall the same. Where a box is one point
// thick a store of a rank to itself fits both. It is taken as one behind a wall, which needs no store at the other side.
func (n *TileGroup) sideOf(rank int, st kernels.GhostStore, owned domain.Box, width domain.Radius) (axis, high, there int, found bool) {
	other := n.ranks[st.To].Fields[0].Layout.Owned
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
func (n *tileRanks) packetBytes() int64 { return 2 * int64(n.real.Size()) }

// slot returns where in the inbox of a rank packets of even steps lie that cross a cut
// between tiles, or one of its sides, upwards or downwards.
func (n *TileGroup) slot(i, axis int, cut int64, down int) int64 {
	b := &n.boxes[i]
	return n.inboxOffset(i, axis) + (cut*2+int64(down))*2*b.area(axis)*n.packetBytes()
}

// inboxOffset returns where the packets of an axis begin, and for one axis more their end.
func (n *TileGroup) inboxOffset(i, axis int) (bytes int64) {
	b := &n.boxes[i]
	for a := range axis {
		if n.axisOf(a) >= n.stencil.Dims {
			continue
		}
		bytes += (b.tiles[a] + 1) * 4 * b.area(a) * n.packetBytes()
	}
	return bytes
}

// emptyInbox returns the words of an inbox in which no packet is of a step that its place waits for: places
// of even steps begin with an odd one.
func (n *TileGroup) emptyInbox(i int) []uint64 {
	words := make([]uint64, n.inboxOffset(i, len(n.boxes[i].tiles))/8)
	for axis, tiles := range n.boxes[i].tiles {
		if n.axisOf(axis) >= n.stencil.Dims {
			continue
		}
		places := n.boxes[i].area(axis) * n.packetBytes() / 8
		for cut := range tiles + 1 {
			for down := range 2 {
				even := n.slot(i, axis, cut, down) / 8
				for w := range places {
					words[even+w] = 1 << 32
				}
			}
		}
	}
	return words
}

// sideSlot returns the address of the packets for the ghosts of a side.
func (n *TileGroup) sideSlot(i, axis int, high bool) uint64 {
	cut := int64(0)
	if high {
		cut = n.boxes[i].tiles[axis]
	}
	return n.inbox[i].Address() + uint64(n.slot(i, axis, cut, side(high)))
}

// tilesToward returns how many tiles of a rank store into ghosts of another.
func (n *TileGroup) tilesToward(i, other int) (tiles int64) {
	b := &n.boxes[i]
	for axis := range b.tiles {
		for _, s := range n.sides[i][axis] {
			if s.store >= 0 && s.to == other {
				tiles += b.tiles[0] * b.tiles[1] * b.tiles[2] / b.tiles[axis]
			}
		}
	}
	return tiles
}
