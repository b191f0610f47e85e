// The norms of a field and of its change over a box.
//
// Option: REAL.

#include "common.cuh"
#include "norms.cuh"
#include "pieces.cuh"
#include "real.cuh"

struct Norms {
	const REAL *next;
	const REAL *last;
	NormSum *sums; // by block of norms_partial
	NormSum *result;
	Strides strides;
	Region region;
	i64 blocks; // the length of sums
	i64 stride; // from the sums of one result of norms_total to those of the next
};

// How many blocks of norms_partial a multiprocessor holds: with four, variables do not fit into registers of sm_100.
enum { PARTIAL_BLOCKS = ARCH == 1000 ? 3 : 4 };

// norms_partial writes one sum a block.
extern "C" __global__ void __launch_bounds__(256, PARTIAL_BLOCKS) norms_partial(const __grid_constant__ Norms a) {
	grid_dependency_wait();
	FieldNorms<REAL> f;
	BinnedNorms all;
	each_piece(a.region, a.strides, [&](i64 i) { f.point(a.next[i], a.last[i]); }, [&] { all.take(f); });
	reduce_block(all, a.sums + blockIdx.x);
}

// norms_total reduces the sums, by one block a result.
extern "C" __global__ void __launch_bounds__(256, 4) norms_total(const __grid_constant__ Norms a) {
	grid_dependency_wait();
	__shared__ NormSum all[256];
	NormSum f = NormSum::none();
	const NormSum *sums = a.sums + blockIdx.x * a.stride;
	for (i64 n = threadIdx.x; n < a.blocks; n += blockDim.x) f.join(sums[n]);
	reduce_block(f, all, threadIdx.x, blockDim.x, a.result + blockIdx.x);
}
