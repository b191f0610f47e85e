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

// stageGroup holds the ranks that run the stages of time steps together, with one kernel each: the exchanges
// between them, and the counts of blocks by which they wait for each other.
type stageGroup struct {
	resources streams.Resources
	limit     time.Duration
	devices   []*streams.Device // by rank
	ranks     [][][]StageRank   // by phase, stage and rank
	courant   *Courant          // nil if the host knows the lengths of steps
	pacers    []*pacer          // by rank, with courant
	flags     *flags.Network    // a line per neighbor, with the count of its blocks that have finished stages
}

// ownLines is the number of own lines of flags of a rank: a count of its own blocks.
const ownLines = 1

// stages iterates over the stages of all phases, each as its ranks.
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

// stores iterates over the stores of all ranks in all stages, each with its rank.
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

// slabsOf returns the slabs of a rank in a stage, without blocks. The neighbors of a slab are the ranks into whose
// ghosts its points are stored in any stage, and those that in any stage store into ghosts that it reads.
func (g *stageGroup) slabsOf(rank int, r StageRank) (all []slab) {
	for _, b := range r.Boundary {
		if b.Empty() {
			continue
		}
		one := slab{box: b}
		if !r.Independent {
			one.neighbors = g.partners(rank, b, r.Sweeper.plan.radius())
		}
		all = append(all, one)
	}
	return all
}

