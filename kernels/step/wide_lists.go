package step

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
)

// wideGhost is a ghost of a tile: its cell, and the location of its point at the owner.
type wideGhost struct {
	cell           int
	rank, tile, of int // the owner, its tile, and the cell there
}

// cellOf returns the index of a point or ghost of a tile in shared memory.
func (b *wideTiling) cellOf(p [3]int) int {
	g := b.ghosts
	return p[0] + int(g[0]) + (p[1]+int(g[1]))*int(b.extent(0)) + (p[2]+int(g[2]))*int(b.plane())
}

// findTile returns a tile of a rank: its location, and how far it and its ghosts are swept.
func (w *wideTiles) findTile(i int, at [3]int) (t wideTile) {
	r, b := &w.ranksOf[i], &w.boxes[i]
	for a := range at {
		lo, hi, ghosts := r.bounds[a][at[a]], r.bounds[a][at[a]+1], int(b.ghosts[a])
		from, to := -ghosts, hi-lo+ghosts
		if !r.inside[a][0] {
			from = max(from, -lo)
		}
		if !r.inside[a][1] {
			to = min(to, r.size[a]-lo)
		}
		t.lo[a], t.n[a], t.from[a], t.to[a] = int32(lo), int32(hi-lo), int32(from), int32(to)
	}
	return t
}

// findGhosts returns the received ghosts of all tiles, by rank and tile, grouped by owner.
func (w *wideTiles) findGhosts() (all [][][]wideGhost, err error) {
	w.lists = make([]wideLists, len(w.ranks))
	for i := range w.ranks {
		tiles := w.boxes[i].tiles
		var of [][]wideGhost
		for z := range int(tiles[2]) {
			for y := range int(tiles[1]) {
				for x := range int(tiles[0]) {
					t := w.findTile(i, [3]int{x, y, z})
					ghosts, err := w.ghostsOf(i, &t)
					if err != nil {
						return nil, err
					}
					w.lists[i].tiles, of = append(w.lists[i].tiles, t), append(of, ghosts)
				}
			}
		}
		all = append(all, of)
	}
	return all, nil
}

