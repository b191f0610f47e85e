// The sum, the sum of squares, the minimum or the maximum of each value of the points of a box.
//
// Options: NUMBER, the type of a value; TOTAL, the type of its least and largest: double for reals, i64 for
// integers, whose sums are of that type too, and wrap. Sums of reals and of squares are those of sums.cuh.

#include "common.cuh"
#include "folding.cuh"
#include "pieces.cuh"

#ifndef NUMBER
#define NUMBER double
#define TOTAL double
#endif

struct Reduce {
	const NUMBER *data;
	void *partial; // a total of each block, those of a value together
	void *result;  // a total of each value
	Strides strides;
	Region region;
	i64 values; // of a point; block y reduces value y
	i64 blocks;
};

enum { WARPS = 8 };

__device__ inline double highest(double) { return __longlong_as_double(0x7ff0000000000000LL); }
__device__ inline double lowest(double) { return -highest(0.0); }
__device__ inline i64 highest(i64) { return 0x7fffffffffffffffLL; }
__device__ inline i64 lowest(i64) { return -0x7fffffffffffffffLL - 1; }

// Operations: the total of no value, of one value, and of two totals.

// Of whole numbers.
struct Sum {
	typedef i64 Total;
	__device__ static Total none() { return 0; }
	__device__ static Total of(NUMBER v) { return (i64)v; }
	__device__ static Total join(Total a, Total b) { return (i64)((u64)a + (u64)b); }
};

// A NaN, which is not equal to itself, wins.
struct Min {
	typedef TOTAL Total;
	__device__ static Total none() { return highest(Total()); }
	__device__ static Total of(NUMBER v) { return v; }
	__device__ static Total join(Total a, Total b) { return a < b || a != a ? a : b; }
};

struct Max {
	typedef TOTAL Total;
	__device__ static Total none() { return lowest(Total()); }
	__device__ static Total of(NUMBER v) { return v; }
	__device__ static Total join(Total a, Total b) { return a > b || a != a ? a : b; }
};

// reduce_block returns the total of all threads to thread 0.
template <typename Op> __device__ typename Op::Total reduce_block(typename Op::Total t) {
	__shared__ typename Op::Total warps[WARPS];
	const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	for (int d = 16; d > 0; d /= 2) t = Op::join(t, __shfl_down_sync(~0u, t, d));
	if (lane == 0) warps[warp] = t;
	__syncthreads();
	if (threadIdx.x == 0)
		for (int w = 1; w < WARPS; w++) t = Op::join(t, warps[w]);
	return t;
}

// reduce_box writes one total a block.
template <typename Op> __device__ void reduce_box(const Reduce &a) {
	const i64 rows = a.region.ny * a.region.nz;
	const int lane = threadIdx.x & 31;
	typename Op::Total t = Op::none();
	for (i64 row = thread_index() >> 5; row < rows; row += thread_count() >> 5) {
		const i64 first = a.region.first + row % a.region.ny * a.strides.pitch + row / a.region.ny * a.strides.plane;
		const NUMBER *p = a.data + first * a.values + blockIdx.y;
		for (i64 i = lane; i < a.region.nx; i += 32) t = Op::join(t, Op::of(p[i * a.values]));
	}
	t = reduce_block<Op>(t);
	if (threadIdx.x == 0) ((typename Op::Total *)a.partial)[blockIdx.y * a.blocks + blockIdx.x] = t;
}

// reduce_blocks joins the totals of the blocks, by one block for each value.
template <typename Op> __device__ void reduce_blocks(const Reduce &a) {
	const typename Op::Total *partial = (const typename Op::Total *)a.partial + blockIdx.y * a.blocks;
	typename Op::Total t = Op::none();
	for (i64 b = threadIdx.x; b < a.blocks; b += blockDim.x) t = Op::join(t, partial[b]);
	t = reduce_block<Op>(t);
	if (threadIdx.x == 0) ((typename Op::Total *)a.result)[blockIdx.y] = t;
}

// The terms of sums of reals.

struct Values {
	enum { SIGNED = true };
	__device__ static double of(NUMBER v) { return (double)v; }
};

struct Squares {
	enum { SIGNED = false };
	__device__ static double of(NUMBER v) { return (double)v * (double)v; }
};

// sum_box_reals writes one sum a block.
template <typename Term> __device__ void sum_box_reals(const Reduce &a) {
	RunningSum some;
	BinnedSum all;
	each_piece(
	    a.region, a.strides,
	    [&](i64 i) {
		    double term[1] = {Term::of(a.data[i * a.values + blockIdx.y])};
		    some.template add<Term::SIGNED>(term);
	    },
	    [&] { take(all, some); });
	const SumAndLargest mine[1] = {{all, 0}};
	const SumAndLargestTo to[1] = {{(StoredSum *)a.partial + blockIdx.y * a.blocks + blockIdx.x, 0}};
	reduce_block(mine, to);
}

// sum_blocks_reals joins the sums of the blocks, by one block for each value.
__device__ inline void sum_blocks_reals(const Reduce &a) {
	__shared__ StoredSum threads[32 * WARPS];
	const StoredSum *partial = (const StoredSum *)a.partial + blockIdx.y * a.blocks;
	StoredSum t = StoredSum::none();
	for (i64 b = threadIdx.x; b < a.blocks; b += blockDim.x) t.join(partial[b]);
	reduce_block(t, threads, threadIdx.x, blockDim.x, (StoredSum *)a.result + blockIdx.y);
}

__device__ inline void sum_box_of(const Reduce &a, double) { sum_box_reals<Values>(a); }
__device__ inline void sum_box_of(const Reduce &a, i64) { reduce_box<Sum>(a); }
__device__ inline void sum_blocks_of(const Reduce &a, double) { sum_blocks_reals(a); }
__device__ inline void sum_blocks_of(const Reduce &a, i64) { reduce_blocks<Sum>(a); }

extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) sum_box(const __grid_constant__ Reduce a) {
	grid_dependency_wait();
	sum_box_of(a, TOTAL());
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) sum_blocks(const __grid_constant__ Reduce a) {
	grid_dependency_wait();
	sum_blocks_of(a, TOTAL());
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) squares_box(const __grid_constant__ Reduce a) {
	grid_dependency_wait();
	sum_box_reals<Squares>(a);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) squares_blocks(const __grid_constant__ Reduce a) {
	grid_dependency_wait();
	sum_blocks_reals(a);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) min_box(const __grid_constant__ Reduce a) {
	grid_dependency_wait();
	reduce_box<Min>(a);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) min_blocks(const __grid_constant__ Reduce a) {
	grid_dependency_wait();
	reduce_blocks<Min>(a);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) max_box(const __grid_constant__ Reduce a) {
	grid_dependency_wait();
	reduce_box<Max>(a);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) max_blocks(const __grid_constant__ Reduce a) {
	grid_dependency_wait();
	reduce_blocks<Max>(a);
}
