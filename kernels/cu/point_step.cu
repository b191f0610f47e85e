// A stage of a time step by one kernel a GPU: it sweeps a point function, and stores the boundary
// points that neighbours need straight into their ghosts, over the link. Counts (flags.cuh) tell who
// has stored: one for each neighbour, of its blocks that have finished stages.
//
// Some blocks sweep the boundary region, slab by slab, and exchange signals with the neighbours; the
// others sweep the interior meanwhile. A block of a slab begins when the blocks of all neighbours
// that the slab exchanges points with have finished the stage before. So all ghosts that it reads
// have come, and those that it stores into are not read any more: their readers signal too.

#define ALL_READ_ONLY false // ghosts are written while the kernel runs

#include "faults.cuh"
#include "stage.cuh"

#ifndef STAGE_BYTES
#define STAGE_BYTES sizeof(Stage)
enum {
	FUSED_THREADS = LARGE_THREADS,
	FUSED_BLOCKS = 1,
	FUSED_MEASURED_THREADS = LARGE_THREADS,
	FUSED_MEASURED_BLOCKS = 1
};
#endif

struct Stage {
	Arrays arrays;
	double *totals; // of stages that measure: TOTALS numbers a block
	i64 layers;     // of a thread of the interior that streams
	Part interior;
	i64 slab_layers, every; // how many layers of the grid of blocks those of slabs take, each the first of so many
	i64 degree;
	i64 limit;   // ns to wait for a neighbour
	u64 *report; // see report_timeout
	Targets targets;
	Boundary boundary;
	Neighbour neighbour[MAX_NEIGHBOURS]; // whose blocks, before this stage, are to be so many
	Frame frame;
};
static_assert(sizeof(Stage) == STAGE_BYTES, "fused.go lays it out");

// wait_for_neighbour waits, in one thread for each neighbour, until one of a slab has finished the stage
// before.
__device__ inline bool wait_for_neighbour(const Stage &s, const Slab &b, int neighbour) {
	if (neighbour >= s.degree || !(b.neighbours >> neighbour & 1)) return true;
	if (wait_for_count(s.neighbour[neighbour].my_count, s.neighbour[neighbour].expected, s.limit, s.report))
		return true;
	report_timeout(s.report, 1 + neighbour);
	return false;
}

// boundary sweeps a slab.
template <bool MEASURED> __device__ __forceinline__ BinnedTotals boundary(const Stage &s, unsigned block) {
	BinnedTotals totals;
	if (block >= s.boundary.blocks) return totals;
	const unsigned at = s.boundary.slab_of(block);
	const int me = (int)thread_of_block();
	const Slab &b = s.boundary.slab[at];
	if (!__syncthreads_and(wait_for_neighbour(s, b, me))) return totals;
	inject_fault(2 * (unsigned)s.frame.moment.step);
	sweep_slab<MEASURED>(
	    s.frame, [&]() -> const Arrays & { return s.arrays; }, s.targets, s.boundary, at, block, totals);
	__syncthreads();
	inject_fault(2 * (unsigned)s.frame.moment.step + 1);
	if (me < s.degree && (b.neighbours >> me & 1)) signal(s.neighbour[me].its_count);
	return totals;
}

// make_stage makes a stage. The layers of blocks that sweep slabs come early: they are started early, and
// those of the neighbours too, so that waits are short; and with layers of the
// interior between them, so that memory has work while they wait.
template <bool MEASURED> __device__ __forceinline__ void make_stage(const Stage &s) {
	const unsigned layer = (unsigned)grid_layer(), every = (unsigned)s.every, turn = layer / every;
	const unsigned blocks = DIMS == 3 ? gridDim.x * gridDim.y : gridDim.x; // of a layer
	BinnedTotals totals;
	if (turn * every == layer && turn < s.slab_layers) {
		totals = boundary<MEASURED>(s, block_of_grid() - (layer - turn) * blocks);
	} else {
		const unsigned inner = layer - min(turn + 1, (unsigned)s.slab_layers);
#ifdef STREAMS
		const i64 deep = s.layers;
#else
		enum { deep = MEASURED ? STAGE_MEASURED_LAYERS : STAGE_LAYERS };
#endif
		const auto where = [&] { return place_of_thread(opaque(inner), deep); };
		Totals found = sweep_interior<MEASURED>(s.frame, s.arrays, s.targets, s.boundary, s.interior, where, deep);
		if constexpr (MEASURED) totals.take(found);
	}
	if constexpr (MEASURED) reduce_block(totals, s.totals + TOTALS * (i64)block_of_grid());
}

// Build options, which fused.go writes: FUSED_THREADS, FUSED_BLOCKS and the same of FUSED_MEASURED, the
// launch bounds.

extern "C" __global__ void __launch_bounds__(FUSED_THREADS, FUSED_BLOCKS) fused(const __grid_constant__ Stage s) {
	grid_dependency_wait();
	make_stage<false>(s);
}

#if TOTALS > 0

extern "C" __global__ void __launch_bounds__(FUSED_MEASURED_THREADS, FUSED_MEASURED_BLOCKS)
    fused_measured(const __grid_constant__ Stage s) {
	grid_dependency_wait();
	make_stage<true>(s);
}

#endif
