package sweep

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/streams"
)

// stageGroup is the ranks that make the stages of time steps together, with one kernel each: who
// exchanges points with which others, and the counts of blocks by which they wait for each other.
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
		if !r.Independent {
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

// newStageGroup makes the flags of ranks that make stages together: by phase, stage and rank.
func newStageGroup(ranks [][][]StageRank, limit time.Duration) (g *stageGroup, err error) {
	g = &stageGroup{limit: limit, ranks: ranks}
	if err := checkCounts(ranks); err != nil {
		return g, err
	}
	for _, r := range ranks[0][0] {
		if slices.Contains(g.devices, r.Sweeper.device) {
			return g, fmt.Errorf("sweep: two ranks on device %v", r.Sweeper.device)
		}
		g.devices = append(g.devices, r.Sweeper.device)
	}
	for stage := range g.stages() {
		for rank, r := range stage {
			if r.Sweeper.device != g.devices[rank] {
				return g, fmt.Errorf("sweep: a stage of device %v on %v", r.Sweeper.device, g.devices[rank])
			}
			if mode := ranks[0][0][0].Sweeper.plan.point.Sums; r.Sweeper.plan.point.Sums != mode {
				return g, fmt.Errorf("sweep: a stage with sums %q beside one with sums %q", r.Sweeper.plan.point.Sums,
					mode)
			}
			if err := r.check(g.devices); err != nil {
				return g, err
			}
		}
	}
	if err := g.checkStores(); err != nil {
		return g, err
	}
	if g.flags, err = flags.NewNetwork(g.devices, g.findNeighbours(), maxNeighbours, 1, ownLines); err != nil {
		return g, err
	}
	for rank := range g.devices {
		if err := g.flags.Open(rank, &g.resources); err != nil {
			return g, err
		}
	}
	g.absorbSlabs()
	return g, nil
}

// onGPUs returns an error unless all devices are GPUs: the kernels wait for each other.
func (g *stageGroup) onGPUs() error {
	for _, d := range g.devices {
		if d.GoKernels {
			return fmt.Errorf("sweep: kernels that wait for each other run on GPUs, and device %v is a CPU device", d)
		}
	}
	return nil
}

// checkCounts returns an error unless there are phases, all of as many stages, which all have as many ranks.
func checkCounts(ranks [][][]StageRank) error {
	if len(ranks) == 0 {
		return fmt.Errorf("sweep: there are no phases")
	}
	for phase, stages := range ranks {
		if n := len(ranks[0]); n == 0 || len(stages) != n {
			return fmt.Errorf("sweep: phase %d has %d stages, phase 0 has %d", phase, len(stages), n)
		}
		for stage, all := range stages {
			if n := len(ranks[0][0]); n == 0 || len(all) != n {
				return fmt.Errorf("sweep: stage %d of phase %d has %d ranks, stage 0 of phase 0 has %d", stage, phase,
					len(all), n)
			}
			if slices.ContainsFunc(all, func(r StageRank) bool { return r.Sweeper == nil }) {
				return fmt.Errorf("sweep: a rank of stage %d of phase %d has no sweeper", stage, phase)
			}
		}
	}
	return nil
}

// checkStores returns an error unless all points of stores lie in the boundary region, and go to ghosts that
// no interior reads: interiors are swept without a wait.
func (g *stageGroup) checkStores() error {
	for stage := range g.stages() {
		for _, r := range stage {
			for _, s := range r.Stores {
				if !r.onBoundary(s.Send) {
					return fmt.Errorf("sweep: a store of %v, which is not all in the boundary region %v", s.Send,
						r.Boundary)
				}
			}
		}
	}
	for _, s := range g.stores() {
		if at, reads := g.interiorReads(s); reads {
			return fmt.Errorf("sweep: a store into %v, which the interior %v of rank %d reads", s.Ghost, at, s.To)
		}
	}
	return nil
}

// checkSameBoxes returns an error unless a rank sweeps the same boxes in a stage of all phases.
func (g *stageGroup) checkSameBoxes() error {
	for phase, stages := range g.ranks {
		for stage, ranks := range stages {
			for rank, r := range ranks {
				first := g.ranks[0][stage][rank]
				if r.Interior != first.Interior || r.core != first.core || !slices.Equal(r.Boundary, first.Boundary) {
					return fmt.Errorf(
						"sweep: in stage %d rank %d sweeps the boundary region %v and the interior %v in phase %d, "+
							"but %v and %v in phase 0",
						stage, rank, r.Boundary, r.Interior, phase, first.Boundary, first.Interior)
				}
			}
		}
	}
	return nil
}

// onBoundary reports whether all points of a box lie in the boundary region.
func (r StageRank) onBoundary(box domain.Box) bool {
	points := int64(0)
	for _, b := range r.Boundary {
		points += b.Intersect(box).Points()
	}
	return points == box.Points()
}

// interiorReads reports whether, in any stage, the interior of the rank that a store is for reads its ghosts.
func (g *stageGroup) interiorReads(s Store) (interior domain.Box, reads bool) {
	for stage := range g.stages() {
		to := stage[s.To]
		if to.Interior.Empty() || to.Independent {
			continue
		}
		for _, r := range to.Sweeper.plan.reads {
			around := to.Interior.Grow(r.footprint.Radius())
			if to.Arrays[r.access][r.component] == s.Array && !around.Intersect(s.Ghost).Empty() {
				return to.Interior, true
			}
		}
	}
	return interior, false
}

// findNeighbours finds out which ranks exchange points in any stage.
func (g *stageGroup) findNeighbours() [][]int {
	all := make([][]int, len(g.devices))
	for from, s := range g.stores() {
		for _, pair := range [][2]int{{from, s.To}, {s.To, from}} {
			if pair[0] != pair[1] && !slices.Contains(all[pair[0]], pair[1]) {
				all[pair[0]] = append(all[pair[0]], pair[1])
			}
		}
	}
	return all
}

// absorbSlabs adds boxes of the boundary region to the interior that no other rank has to do with, where
// that stays a box: what is stored from them goes into ghosts of the rank itself, behind periodic and
// mirroring faces, and nothing is waited for. Rows of an interior that is as long as the subdomain are
// read and written as a whole. The core of a rank is what was its interior before: none of its points
// is stored elsewhere. Linear stencils keep their slabs: what their kernels hold leaves no registers for it.
func (g *stageGroup) absorbSlabs() {
	var all [][][]StageRank
	scales := scalesOf(g.ranks)
	for _, stages := range g.ranks {
		var absorbed [][]StageRank
		for _, stage := range stages {
			var ranks []StageRank
			for rank, r := range stage {
				r.scales = scales
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
