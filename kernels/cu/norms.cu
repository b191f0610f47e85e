// The change between two fields and the norms of the newer one, over a box, and totals
// of what sweeps found of them on their way.
//
// Build options: REAL. Sums are kept in double and in one order: each warp
// sums the rows that are its own, then a tree over lanes, warps and blocks.

#include "four.cuh"

struct Norms {
	const REAL *next;
	const REAL *last;
	Four *partial; // by block
	Four *sums;    // of norms_sums, by block
	Four *result;
	Strides strides;
	Region region;
	i64 partials, blocks; // how many there are in partial and in sums
};

// norms_partial writes the numbers of each block.
extern "C" __global__ void __launch_bounds__(256, 4) norms_partial(const __grid_constant__ Norms a) {
	after_predecessor();
	const i64 rows = a.region.ny * a.region.nz;
	const int lane = threadIdx.x & 31;
	Found f = {0, 0, 0, 0};
	for (i64 row = thread_index() >> 5; row < rows; row += thread_count() >> 5) {
		const i64 first = a.region.first + row % a.region.ny * a.strides.pitch + row / a.region.ny * a.strides.plane;
		for (i64 i = lane; i < a.region.nx; i += 32) f.point(a.next[first + i], a.last[first + i]);
	}
	over_block(f.four(), a.partial + blockIdx.x);
}

// norms_sums sums partial numbers where there are many, in as many blocks as there are sums.
extern "C" __global__ void __launch_bounds__(256, 4) norms_sums(const __grid_constant__ Norms a) {
	after_predecessor();
	Four f = {0, 0, 0, 0};
	for (i64 n = thread_index(); n < a.partials; n += thread_count()) f.add(a.partial[n]);
	over_block(f, a.sums + blockIdx.x);
}

// norms_total sums the numbers of the blocks; it is one block.
extern "C" __global__ void __launch_bounds__(256, 4) norms_total(const __grid_constant__ Norms a) {
	after_predecessor();
	Four f = {0, 0, 0, 0};
	for (i64 n = threadIdx.x; n < a.blocks; n += blockDim.x) f.add(a.sums[n]);
	over_block(f, a.result);
}
