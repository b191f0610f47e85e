// Sums in an order that the numbers of threads and of ranks fix, by whatever they are launched. Their twins are in
// sums.go.

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
