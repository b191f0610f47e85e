// A stage in kernels that make many time steps. Option PHASES, from accesses.cuh: after how many steps
// arrays have their places again; SCARCE, whether registers are scarce.
//
// This header has no guard, see site.cuh.

#include "stage.cuh"

// What a stage needs beside its boundary region.
struct Swept {
	Arrays arrays[PHASES];
	Targets targets[PHASES];
	double *totals[PHASES]; // of stages that measure: TOTALS numbers a block
	i64 layers;             // of a tile of the interior
	i64 tiles[3];           // along x, y and the layers
	Part interior;
	Frame frame; // without the moment
};

// Frame, of any of the steps.
struct StepFrame {
	Moment moment;
	const Coordinates &coordinates;
	const Parameters &parameters;
};

// place_in_tile returns where a thread begins in a tile of the interior, which has a column of groups
// for each thread of the block. In two dimensions threads along y take consecutive layers.
__device__ __forceinline__ Place place_in_tile(const Swept &w, unsigned tile) {
	const unsigned across = (unsigned)w.tiles[0], rest = tile / across;
	const unsigned up = (unsigned)w.tiles[1], deep = rest / up;
	const unsigned group = (tile - rest * across) * blockDim.x + threadIdx.x,
	               y = (rest - deep * up) * blockDim.y + threadIdx.y;
	if (DIMS == 3) return {group, y * ROWS_PER_THREAD, deep * w.layers};
	return {group, 0, y * w.layers};
}

// make makes the stage of a step.
template <bool MEASURED> __device__ __forceinline__ void make(const Swept &w, const Boundary &b, const Moment &moment) {
	constexpr bool TAKES = MEASURED && TOTALS > 0;
	const StepFrame f = {moment, w.frame.coordinates, w.frame.parameters};
	const int phase = (int)(moment.step % PHASES);
#ifdef SCARCE // addresses are loaded for each tile, and not held, which would take more registers
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
