// The sum, sum of squares, minimum or maximum of each value over the points of a box.
//
// Options: NUMBER, the type of a value; TOTAL, the type of a minimum or maximum: double for reals, i64 for integers.
// Sums of integers are i64 too, and wrap. Sums of reals and of squares are those of sums.cuh.

#include "common.cuh"
#include "folding.cuh"
#include "pieces.cuh"

#ifndef NUMBER
#define NUMBER double
#define TOTAL double
#endif

struct Reduce {
	const NUMBER *data;
	void *partial; // one total per block, grouped by value
	void *result;  // one total per value; squares of double have SCALES
	Strides strides;
	Region region;
	i64 values; // per point; block y reduces value y
	i64 blocks;
};

enum { WARPS = 8 };

__device__ inline double highest(double) { return __longlong_as_double(0x7ff0000000000000LL); }
__device__ inline double lowest(double) { return -highest(0.0); }
__device__ inline i64 highest(i64) { return 0x7fffffffffffffffLL; }
__device__ inline i64 lowest(i64) { return -0x7fffffffffffffffLL - 1; }

// Operations: the total of no values, of one value, and of two totals.

// For integers.
struct Sum {
	typedef i64 Total;
	__device__ static Total none() { return 0; }
	__device__ static Total of(NUMBER v) { return (i64)v; }
	__device__ static Total join(Total a, Total b) { return (i64)((u64)a + (u64)b); }
};

// NaN, which is not equal to itself, takes precedence.
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

// reduce_box writes one total per block.
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

// reduce_blocks combines the totals of the blocks, with one block per value.
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
	double largest = 0;
	__device__ double of(NUMBER v) { return (double)v; }
};

// Squares of values times a power of two, and the largest magnitude of the scaled values.
struct Squares {
	enum { SIGNED = false };
	double scale;
	double largest = 0;
	__device__ Squares(double scale) : scale(scale) {}
	__device__ double of(NUMBER v) {
		const double x = (double)v * scale;
		if (fabs(x) > largest) largest = fabs(x);
		return x * x;
	}
};

// Squares of double may overflow or underflow. So there are three sums per value: of the numbers, of the numbers times
// 2^-600, and of the numbers times 2^600. Blocks without such large or small numbers omit the last two.
enum { SCALES = sizeof(NUMBER) > 4 && (NUMBER)0.5 != 0 ? 3 : 1 };

// sum_box_reals writes one sum per block, at a given offset in those of all values, and the largest magnitude.
template <typename Term> __device__ void sum_box_reals(const Reduce &a, Term term, i64 first = 0, double *largest = 0) {
	RunningSum some;
	BinnedSum all;
	each_piece(
	    a.region, a.strides,
	    [&](i64 i) {
		    double one[1] = {term.of(a.data[i * a.values + blockIdx.y])};
		    some.template add<Term::SIGNED>(one);
	    },
	    [&] { take(all, some); });
	const SumAndLargest mine[1] = {{all, bits_of(term.largest)}};
	const SumAndLargestTo to[1] = {{(StoredSum *)a.partial + (first + blockIdx.y) * a.blocks + blockIdx.x, largest}};
	reduce_block(mine, to);
}

// sum_scaled_squares writes the second and third sums of a block.
__device__ inline void sum_scaled_squares(const Reduce &a, double largest) {
	const bool large = largest > 0x1p400, small = 0 < largest && largest < 0x1p-400;
	StoredSum *sums = (StoredSum *)a.partial + blockIdx.y * a.blocks + blockIdx.x;
	if (threadIdx.x == 0) {
		if (!large) sums[a.values * a.blocks] = StoredSum::none();
		if (!small) sums[2 * a.values * a.blocks] = StoredSum::none();
	}
	if (large || small) sum_box_reals(a, Squares(large ? 0x1p-600 : 0x1p600), large ? a.values : 2 * a.values);
}

// sum_blocks_reals combines the sums of the blocks, with one block per value.
__device__ inline void sum_blocks_reals(const Reduce &a) {
	__shared__ StoredSum threads[32 * WARPS];
	const StoredSum *partial = (const StoredSum *)a.partial + blockIdx.y * a.blocks;
	StoredSum t = StoredSum::none();
	for (i64 b = threadIdx.x; b < a.blocks; b += blockDim.x) t.join(partial[b]);
	reduce_block(t, threads, threadIdx.x, blockDim.x, (StoredSum *)a.result + blockIdx.y);
}

__device__ inline void sum_box_of(const Reduce &a, double) { sum_box_reals(a, Values()); }
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
	if constexpr (SCALES == 1) {
		sum_box_reals(a, Squares(1));
	} else {
		__shared__ double largest;
		sum_box_reals(a, Squares(1), 0, &largest);
		__syncthreads();
		sum_scaled_squares(a, largest);
	}
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
