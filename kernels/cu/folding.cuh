// The reduction of sums over the threads of a block, by shuffles: for blocks that live short.
#pragma once

#include "sums.cuh"

// A sum and a value beside it, of which the largest is taken: the bits of a double that is not negative.
struct SumAndLargest {
	BinnedSum sum;
	i64 largest;
};

// Where both of a block go; the largest nowhere if that is null.
struct SumAndLargestTo {
	StoredSum *sum;
	double *largest;
};

#if defined(__CUDACC__) || defined(CPU_RUN)

#ifndef FAST_SUMS
enum { SUM_WORDS = SUM_BINS };
#else
enum { SUM_WORDS = 1 };
#endif

// How many numbers lanes exchange for each sum: a power of two.
enum { FOLDED = SUM_WORDS + 1 };

// fold joins number n of two sums and largest values.
__device__ __forceinline__ i64 fold(int n, i64 a, i64 b) {
	if (n % FOLDED == SUM_WORDS) return max(a, b);
#ifndef FAST_SUMS
	return a + b;
#else
	return bits_of(__longlong_as_double(a) + __longlong_as_double(b));
#endif
}

// fold_warp joins numbers over the lanes of a warp. Lanes exchange what others go on with, so that each step
// has less to exchange. In the end each lane has one number: that of its place among so many parts of the warp.
template <int COUNT> __device__ __forceinline__ i64 fold_warp(i64 (&v)[COUNT], int lane) {
	int first = 0, bit = 16;
#pragma unroll
	for (int n = COUNT / 2; n > 0; n /= 2, bit /= 2) {
		const bool upper = lane & bit;
		first += upper ? n : 0;
#pragma unroll
		for (int i = 0; i < n; i++) {
			const i64 other = __shfl_xor_sync(~0u, upper ? v[i] : v[i + n], bit);
			v[i] = fold(n % FOLDED == 0 ? i : first + i, upper ? v[i + n] : v[i], other);
		}
	}
#pragma unroll
	for (; bit > 0; bit /= 2) v[0] = fold(first, v[0], __shfl_xor_sync(~0u, v[0], bit));
	return v[0];
}

// reduce_block reduces over a block: over the lanes of each warp, and then over warps, each number by one
// thread. All threads of the block call it; they are whole warps.
template <int SETS>
__device__ __forceinline__ void reduce_block(const SumAndLargest (&mine)[SETS], const SumAndLargestTo (&to)[SETS]) {
	enum { COUNT = FOLDED * SETS, LANES = 32 / COUNT };
	__shared__ i64 warps[32][COUNT];
	const int thread = threadIdx.x + blockDim.x * threadIdx.y, lane = thread % 32;
	i64 v[COUNT];
#ifndef FAST_SUMS
	__shared__ int windows[32][SETS];
	int window[SETS];
#endif
#pragma unroll
	for (int s = 0; s < SETS; s++) {
		BinnedSum sum = mine[s].sum;
#ifndef FAST_SUMS
		sum.raise(window[s] = warp_max(sum.window));
#pragma unroll
		for (int n = 0; n < SUM_BINS; n++) v[s * FOLDED + n] = sum.bin[n];
#else
		v[s * FOLDED] = bits_of(sum.value);
#endif
		v[s * FOLDED + SUM_WORDS] = mine[s].largest;
	}
	const i64 one = fold_warp(v, lane);
	__syncthreads(); // who calls it twice has read what is overwritten
	if (lane % LANES == 0) warps[thread / 32][lane / LANES] = one;
#ifndef FAST_SUMS
#pragma unroll
	for (int s = 0; s < SETS; s++)
		if (lane == 0) windows[thread / 32][s] = window[s];
#endif
	__syncthreads();
	if (thread >= COUNT) return;
	const int count = blockDim.x * blockDim.y / 32, s = thread / FOLDED, n = thread % FOLDED;
	const SumAndLargestTo there = SETS == 1 || s == 0 ? to[0] : to[SETS - 1];
	if (n == SUM_WORDS) {
		i64 largest = warps[0][thread];
		for (int w = 1; w < count; w++) largest = max(largest, warps[w][thread]);
		if (there.largest) *there.largest = __longlong_as_double(largest);
		return;
	}
#ifndef FAST_SUMS
	int highest = 0;
	for (int w = 0; w < count; w++) highest = max(highest, windows[w][s]);
	u64 low = 0;
	int high = 0;
	for (int w = 0; w < count; w++) {
		const int from = n + highest - windows[w][s];
		if (from >= SUM_BINS) continue;
		const i64 more = warps[w][s * FOLDED + from];
		low += (u64)more;
		high += (int)(more >> 63) + (low < (u64)more);
	}
	there.sum->low[n] = low;
	there.sum->high[n] = (short)high;
	if (n == 0) there.sum->window = (short)highest;
#else
	i64 sum = warps[0][thread];
	for (int w = 1; w < count; w++) sum = fold(n, sum, warps[w][thread]);
	*there.sum = {{(u64)sum, 0, 0}, {0, 0, 0}, PLAIN_SUM};
#endif
}

#else

// Without CPU_RUN the threads of a block call it one after the other.
template <int SETS> void reduce_block(const SumAndLargest (&mine)[SETS], const SumAndLargestTo (&to)[SETS]) {
	const bool first = threadIdx.x == 0 && threadIdx.y == 0;
	for (int s = 0; s < SETS; s++) {
		if (first) *to[s].sum = StoredSum::none();
		to[s].sum->join(StoredSum::of(mine[s].sum));
		if (to[s].largest)
			*to[s].largest =
			    __longlong_as_double(first ? mine[s].largest : max(bits_of(*to[s].largest), mine[s].largest));
	}
}

#endif
