// Common functions of the examples with device ranks. The Go counterparts are in ranks.go.

// For GPUs of compute capability 10 the compiler takes up to 60 more registers for a kernel with several inlined puts.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define RANK_CALLED_COPIES
#endif

#include "device.cuh"

// part returns the start of the i-th of several parts of n elements; it ends at the start of part i + 1.
__device__ __forceinline__ i64 part(i64 n, i64 parts, i64 i) { return n * i / parts; }

// block_sum returns the sum over all threads of a block to each of them: lanes pairwise, then warps in order, so the
// bits depend on the number of threads only. All threads call it; shared holds one number per warp.
__device__ __forceinline__ double block_sum(double sum, double *shared) {
	for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
	__syncthreads(); // all have read the previous values
	if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
	__syncthreads();
	sum = shared[0];
#pragma unroll 1
	for (int warp = 1; warp < (int)blockDim.x / 32; warp++) sum += shared[warp];
	return sum;
}
