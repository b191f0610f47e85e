// A sparse matrix in square blocks, and its product with a vector, by ranks and by launches. The blocks lie in columns
// one after the other, a row of blocks has its result in column 0, and a column of blocks its input in row 0. The Go
// twins are in place.go.
#include "ranks.cuh"

// A block in compressed rows, with its vectors, which lie a pitch apart.
struct Block {
	const i64 *starts;    // of each row among the entries, and one more
	const int *columns;   // of each entry, in order within a row
	const double *values; // of each entry
	double *vectors;
};

// The vectors of a block: inputs of two iterations that take turns, the product of the block, and those that come from
// other columns, one for each round of the reduction.
enum Vector { INPUT, PRODUCT = 2, RECEIVED };

enum { LANES = 8, MAX_BLOCKS = 64 };
enum Tag { BROADCAST, REDUCE }; // and one more for each round

// What all ranks of a device share.
struct Blocks {
	i64 n, pitch;    // rows of a block, and elements from one vector to the next
	i64 side, count; // blocks along each axis, and on this device
	i64 iterations;
	i64 extra;               // bytes from the vectors of a block to what is behind them
	i64 window;              // slot of the window: each rank has that of all vectors of its block
	Block block[MAX_BLOCKS]; // of this device
};

// multiply sets some rows of out to the product of the block and factor * in. All threads call it. A row belongs to
// LANES lanes of a warp, so that entries are loaded in whole sectors; its sum is taken by lane, then pairwise.
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

// sum_of_squares returns that of some elements, to all threads.
__device__ __forceinline__ double sum_of_squares(const double *x, i64 begin, i64 end, double *shared) {
	double sum = 0;
#pragma unroll 1
	for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) sum += x[i] * x[i];
	return block_sum(sum, shared);
}

// Where a rank is: its block, and which elements of each vector are its own. Ranks of other blocks with the same number
// there have the same elements. It lies in shared memory, which spares registers.
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

// put_part puts a rank's own elements of a vector into one of its partner in another block, and notifies it. One warp
// does: of small messages it is as quick as a block, and takes fewer registers.
__device__ __forceinline__ void put_part(ranks::Rank &rank, const Place &at, int row, int column, int to, int from,
                                         int tag) {
	pause_at_random();
	__syncthreads();
	if (threadIdx.x < 32)
		rank.put_notify<ranks::Warp>(at.window, at.rank_at(row, column),
		                             (to * at.pitch + at.begin) * (i64)sizeof(double),
		                             (at.end - at.begin) * (i64)sizeof(double), at.vector(from) + at.begin, tag);
}

// broadcast sends a vector from the first row of blocks down each column, along a binomial tree. A rank sends its own
// elements to its partners; those of others have come after a barrier.
__device__ __forceinline__ bool broadcast(ranks::Rank &rank, const Place &at, int vector) {
	int step = 1;
	if (at.row > 0) {
		if (!rank.wait_notifications(BROADCAST, 1)) return false;
		while (step <= at.row) step *= 2;
	}
	for (; at.row + step < at.side; step *= 2) put_part(rank, at, at.row + step, at.column, vector, vector, BROADCAST);
	return true;
}

// reduce adds the products of a row of blocks along a binomial tree, to that of column 0. A rank adds its own elements.
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

// The same by launches: thread block i has the elements of rank i of a block of the matrix.
struct Multiply {
	Block block;
	const double *in, *factor; // factor may be 0: it is 1 then
	double *out;
	double *squares; // of each thread block: the sum of the squares of its elements; may be 0
	double *total;   // to which the elements are added; may be 0
	i64 n;
};

extern "C" __global__ void __launch_bounds__(1024, 1) multiply_rows(const __grid_constant__ Multiply m) {
	__shared__ double shared[32];
	const i64 begin = part(m.n, gridDim.x, blockIdx.x), end = part(m.n, gridDim.x, blockIdx.x + 1);
	multiply(m.block, m.in, m.factor ? *m.factor : 1, m.out, begin, end);
	if (!m.squares && !m.total) return;
	__syncthreads();
	if (m.total) add(m.total, m.out, begin, end);
	if (!m.squares) return;
	const double sum = sum_of_squares(m.out, begin, end, shared);
	if (threadIdx.x == 0) m.squares[blockIdx.x] = sum;
}

struct Add {
	double *to;
	const double *from;
	double *squares, *total; // as above
	i64 n;
};

extern "C" __global__ void __launch_bounds__(1024, 1) add_rows(const __grid_constant__ Add a) {
	__shared__ double shared[32];
	const i64 begin = part(a.n, gridDim.x, blockIdx.x), end = part(a.n, gridDim.x, blockIdx.x + 1);
	add(a.to, a.from, begin, end);
	if (a.total) add(a.total, a.to, begin, end); // each thread reads what it has stored
	if (!a.squares) return;
	const double sum = sum_of_squares(a.to, begin, end, shared);
	if (threadIdx.x == 0) a.squares[blockIdx.x] = sum;
}
