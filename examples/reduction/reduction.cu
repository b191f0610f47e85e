// A sum over the numbers of all device ranks along a binomial tree: Kuster 2017, listing 3.2.
#include "ranks.cuh"

using namespace ranks;

// Data shared by the device ranks of a device.
struct Data {
	const double *numbers; // of this device
	double *cells;         // CELLS for each of its ranks: its own sum, one per round of the tree, and the total
	i64 count, iterations;
};
enum { CELLS = 32, TOTAL = CELLS - 1, CREDIT = 255 };

// slice_sum returns the sum of a device rank's numbers, to all its threads. Each thread has four loads in flight.
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

// Each iteration computes a sum, in odd iterations of the negated numbers, and all sums are added to a total. So using
// the sum of a wrong iteration is detected. Before a rank puts its next sum, its parent has read the previous one.
extern "C" __global__ void __launch_bounds__(1024, 1) by_ranks(const __grid_constant__ World world) {
	__shared__ State state;
	__shared__ Data data; // each wait invalidates the L1 cache
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
				rank.put_notify(w, me - step, (1 + round) * (i64)sizeof(double), sizeof(double), mine, round);
				rank.flush(w);
				break;
			}
			if (me + step >= n) continue;
			ok = rank.wait_notifications(round, 1);
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
