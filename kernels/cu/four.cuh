// Four numbers that norms are made of, and their sum over a thread block.
//
// Build options: REAL.
#pragma once

#include "common.cuh"
#include "real.cuh"

// The largest change, the sum of squares of the change, the largest magnitude, the sum
// of squares. A NaN does not always show in the maxima; it does in the sums.
struct Four {
	double max_change, sum_change, max_value, sum_value;

	__device__ void add(const Four &o);
};

template <typename T> __device__ __forceinline__ T larger(T a, T b) { return b > a ? b : a; }

__device__ inline void Four::add(const Four &o) {
	max_change = larger(max_change, o.max_change);
	sum_change += o.sum_change;
	max_value = larger(max_value, o.max_value);
	sum_value += o.sum_value;
}

// What one thread finds. Comparisons, sums of products, and a magnitude in the type of
// the field cost much less than fmax and sums after products do.
struct Found {
	double max_change, sum_change;
	REAL max_value;
	double sum_value;

	// point adds a point that changed from c to u.
	__device__ __forceinline__ void point(REAL u, REAL c) {
		const double v = u, d = v - (double)c;
		max_change = larger(max_change, fabs(d));
		sum_change = fma(d, d, sum_change);
		max_value = larger(max_value, (REAL)fabs(u));
		sum_value = fma(v, v, sum_value);
	}

	__device__ __forceinline__ Four four() const { return {max_change, sum_change, max_value, sum_value}; }
};

// over_warp sums all lanes' numbers: each quarter of the warp gets one of the four. Lanes
// exchange what others go on with, so that each step has less to exchange.
__device__ inline double over_warp(const Four &f, int lane) {
	const bool value = lane & 16, sum = lane & 8;
	const auto join = [&](double a, double b) { return sum ? a + b : larger(a, b); };
	const double most =
	    larger(value ? f.max_value : f.max_change, __shfl_xor_sync(~0u, value ? f.max_change : f.max_value, 16));
	const double total =
	    (value ? f.sum_value : f.sum_change) + __shfl_xor_sync(~0u, value ? f.sum_change : f.sum_value, 16);
	double one = join(sum ? total : most, __shfl_xor_sync(~0u, sum ? most : total, 8));
	for (int d = 4; d > 0; d /= 2) one = join(one, __shfl_xor_sync(~0u, one, d));
	return one;
}

// over_block puts the sum of all threads' numbers there: over the lanes of each warp, then
// over warps, always in one order. All threads of the block call it; they are whole warps.
__device__ inline void over_block(const Four &f, Four *there) {
	__shared__ Four warps[32];
	const int thread = threadIdx.x + blockDim.x * threadIdx.y, lane = thread % 32;
	const auto keep = [&](Four *to, double one) {
		if (lane % 8 == 0) ((double *)to)[lane / 8] = one;
	};
	keep(warps + thread / 32, over_warp(f, lane));
	__syncthreads();
	if (thread >= 32) return;
	Four mine = {0, 0, 0, 0};
	if (lane < blockDim.x * blockDim.y / 32) mine = warps[lane];
	keep(there, over_warp(mine, lane));
}
