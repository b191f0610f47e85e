package boundary

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
)

// store is a store of owned points into ghosts in a direction, of a kernel that sweeps and
// stores at once.
type store struct {
	kernels.GhostStore
	dir    domain.Direction
	beyond domain.Vec // from a point to its ghost, as far as it lies behind faces of which Odd is
}

// Stores returns all that a subdomain stores into ghosts as it sweeps its boundary region: for
// each part of its messages of a plan that carries a component of this field, and for ghosts of its own behind
// faces that change from step to step, beside its own points and so many layers of ghosts of neighbours, which it sweeps too. The plan is nil where no
// message leaves. What it sends a neighbour across a face's end is also
// what lies behind that face there, since both end at it: so no store waits for another. The
// order of the faces is that of Refresh. ok is false where a face has a kernel of the caller's
// own, which cannot be a store.
func (g *Ghosts) Stores(rank int, grown domain.Radius, plan *halo.Plan, field, component int) (stores []kernels.GhostStore, ok bool) {
	if len(g.sidesOf(rank, func(c *Condition) bool { return c.Kind == Custom })) > 0 {
		return nil, false
	}
	owned := g.field.Cut.Subdomains[rank].Box
	region := g.field.Cut.Grown(rank, grown)
	all := []store{{GhostStore: kernels.GhostStore{Send: region, Ghost: region, To: rank}}}
	for _, m := range messagesOf(plan) {
		for _, p := range m.Parts {
			if m.From == rank && p.Field == field && p.Component == component {
				all = append(all, store{GhostStore: kernels.GhostStore{Send: p.Send, Ghost: p.Ghost, To: m.To}, dir: p.Dir})
			}
		}
	}
	for _, side := range g.sidesOf(rank, func(c *Condition) bool { return c.Kind == Dirichlet && c.Odd }) {
		if layersAt(g.reach.Width, side) < 2 {
			continue
		}
		for _, s := range all {
			if g.reads(s.dir, side) {
				all = append(all, s.behind(owned, side, 0, 0).reflected(side))
			}
		}
	}
	for _, side := range g.sidesOf(rank, (*Condition).mirrors) {
		for _, s := range all {
			for n := range layersAt(g.reach.Width, side) {
				if g.reads(s.dir, side) {
					all = append(all, s.behind(owned, side, g.faces.At(side).source(n), n))
				}
			}
		}
	}
	for _, s := range all[1:] { // the first is the points at their own place
		stores = append(stores, s.GhostStore)
	}
	return stores, true
}

// messagesOf returns those of a plan, none where it is nil.
func messagesOf(plan *halo.Plan) []halo.Message {
	if plan == nil {
		return nil
	}
	return plan.Messages
}

// reads reports whether what lies in a direction and behind a face too is read.
func (g *Ghosts) reads(dir, side domain.Direction) bool {
	if dir[side.Axis()] != 0 {
		return false
	}
	axes := 1
	for _, d := range dir {
		axes += d * d
	}
	return axes <= 1+int(g.field.Spec.Connectivity)
}

// behind returns the store of an owned layer before a face, counted from 0, into a layer behind
// it.
func (s store) behind(owned domain.Box, side domain.Direction, before, behind int) store {
	a := side.Axis()
	from, to := owned.Lo[a]+before, owned.Lo[a]-1-behind
	if side.Positive() {
		from, to = owned.Hi[a]-1-before, owned.Hi[a]+behind
	}
	s.dir[a] = side[a]
	s.Ghost.Lo[a] += to - s.Send.Lo[a]
	s.Send.Lo[a], s.Send.Hi[a] = from, from+1
	s.Ghost.Hi[a] = s.Ghost.Lo[a] + 1
	return s
}

// reflected returns the store of a first layer, moved to the second layer behind its face and
// reflected about the first.
func (s store) reflected(side domain.Direction) store {
	a := side.Axis()
	face := s.beyond.Add(domain.Vec(side))
	s.Odd = append(s.Odd[:len(s.Odd):len(s.Odd)], face)
	s.beyond = face.Add(domain.Vec(side))
	s.Ghost.Lo[a] += side[a]
	s.Ghost.Hi[a] += side[a]
	return s
}
