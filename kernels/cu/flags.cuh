// Flags by which GPUs, and the thread blocks of one, wait for each other. A flag is a count that only
// grows. It lies in the memory of the GPU that waits for it; who signals adds to it over the link,
// after the stores that it stands for.
#pragma once

#include "device.cuh"

// signal adds one to a count of another GPU. All that the block stored before its last barrier is
// visible to who has seen the count: the fence is cumulative.
__device__ inline void signal(u64 *count) {
	__threadfence_system();
	add_relaxed_sys(count, 1);
}

// wait polls until done() returns true. It returns false after a time limit in nanoseconds.
template <typename Done> __device__ __forceinline__ bool wait(i64 limit, Done done) {
	enum { POLLS = 256 }; // between two reads of the clock
	for (i64 start = 0;;) {
#pragma unroll 1
		for (int polls = 0; polls < POLLS; polls++)
			if (done()) return true;
		const i64 now = nanoseconds();
		if (start == 0) start = now;
		if (now - start > limit) return false;
	}
}

// wait_for_count waits until a count has reached a value. It returns false after the limit.
__device__ inline bool wait_for_count(const u64 *count, u64 value, i64 limit) {
	if (!wait(limit, [&] { return load_relaxed_sys(count) >= value; })) return false;
	__threadfence_system();
	return true;
}

// report_timeout says in host memory whom a block waited for in vain: 1 + the neighbour. That counts
// for more than THIS_DEVICE, another block of this GPU, which may have waited for a neighbour itself.
enum { THIS_DEVICE = 1000 };

__device__ inline void report_timeout(u64 *report, u64 whom) {
	const u64 before = load_relaxed_sys(report);
	if (before == 0 || before == THIS_DEVICE) store_release_sys(report, whom);
}