// partners returns the neighbors, by index, with which a box of a rank exchanges points, where stages read with
// the given radius.
func (g *stageGroup) partners(rank int, b domain.Box, radius domain.Radius) (places []int) {
	for at, other := range g.flags.Neighbors(rank) {
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

// finishing returns how many blocks of a rank count for its neighbor with the given index when a stage with these
// slabs is done.
func finishing(slabs []slab, neighbor int) (blocks int64) {
	for _, s := range slabs {
		if slices.Contains(s.neighbors, neighbor) {
			blocks += s.blocks
		}
	}
	return blocks
}

// newTotals creates the totals of the given blocks of a GPU, with memory for most.
func (g *stageGroup) newTotals(d *streams.Device, s *Sweeper, blocks, most int64) (*Totals, error) {
	t := &Totals{plan: s.plan}
	g.resources.Add(t)
	if err := t.allocate(d, most); err != nil {
		return nil, err
	}
	return t, t.joinSlots(d, s.programs, blocks)
}

// reaches returns the memory of other ranks in which a rank's kernels signal.
func (g *stageGroup) reaches(rank int) (all []streams.Span) {
	for at := range g.flags.Neighbors(rank) {
		_, its := g.flags.Pair(rank, at, 0)
		all = append(all, its)
	}
	return all
}

// putNeighbors appends an array of struct Neighbor; expected is by index.
func (w *words) putNeighbors(g *stageGroup, rank int, expected []int64) {
	for at := range maxNeighbors {
		if at >= len(g.flags.Neighbors(rank)) {
			w.put(0, 0, 0)
			continue
		}
		n := g.flags.Counts(rank, at, 0, expected[at])
		w.put(int64(n.MyCount), int64(n.ItsCount), int64(n.Expected))
	}
}

// newStageGroup creates the flags of ranks that run stages together: by phase, stage and rank.
func newStageGroup(ranks [][][]StageRank, limit time.Duration) (g *stageGroup, err error) {
	g = &stageGroup{limit: limit, ranks: ranks}
	if err := checkCounts(ranks); err != nil {
		return g, err
	}
	for _, r := range ranks[0][0] {
		if slices.Contains(g.devices, r.Sweeper.device) {
			return g, fmt.Errorf("sweep: ranks must be on different devices, got two on device %v", r.Sweeper.device)
		}
		g.devices = append(g.devices, r.Sweeper.device)
	}
	for stage := range g.stages() {
		for rank, r := range stage {
			if r.Sweeper.device != g.devices[rank] {
				return g, fmt.Errorf("sweep: a rank must have the same device in all stages, got %v and %v",
					r.Sweeper.device, g.devices[rank])
			}
			if mode := ranks[0][0][0].Sweeper.plan.point.Sums; r.Sweeper.plan.point.Sums != mode {
				return g, fmt.Errorf("sweep: all stages must have the same mode of sums, got %q and %q",
					r.Sweeper.plan.point.Sums,
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
	if g.flags, err = flags.NewNetwork(g.devices, g.findNeighbors(), maxNeighbors, 1, ownLines); err != nil {
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
			return fmt.Errorf("sweep: kernels that wait for each other need GPUs, got device %v", d)
		}
	}
	return nil
}

// checkCounts returns an error unless there are phases, all with the same number of stages, which all have the
// same number of ranks.
func checkCounts(ranks [][][]StageRank) error {
	if len(ranks) == 0 {
		return fmt.Errorf("sweep: number of phases must be at least 1, got 0")
	}
	for phase, stages := range ranks {
		if n := len(ranks[0]); n == 0 || len(stages) != n {
			return fmt.Errorf("sweep: numbers of stages must be equal: phase %d has %d, phase 0 has %d",
				phase, len(stages), n)
		}
		for stage, all := range stages {
			if n := len(ranks[0][0]); n == 0 || len(all) != n {
				return fmt.Errorf("sweep: numbers of ranks must be equal: stage %d of phase %d has %d, stage 0 of 0 has %d",
					stage, phase,
					len(all), n)
			}
			if slices.ContainsFunc(all, func(r StageRank) bool { return r.Sweeper == nil }) {
				return fmt.Errorf("sweep: stage %d of phase %d: each rank must have a sweeper", stage, phase)
			}
		}
	}
	return nil
}

// checkStores returns an error unless all points of stores are in the boundary region, and go to ghosts that no
// interior reads: interiors are swept without a wait.
func (g *stageGroup) checkStores() error {
	for stage := range g.stages() {
		for _, r := range stage {
			for _, s := range r.Stores {
				if !r.onBoundary(s.Send) {
					return fmt.Errorf("sweep: store of %v: must be within the boundary region %v", s.Send,
						r.Boundary)
				}
			}
		}
	}
	for _, s := range g.stores() {
		if at, reads := g.interiorReads(s); reads {
			return fmt.Errorf("sweep: store into %v: must not be read by the interior %v of rank %d", s.Ghost, at, s.To)
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
						"sweep: boxes must be the same in all phases: stage %d of rank %d has boundary region %v and "+
							"interior %v in phase %d, %v and %v in phase 0",
						stage, rank, r.Boundary, r.Interior, phase, first.Boundary, first.Interior)
				}
			}
		}
	}
	return nil
}

// onBoundary reports whether all points of a box are in the boundary region.
func (r StageRank) onBoundary(box domain.Box) bool {
	points := int64(0)
	for _, b := range r.Boundary {
		points += b.Intersect(box).Points()
	}
	return points == box.Points()
}

// interiorReads reports whether, in any stage, the interior of the destination rank of a store reads its ghosts.
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

// findNeighbors determines which ranks exchange points in any stage.
func (g *stageGroup) findNeighbors() [][]int {
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

// absorbSlabs adds boxes of the boundary region that involve no other rank to the interior, if that stays a box:
// their stores go into ghosts of the rank itself, behind periodic and mirroring faces, and nothing is waited for.
// Rows of an interior as long as the subdomain are read and written as a whole. The core of a rank is its previous
// interior: none of its points is stored elsewhere. Linear stencils keep their slabs: their kernels have no
// registers for it.
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

// absorb returns the stage of a rank with a larger interior.
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

// keeps reports whether all stores from a box go into ghosts of the same arrays.
func (r StageRank) keeps(b domain.Box) bool {
	return !slices.ContainsFunc(r.Stores, func(s Store) bool {
		return s.Array != r.Arrays[s.Access][s.Component] && !s.Send.Intersect(b).Empty()
	})
}
