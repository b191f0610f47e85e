// The smallest pieces of work: a flag that two kernels hand to each other, a kernel that
// does nothing, and one that holds a stream until the host lets go.

#include "flags.cuh"

// One of two that hand a flag to each other, each in the memory of the other.
struct Rally {
	unsigned long long *mine, *its; // where I wait, and where it does
	unsigned long long base;        // what both have counted before
	i64 rounds, warm;               // to and fro; those that do not count
	i64 serves;                     // 1 for the one that begins
	i64 limit;                      // ns that a wait may take
	i64 *took;                      // in host memory: ns of the rounds that count, or -1 if a wait took too long
};

extern "C" __global__ void rally(const __grid_constant__ Rally r) {
	after_predecessor();
	i64 start = 0;
	for (i64 i = 1; i <= r.rounds; i++) {
		const unsigned long long count = r.base + (unsigned long long)i;
		if (r.serves) release(r.its, count);
		if (!await(r.mine, count, r.limit)) {
			*r.took = -1;
			return;
		}
		if (!r.serves) release(r.its, count);
		if (i == r.warm) start = nanoseconds();
	}
	*r.took = nanoseconds() - start;
}

extern "C" __global__ void nothing(const __grid_constant__ i64 unused) { after_predecessor(); }

struct Gate {
	const unsigned long long *open; // in host memory: how often it was opened
	unsigned long long count;       // which opening this is
	i64 limit;                      // ns to wait for it
	i64 *failed;                    // in host memory
};

extern "C" __global__ void gate(const __grid_constant__ Gate g) {
	after_predecessor();
	if (!await(g.open, g.count, g.limit)) *g.failed = 1;
}
