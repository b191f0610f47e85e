// The reduction of sums over the threads of a block, by shuffles: for short-lived blocks.
#pragma once

#include "sums.cuh"

// A sum and an additional value whose maximum is taken: the bits of a non-negative double.
struct SumAndLargest {
	BinnedSum sum;
	i64 largest;
};

// The destinations of both for a block; the maximum is not stored if its pointer is null.
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

// fold combines number n of two sums and maxima.
__device__ __forceinline__ i64 fold(int n, i64 a, i64 b) {
	if (n % FOLDED == SUM_WORDS) return max(a, b);
#ifndef FAST_SUMS
	return a + b;
#else
	return bits_of(__longlong_as_double(a) + __longlong_as_double(b));
#endif
}

// fold_warp combines numbers over the lanes of a warp. Lanes exchange the numbers that others continue with, so that
// each step exchanges fewer numbers. At the end each lane has one number.
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

// numbers_of returns the numbers of sums, whose windows are raised to the given ones.
template <int SETS>
__device__ __forceinline__ void numbers_of(const SumAndLargest (&mine)[SETS], const int (&window)[SETS],
                                           i64 (&v)[FOLDED * SETS]) {
#pragma unroll
	for (int s = 0; s < SETS; s++) {
		BinnedSum sum = mine[s].sum;
#ifndef FAST_SUMS
		sum.raise(window[s]);
#pragma unroll
		for (int n = 0; n < SUM_BINS; n++) v[s * FOLDED + n] = sum.bin[n];
#else
		v[s * FOLDED] = bits_of(sum.value);
#endif
		v[s * FOLDED + SUM_WORDS] = mine[s].largest;
	}
}

// windows_of returns the windows of sums: in a warp, the highest of its lanes.
template <bool WARP, int SETS>
__device__ __forceinline__ void windows_of(const SumAndLargest (&mine)[SETS], int (&window)[SETS]) {
#ifndef FAST_SUMS
#pragma unroll
	for (int s = 0; s < SETS; s++) window[s] = WARP ? warp_max(mine[s].sum.window) : mine[s].sum.window;
#endif
}

// join_warp combines sums over the lanes of a warp: each lane gets all of them.
template <int SETS> __device__ __forceinline__ void join_warp(SumAndLargest (&mine)[SETS], int lane) {
	enum { COUNT = FOLDED * SETS, LANES = 32 / COUNT };
	int window[SETS];
	i64 v[COUNT];
	windows_of<true>(mine, window);
	numbers_of(mine, window, v);
	const i64 one = fold_warp(v, lane);
#pragma unroll
	for (int n = 0; n < COUNT; n++) v[n] = __shfl_sync(~0u, one, n * LANES);
#pragma unroll
	for (int s = 0; s < SETS; s++) {
#ifndef FAST_SUMS
#pragma unroll
		for (int n = 0; n < SUM_BINS; n++) mine[s].sum.bin[n] = v[s * FOLDED + n];
		mine[s].sum.window = window[s];
#else
		mine[s].sum.value = __longlong_as_double(v[s * FOLDED]);
#endif
		mine[s].largest = v[s * FOLDED + SUM_WORDS];
	}
}

// Sums of warps or of single threads, in shared memory.
template <int MOST_ROWS, int SETS> struct SumRows {
	i64 number[MOST_ROWS][FOLDED * SETS];
	int window[MOST_ROWS][SETS];

	// put stores the sums of a block here: those of each warp over its lanes, and those of each of the last REST
	// threads, which do not form a whole warp. With AGAIN it first waits for all threads, which may still read previous
	// sums.
	template <int REST, bool AGAIN>
	__device__ __forceinline__ void put(const SumAndLargest (&mine)[SETS], int thread, int threads) {
		enum { COUNT = FOLDED * SETS, LANES = 32 / COUNT };
		const int lane = thread % 32, warps = threads / 32;
		const bool whole = REST == 0 || thread < 32 * warps;
		const int row = whole ? thread / 32 : warps + lane;
		i64 v[COUNT];
		int high[SETS];
		if (whole) {
			windows_of<true>(mine, high);
			numbers_of(mine, high, v);
			v[0] = fold_warp(v, lane);
		} else {
			windows_of<false>(mine, high);
			numbers_of(mine, high, v);
		}
		if (AGAIN) __syncthreads();
		if (whole && lane % LANES == 0) number[row][lane / LANES] = v[0];
#pragma unroll
		for (int n = 0; n < COUNT; n++)
			if (!whole) number[row][n] = v[n];
#ifndef FAST_SUMS
#pragma unroll
		for (int s = 0; s < SETS; s++)
			if (!whole || lane == 0) window[row][s] = high[s];
#endif
	}

	// join combines the first rows, with each number in one of the first threads of a block.
	__device__ __forceinline__ void join(int count, int thread, const SumAndLargestTo (&to)[SETS]) const {
		if (thread >= FOLDED * SETS) return;
		const int s = thread / FOLDED, n = thread % FOLDED;
		const SumAndLargestTo there = SETS == 1 || s == 0 ? to[0] : to[SETS - 1];
		if (n == SUM_WORDS) {
			i64 largest = number[0][thread];
			for (int w = 1; w < count; w++) largest = max(largest, number[w][thread]);
			if (there.largest) *there.largest = __longlong_as_double(largest);
			return;
		}
#ifndef FAST_SUMS
		int highest = 0;
		for (int w = 0; w < count; w++) highest = max(highest, window[w][s]);
		u64 low = 0;
		int high = 0;
		for (int w = 0; w < count; w++) {
			const int from = n + highest - window[w][s];
			if (from >= SUM_BINS) continue;
			const i64 more = number[w][s * FOLDED + from];
			low += (u64)more;
			high += (int)(more >> 63) + (low < (u64)more);
		}
		there.sum->low[n] = low;
		there.sum->high[n] = (short)high;
		if (n == 0) there.sum->window = (short)highest;
#else
		i64 sum = number[0][thread];
		for (int w = 1; w < count; w++) sum = fold(n, sum, number[w][thread]);
		*there.sum = {{(u64)sum, 0, 0}, {0, 0, 0}, PLAIN_SUM};
#endif
	}
};

// reduce_block reduces over a block of whole warps: over the lanes of each warp, and then over warps, with one thread
// per number. All threads of the block call it.
template <int SETS>
__device__ __forceinline__ void reduce_block(const SumAndLargest (&mine)[SETS], const SumAndLargestTo (&to)[SETS]) {
	__shared__ SumRows<32, SETS> rows;
	const int thread = threadIdx.x + blockDim.x * threadIdx.y, threads = blockDim.x * blockDim.y;
	rows.template put<0, true>(mine, thread, threads);
	__syncthreads();
	rows.join(threads / 32, thread, to);
}

#else

// Without CPU_RUN the threads of a block call it one at a time.
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
