// A stage in kernels that run many time steps. Options, from accesses.cuh: PHASES, after how many steps arrays return
// to their initial places; SCARCE, whether registers are scarce.
//
// This header has no include guard, see site.cuh.

#include "stage.cuh"

// The data of a stage other than its boundary region.
struct Swept {
	Arrays arrays[PHASES];
	Targets targets[PHASES];
	double *totals[PHASES]; // of stages with measures: TOTALS numbers per block
	i64 layers;             // per tile of the interior
	i64 tiles[3];           // along x, y and the layers
	Part interior;
	Given given; // excludes the moment
};

// Like Frame, for any of the steps.
struct StepFrame {
	Moment moment;
	const Coordinates &coordinates;
	const Parameters &parameters;
};

// place_in_tile returns the starting position of a thread in a tile of the interior, which has a column of groups for
// each thread of the block. In two dimensions threads along y have consecutive layers.
__device__ __forceinline__ Place place_in_tile(const Swept &w, unsigned tile) {
	const unsigned across = (unsigned)w.tiles[0], rest = tile / across;
	const unsigned up = (unsigned)w.tiles[1], deep = rest / up;
	const unsigned group = (tile - rest * across) * blockDim.x + threadIdx.x,
	               y = (rest - deep * up) * blockDim.y + threadIdx.y;
	if (DIMS == 3) return {group, y * ROWS_PER_THREAD, deep * w.layers};
	return {group, 0, y * w.layers};
}

// make creates the stage of a step.
template <bool MEASURED> __device__ __forceinline__ void make(const Swept &w, const Boundary &b, const Moment &moment) {
	constexpr bool TAKES = MEASURED && TOTALS > 0;
	const Frame &its = FRAME_OF(w.given, moment.step);
	const StepFrame f = {moment, its.coordinates, its.parameters};
	const int phase = (int)(moment.step % PHASES);
#ifdef SCARCE // addresses are loaded for each tile instead of being held, which would take more registers
	const auto arrays = [&]() -> const Arrays & { return w.arrays[opaque(phase)]; };
#else
	const Arrays &held = w.arrays[phase];
	const auto arrays = [&]() -> const Arrays & { return held; };
#endif
	const unsigned block = blockIdx.x;
	BinnedTotals totals;
	if (block < b.blocks) {
		sweep_slab<TAKES>(f, arrays, w.targets[phase], b, b.slab_of(block), block, totals);
	} else {
		const unsigned tiles = (unsigned)(w.tiles[0] * w.tiles[1] * w.tiles[2]);
#pragma unroll 1
		for (unsigned i = block - (unsigned)b.blocks; i < tiles; i += gridDim.x - (unsigned)b.blocks) {
			const auto where = [&] { return place_in_tile(w, opaque(i)); };
			Totals found = sweep_interior<TAKES>(f, arrays(), w.targets[phase], b, w.interior, where, w.layers);
			if constexpr (TAKES) totals.take(found);
		}
	}
	if constexpr (TAKES) reduce_block(totals, w.totals[phase] + TOTALS * (i64)block);
}
