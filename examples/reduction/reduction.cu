// A sum over the numbers of all ranks along a binomial tree: Kuster 2017, listing 3.2.
#include "ranks.cuh"

using namespace ranks;

// What all ranks of a device share.
struct Data {
	const double *numbers; // of this device
	double *cells;         // CELLS of each of its ranks: its own sum, one for each round of the tree, and the total
	i64 count, iterations;
};
enum { CELLS = 32, TOTAL = CELLS - 1, CREDIT = 255 };

// slice_sum returns the sum of the numbers that belong to a rank of a device, to all its threads. Each thread has four
// loads under way.
__device__ __forceinline__ double slice_sum(const double *numbers, i64 count, i64 ranks, i64 rank, double *shared) {
	const i64 end = part(count, ranks, rank + 1), n = blockDim.x;
	i64 i = part(count, ranks, rank) + threadIdx.x;
	double a = 0, b = 0, c = 0, d = 0;
#pragma unroll 1
	for (; i + 3 * n < end; i += 4 * n) {
		const double x = numbers[i], y = numbers[i + n], z = numbers[i + 2 * n], w = numbers[i + 3 * n];
		a += x, b += y, c += z, d += w;
	}
#pragma unroll 1
	for (; i < end; i += n) a += numbers[i];
	return block_sum((a + b) + (c + d), shared);
}

// Each iteration is a sum, in odd ones of the negated numbers, and all are added to a total: what is left of another
// iteration would be seen. Before a rank puts its sum a second time, it has been told that the first was read.
extern "C" __global__ void __launch_bounds__(1024, 1) by_ranks(const __grid_constant__ World world) {
	__shared__ State state;
	__shared__ Data data; // each wait empties the first-level cache
	__shared__ double shared[32];
	Rank rank(world, state);
	if (threadIdx.x == 0) data = rank.data<Data>();
	__syncthreads();
	const int n = rank.size(), me = rank.index();
	double *const mine = data.cells + CELLS * rank.index(DEVICE);
	const Window w = rank.create_window(WORLD, mine, CELLS * sizeof(double));
	rank.start_timer();
	bool ok = true;
	for (i64 t = 0; t < data.iterations && ok; t++) {
		const double sum = slice_sum(data.numbers, data.count, rank.size(DEVICE), rank.index(DEVICE), shared);
		if (threadIdx.x == 0) mine[0] = t % 2 ? -sum : sum;
		for (int step = 1, round = 0; step < n && ok; step *= 2, round++) {
			if (me % (2 * step) == step) {
				ok = t == 0 || rank.wait_notifications(CREDIT, 1);
				pause_at_random();
				rank.put_notify(w, me - step, (1 + round) * (i64)sizeof(double), sizeof(double), mine, round);
				rank.flush(w);
				break;
			}
			if (me + step >= n) continue;
			ok = rank.wait_notifications(round, 1);
			pause_at_random();
			if (threadIdx.x == 0) mine[0] += mine[1 + round];
			rank.notify(me + step, WORLD, CREDIT);
		}
		if (me == 0 && threadIdx.x == 0) mine[TOTAL] += mine[0];
	}
	rank.barrier(WORLD);
	rank.stop_timer();
	rank.free_window(w);
	rank.finish();
}

// The same by launches. Block i of the first has the sum of rank i of the device.
struct Slices {
	const double *numbers;
	double *sums; // one a block
	i64 count;
	double sign;
};

extern "C" __global__ void __launch_bounds__(1024, 1) slice_sums(const __grid_constant__ Slices s) {
	__shared__ double shared[32];
	const double sum = slice_sum(s.numbers, s.count, gridDim.x, blockIdx.x, shared);
	if (threadIdx.x == 0) s.sums[blockIdx.x] = s.sign * sum;
}

// One block adds sums along the tree, where they lie. The first one becomes the result, and is added to the total, which
// lies behind them.
struct Tree {
	double *sums;
	i64 count;
};

extern "C" __global__ void __launch_bounds__(1024, 1) add_tree(const __grid_constant__ Tree tree) {
	for (i64 step = 1; step < tree.count; step *= 2) {
		for (i64 i = 2 * step * threadIdx.x; i + step < tree.count; i += 2 * step * blockDim.x)
			tree.sums[i] += tree.sums[i + step];
		__syncthreads();
	}
	if (threadIdx.x == 0) tree.sums[tree.count] += tree.sums[0];
}
