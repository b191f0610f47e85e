// Flags by which GPUs, and the thread blocks of one, wait for each other. A flag is a count that only grows, in the
// memory of the GPU that waits for it; a signal adds to it over the link, after the stores that it announces.
#pragma once

#include "device.cuh"

// signal adds one to a count of another GPU, in one thread. A reader that has seen the count sees everything that the
// block stored before its last barrier.
__device__ inline void signal(u64 *count) { add_release_sys(count, 1); }

// A report identifies the wait that timed out: 0 for none, 1 + a neighbor, THIS_DEVICE for another block of the same
// GPU, NORMS_OF + a rank for the norms of that rank.
enum { THIS_DEVICE = 1000, NORMS_OF = 2000 };

// wait polls until done() returns true. It returns false after a time limit in nanoseconds, or soon if a report says
// that a wait of this GPU for a neighbor timed out: otherwise each launch queued later would wait as long again. The
// report is in host memory; it may be null. It is read at one in HOST_READS_APART reads of the clock on average, chosen
// by the bits of the clock, because hundreds of threads that poll host memory slow down all memory accesses of the GPU.
// The resolution of the clock may be 1024 ns.
template <typename Done> __device__ __forceinline__ bool wait(i64 limit, const u64 *report, Done done) {
	enum { POLLS = 256 }; // between two reads of the clock
	for (i64 start = 0;;) {
#pragma unroll 1
		for (int polls = 0; polls < POLLS; polls++)
			if (done()) return true;
		const i64 now = nanoseconds();
		if (start == 0) start = now;
		const u64 lost = report && (now >> 10) % HOST_READS_APART == 0 ? load_relaxed_sys(report) : 0;
		if (now - start > limit || (lost != 0 && lost != THIS_DEVICE)) return false;
	}
}

// wait_for_count waits until a count has reached a value. It returns false as wait does. The other threads
// of the block see what was stored before the signals after a barrier.
__device__ inline bool wait_for_count(const u64 *count, u64 value, i64 limit, const u64 *report) {
	return wait(limit, report, [&] { return load_acquire_sys(count) >= value; });
}

// report_timeout stores in host memory which wait of a block of this GPU timed out: 1 + the neighbor, or THIS_DEVICE
// for another block. The first neighbor is kept; it also replaces THIS_DEVICE, since the other block may have waited
// for that neighbor.
__device__ inline void report_timeout(u64 *report, u64 whom) {
	if (atomicCAS(report, 0, whom) == THIS_DEVICE && whom != THIS_DEVICE) atomicCAS(report, THIS_DEVICE, whom);
}
