// A stage of a time step by one kernel per GPU: it sweeps a point function, and stores the boundary points that
// neighbors need directly into their ghosts, over the link. Counts (flags.cuh) signal the stores: one count per
// neighbor, of its blocks that have finished stages.
//
// Some blocks sweep the boundary region, slab by slab, and exchange signals with the neighbors; the others sweep the
// interior meanwhile. A block of a slab starts once the blocks of all neighbors that exchange points with the slab have
// finished the previous stage. So all ghosts that it reads have arrived, and those that it stores into are no longer
// read: their readers signal too.

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
	double *totals; // of stages with measures: TOTALS numbers per block
	i64 layers;     // per thread of the interior that streams
	Part interior;
	i64 slab_layers, every; // layers of the grid for slabs: the first of each `every` layers
	i64 degree;
	i64 limit;   // ns to wait for a neighbor
	u64 *report; // see report_timeout
	Targets targets;
	Boundary boundary;
	Neighbor neighbor[MAX_NEIGHBORS]; // expected: the count of their blocks before this stage
	Given given;
};
static_assert(sizeof(Stage) == STAGE_BYTES, "fused.go lays it out");

// wait_for_neighbor waits, in one thread per neighbor, until a neighbor of a slab has finished the previous stage.
__device__ inline bool wait_for_neighbor(const Stage &s, const Slab &b, int neighbor) {
	if (neighbor >= s.degree || !(b.neighbors >> neighbor & 1)) return true;
	if (wait_for_count(s.neighbor[neighbor].my_count, s.neighbor[neighbor].expected, s.limit, s.report)) return true;
	report_timeout(s.report, 1 + neighbor);
	return false;
}

// boundary sweeps a slab.
template <bool MEASURED> __device__ __forceinline__ BinnedTotals boundary(const Stage &s, unsigned block) {
	BinnedTotals totals;
	if (block >= s.boundary.blocks) return totals;
	const unsigned at = s.boundary.slab_of(block);
	const int me = (int)thread_of_block();
	const Slab &b = s.boundary.slab[at];
	if (!__syncthreads_and(wait_for_neighbor(s, b, me))) return totals;
	const Frame &f = FRAME_OF(s.given, 0);
	inject_fault(2 * (unsigned)f.moment.step);
	sweep_slab<MEASURED>(f, [&]() -> const Arrays & { return s.arrays; }, s.targets, s.boundary, at, block, totals);
	__syncthreads();
	inject_fault(2 * (unsigned)f.moment.step + 1);
	if (me < s.degree && (b.neighbors >> me & 1)) signal(s.neighbor[me].its_count);
	return totals;
}

// make_stage runs a stage. The layers of blocks that sweep slabs start early here and on the neighbors, so that waits
// are short. Layers of the interior in between keep the memory busy during the waits.
template <bool MEASURED> __device__ __forceinline__ void make_stage(const Stage &s) {
	const unsigned layer = (unsigned)grid_layer(), every = (unsigned)s.every, turn = layer / every;
	const unsigned blocks = DIMS == 3 ? gridDim.x * gridDim.y : gridDim.x; // per layer
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
		const Frame &f = FRAME_OF(s.given, 0);
		Totals found = sweep_interior<MEASURED>(f, s.arrays, s.targets, s.boundary, s.interior, where, deep);
		if constexpr (MEASURED) totals.take(found);
	}
	if constexpr (MEASURED) reduce_block(totals, s.totals + TOTALS * (i64)block_of_grid());
}

// Build options, from fused.go: FUSED_THREADS, FUSED_BLOCKS and the same for FUSED_MEASURED, the launch bounds.

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
