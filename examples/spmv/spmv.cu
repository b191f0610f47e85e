// The product of a sparse matrix and a vector, cut in two dimensions: Kuster 2017, 5.6.

// In each iteration the input goes down the columns, each rank multiplies its rows of its block, and the products of a
// row of blocks are added up in column 0. A rank adds as soon as those that it needs have come; the barrier of all
// stands for what would follow. Two inputs take turns, and column 0 adds all products to a total, behind the vectors:
// what is left of another iteration would be seen.
extern "C" __global__ void __launch_bounds__(512, 1) by_ranks(const __grid_constant__ ranks::World world) {
	__shared__ ranks::State state;
	__shared__ Place at;
	ranks::Rank rank(world, state);
	at.find(rank);
	rank.start_timer();
	for (i64 t = 0; t < at.iterations; t++) {
		const int input = INPUT + (int)(t % 2);
		if (!broadcast(rank, at, input)) break;
		if (at.side > 1 && !rank.barrier(ranks::DEVICE)) break;
		multiply(at.block, at.vector(input), 1, at.vector(PRODUCT), at.begin, at.end);
		if (!reduce(rank, at, PRODUCT)) break;
		if (at.column == 0) {
			__syncthreads();
			add((double *)((char *)at.block.vectors + at.extra), at.vector(PRODUCT), at.begin, at.end);
		}
		if (!rank.barrier(ranks::WORLD)) break;
	}
	rank.stop_timer();
	rank.finish();
}
