// Four numbers that norms are made of, and their sum over a thread block.

// The largest change, the sum of squares of the change, the largest magnitude, the sum
// of squares. A NaN does not always show in the maxima; it does in the sums.
struct Four {
	double max_change, sum_change, max_value, sum_value;

	__device__ __forceinline__ void add(const Four &o) {
		max_change = fmax(max_change, o.max_change);
		sum_change += o.sum_change;
		max_value = fmax(max_value, o.max_value);
		sum_value += o.sum_value;
	}

	// point adds a point that changed from c to u.
	__device__ __forceinline__ void point(double u, double c) {
		const double d = u - c;
		add(Four{fabs(d), d * d, fabs(u), u * u});
	}
};

// over_block returns the sum of all threads' numbers to the first thread: over the lanes
// of each warp, then over warps, always in one order. All threads of the block call it;
// they are whole warps.
__device__ inline Four over_block(Four f) {
	__shared__ Four warps[32];
	const int thread = threadIdx.x + blockDim.x * threadIdx.y;
	for (int d = 16; d > 0; d /= 2) {
		const Four o = {
		    __shfl_down_sync(~0u, f.max_change, d),
		    __shfl_down_sync(~0u, f.sum_change, d),
		    __shfl_down_sync(~0u, f.max_value, d),
		    __shfl_down_sync(~0u, f.sum_value, d),
		};
		f.add(o);
	}
	if (thread % 32 == 0) warps[thread / 32] = f;
	__syncthreads();
	if (thread == 0)
		for (int w = 1; w < blockDim.x * blockDim.y / 32; w++) f.add(warps[w]);
	return f;
}
