package sweep

import (
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/flags"
)

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
				return g, fmt.Errorf("sweep: a stage with sums %q beside one with sums %q", r.Sweeper.plan.point.Sums, mode)
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
				return fmt.Errorf("sweep: stage %d of phase %d has %d ranks, stage 0 of phase 0 has %d", stage, phase, len(all), n)
			}
			if slices.ContainsFunc(all, func(r StageRank) bool { return r.Sweeper == nil }) {
				return fmt.Errorf("sweep: a rank of stage %d of phase %d has no sweeper", stage, phase)
			}
		}
	}
	return nil
}

// checkStores returns an error unless all points of stores lie in the boundary region, and go to ghosts that
// no interior reads: nobody waits before it sweeps an interior.
func (g *stageGroup) checkStores() error {
	for stage := range g.stages() {
		for _, r := range stage {
			for _, s := range r.Stores {
				if !r.onBoundary(s.Send) {
					return fmt.Errorf("sweep: a store of %v, which is not all in the boundary region %v", s.Send, r.Boundary)
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
					return fmt.Errorf("sweep: in stage %d rank %d sweeps the boundary region %v and the interior %v in phase %d, but %v and %v in phase 0",
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
		if to.Interior.Empty() || to.Alone {
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
