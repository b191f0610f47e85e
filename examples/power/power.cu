// Power iteration with a sparse matrix that is divided into square blocks: Kuster 2017, 5.6 and 5.7. Blocks are ordered
// column by column. The result of a row of blocks is in column 0, and the input of a column of blocks in row 0. The Go
// counterpart is in main.go.
#include "ranks.cuh"

// A block in compressed-row format, with its vectors, which are spaced by a pitch.
struct Block {
	const i64 *starts;    // start of each row among the entries, and the end
	const int *columns;   // of each entry, in order within a row
	const double *values; // of each entry
	double *vectors;
};

// The vectors of a block: two alternating inputs, the product of the block, and those received from other columns, one
// for each round of the reduction.
enum Vector { INPUT, PRODUCT = 2, RECEIVED };

enum { LANES = 8, MAX_BLOCKS = 64 };
enum Tag { BROADCAST, REDUCE }; // followed by one for each round

// Data shared by the device ranks of a device.
struct Blocks {
	i64 n, pitch;    // rows of a block, and stride of vectors in elements
	i64 side, count; // blocks along each axis, and on this device
	i64 iterations;
	i64 extra;               // bytes from the vectors of a block to the data after them
	i64 window;              // slot of the window of all vectors of each rank's block
	Block block[MAX_BLOCKS]; // of this device
};

// multiply sets some rows of out to the product of the block and factor * in. All threads call it. LANES lanes of a
// warp compute a row, so that whole sectors of entries are loaded; its sum is taken by lane, then pairwise.
__device__ __forceinline__ void multiply(const Block &block, const double *in, double factor, double *out, i64 begin,
                                         i64 end) {
	const int lane = (int)threadIdx.x % LANES, in_warp = (int)threadIdx.x % 32 / LANES;
	const i64 *const starts = block.starts;
	const int *const columns = block.columns;
	const double *const values = block.values;
#pragma unroll 1
	for (i64 first = begin + threadIdx.x / 32 * (32 / LANES); first < end; first += blockDim.x / LANES) {
		const i64 row = first + in_warp;
		i64 i = 0, last = 0;
		if (row < end) i = __ldg(starts + row) + lane, last = __ldg(starts + row + 1);
		double sum = 0;
#pragma unroll 1
		for (; i + 3 * LANES < last; i += 4 * LANES) {
			int column[4];
			double value[4], x[4];
#pragma unroll
			for (int k = 0; k < 4; k++)
				column[k] = __ldg(columns + i + k * LANES), value[k] = __ldg(values + i + k * LANES);
#pragma unroll
			for (int k = 0; k < 4; k++) x[k] = in[column[k]];
#pragma unroll
			for (int k = 0; k < 4; k++) sum += value[k] * (factor * x[k]);
		}
#pragma unroll 1
		for (; i < last; i += LANES) sum += __ldg(values + i) * (factor * in[__ldg(columns + i)]);
		for (int d = LANES / 2; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
		if (row < end && lane == 0) out[row] = sum;
	}
}

// add adds some elements of a vector to those of another.
__device__ __forceinline__ void add(double *to, const double *from, i64 begin, i64 end) {
#pragma unroll 1
	for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) to[i] += from[i];
}

// sum_of_squares returns the sum of squares of some elements, to all threads.
__device__ __forceinline__ double sum_of_squares(const double *x, i64 begin, i64 end, double *shared) {
	double sum = 0;
#pragma unroll 1
	for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) sum += x[i] * x[i];
	return block_sum(sum, shared);
}

// The role of a rank: its block, and its elements of each vector. Ranks of other blocks with the same index have the
// same elements. It is in shared memory to save registers.
struct Place {
	Block block;
	ranks::Window window;
	i64 pitch, extra, begin, end, iterations;
	int side, each; // blocks along each axis, ranks of a block
	int row, column, member;

	// find is called by all threads.
	__device__ void find(const ranks::Rank &rank) {
		if (threadIdx.x == 0) {
			const Blocks &all = rank.data<Blocks>();
			const int me = rank.index();
			side = (int)all.side, each = rank.size(ranks::DEVICE) / (int)all.count;
			row = me / each % side, column = me / each / side, member = me % each;
			block = all.block[rank.index(ranks::DEVICE) / each];
			window = {(int)all.window, ranks::WORLD};
			pitch = all.pitch, extra = all.extra, iterations = all.iterations;
			begin = part(all.n, each, member), end = part(all.n, each, member + 1);
		}
		__syncthreads();
	}

	__device__ double *vector(int i) const { return block.vectors + i * pitch; }
	__device__ int rank_at(int r, int c) const { return (r + side * c) * each + member; }
};

// put_part puts a rank's own elements of a vector into a vector of its partner in another block, and notifies it. It
// uses one warp, which for small messages is as fast as a block and takes fewer registers.
__device__ __forceinline__ void put_part(ranks::Rank &rank, const Place &at, int row, int column, int to, int from,
                                         int tag) {
	__syncthreads();
	if (threadIdx.x < 32)
		rank.put_notify<ranks::Warp>(at.window, at.rank_at(row, column),
		                             (to * at.pitch + at.begin) * (i64)sizeof(double),
		                             (at.end - at.begin) * (i64)sizeof(double), at.vector(from) + at.begin, tag);
}

// broadcast sends a vector from the first row of blocks down each column, along a binomial tree. A rank sends its own
// elements to its partners; elements of other ranks have arrived after a barrier.
__device__ __forceinline__ bool broadcast(ranks::Rank &rank, const Place &at, int vector) {
	int step = 1;
	if (at.row > 0) {
		if (!rank.wait_notifications(BROADCAST, 1)) return false;
		while (step <= at.row) step *= 2;
	}
	for (; at.row + step < at.side; step *= 2) put_part(rank, at, at.row + step, at.column, vector, vector, BROADCAST);
	return true;
}

