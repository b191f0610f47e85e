package step

import (
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
)

// along returns a vector along the axes of tiles.
func (n *tileRanks) along(v domain.Vec) (p [3]int) {
	for a := range p {
		p[a] = v[n.axisOf(a)]
	}
	return p
}

// wideRank finds out what the ghosts of a rank are from what is stored into them.
func (n *WideTileGroup) wideRank(i int) (r wideRank, err error) {
	l := n.ranks[i].Fields[0].Layout
	r.size = n.along(l.Owned.Size())
	if n.stencil.Dims == 2 {
		r.mirrors[1] = [2]bool{true, true} // nothing lies there
	}
	var beyond []domain.Direction // several sides
	for _, faces := range []bool{true, false} {
		for from, rank := range n.ranks {
			for _, st := range rank.Stores {
				if st.To != i {
					continue
				}
				dir, ok := directionOf(l.Owned, st.Ghost)
				if !ok || len(st.Odd) > 0 {
					return r, fmt.Errorf("a store into %v, which no tile sends", st.Ghost)
				}
				if faces != (orderOf(dir) == 1) {
					continue
				}
				if !faces && !n.behindNeighbours(&r, dir) {
					beyond = append(beyond, dir)
					continue
				}
				if err := n.addStore(&r, i, from, st, dir); err != nil {
					return r, err
				}
			}
		}
	}
	for _, dir := range beyond {
		if !n.behindMirrors(&r, dir) {
			return r, errors.New("a store beside a wall whose ghosts keep their values")
		}
	}
	return r, n.complete(&r, l)
}

// directionOf returns in which direction of a box another one lies wholly.
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

// orderOf returns along how many axes a direction leads.
func orderOf(dir domain.Direction) int { return dir[0]*dir[0] + dir[1]*dir[1] + dir[2]*dir[2] }

// addStore takes a store into ghosts in a direction into account: those of a neighbour, or of a mirror.
func (n *WideTileGroup) addStore(r *wideRank, i, from int, st kernels.GhostStore, dir domain.Direction) error {
	owned, one := n.ranks[i].Fields[0].Layout.Owned, domain.UniformRadius(n.stencil.Dims, 1)
	d := n.along(domain.Vec(dir))
	for a := range d {
		if d[a] == 0 || orderOf(dir) > 1 {
			continue
		}
		side := &r.mirrors[a][side(d[a] > 0)]
		if from == i && st.Send == domain.SendBox(owned, dir, one) && st.Ghost == domain.GhostBox(owned, dir, one) && !*side {
			*side = true
			return nil
		}
		r.inside[a][(1+d[a])/2] = true
	}
	need, owner := domain.GhostBox(owned, dir, domain.UniformRadius(n.stencil.Dims, n.steps)), &r.owners[codeOf(d)]
	if owner.known || st.Ghost.Intersect(need) != need {
		return fmt.Errorf("a store into %v, which is not all of %v, or is a second one", st.Ghost, need)
	}
	their := n.ranks[from].Fields[0].Layout.Owned
	if st.Send.Intersect(their) != st.Send {
		return fmt.Errorf("a store from %v, which rank %d does not own", st.Send, from)
	}
	shift := owned.Lo.Add(st.Send.Lo).Sub(st.Ghost.Lo).Sub(their.Lo)
	*owner = wideOwner{true, from, n.along(shift)}
	return nil
}

// behindNeighbours reports whether there are neighbours behind all sides of a direction, and behindMirrors whether there are those or mirrors.
func (n *WideTileGroup) behindNeighbours(r *wideRank, dir domain.Direction) bool {
	for a, d := range n.along(domain.Vec(dir)) {
		if d != 0 && !r.inside[a][(1+d)/2] {
			return false
		}
	}
	return true
}
func (n *WideTileGroup) behindMirrors(r *wideRank, dir domain.Direction) bool {
	for a, d := range n.along(domain.Vec(dir)) {
		if d != 0 && !r.inside[a][(1+d)/2] && !r.mirrors[a][(1+d)/2] {
			return false
		}
	}
	return true
}

// complete returns an error unless the field has all ghosts that steps read: those of neighbours from their owners, and a layer behind walls.
func (n *WideTileGroup) complete(r *wideRank, l domain.Layout) error {
	minus, plus := n.along(l.Width.Minus), n.along(l.Width.Plus)
	for a := range 3 {
		for high, width := range [2]int{minus[a], plus[a]} {
			need := 1
			if r.inside[a][high] && r.mirrors[a][high] {
				return errors.New("ghosts of a neighbour and of a mirror behind one side")
			}
			if r.inside[a][high] {
				need = n.steps
			}
			if n.axisOf(a) < n.stencil.Dims && width < need {
				return fmt.Errorf("ghosts %d wide", width)
			}
		}
	}
	for _, dir := range domain.Directions(n.stencil.Dims) {
		if orderOf(dir) <= n.steps && n.behindNeighbours(r, dir) && !r.owners[codeOf(n.along(domain.Vec(dir)))].known {
			return fmt.Errorf("nothing is stored into the ghosts in %v", dir)
		}
	}
	return nil
}
