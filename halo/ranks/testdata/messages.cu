// Kernels of the tests of messages between ranks: values, collectives and channels.
#include "ranks.cuh"

using namespace ranks;

// What the kernels have: memory of this device, and the number of the first check that failed.
struct Messages {
	char *memory;
	i64 rounds, bytes; // bytes of a rank
	unsigned long long wrong;
};

// Values of each type go to both neighbours. That of a round tells that those of the round before were read.
template <typename Group, typename T>
__device__ bool swap_values(Rank &rank, const Window &w, const char *mine, int t, i64 scale) {
	const int n = rank.size(), me = rank.index(), next = (me + 1) % n, before = (me + n - 1) % n;
	const i64 place = 16 * (t % 2);
	const unsigned number = (unsigned)(t - 3); // it wraps around
	rank.template put_value<Group>(w, next, place, (T)((me + 2) * scale + t), number);
	rank.template put_value<Group>(w, before, 32 + place, (T)((me + 5) * scale - t), number);
	T low = 0, high = 0;
	const bool came = rank.template wait_value<Group>(mine + place, low, number) && rank.template wait_value<Group>(mine + 32 + place, high, number);
	return came && low == (T)((before + 2) * scale + t) && high == (T)((next + 5) * scale - t);
}

template <typename Group> __device__ void swap_all(Rank &rank, Messages &data, const Window &w, const char *mine) {
	for (int t = 0; t < data.rounds; t++) {
		bool right = true;
		if (t % 4 == 0) right = swap_values<Group, double>(rank, w, mine, t, 1000003);
		if (t % 4 == 1) right = swap_values<Group, int>(rank, w, mine, t, 1009);
		if (t % 4 == 2) right = swap_values<Group, i64>(rank, w, mine, t, 1000000000039ll);
		if (t % 4 == 3) right = swap_values<Group, float>(rank, w, mine, t, 17);
		if (!right) atomicCAS(&data.wrong, 0, (unsigned long long)t + 1);
		if (!right) return;
	}
}

extern "C" __global__ void values(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Messages &data = rank.data<Messages>();
	char *const mine = data.memory + data.bytes * rank.index(DEVICE);
	for (int i = (int)threadIdx.x; i < 192; i += (int)blockDim.x) mine[i] = (char)0xee;
	const Window by_block = rank.create_window(WORLD, mine, 64), by_warp = rank.create_window(WORLD, mine + 64, 64),
	             by_thread = rank.create_window(WORLD, mine + 128, 64);
	swap_all<Block>(rank, data, by_block, mine);
	if (threadIdx.x >= 32 && threadIdx.x < 64) swap_all<Warp>(rank, data, by_warp, mine + 64);
	if (threadIdx.x == 0) swap_all<Thread>(rank, data, by_thread, mine + 128);
	rank.finish();
}
