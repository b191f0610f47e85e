package sweep

import (
	"slices"

	"github.com/halox/halox/domain"
)

// absorbSlabs adds boxes of the boundary region to the interior that no other rank has to do with, where
// that stays a box: what is stored from them goes into ghosts of the rank itself, behind periodic and
// mirroring faces, and nothing is waited for. Rows of an interior that is as long as the subdomain are
// read and written as a whole. The core of a rank is what was its interior before: none of its points
// is stored elsewhere. Linear stencils keep their slabs: what their kernels hold leaves no registers for it.
func (g *stageGroup) absorbSlabs() {
	var all [][][]StageRank
	for _, stages := range g.ranks {
		var absorbed [][]StageRank
		for _, stage := range stages {
			var ranks []StageRank
			for rank, r := range stage {
				ranks = append(ranks, g.absorb(rank, r))
			}
			absorbed = append(absorbed, ranks)
		}
		all = append(all, absorbed)
	}
	g.ranks = all
}

// absorb returns what a rank does with a larger interior.
func (g *stageGroup) absorb(rank int, r StageRank) StageRank {
	r.core, r.Boundary = r.Interior, slices.DeleteFunc(slices.Clone(r.Boundary), domain.Box.Empty)
	joins := func(b domain.Box) bool {
		_, ok := joined(r.Interior, b)
		return ok && r.keeps(b) && len(g.partners(rank, b, r.Sweeper.plan.radius())) == 0
	}
	for !r.Interior.Empty() && r.Sweeper.plan.point.linear == nil {
		i := slices.IndexFunc(r.Boundary, joins)
		if i < 0 {
			break
		}
		r.Interior, _ = joined(r.Interior, r.Boundary[i])
		r.Boundary = slices.Delete(r.Boundary, i, i+1)
	}
	return r
}

// keeps reports whether all that is stored from a box goes into ghosts of the same arrays.
func (r StageRank) keeps(b domain.Box) bool {
	return !slices.ContainsFunc(r.Stores, func(s Store) bool {
		return s.Array != r.Arrays[s.Access][s.Component] && !s.Send.Intersect(b).Empty()
	})
}

// storesInside reports whether points of the interior go into ghosts, which are of the rank itself.
func (r StageRank) storesInside() bool { return r.core != r.Interior }

// joined returns the box of two that lie beside each other; ok is false where they do not make one.
func joined(a, b domain.Box) (both domain.Box, ok bool) {
	both = a
	sides := 0
	for axis := range 3 {
		if a.Lo[axis] == b.Lo[axis] && a.Hi[axis] == b.Hi[axis] {
			continue
		}
		if a.Hi[axis] != b.Lo[axis] && b.Hi[axis] != a.Lo[axis] {
			return both, false
		}
		both.Lo[axis], both.Hi[axis] = min(a.Lo[axis], b.Lo[axis]), max(a.Hi[axis], b.Hi[axis])
		sides++
	}
	return both, sides == 1
}
