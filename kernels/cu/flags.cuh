// Flags by which GPUs, and the thread blocks of one, wait for each other. A flag is a
// count that only grows. It lies with who waits for it, is raised over the link, released
// after the stores that it stands for, and acquired by who waits.
#pragma once

#include "device.cuh"

// raise adds one to a count of another GPU, after all that the block has stored before
// its last barrier: the fence carries that on.
__device__ inline void raise(unsigned long long *count) {
	__threadfence_system();
	add_relaxed_sys(count);
}

// arrive adds one to a count of this GPU, after all that the block has stored before its
// last barrier.
__device__ inline void arrive(unsigned long long *count) {
	__threadfence();
	add_relaxed_gpu(count);
}

// wait calls come until it returns true, and returns false if it has not within so many
// nanoseconds.
template <typename Come> __device__ __forceinline__ bool wait(i64 limit, Come come) {
	enum { LOOKS = 256 }; // between two looks at the clock
	for (i64 start = 0;;) {
#pragma unroll 1
		for (int looks = 0; looks < LOOKS; looks++)
			if (come()) return true;
		const i64 now = nanoseconds();
		if (start == 0) start = now;
		if (now - start > limit) return false;
	}
}

// await waits until the flag has reached a count, and returns false if it has not
// within so many nanoseconds.
__device__ inline bool await(const unsigned long long *flag, unsigned long long count, i64 limit) {
	if (!wait(limit, [&] { return peek(flag) >= count; })) return false;
	__threadfence_system();
	return true;
}

// complain says in host memory whom a block waited for in vain: 1 + the neighbour, which counts
// for more than another block of this GPU, who may have waited for a neighbour; that is ITSELF.
enum { ITSELF = 1000 };

__device__ inline void complain(unsigned long long *failed, unsigned long long whom) {
	const unsigned long long before = peek(failed);
	if (before == 0 || before == ITSELF) release(failed, whom);
}

// disturb is what tests do to a GPU that makes steps. With PAUSES its warps rest for up to
// 32 us, some in some steps, as chance has it; with DIES_AT it fails in that step.
__device__ inline void disturb(unsigned step) {
#ifdef PAUSES
	const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
	unsigned chance = step * 0x9e3779b9u ^ blockIdx.x * 0x85ebca6bu ^ thread / 32 * 0xc2b2ae35u;
	chance = (chance ^ chance >> 15) * 0x2c1b3c6du;
	chance ^= chance >> 13;
	if (step / 64 % 3 && chance % 512 == 0) __nanosleep(chance >> 17);
#endif
#ifdef DIES_AT
	if (step == DIES_AT && blockIdx.x == 0) trap();
#endif
}
