// Power iteration with a sparse matrix that is cut in two dimensions: Kuster 2017, 5.7.

// What a block has behind its vectors, by offset in bytes. Packets carry a number and that of the iteration in one store.
enum {
	FACTORS = 0,     // two packets, for iterations that take turns: what the input is multiplied with
	FACTOR = 32,     // the last one, as a number
	ROW_SUMS = 128,  // of block 0, a packet for each row of blocks: the sum of the squares of its elements
	RANK_SUMS = 512, // of column 0, a packet for each rank of the block: the same
};
enum { PACKET = 2 * sizeof(double), TRANSPOSE = 64 };

// sum_in_order returns the sum of what number(i) returns for each rank of a block, to all threads.
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

// In an iteration x = A (factor b), and x becomes b. The parts of a product are added up in column 0, go to the block
// of row 0 that has them as its input, and from there down the columns; meanwhile the norm is taken in column 0. Each
// rank sends its own part as soon as it has it. Two inputs take turns: who gets a factor knows that all ranks have
// done their products of the iteration before, whose input may be overwritten.
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
		if (t > 0 && !rank.barrier(ranks::DEVICE)) break; // the parts of the input that belong to others have come
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

// The same norm by a launch of one thread block: of sums of squares of all ranks of column 0.
struct Norm {
	const double *squares; // by row and rank
	double *factor;
	i64 rows, ranks;
};

extern "C" __global__ void __launch_bounds__(1024, 1) set_factor(const __grid_constant__ Norm norm) {
	__shared__ double shared[32];
	double all = 0;
	for (i64 row = 0; row < norm.rows; row++) {
		const double sum = sum_in_order(norm.ranks, shared, [&](i64 i) { return norm.squares[row * norm.ranks + i]; });
		all = row == 0 ? sum : all + sum;
	}
	if (threadIdx.x == 0) *norm.factor = 1 / sqrt(all);
}
