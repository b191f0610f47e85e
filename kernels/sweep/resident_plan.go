package sweep

import (
	"fmt"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/streams"
)

// residentPlan holds the steps of a rank on a GPU, measured or not.
type residentPlan struct {
	measured bool
	paced    bool // its kernel may choose the lengths of steps
	threads  int
	stages   []residentStagePlan
	before   streams.Span // see blocksBefore
	blocks   int64
}

// residentStagePlan is the geometry of a stage, and the content of struct Swept of swept.cuh.
type residentStagePlan struct {
	plan     *plan
	form     form
	classes  classes
	strides  []class
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

// blockOf returns the threads of a block along x and y.
func blockOf(threads int) [2]int { return [2]int{32, threads / 32} }

// cut divides the interior into tiles with a number of layers for which a block finishes its tiles in the least
// estimated time.
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
	s.part = partOf(s.arrays[0], interior, group, align)
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

// maxWarpTerms is the largest number of measured points per warp: the number of terms that the sums of a warp
// support, see sums.cuh.
const maxWarpTerms = 1 << 23

// warpTerms returns the number of points of the interior that a warp measures, if the given blocks share the
// tiles.
func (s *residentStagePlan) warpTerms(blocks int64) int64 {
	const lanes = 32
	return ceil(s.tiles[0]*s.tiles[1]*s.tiles[2], max(1, blocks)) * s.layers * lanes * int64(s.plan.group*s.form.rows)
}

// maxTileLayers is the largest number of layers of a tile.
const maxTileLayers = 16

// tilesOf counts the tiles of the given layers: groups along x and rows, by the threads of a block, and layers,
// which are rows in two dimensions.
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
		phases*targetsBytes(s.to.room, len(s.plan.writes)) + s.plan.givenBytes()
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

// blocksBefore returns for each stage of a phase and neighbor the number of blocks of the neighbor that finish
// earlier stages of a step, followed by that of all stages.
func (g *stageGroup) blocksBefore(rank int, slabs [][][]slab) (before [][]int64) {
	neighbors := g.flags.Neighbors(rank)
	sum := make([]int64, len(neighbors))
	for _, stage := range slabs {
		before = append(before, append([]int64(nil), sum...))
		for at, other := range neighbors {
			sum[at] += finishing(stage[other], g.flags.Place(rank, other))
		}
	}
	return append(before, sum)
}

// residentThreads is the number of threads per block of a rank's kernel.
func (g *stageGroup) residentThreads(rank int, measured bool) int {
	var plans []*plan
	for _, stage := range g.ranks[0] {
		plans = append(plans, stage[rank].Sweeper.plan)
	}
	return threadsFor(plans, measured)
}

// threadsFor returns the number of threads for which all stages have enough registers, by estimates that were
// compared with the compiler. For threads with one point each, it need not be a power of two.
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

// scarceThreads is the number of threads for which there are registers if each has one point: a quarter more than
// for the point, some for slabs and tiles, and those for the addresses of arrays, which differ between phases.
func (n *plan) scarceThreads() int {
	const fewest, most, few, others = 256, 1024, 128, 16
	registers := n.singleRegisters()*5/4 + others + n.arrays + n.measuredRegisters()
	return max(fewest, min(most, allRegisters/registers/few*few))
}

// prefetchFor returns the number of layers that a thread of a stage loads at once: more than one, if registers
// suffice.
func prefetchFor(n *plan, threads int, measured bool) int {
	if f := n.form(); f.way == streaming && !f.layered && !measured && threads == 1024 && n.registers(2) <= 72 {
		return 2
	}
	return 1
}

// program returns the program of resident steps, and the size of struct Steps.
func (p *residentPlan) program() (kernels.Program, int) {
	bytes := spanBytes + 8*(5+maxNeighbors*3+len(p.stages)*boundaryWords)
	for i := range p.stages {
		bytes += p.stages[i].bytes()
	}
	if p.paced {
		bytes += pacingBytes
	}
	return withTargets(p.stages[0].plan.programOf("point_steps.cu", p.accessesSource(),
		kernels.Header{Name: "stages.cuh", Text: p.stagesSource(bytes)})), bytes
}

// stageMacros are the macros of accesses.cuh that differ between stages.
var stageMacros = []string{
	"STAGE", "TOTALS", "SWEEP_BYTES", "FRAME_BYTES", "FED", "FRAME_OF", "FEW_ARRAYS", "READS", "WRITES", "NORMS",
	"REDUCTIONS", "OPERATIONS", "SLOT_PLACES", "STREAMS", "SEVERAL_LAYERS", "ONE_LAYER", "LAYERS_2", "LAYERS_4",
	"LAYERS_8", "LAYERED", "SCARCE", "TARGETS", "REFLECTS", "AFFINES", "INNER_STORES",
}

// sharedHeaders are headers shared by stages: headers with an include guard are included before their namespaces.
var sharedHeaders = []string{"access.cuh", "slab.cuh", "totals.cuh"}

// stagesSource returns stages.cuh, see point_steps.cu, which checks the size of struct Steps unless bytes is 0.
func (p *residentPlan) stagesSource(bytes int) string {
	var b strings.Builder
	b.WriteString(
		"// The stages of point_steps.cu, as generated by resident_plan.go of kernels/sweep.\n#pragma once\n\n",
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
	if p.paced {
		fmt.Fprintf(&b, "#define PACED stage%d\n", len(p.stages)-1)
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

// accessesSource returns accesses.cuh, with a part for each stage.
func (p *residentPlan) accessesSource() string {
	var b strings.Builder
	for i := range p.stages {
		s := &p.stages[i]
		text := s.plan.source(
			s.classes, s.form,
			stageOptions(s.form, Shape{Layers: int(s.layers), Single: s.single}, max(1, s.prefetch), len(s.arrays),
				s.to),
		)
		if p.paced {
			text += s.plan.giveSource()
		}
		fmt.Fprintf(&b, "#if STAGE == %d\n%s\n#endif\n", i, text)
	}
	return b.String()
}

// spanBytes is the size of the span written by putSpan.
const spanBytes = 5 * 8
