// The numbers that norms are made of, and their reduction over a thread block.
//
// Option: REAL.
#pragma once

#include "common.cuh"
#include "real.cuh"

template <typename T> __device__ __forceinline__ T larger(T a, T b) { return b > a ? b : a; }

// The largest change, the sum of squares of the change, the largest magnitude and the sum of
// squares over some points. A NaN may be lost in the maxima, never in the sums.
struct NormSum {
	double max_change, sum_change2, max, sum2;

	__device__ void add(const NormSum &o) {
		max_change = larger(max_change, o.max_change);
		sum_change2 += o.sum_change2;
		max = larger(max, o.max);
		sum2 += o.sum2;
	}
};

// The same over the points of one thread. Comparisons, fused sums of products, and a magnitude in
// the type of the field cost much less than fmax, and sums of rounded products.
struct NormPartial {
	double max_change, sum_change2;
	REAL max;
	double sum2;

	// point adds a point whose value changed from c to u.
	__device__ __forceinline__ void point(REAL u, REAL c) {
		const double v = u, d = v - (double)c;
		max_change = larger(max_change, fabs(d));
		sum_change2 = fma(d, d, sum_change2);
		max = larger(max, (REAL)fabs(u));
		sum2 = fma(v, v, sum2);
	}

	__device__ __forceinline__ NormSum total() const { return {max_change, sum_change2, max, sum2}; }
};

// reduce_warp reduces over the lanes of a warp: each quarter of the warp gets one of the four
// numbers. In the first steps lanes exchange the numbers that the other goes on with, so that each
// step has less to exchange.
__device__ inline double reduce_warp(const NormSum &f, int lane) {
	const bool value = lane & 16, sum = lane & 8;
	const auto join = [&](double a, double b) { return sum ? a + b : larger(a, b); };
	const double most = larger(value ? f.max : f.max_change, __shfl_xor_sync(~0u, value ? f.max_change : f.max, 16));
	const double total = (value ? f.sum2 : f.sum_change2) + __shfl_xor_sync(~0u, value ? f.sum_change2 : f.sum2, 16);
	double one = join(sum ? total : most, __shfl_xor_sync(~0u, sum ? most : total, 8));
	for (int d = 4; d > 0; d /= 2) one = join(one, __shfl_xor_sync(~0u, one, d));
	return one;
}

// reduce_block writes the reduction over all threads of a block: over the lanes of each warp, then
// over the warps, always in one order. All threads of the block call it; they are whole warps.
__device__ inline void reduce_block(const NormSum &f, NormSum *result) {
	__shared__ NormSum warps[32];
	const int thread = threadIdx.x + blockDim.x * threadIdx.y, lane = thread % 32;
	const auto keep = [&](NormSum *to, double one) {
		if (lane % 8 == 0) ((double *)to)[lane / 8] = one;
	};
	keep(warps + thread / 32, reduce_warp(f, lane));
	__syncthreads();
	if (thread >= 32) return;
	NormSum mine = {0, 0, 0, 0};
	if (lane < blockDim.x * blockDim.y / 32) mine = warps[lane];
	keep(result, reduce_warp(mine, lane));
}
