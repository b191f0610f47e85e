// A gate holds up a stream until the host opens it, so that what is queued behind it runs
// without waiting for the host.

struct Gate {
	const unsigned long long *opened; // in host memory: how often
	unsigned long long count;         // that it waits for
	i64 limit;                        // ns; then it opens by itself
};

extern "C" __global__ void __launch_bounds__(32) gate(const __grid_constant__ Gate g) {
	after_predecessor();
	if (threadIdx.x == 0) await(g.opened, g.count, g.limit);
}