// ghostsOf returns the ghosts of a tile.
func (w *wideTiles) ghostsOf(i int, t *wideTile) (all []wideGhost, err error) {
	add := func(p [3]int) bool {
		g, ok := w.ghostAt(i, t, p)
		all = append(all, g)
		return ok
	}
	for z := int(t.from[2]); z < int(t.to[2]); z++ {
		for y := int(t.from[1]); y < int(t.to[1]); y++ {
			distance := t.outside(2, z) + t.outside(1, y)
			left := w.steps - distance
			for x := max(int(t.from[0]), -left); left >= 0 && x < min(int(t.to[0]), int(t.n[0])+left); x++ {
				if distance == 0 && x >= 0 && x < int(t.n[0]) {
					x = int(t.n[0]) - 1
					continue // a point of the tile
				}
				if !add([3]int{x, y, z}) {
					return nil, fmt.Errorf("%w: rank %d: a neighbor must own the point %d, %d, %d next to a tile",
						ErrNoTiles, i, x, y, z)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b wideGhost) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		return a.tile - b.tile
	})
	return all, nil
}

// outside returns the distance of a point from a tile along an axis.
func (t *wideTile) outside(axis, at int) int { return max(0, -at, at-int(t.n[axis])+1) }

// ghostAt returns the ghost of a tile of a rank at a point.
func (w *wideTiles) ghostAt(i int, t *wideTile, p [3]int) (g wideGhost, ok bool) {
	r := &w.ranksOf[i]
	var dir, at [3]int
	for a := range p {
		at[a] = int(t.lo[a]) + p[a]
		if at[a] < 0 {
			dir[a] = -1
		} else if at[a] >= r.size[a] {
			dir[a] = 1
		}
	}
	g = wideGhost{cell: w.boxes[i].cellOf(p), rank: i}
	if dir != [3]int{} {
		owner := &r.owners[codeOf(dir)]
		if !owner.known {
			return g, false
		}
		g.rank = owner.rank
		for a := range at {
			if at[a] += owner.shift[a]; at[a] < 0 || at[a] >= w.ranksOf[g.rank].size[a] {
				return g, false
			}
		}
	}
	tile, lo := w.ranksOf[g.rank].tileOf(at)
	for a := range at {
		at[a] -= lo[a]
	}
	g.tile, g.of = tile, w.boxes[g.rank].cellOf(at)
	return g, true
}

// neighbors returns the neighbors of each rank: those whose points it has as ghosts, and those into whose ghosts
// it stores.
func (w *wideTiles) neighbors(ghosts [][][]wideGhost) [][]int {
	all := make([][]int, len(w.ranks))
	meet := func(i, k int) {
		for _, pair := range [][2]int{{i, k}, {k, i}} {
			if i != k && !slices.Contains(all[pair[0]], pair[1]) {
				all[pair[0]] = append(all[pair[0]], pair[1])
			}
		}
	}
	for i, rank := range w.ranks {
		for _, st := range rank.Stores {
			meet(i, st.To)
		}
		for _, tile := range ghosts[i] {
			last := i
			for _, g := range tile {
				if g.rank != last {
					meet(i, g.rank)
					last = g.rank
				}
			}
		}
	}
	return all
}

// code returns the code by which items of a rank name another rank, or the rank itself.
func (w *wideTiles) code(of, rank int) int {
	if of == rank {
		return hereCode
	}
	return w.flags.Place(rank, of)
}

// deal makes a tile of a rank wait for another rank, and signal it.
func (w *wideTiles) deal(i, tile, other int) {
	if i != other {
		w.lists[i].tiles[tile].near |= 1 << w.code(i, other)
	}
}

// packetAlignment is the alignment of the packets of a tile, which minimizes the memory lines per warp.
const packetAlignment = 16

// list lists the packets that each tile sends and receives: the index of a packet is that of its ghost among those
// of its receiver.
func (w *wideTiles) list(ghosts [][][]wideGhost) error {
	out := make([][][]uint64, len(w.ranks)) // by rank and tile: sent packets
	for i := range w.ranks {
		out[i] = make([][]uint64, len(ghosts[i]))
	}
	for i := range w.ranks {
		packets := int64(0)
		for k, all := range ghosts[i] {
			t := &w.lists[i].tiles[k]
			t.packets, t.received = packets, int32(len(all))
			for at, g := range all {
				place := packets + int64(at)
				out[g.rank][g.tile] = append(out[g.rank][g.tile],
					uint64(place)|uint64(w.code(g.rank, i))<<27|uint64(g.of)<<32)
				w.deal(i, k, g.rank)
				w.deal(g.rank, g.tile, i)
			}
			packets = ceil(packets+int64(len(all)), packetAlignment) * packetAlignment
		}
		if packets >= 1<<27 {
			return fmt.Errorf("%w: number of packets of a device must fit in 32 bits, got %d", ErrNoTiles, packets)
		}
		w.odd = max(w.odd, packets, packetAlignment)
	}
	for i := range w.ranks {
		w.dealByStores(i)
		if err := w.putItems(i, ghosts[i], out[i]); err != nil {
			return err
		}
	}
	return nil
}

// dealByStores makes tiles store their points into ghosts, and signal the owners of the ghosts.
func (w *wideTiles) dealByStores(i int) {
	for at, c := range w.copies(i) {
		for k := range w.lists[i].tiles {
			t, meets := &w.lists[i].tiles[k], true
			for a := range t.lo {
				meets = meets && c.lo[a] < t.lo[a]+t.n[a] && t.lo[a] < c.hi[a]
			}
			if meets {
				t.copies |= 1 << at
				w.deal(i, k, c.to)
			}
		}
	}
}

// putItems concatenates the items of all tiles of a rank.
func (w *wideTiles) putItems(i int, ghosts [][]wideGhost, out [][]uint64) error {
	l := &w.lists[i]
	for k := range l.tiles {
		t := &l.tiles[k]
		t.items, t.sent = int64(len(l.items)), int32(len(out[k]))
		for at := range max(len(out[k]), len(ghosts[k])) {
			item, sender := uint64(0), 0
			if at < len(out[k]) {
				item = out[k][at]
			}
			if at < len(ghosts[k]) {
				item |= uint64(ghosts[k][at].cell) << 48
				sender = w.code(ghosts[k][at].rank, i)
			}
			l.items, l.senders = append(l.items, item), append(l.senders, uint8(sender))
		}
		l.most = max(l.most, int64(len(l.items))-t.items)
	}
	if have, room := w.boxes[i].shared(l.most), w.ranks[i].Device.Shared-wideReserve; have > room {
		return fmt.Errorf(
			"%w: a tile of device %v with ghosts %d wide and %d packets: needs %d bytes of shared memory, has %d",
			ErrNoTiles, w.ranks[i].Device, w.steps, l.most, have, room)
	}
	return nil
}

// copies returns the stores of a rank into ghosts after a launch.
func (w *wideTiles) copies(i int) (all []wideCopy) {
	owned := w.ranks[i].Fields[0].Layout.Owned
	for _, st := range w.ranks[i].Stores {
		c := wideCopy{to: st.To, ghost: owned.Lo.Add(st.Ghost.Lo).Sub(st.Send.Lo)}
		lo, hi := w.along(st.Send.Lo.Sub(owned.Lo)), w.along(st.Send.Hi.Sub(owned.Lo))
		for a := range lo {
			c.lo[a], c.hi[a] = int32(lo[a]), int32(hi[a])
		}
		all = append(all, c)
	}
	return all
}

// along returns a vector along the axes of tiles.
func (t *tileRanks) along(v domain.Vec) (p [3]int) {
	for a := range p {
		p[a] = v[t.axisOf(a)]
	}
	return p
}

// wideRank determines the kinds of ghosts of a rank from the stores into them.
func (w *wideTiles) wideRank(i int) (r wideRank, err error) {
	l := w.ranks[i].Fields[0].Layout
	r.size = w.along(l.Owned.Size())
	if w.stencil.Dims == 2 {
		r.mirrors[1] = [2]bool{true, true} // there are no ghosts
	}
	var beyond []domain.Direction // of edges and corners
	for _, faces := range []bool{true, false} {
		for from, rank := range w.ranks {
			for _, st := range rank.Stores {
				if st.To != i {
					continue
				}
				dir, ok := directionOf(l.Owned, st.Ghost)
				if !st.Copies() {
					return r, errors.New("ghosts behind faces: must be a copy from a side")
				}
				if !ok {
					return r, fmt.Errorf("store into %v: must be a copy from a side", st.Ghost)
				}
				if faces != (orderOf(dir) == 1) {
					continue
				}
				if !faces && !w.behindNeighbors(&r, dir) {
					beyond = append(beyond, dir)
					continue
				}
				if err := w.addStore(&r, i, from, st, dir); err != nil {
					return r, err
				}
			}
		}
	}
	if w.row() {
		r.mirrors[2] = [2]bool{true, true} // nothing is read there
	}
	for _, dir := range beyond {
		if !w.behindMirrors(&r, dir) {
			return r, errors.New("a store must not be next to a side whose ghosts keep their values")
		}
	}
	return r, w.complete(&r, l)
}

// directionOf returns the direction of a box in which another one is located entirely.
func directionOf(owned, b domain.Box) (dir domain.Direction, ok bool) {
	for a := range dir {
		switch {
		case b.Hi[a] <= owned.Lo[a]:
			dir[a] = -1
		case b.Lo[a] >= owned.Hi[a]:
			dir[a] = 1
		case b.Lo[a] < owned.Lo[a] || b.Hi[a] > owned.Hi[a]:
			return dir, false
		}
	}
	return dir, dir != domain.Direction{}
}

// orderOf returns the number of axes of a direction.
func orderOf(dir domain.Direction) int { return dir[0]*dir[0] + dir[1]*dir[1] + dir[2]*dir[2] }

// addStore registers a store into ghosts in a direction: those of a neighbor, or of a mirror.
func (w *wideTiles) addStore(r *wideRank, i, from int, st kernels.GhostStore, dir domain.Direction) error {
	owned, one := w.ranks[i].Fields[0].Layout.Owned, domain.UniformRadius(w.stencil.Dims, 1)
	d := w.along(domain.Vec(dir))
	for a := range d {
		if d[a] == 0 || orderOf(dir) > 1 {
			continue
		}
		side := &r.mirrors[a][side(d[a] > 0)]
		if from == i && st.Send == domain.SendBox(owned, dir, one) && st.Ghost == domain.GhostBox(owned, dir, one) &&
			!*side {
			*side = true
			return nil
		}
		r.inside[a][(1+d[a])/2] = true
	}
	need, owner := domain.GhostBox(owned, dir, domain.UniformRadius(w.stencil.Dims, w.steps)), &r.owners[codeOf(d)]
	if owner.known || st.Ghost.Intersect(need) != need {
		return fmt.Errorf("store into %v: must be all of %v, and the only one", st.Ghost, need)
	}
	their := w.ranks[from].Fields[0].Layout.Owned
	if st.Send.Intersect(their) != st.Send {
		return fmt.Errorf("store from %v: must be owned by rank %d", st.Send, from)
	}
	shift := owned.Lo.Add(st.Send.Lo).Sub(st.Ghost.Lo).Sub(their.Lo)
	*owner = wideOwner{true, from, w.along(shift)}
	return nil
}

// behindNeighbors reports whether there are neighbors behind all sides of a direction, and behindMirrors whether
// there are neighbors or mirrors.
func (w *wideTiles) behindNeighbors(r *wideRank, dir domain.Direction) bool {
	for a, d := range w.along(domain.Vec(dir)) {
		if d != 0 && !r.inside[a][(1+d)/2] {
			return false
		}
	}
	return true
}
func (w *wideTiles) behindMirrors(r *wideRank, dir domain.Direction) bool {
	for a, d := range w.along(domain.Vec(dir)) {
		if d != 0 && !r.inside[a][(1+d)/2] && !r.mirrors[a][(1+d)/2] {
			return false
		}
	}
	return true
}

// complete returns an error unless the field has all ghosts that steps read: those of neighbors from their owners,
// and a layer behind physical faces.
func (w *wideTiles) complete(r *wideRank, l domain.Layout) error {
	minus, plus := w.along(l.Width.Minus), w.along(l.Width.Plus)
	for a := range 3 {
		for high, width := range [2]int{minus[a], plus[a]} {
			need := 1
			if r.inside[a][high] && r.mirrors[a][high] {
				return errors.New("a side must not have ghosts of both a neighbor and a mirror")
			}
			if r.inside[a][high] {
				need = w.steps
			}
			if w.axisOf(a) < w.stencil.Dims && width < need && !(w.row() && a == 2) {
				return fmt.Errorf("ghosts must be wide enough, got %d layers", width)
			}
		}
	}
	for _, dir := range domain.Directions(w.stencil.Dims) {
		if orderOf(dir) <= w.steps && w.behindNeighbors(r, dir) && !r.owners[codeOf(w.along(domain.Vec(dir)))].known {
			return fmt.Errorf("ghosts in %v: must be stored", dir)
		}
	}
	return nil
}
