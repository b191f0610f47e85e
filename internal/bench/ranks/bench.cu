// Measurements of ranks. A lap is several rounds of one of these kernels.
#define RANK_WORDS 8 // long messages by one rank
#include "lap.cuh"
#include "ranks.cuh"

using namespace ranks;

// A message back and forth between ranks 0 and 1, or only a notification if the message is empty.
extern "C" __global__ void ping_pong(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	const Lap lap = rank.data<Lap>();
	const int me = rank.index();
	char *const mine = lap.area_of(rank.index(DEVICE));
	const Window w = rank.create_window(WORLD, mine, lap.bytes);
	rank.start_timer();
	for (i64 i = 0; i < lap.rounds && me < 2; i++)
		for (int turn = 0; turn < 2; turn++) {
			if (turn != me) {
				if (!rank.wait_notifications(0, 1)) break;
			} else if (lap.bytes == 0) rank.notify(1 - me, WORLD, 0);
			else rank.put_notify(w, 1 - me, 0, lap.bytes, mine + lap.bytes, 0);
		}
	rank.stop_timer();
	rank.free_window(w);
	rank.finish();
}

// The same with packets.
extern "C" __global__ void packets(const __grid_constant__ World world) {
	__shared__ State state;
	__shared__ __align__(16) char got[4096];
	Rank rank(world, state);
	const Lap lap = rank.data<Lap>();
	const int me = rank.index();
	char *const mine = lap.area_of(rank.index(DEVICE));
	const Window w = rank.create_window(WORLD, mine, 2 * lap.bytes);
	rank.start_timer();
	for (i64 i = 1; i <= lap.rounds && me < 2; i++)
		for (int turn = 0; turn < 2; turn++) {
			if (turn == me) rank.put_packet(w, 1 - me, 0, lap.bytes, mine + 2 * lap.bytes, (unsigned)(lap.first + i));
			else if (!rank.wait_packet(mine, lap.bytes, got, (unsigned)(lap.first + i))) break;
		}
	rank.stop_timer();
	rank.free_window(w);
	rank.finish();
}

// Messages from each rank of the first device to its partner on the second or, if there is only one device, from each
// rank to the next; ranks wait only at the end.
extern "C" __global__ void one_way(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	const Lap lap = rank.data<Lap>();
	const int me = rank.index(), n = rank.size(DEVICE);
	const bool far = rank.size() > n;
	char *const mine = lap.area_of(rank.index(DEVICE));
	const Window w = rank.create_window(WORLD, mine, lap.bytes);
	rank.start_timer();
	rank.barrier(WORLD);
	if (!far || me < n)
		for (i64 i = 0; i < lap.rounds; i++)
			rank.put_notify(w, far ? me + n : (me + 1) % n, 0, lap.bytes, mine + lap.bytes, 0);
	if (!far || me >= n) rank.wait_notifications(0, (u64)lap.rounds);
	rank.barrier(WORLD);
	rank.stop_timer();
	rank.free_window(w);
	rank.finish();
}

extern "C" __global__ void barriers(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	const Lap lap = rank.data<Lap>();
	rank.start_timer();
	rank.barrier(WORLD);
	for (i64 i = 0; i < lap.rounds; i++)
		if (!rank.barrier((Comm)lap.comm)) break;
	rank.stop_timer();
	rank.finish();
}

// Successive collectives of doubles, selected by work. The roots alternate between the first and the last rank.
enum { A_BROADCAST, A_REDUCE, AN_ALLREDUCE };
extern "C" __global__ void collectives(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	const Lap &lap = rank.data<Lap>();
	double *const to = (double *)(lap.area_of(rank.index(DEVICE))), *const from = to + lap.bytes / 8;
	const i64 n = lap.bytes / 8;
	for (i64 i = threadIdx.x; i < n; i += blockDim.x) from[i] = to[i] = rank.index() + (double)i;
	rank.start_timer();
	rank.barrier(WORLD);
	bool ok = true;
#pragma unroll 1
	for (i64 i = 0; i < lap.rounds && ok; i++) {
		const int root = i % 2 == 0 ? 0 : rank.size() - 1;
		if (lap.work == A_BROADCAST) ok = rank.broadcast(to, n, root);
		else if (lap.work == A_REDUCE) ok = rank.reduce(to, from, n, MAX, root);
		else ok = rank.allreduce(to, from, n, MAX);
	}
	rank.stop_timer();
	rank.finish();
}

// Messages over channels back and forth between ranks 0 and 1: channel 0 starts at rank 0, channel 1 at rank 1.
extern "C" __global__ void channel_ping_pong(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	const Lap &lap = rank.data<Lap>();
	const int me = rank.index();
	char *const mine = lap.area_of(rank.index(DEVICE));
	rank.start_timer();
	for (i64 i = 0; i < lap.rounds && me < 2; i++)
		for (int turn = 0; turn < 2; turn++)
			if (turn == me ? !rank.send(Channel{me}, lap.bytes, mine + lap.bytes)
			               : rank.receive(Channel{1 - me}, mine) < 0)
				break;
	rank.stop_timer();
	rank.finish();
}

// Successive messages of channel 0.
extern "C" __global__ void channel_one_way(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	const Lap &lap = rank.data<Lap>();
	const int me = rank.index();
	char *const mine = lap.area_of(rank.index(DEVICE));
	rank.start_timer();
	rank.barrier(WORLD);
	for (i64 i = 0; i < lap.rounds && me < 2; i++)
		if (me == 0 ? !rank.send(Channel{0}, lap.bytes, mine + lap.bytes) : rank.receive(Channel{0}, mine) < 0) break;
	rank.barrier(WORLD);
	rank.stop_timer();
	rank.finish();
}
