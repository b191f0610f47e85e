// Sums in an order that the numbers of threads and of ranks fix, by whatever they are launched. Their twins are in
// sums.go.

// For GPUs of compute capability 10 the compiler takes up to 60 registers more for a kernel with several puts in line.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define RANK_CALLED_COPIES
#endif

#include "device.cuh"

// pause_at_random has a thread wait now and then, with option PAUSES: tests want ranks to work in other orders.
__device__ __forceinline__ void pause_at_random() {
#ifdef PAUSES
	const unsigned h = ((unsigned)nanoseconds() ^ blockIdx.x * 0x9e3779b9u) * 0x85ebca6bu >> 16;
	if (h % 4 != 0) return;
	for (const i64 until = nanoseconds() + h / 4 % 64 * 2000; nanoseconds() < until;) __nanosleep(200);
#endif
}

// part returns where the i-th of some parts of n things begins; part i + 1 is where it ends.
__device__ __forceinline__ i64 part(i64 n, i64 parts, i64 i) { return n * i / parts; }

// block_sum returns the sum of what the threads of a block have, to all of them: lanes pairwise, warps in order. All
// threads call it; shared has room for one number a warp.
__device__ __forceinline__ double block_sum(double sum, double *shared) {
	for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
	__syncthreads(); // all have read what was there
	if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
	__syncthreads();
	sum = shared[0];
#pragma unroll 1
	for (int warp = 1; warp < (int)blockDim.x / 32; warp++) sum += shared[warp];
	return sum;
}
