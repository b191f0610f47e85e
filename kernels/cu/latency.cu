// Minimal kernels: a flag ping-pong between two kernels, an empty kernel, and a kernel that blocks a stream until the
// host releases it.

#include "flags.cuh"

// One of two kernels that take turns signaling each other, by storing into each other's memory.
struct FlagPingPong {
	u64 *mine, *its;  // the flag that this kernel waits for, and the other kernel's flag
	u64 base;         // earlier value of both flags
	i64 rounds, warm; // round trips, and how many of them are warm-up
	i64 serves;       // 1 for the kernel that starts
	i64 limit;        // per wait, in ns
	i64 *took;        // in host memory: ns of the timed rounds, or -1 after a timeout
};

extern "C" __global__ void flag_ping_pong(const __grid_constant__ FlagPingPong r) {
	grid_dependency_wait();
	i64 start = 0;
	for (i64 i = 1; i <= r.rounds; i++) {
		const u64 count = r.base + (u64)i;
		if (r.serves) store_release_sys(r.its, count);
		if (!wait_for_count(r.mine, count, r.limit, nullptr)) {
			*r.took = -1;
			return;
		}
		if (!r.serves) store_release_sys(r.its, count);
		if (i == r.warm) start = nanoseconds();
	}
	*r.took = nanoseconds() - start;
}

extern "C" __global__ void nothing(const __grid_constant__ i64 unused) { grid_dependency_wait(); }

struct Gate {
	const u64 *open; // in host memory: number of times the gate was opened
	u64 count;       // which opening to wait for
	i64 limit;       // of the wait, in ns
	i64 *failed;     // in host memory
};

extern "C" __global__ void gate(const __grid_constant__ Gate g) {
	grid_dependency_wait();
	if (!wait_for_count(g.open, g.count, g.limit, nullptr)) *g.failed = 1;
}
