package sweep

import (
	"fmt"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
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

// residentSlabs returns the slabs of phase 0 by stage and rank.
func (g *stageGroup) residentSlabs() (all [][][]slab) {
	for _, stage := range g.ranks[0] {
		var slabs [][]slab
		for rank, r := range stage {
			some := g.slabsOf(rank, r)
			threads, blocks := g.residentThreads(rank, false), max(g.devices[rank].Cores, len(some)+1)
			shareSome(some, r.Interior.Points(), int64(threads), int64(blocks))
			slabs = append(slabs, some)
		}
		all = append(all, slabs)
	}
	return all
}

// blocksBefore returns for each stage of a phase and neighbour how many blocks of the neighbour finish earlier stages
// of a step, and in the end all stages.
func (g *stageGroup) blocksBefore(rank int, slabs [][][]slab) (before [][]int64) {
	neighbours := g.flags.Neighbours(rank)
	sum := make([]int64, len(neighbours))
	for _, stage := range slabs {
		before = append(before, append([]int64(nil), sum...))
		for at, other := range neighbours {
			sum[at] += finishing(stage[other], g.flags.Place(rank, other))
		}
	}
	return append(before, sum)
}

// residentThreads is how many threads the blocks of a rank's kernel have.
func (g *stageGroup) residentThreads(rank int, measured bool) int {
	var plans []*plan
	for _, stage := range g.ranks[0] {
		plans = append(plans, stage[rank].Sweeper.plan)
	}
	return threadsFor(plans, measured)
}

// threadsFor returns as many threads as there are registers for in all stages, by estimates that were
// compared with what the compiler needs. Where threads have one point each, that need not be a power of two.
func threadsFor(stages []*plan, measured bool) int {
	threads := 1024
	for _, n := range stages {
		f := n.form()
		registers, many, some := n.registers(f.atOnce(false))+20*(len(stages)-1), 64, 104
		if measured {
			registers, many, some = registers+n.measuredRegisters(), 50, 112
			if n.point.Sums != sums.Fast && n.point.linear == nil {
				some = 104 // sums of a tile and of all
			}
		} else if f.way == streaming {
			many = 76
		}
		switch {
		case f.scarce():
			threads = min(threads, n.scarceThreads())
		case registers <= many && !f.layered:
		case registers <= some && !(f.layered && measured):
			threads = min(threads, 512)
		default:
			threads = min(threads, 256)
		}
	}
	return threads
}

// scarceThreads is how many threads there are registers for where each has one point: a quarter more than
// the point takes, some for what a thread knows of slabs and tiles, and the addresses of the many arrays,
// which differ from phase to phase.
func (n *plan) scarceThreads() int {
	const fewest, most, few, others = 256, 1024, 128, 16
	registers := n.singleRegisters()*5/4 + others + n.arrays + n.measuredRegisters()
	return max(fewest, min(most, allRegisters/registers/few*few))
}

// prefetchFor returns how many layers a thread of a stage loads at once: more than one, if there are
// registers for them.
func prefetchFor(n *plan, threads int, measured bool) int {
	if f := n.form(); f.way == streaming && !f.layered && !measured && threads == 1024 && n.registers(2) <= 72 {
		return 2
	}
	return 1
}

// program returns what is compiled for resident steps, and the size of struct Steps.
func (p *residentPlan) program() (kernels.Program, int) {
	bytes := spanBytes + 8*(5+maxNeighbours*3+len(p.stages)*boundaryWords)
	for i := range p.stages {
		bytes += p.stages[i].bytes()
	}
	return withTargets(p.stages[0].plan.programOf("point_steps.cu", p.accessesSource(),
		kernels.Header{Name: "stages.cuh", Text: p.stagesSource(bytes)})), bytes
}

// stageMacros are the macros of accesses.cuh that differ from stage to stage.
var stageMacros = []string{
	"STAGE", "TOTALS", "SWEEP_BYTES", "FRAME_BYTES", "FEW_ARRAYS", "READS", "WRITES", "NORMS", "REDUCTIONS",
	"OPERATIONS", "SLOT_PLACES", "STREAMS", "SEVERAL_LAYERS", "ONE_LAYER", "LAYERS_2", "LAYERS_4", "LAYERS_8",
	"LAYERED", "SCARCE", "TARGETS", "REFLECTS", "SCALES", "INNER_STORES",
}

// sharedHeaders are those that stages share: what has a guard is included before their namespaces.
var sharedHeaders = []string{"access.cuh", "slab.cuh", "totals.cuh"}

// stagesSource returns stages.cuh, see point_steps.cu, which holds struct Steps to its size unless that is 0.
func (p *residentPlan) stagesSource(bytes int) string {
	var b strings.Builder
	b.WriteString(
		"// The stages of point_steps.cu, as resident_plan.go of kernels/sweep writes them.\n#pragma once\n\n",
	)
	for _, shared := range sharedHeaders {
		fmt.Fprintf(&b, "#include %q\n", shared)
	}
	b.WriteString("\n// clang-format off\n")
	fmt.Fprintf(&b, "#define STAGES(X)%s\n#define STEPS_THREADS %d\n", repeat(len(p.stages)), p.threads)
	if bytes > 0 {
		fmt.Fprintf(&b, "#define STEPS_BYTES %d\n", bytes)
	}
	if p.measured {
		b.WriteString("#define MEASURES\n")
	}
	fmt.Fprintf(&b, "enum { STAGE_COUNT = %d };\n", len(p.stages))
	for i := range p.stages {
		fmt.Fprintf(&b, "\n#define STAGE %d\nnamespace stage%d {\n#include \"swept.cuh\"\n}\n", i, i)
		for _, name := range stageMacros {
			fmt.Fprintf(&b, "#undef %s\n", name)
		}
	}
	return b.String()
}

// accessesSource returns accesses.cuh, of which each stage has a part.
func (p *residentPlan) accessesSource() string {
	var b strings.Builder
	for i := range p.stages {
		s := &p.stages[i]
		fmt.Fprintf(
			&b, "#if STAGE == %d\n%s\n#endif\n", i,
			s.plan.source(
				s.classes, s.form,
				stageOptions(s.form, Shape{Layers: int(s.layers), Single: s.single}, max(1, s.prefetch), len(s.arrays),
					s.to),
			),
		)
	}
	return b.String()
}

// spanBytes is the size of what putSpan puts.
const spanBytes = 5 * 8
