package solvers

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// stepRank returns what a part does in a step: its messages become stores, and so do the
// ghosts behind walls that change from step to step.
func (r *run) stepRank(p *part) kernels.StepRank {
	sub := r.plan.Placement.Subdomains[p.rank]
	rank := kernels.StepRank{
		Device: p.device, Shape: p.tuning.Shape,
		Fields: [2]kernels.Array{r.fields[0].Parts[p.rank], r.fields[1].Parts[p.rank]},
	}
	rank.Interior, rank.Boundary = domain.Split(sub.Box, r.problem.boundaryLayers(r.plan, p.rank))
	for _, s := range r.stores(p)[1:] {
		rank.Stores = append(rank.Stores, s.GhostStore)
	}
	return rank
}

// store is a store into ghosts in a direction.
type store struct {
	kernels.GhostStore
	dir    domain.Direction
	beyond domain.Vec // from a point to its ghost, as far as it lies behind walls of which Odd is
}

// stores returns all that a part stores, after its own points at their own place. What it sends
// a neighbour across a wall's end is also what lies behind that wall there, since both end at
// it: so no store waits for another. The order of walls is that of newGhostFill.
func (r *run) stores(p *part) []store {
	sub, pl := r.plan.Placement.Subdomains[p.rank], r.plan.Placement
	all := []store{{GhostStore: kernels.GhostStore{Send: sub.Box, Ghost: sub.Box, To: p.rank}}}
	for _, i := range p.out {
		m := r.plan.Messages[i]
		for _, part := range m.Parts {
			all = append(all, store{GhostStore: kernels.GhostStore{Send: part.Send, Ghost: part.Ghost, To: m.To}, dir: m.Dir})
		}
	}
	odd := func(w Wall) bool { return w.Kind == Dirichlet }
	for _, side := range r.problem.faces(pl, p.rank, odd) {
		if r.problem.radius(side.Axis()) == 2 {
			for _, s := range all {
				if r.reads(s.dir, side) {
					all = append(all, s.mirrored(sub.Box, side, 0).reflected(side))
				}
			}
		}
	}
	for _, side := range r.problem.faces(pl, p.rank, isNeumann) {
		for _, s := range all {
			for n := range r.problem.radius(side.Axis()) {
				if r.reads(s.dir, side) {
					all = append(all, s.mirrored(sub.Box, side, n))
				}
			}
		}
	}
	return all
}

// reads reports whether the stencil reads what lies in a direction and behind a wall too.
func (r *run) reads(dir, side domain.Direction) bool {
	if dir[side.Axis()] != 0 {
		return false
	}
	axes := 1
	for _, d := range dir {
		axes += d * d
	}
	return axes <= 1+int(r.problem.corners())
}

// mirrored returns the store of the n-th owned layer before a wall, counted from 0, into the
// layer as far behind it.
func (s store) mirrored(owned domain.Box, side domain.Direction, n int) store {
	a := side.Axis()
	from, to := owned.Lo[a]+n, owned.Lo[a]-1-n
	if side.Positive() {
		from, to = owned.Hi[a]-1-n, owned.Hi[a]+n
	}
	s.dir[a] = side[a]
	s.Ghost.Lo[a] += to - s.Send.Lo[a]
	s.Send.Lo[a], s.Send.Hi[a] = from, from+1
	s.Ghost.Hi[a] = s.Ghost.Lo[a] + 1
	return s
}

// reflected returns the store of a first layer, moved to the second layer behind its wall and
// reflected about the first.
func (s store) reflected(side domain.Direction) store {
	a := side.Axis()
	wall := s.beyond.Add(domain.Vec(side))
	s.Odd = append(s.Odd[:len(s.Odd):len(s.Odd)], wall)
	s.beyond = wall.Add(domain.Vec(side))
	s.Ghost.Lo[a] += side[a]
	s.Ghost.Hi[a] += side[a]
	return s
}

// setWalls sets, in both fields of a part, what lies behind walls that fields are odd about or
// that mirror, before the first step: some of it no step changes.
func (r *run) setWalls(p *part, s *streams.Stream) error {
	for _, b := range p.ghostFills {
		for _, launches := range [][]*streams.Kernel{b.own, b.beside} {
			if err := launch(s, launches...); err != nil {
				return err
			}
		}
	}
	return s.Sync(r.patience())
}
