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
	i64 stride; // stride between the sums of consecutive results of norms_total
};

// Blocks of norms_partial per multiprocessor: with four, variables do not fit into registers on sm_100.
enum { PARTIAL_BLOCKS = ARCH == 1000 ? 3 : 4 };

// norms_partial writes one sum per block.
extern "C" __global__ void __launch_bounds__(256, PARTIAL_BLOCKS) norms_partial(const __grid_constant__ Norms a) {
	grid_dependency_wait();
	FieldNorms<REAL> f;
	BinnedNorms all;
	each_piece(a.region, a.strides, [&](i64 i) { f.point(a.next[i], a.last[i]); }, [&] { all.take(f); });
	reduce_block(all, a.sums + blockIdx.x);
}

// norms_total reduces the sums, with one block per result.
extern "C" __global__ void __launch_bounds__(256, 4) norms_total(const __grid_constant__ Norms a) {
	grid_dependency_wait();
	__shared__ NormSum all[256];
	NormSum f = NormSum::none();
	const NormSum *sums = a.sums + blockIdx.x * a.stride;
	for (i64 n = threadIdx.x; n < a.blocks; n += blockDim.x) f.join(sums[n]);
	reduce_block(f, all, threadIdx.x, blockDim.x, a.result + blockIdx.x);
}
