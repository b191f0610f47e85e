// Norms of what a sweep writes, and their sums and other reductions over a thread block.
#pragma once

#include "names.cuh"

template <typename T> __device__ __forceinline__ T greater(T a, T b) { return b > a ? b : a; }

// The norms that one thread finds of a field and of its change: the largest change, the sum of
// its squares, the largest magnitude, the sum of squares. A NaN does not always show in the
// maxima; it does in the sums. Comparisons, sums of products, and a magnitude in the type of the
// field cost much less than fmax and sums after products do.
template <typename T> struct FieldNorms {
	double max_change, sum_change;
	T max_value;
	double sum_value;

	// point adds a point that changed from c to u.
	__device__ __forceinline__ void point(T u, T c) {
		const double v = u, d = v - (double)c;
		max_change = greater(max_change, fabs(d));
		sum_change = fma(d, d, sum_change);
		max_value = greater(max_value, (T)fabs(u));
		sum_value = fma(v, v, sum_value);
	}

	// join adds points that were found elsewhere.
	__device__ __forceinline__ void join(const FieldNorms &other) {
		max_change = greater(max_change, other.max_change);
		sum_change += other.sum_change;
		max_value = greater(max_value, other.max_value);
		sum_value += other.sum_value;
	}
};

// identity is what joining with changes nothing.
__device__ __forceinline__ double identity(Operation op) {
	const double infinity = __longlong_as_double(0x7ff0000000000000);
	return op == SUM ? 0 : op == MAX ? -infinity : infinity;
}

// join joins two values of a reduction. A NaN stays.
__device__ __forceinline__ double join(Operation op, double a, double b) {
	if (op == SUM) return a + b;
	if (a != a) return a;
	return b != b || (op == MAX ? b > a : b < a) ? b : a;
}

#if defined(__CUDACC__) || defined(CPU_RUN)

// reduce_block joins one value of each thread of a block, over the lanes of each warp and then
// over warps, always in one order, and puts the result there. All threads of the block call it;
// they are whole warps.
__device__ inline void reduce_block(Operation op, double value, double *there) {
	__shared__ double warps[32];
	const int thread = threadIdx.x + blockDim.x * threadIdx.y, lane = thread % 32;
	const auto reduce_warp = [&](double one) {
		for (int d = 16; d > 0; d /= 2) one = join(op, one, __shfl_xor_sync(~0u, one, d));
		return one;
	};
	value = reduce_warp(value);
	__syncthreads(); // who calls it twice has read what is overwritten
	if (lane == 0) warps[thread / 32] = value;
	__syncthreads();
	if (thread >= 32) return;
	value = reduce_warp(lane < blockDim.x * blockDim.y / 32 ? warps[lane] : identity(op));
	if (lane == 0) *there = value;
}

// reduce_block is the same for norms: each quarter of a warp takes one of the four numbers. Lanes
// exchange what others go on with, so that each step has less to exchange.
template <typename T> __device__ inline void reduce_block(const FieldNorms<T> &f, double *there) {
	__shared__ double warps[32][4];
	const int thread = threadIdx.x + blockDim.x * threadIdx.y, lane = thread % 32;
	const bool value = lane & 16, sum = lane & 8;
	const auto both = [&](double a, double b) { return sum ? a + b : greater(a, b); };
	const auto reduce_warp = [&](double max_change, double sum_change, double max_value, double sum_value) {
		const double most =
		    greater(value ? max_value : max_change, __shfl_xor_sync(~0u, value ? max_change : max_value, 16));
		const double total =
		    (value ? sum_value : sum_change) + __shfl_xor_sync(~0u, value ? sum_change : sum_value, 16);
		double one = both(sum ? total : most, __shfl_xor_sync(~0u, sum ? most : total, 8));
		for (int d = 4; d > 0; d /= 2) one = both(one, __shfl_xor_sync(~0u, one, d));
		return one;
	};
	double one = reduce_warp(f.max_change, f.sum_change, f.max_value, f.sum_value);
	__syncthreads();
	if (lane % 8 == 0) warps[thread / 32][lane / 8] = one;
	__syncthreads();
	if (thread >= 32) return;
	const bool mine = lane < blockDim.x * blockDim.y / 32;
	const double (&w)[4] = warps[lane];
	one = reduce_warp(mine ? w[0] : 0, mine ? w[1] : 0, mine ? w[2] : 0, mine ? w[3] : 0);
	if (lane % 8 == 0) there[lane / 8] = one;
}

#else

// Without CPU_RUN the threads of a block call these one after the other.
inline void reduce_block(Operation op, double value, double *there) {
	const bool first = threadIdx.x == 0 && threadIdx.y == 0;
	*there = first ? value : join(op, *there, value);
}

template <typename T> void reduce_block(const FieldNorms<T> &f, double *there) {
	reduce_block(MAX, f.max_change, there), reduce_block(SUM, f.sum_change, there + 1);
	reduce_block(MAX, f.max_value, there + 2), reduce_block(SUM, f.sum_value, there + 3);
}

#endif