// reduce adds the products of a row of blocks along a binomial tree into column 0. A rank adds its own elements.
__device__ __forceinline__ bool reduce(ranks::Rank &rank, const Place &at, int product) {
	int step = 1, round = 0;
#pragma unroll 1
	for (; step < at.side && at.column % (2 * step) == 0; step *= 2, round++) {
		if (at.column + step >= at.side) continue;
		if (!rank.wait_notifications(REDUCE + round, 1)) return false;
		add(at.vector(product), at.vector(RECEIVED + round), at.begin, at.end);
	}
	if (step >= at.side) return true;
	put_part(rank, at, at.row, at.column - step, RECEIVED + round, product, REDUCE + round);
	rank.flush(at.window);
	return true;
}

// Offsets of the data after the vectors of a block. Packets carry a number and its iteration in one store.
enum {
	FACTORS = 0,     // two packets, for alternating iterations: the factor of the input
	FACTOR = 32,     // the last factor, as a number
	ROW_SUMS = 128,  // in block 0, one packet per row of blocks: the sum of the squares of its elements
	RANK_SUMS = 512, // in column 0, one packet per rank of the block: the same
};
enum { PACKET = 2 * sizeof(double), TRANSPOSE = 64 };

// sum_in_order returns the sum of number(i) over the ranks of a block, to all threads.
template <typename Number> __device__ __forceinline__ double sum_in_order(i64 ranks, double *shared, Number number) {
	double sum = 0;
#pragma unroll 1
	for (i64 i = threadIdx.x; i < ranks; i += blockDim.x) sum += number(i);
	return block_sum(sum, shared);
}

// put_number puts a number to all vectors of another rank's block, in the first warp.
__device__ __forceinline__ void put_number(ranks::Rank &rank, const Place &at, int to, i64 offset, const double &from,
                                           i64 number) {
	if (threadIdx.x < 32)
		rank.put_packet<ranks::Warp>(at.window, to, at.extra + offset, sizeof(double), &from, (unsigned)number);
}

// received waits for a number in this rank's block, in one thread.
__device__ __forceinline__ double received(ranks::Rank &rank, const Place &at, i64 offset, i64 number) {
	double v = 0;
	rank.wait_packet<ranks::Thread>((char *)at.block.vectors + at.extra + offset, sizeof v, &v, (unsigned)number);
	return v;
}

// An iteration computes x = A (factor b), and x becomes b. The parts of a product are added up in column 0, sent to the
// block of row 0 that has them as its input, and from there down the columns. Meanwhile the norm is computed in column
// 0. Each rank sends its own part as soon as it is complete. Two inputs alternate: a rank that receives a factor knows
// that all ranks have completed their products of the previous iteration, whose input may be overwritten.
extern "C" __global__ void __launch_bounds__(640, 1) by_ranks(const __grid_constant__ ranks::World world) {
	__shared__ ranks::State state;
	__shared__ Place at;
	__shared__ double shared[32], number;
	ranks::Rank rank(world, state);
	at.find(rank);
	rank.start_timer();
	bool ok = true;
	for (i64 t = 0; t < at.iterations && ok; t++) {
		const int input = INPUT + (int)(t % 2), next = INPUT + 1 - (int)(t % 2);
		const bool root = at.row + at.column == 0, leads = at.column == 0 && at.member == 0;
		const int product = root ? next : PRODUCT;
		if (t > 0 && !rank.barrier(ranks::DEVICE)) break; // the other ranks' parts of the input have arrived
		if (threadIdx.x == 0) number = t > 0 ? received(rank, at, FACTORS + input * PACKET, t) : 1;
		__syncthreads();
		multiply(at.block, at.vector(input), number, at.vector(product), at.begin, at.end);
		if (!reduce(rank, at, product)) break;
		if (at.column == 0) {
			__syncthreads();
			const double sum = sum_of_squares(at.vector(product), at.begin, at.end, shared);
			if (threadIdx.x == 0) number = sum;
			put_number(rank, at, at.row * at.each, RANK_SUMS + at.member * PACKET, number, t + 1);
			if (at.row > 0) put_part(rank, at, 0, at.row, next, product, TRANSPOSE);
		}
#pragma unroll 1
		for (int turn = 0; turn < 2; turn++) { // block 0 sends its input before it waits for sums, others after
			if ((turn == 0) == root) {
				ok = (at.row > 0 || root || rank.wait_notifications(TRANSPOSE, 1)) && broadcast(rank, at, next);
			} else if (leads) {
				const double sum = sum_in_order(
				    at.each, shared, [&](i64 i) { return received(rank, at, RANK_SUMS + i * PACKET, t + 1); });
				if (threadIdx.x == 0) number = sum;
				if (!root) put_number(rank, at, 0, ROW_SUMS + at.row * PACKET, number, t + 1);
				if (!root) continue;
				if (threadIdx.x == 0) {
					double all = sum;
#pragma unroll 1
					for (int row = 1; row < at.side; row++) all += received(rank, at, ROW_SUMS + row * PACKET, t + 1);
					number = 1 / sqrt(all);
					*(double *)((char *)at.block.vectors + at.extra + FACTOR) = number;
				}
#pragma unroll 1
				for (int block = 0; block < at.side * at.side; block++)
					put_number(rank, at, block * at.each, FACTORS + (next - INPUT) * PACKET, number, t + 1);
			}
		}
	}
	rank.barrier(ranks::WORLD);
	rank.stop_timer();
	rank.finish();
}
