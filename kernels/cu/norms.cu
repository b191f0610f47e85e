// The norms of a field and of its change over a box.
//
// Sums are double, in one order: each warp sums its rows, then a tree over lanes, warps and blocks.
//
// Option: REAL.

#include "norms.cuh"

struct Norms {
	const REAL *next;
	const REAL *last;
	NormSum *sums; // by block of norms_partial
	NormSum *result;
	Strides strides;
	Region region;
	i64 blocks; // the length of sums
};

// norms_partial writes one sum a block.
extern "C" __global__ void __launch_bounds__(256, 4) norms_partial(const __grid_constant__ Norms a) {
	grid_dependency_wait();
	const i64 rows = a.region.ny * a.region.nz;
	const int lane = threadIdx.x & 31;
	NormPartial f = {0, 0, 0, 0};
	for (i64 row = thread_index() >> 5; row < rows; row += thread_count() >> 5) {
		const i64 first = a.region.first + row % a.region.ny * a.strides.pitch + row / a.region.ny * a.strides.plane;
		for (i64 i = lane; i < a.region.nx; i += 32) f.point(a.next[first + i], a.last[first + i]);
	}
	reduce_block(f.total(), a.sums + blockIdx.x);
}

// norms_total reduces the sums, by one block.
extern "C" __global__ void __launch_bounds__(256, 4) norms_total(const __grid_constant__ Norms a) {
	grid_dependency_wait();
	NormSum f = {0, 0, 0, 0};
	for (i64 n = threadIdx.x; n < a.blocks; n += blockDim.x) f.add(a.sums[n]);
	reduce_block(f, a.result);
}
