// Kernels of the tests of proxies. They need a World::served that is not 0.
#include "ranks.cuh"

using namespace ranks;

struct Proxied {
	char *memory; // of this device: bytes of it
	i64 what, bytes;
	unsigned long long wrong;
};

// The first rank puts to the last one, on another device, and all end without synchronization.
extern "C" __global__ void leave(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Proxied &data = rank.data<Proxied>();
	const int last = rank.size() - 1;
	const Window w = rank.create_window(WORLD, data.memory, data.bytes);
	if (world.served == 0 || (rank.index() == 0 && rank.pointer(w, last)) || !rank.pointer(w, rank.index()))
		atomicCAS(&data.wrong, 0, 1);
	if (rank.index() != 0) return;
	__shared__ u64 word;
	for (i64 i = 0; i < data.bytes / 8; i++) {
		if (threadIdx.x == 0) word = 3 * (u64)i + 1;
		__syncthreads();
		rank.put(w, last, 8 * i, 8, &word);
		rank.flush(w);
	}
}

// A proxy without commands, and a proxy with an invalid command.
extern "C" __global__ void misled(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Proxied &data = rank.data<Proxied>();
	const Window w = rank.create_window(WORLD, data.memory, data.bytes);
	// All have the window before commands get stuck: its commands may be later in the ring.
	if (rank.index() > 0) rank.notify(0, WORLD, 0);
	else rank.wait_notifications(0, (u64)rank.size() - 1);
	if (rank.index() == 0 && threadIdx.x == 0) {
		const u64 n = atomicAdd((u64 *)(world.memories[0] + COMMANDS_CLAIMED * LINE_BYTES), 1);
		Command &c = world.commands[n % COMMANDS];
		c.what = 77, c.device = 1, c.at = (u64)data.memory, c.bytes = 8;
		if (data.what == 1) store_release_sys(&c.number, n + 1);
	}
	if (rank.index() == 0)
		for (int i = 0; i < 2 * COMMANDS && !rank.ended(); i++) rank.put(w, rank.size() - 1, 0, 8, data.memory);
	while (!rank.ended()) __nanosleep(1000);
	rank.finish();
}
