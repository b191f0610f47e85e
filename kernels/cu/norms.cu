// The change between two fields and the norms of the newer one, over a box.
//
// Build options: REAL. Sums are kept in double and in one order: each warp
// sums the rows that are its own, then a tree over lanes, warps and blocks.

struct Norms {
	const REAL *next;
	const REAL *last;
	double *partial; // 4 numbers a block
	double *result;  // 4 numbers
	Strides strides;
	Region region;
	i64 blocks;
};

enum { WARPS = 8 };

// Four numbers: largest change, sum of squares of the change, largest
// magnitude, sum of squares. A NaN does not always show in the maxima; it does
// in the sums.
struct Four {
	double max_change, sum_change, max_value, sum_value;

	__device__ void add(const Four &o) {
		max_change = fmax(max_change, o.max_change);
		sum_change += o.sum_change;
		max_value = fmax(max_value, o.max_value);
		sum_value += o.sum_value;
	}
};

// over_block returns the sum of all threads' numbers to thread 0.
__device__ Four over_block(Four f) {
	__shared__ Four warps[WARPS];
	const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	for (int d = 16; d > 0; d /= 2) {
		Four o = {
		    __shfl_down_sync(~0u, f.max_change, d),
		    __shfl_down_sync(~0u, f.sum_change, d),
		    __shfl_down_sync(~0u, f.max_value, d),
		    __shfl_down_sync(~0u, f.sum_value, d),
		};
		f.add(o);
	}
	if (lane == 0) warps[warp] = f;
	__syncthreads();
	if (threadIdx.x == 0)
		for (int w = 1; w < WARPS; w++) f.add(warps[w]);
	return f;
}

// norms_partial writes four numbers a block.
extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) norms_partial(const __grid_constant__ Norms a) {
	after_predecessor();
	const i64 rows = a.region.ny * a.region.nz;
	const int lane = threadIdx.x & 31;
	Four f = {0, 0, 0, 0};
	for (i64 row = thread_index() >> 5; row < rows; row += thread_count() >> 5) {
		const i64 first = a.region.first + row % a.region.ny * a.strides.pitch + row / a.region.ny * a.strides.plane;
		for (i64 i = lane; i < a.region.nx; i += 32) {
			const double u = a.next[first + i], d = u - (double)a.last[first + i];
			f.add(Four{fabs(d), d * d, fabs(u), u * u});
		}
	}
	f = over_block(f);
	if (threadIdx.x == 0) ((Four *)a.partial)[blockIdx.x] = f;
}

// norms_total sums the blocks' numbers; it is one block.
extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) norms_total(const __grid_constant__ Norms a) {
	after_predecessor();
	Four f = {0, 0, 0, 0};
	for (i64 b = threadIdx.x; b < a.blocks; b += blockDim.x) f.add(((const Four *)a.partial)[b]);
	f = over_block(f);
	if (threadIdx.x == 0) *(Four *)a.result = f;
}
