package sweep

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// residentPlan is the steps of a rank on a GPU, which measure or do not.
type residentPlan struct {
	measured bool
	threads  int
	stages   []residentStagePlan
	before   streams.Span // see blocksBefore
	blocks   int64
}

// residentStagePlan is the geometry of a stage, and what struct Swept of swept.cuh is made of.
type residentStagePlan struct {
	plan     *plan
	form     form
	classes  classes
	strides  []strides
	arrays   [][]kernels.Array // by phase
	targets  []targets         // by phase
	to       storing
	slabs    []slab
	interior domain.Box
	core     domain.Box // see StageRank
	totals   []uint64   // by phase
	single   bool
	prefetch int
	layers   int64
	tiles    [3]int64
	part     part
}

// blockOf is the threads of a block along x and y.
func blockOf(threads int) [2]int { return [2]int{32, threads / 32} }

// cut cuts the interior into tiles of so many layers that a block of all makes its part in the least time,
// by an estimate.
func (s *residentStagePlan) cut(interior domain.Box, threads int, blocks int64) {
	s.layers = int64(s.form.atOnce(s.single))
	if interior.Empty() {
		return
	}
	group := s.plan.group
	align := group * domain.RowAlignment / groupBytes
	if s.single {
		group = 1
		if !s.plan.grouped(s.arrays[0], interior) {
			align = 1
		}
	}
	s.part = partOf(s.arrays[0][0], interior, group, align)
	if s.form.way != streaming {
		s.tiles = s.tilesOf(threads, s.layers)
		return
	}
	best, depth, prefetch := int64(1<<62), int64(s.plan.depth()), int64(s.prefetch)
	for layers := int64(1); layers <= maxTileLayers; layers++ {
		t := s.tilesOf(threads, layers)
		if cost := ceil(t[0]*t[1]*t[2], max(1, blocks)) * (2*ceil(layers, prefetch) + depth); cost < best {
			best, s.layers, s.tiles = cost, layers, t
		}
	}
}

// maxWarpTerms is how many points a warp may measure: as many terms as the sums of a warp have room for, see
// sums.cuh.
const maxWarpTerms = 1 << 23

// warpTerms returns how many points of the interior a warp measures, if so many blocks share the tiles.
func (s *residentStagePlan) warpTerms(blocks int64) int64 {
	const lanes = 32
	return ceil(s.tiles[0]*s.tiles[1]*s.tiles[2], max(1, blocks)) * s.layers * lanes * int64(s.plan.group*s.form.rows)
}

// maxTileLayers is the most layers of a tile.
const maxTileLayers = 16

// tilesOf counts the tiles of so many layers: groups along x and rows, as a block has threads, and layers,
// which in two dimensions are rows.
func (s *residentStagePlan) tilesOf(threads int, layers int64) [3]int64 {
	block, n := blockOf(threads), s.part.n
	x, y := int64(block[0]), int64(block[1])
	if s.plan.point.Dims == 2 {
		return [3]int64{ceil(s.part.groups, x), ceil(int64(n[1]), y*layers), 1}
	}
	return [3]int64{ceil(s.part.groups, x), ceil(int64(n[1]), y*int64(s.form.rows)), ceil(int64(n[2]), layers)}
}

// bytes is the size of struct Swept.
func (s *residentStagePlan) bytes() int {
	phases, classes := len(s.arrays), len(s.strides)
	return 8*(phases*(s.plan.arrays+2*classes+1)+4+partNumbers+classes) +
		phases*targetsBytes(s.to.room, len(s.plan.writes)) + s.plan.frameBytes()
}
