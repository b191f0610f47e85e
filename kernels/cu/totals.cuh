// Norms and reductions of the values that a sweep writes, over threads and thread blocks.
#pragma once

#include "names.cuh"
#include "norms.cuh"

// identity is the neutral element of join.
__device__ __forceinline__ double identity(Operation op) {
	const double infinity = __longlong_as_double(0x7ff0000000000000);
	return op == SUM ? 0 : op == MAX ? -infinity : infinity;
}

// join combines two values of a reduction that is not a sum. It propagates NaN.
__device__ __forceinline__ double join(Operation op, double a, double b) {
	if (a != a) return a;
	return b != b || (op == MAX ? b > a : b < a) ? b : a;
}

// A reduction over a few points, at most as many as RunningSum supports terms, and over many.
template <Operation OP> struct RunningReduction {
	double value = identity(OP);

	template <int N> __device__ __forceinline__ void add(double (&x)[N]) {
#pragma unroll
		for (int v = 0; v < N; v++) value = join(OP, value, x[v]);
	}
};

template <> struct RunningReduction<SUM> {
	RunningSum sum;

	template <int N> __device__ __forceinline__ void add(double (&x)[N]) { sum.template add<true>(x); }
};

template <Operation OP> struct BinnedReduction {
	double value = identity(OP);

	__device__ __forceinline__ void take(RunningReduction<OP> &r) {
		value = join(OP, value, r.value);
		r.value = identity(OP);
	}
};

template <> struct BinnedReduction<SUM> {
	BinnedSum sum;

	__device__ __forceinline__ void take(RunningReduction<SUM> &r) { ::take(sum, r.sum); }
};

// words is the number of 8-byte words of a reduction in memory.
__device__ constexpr int words(Operation op) { return op == SUM ? sizeof(StoredSum) / 8 : 1; }

__device__ __forceinline__ void reduce_block(const BinnedReduction<SUM> &r, double *there) {
	const SumAndLargest mine[1] = {{r.sum, 0}};
	const SumAndLargestTo to[1] = {{(StoredSum *)there, 0}};
	reduce_block(mine, to);
}

#if defined(__CUDACC__) || defined(CPU_RUN)

// reduce_block combines one value of each thread of a block, over the lanes of each warp and then over warps, and
// stores the result. All threads of the block call it; they must form whole warps.
__device__ inline void reduce_block(Operation op, double value, double *there) {
	__shared__ double warps[32];
	const int thread = threadIdx.x + blockDim.x * threadIdx.y, lane = thread % 32;
	const auto reduce_warp = [&](double one) {
		for (int d = 16; d > 0; d /= 2) one = join(op, one, __shfl_xor_sync(~0u, one, d));
		return one;
	};
	value = reduce_warp(value);
	__syncthreads(); // a previous call has been read by all threads
	if (lane == 0) warps[thread / 32] = value;
	__syncthreads();
	if (thread >= 32) return;
	value = reduce_warp(lane < blockDim.x * blockDim.y / 32 ? warps[lane] : identity(op));
	if (lane == 0) *there = value;
}

#else

// Without CPU_RUN the threads of a block call it one at a time.
inline void reduce_block(Operation op, double value, double *there) {
	const bool first = threadIdx.x == 0 && threadIdx.y == 0;
	*there = first ? value : join(op, *there, value);
}

#endif

template <Operation OP> __device__ __forceinline__ void reduce_block(const BinnedReduction<OP> &r, double *there) {
	reduce_block(OP, r.value, there);
}
