// The smallest pieces of work: a flag ping-pong of two kernels, a kernel that does nothing, and one
// that holds a stream until the host lets it go.

#include "flags.cuh"

// One of two kernels that signal each other in turns, each into the memory of the other.
struct FlagPingPong {
	u64 *mine, *its;  // the flag that this kernel waits for, and that of the other
	u64 base;         // what both flags have counted before
	i64 rounds, warm; // round trips, and how many of them are not timed
	i64 serves;       // 1 for the kernel that begins
	i64 limit;        // of a wait, in ns
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
	const u64 *open; // in host memory: how often the gate was opened
	u64 count;       // which opening to wait for
	i64 limit;       // of the wait, in ns
	i64 *failed;     // in host memory
};

extern "C" __global__ void gate(const __grid_constant__ Gate g) {
	grid_dependency_wait();
	if (!wait_for_count(g.open, g.count, g.limit, nullptr)) *g.failed = 1;
}
