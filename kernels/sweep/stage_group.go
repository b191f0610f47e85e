package sweep

import (
	"iter"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/streams"
)

// stageGroup is the ranks that make the stages of time steps together, with one kernel each: who
// exchanges points with whom, and the counts of blocks by which they wait for each other.
type stageGroup struct {
	resources streams.Resources
	limit     time.Duration
	devices   []*streams.Device // by rank
	ranks     [][][]StageRank   // by phase, stage and rank
	flags     *flags.Network    // of each neighbour a line, with the count of its blocks that have finished stages
}

// ownLines is how many lines of flags a rank has for itself: a count of its own blocks.
const ownLines = 1

// stages goes over the stages of all phases: each has its ranks.
func (g *stageGroup) stages() iter.Seq[[]StageRank] {
	return func(yield func([]StageRank) bool) {
		for _, stages := range g.ranks {
			for _, stage := range stages {
				if !yield(stage) {
					return
				}
			}
		}
	}
}

// stores goes over the stores of all ranks in all stages, each with the rank that it is of.
func (g *stageGroup) stores() iter.Seq2[int, Store] {
	return func(yield func(int, Store) bool) {
		for stage := range g.stages() {
			for rank, r := range stage {
				for _, s := range r.Stores {
					if !yield(rank, s) {
						return
					}
				}
			}
		}
	}
}

// slabsOf returns the slabs of a rank in a stage, which have no blocks yet. A slab deals with a rank into
// whose ghosts points of it go in any stage, and with one that in any stage stores into ghosts that it
// reads.
func (g *stageGroup) slabsOf(rank int, r StageRank) (all []slab) {
	for _, b := range r.Boundary {
		if b.Empty() {
			continue
		}
		one := slab{box: b}
		if !r.Alone {
			one.neighbours = g.partners(rank, b, r.Sweeper.plan.radius())
		}
		all = append(all, one)
	}
	return all
}

// partners returns with which neighbours a box of a rank deals, by their places, where stages read so far.
func (g *stageGroup) partners(rank int, b domain.Box, radius domain.Radius) (places []int) {
	for at, other := range g.flags.Neighbours(rank) {
		if g.dealsWith(rank, other, b, radius) {
			places = append(places, at)
		}
	}
	return places
}

// dealsWith reports whether a box of one rank exchanges points with another rank in any stage.
func (g *stageGroup) dealsWith(rank, other int, b domain.Box, radius domain.Radius) bool {
	reads := b.Grow(radius)
	for from, s := range g.stores() {
		sends := from == rank && s.To == other && !s.Send.Intersect(b).Empty()
		receives := from == other && s.To == rank && !s.Ghost.Intersect(reads).Empty()
		if sends || receives {
			return true
		}
	}
	return false
}

// finishing returns how many blocks of a rank count for its neighbour at a place when a stage of such
// slabs is done.
func finishing(slabs []slab, neighbour int) (blocks int64) {
	for _, s := range slabs {
		if slices.Contains(s.neighbours, neighbour) {
			blocks += s.blocks
		}
	}
	return blocks
}

// newTotals makes the totals of so many blocks of a GPU, with room for most.
func (g *stageGroup) newTotals(d *streams.Device, s *Sweeper, blocks, most int64) (*Totals, error) {
	t := &Totals{plan: s.plan}
	g.resources.Add(t)
	if err := t.allocate(d, most); err != nil {
		return nil, err
	}
	if _, err := s.functions(s.plan.usualClasses()); err != nil {
		return nil, err
	}
	return t, t.joinSlots(d, s.programs, blocks)
}

// reaches returns the memory of other ranks that a rank's kernels signal by.
func (g *stageGroup) reaches(rank int) (all []streams.Span) {
	for at := range g.flags.Neighbours(rank) {
		_, its := g.flags.Pair(rank, at, 0)
		all = append(all, its)
	}
	return all
}

// putNeighbours puts an array of struct Neighbour; expected is by place.
func (w *words) putNeighbours(g *stageGroup, rank int, expected []int64) {
	for at := range maxNeighbours {
		if at >= len(g.flags.Neighbours(rank)) {
			w.put(0, 0, 0)
			continue
		}
		n := g.flags.Counts(rank, at, 0, expected[at])
		w.put(int64(n.MyCount), int64(n.ItsCount), int64(n.Expected))
	}
}
