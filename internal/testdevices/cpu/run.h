// Runs kernels on the CPU. A thread block runs on an operating system thread, and its threads are fibers there: one
// runs until it waits for others at a barrier, in a shuffle, or for memory. If all threads of a block wait for memory
// for some time, other blocks of the launch run concurrently, on separate threads.
//
// It detects errors that a GPU may not: threads that wait for each other forever, and stores beyond shared memory.
//
// This is the interface for kernels; run.cc has the rest, which is compiled once for all programs.
#pragma once

#define __global__
#define __grid_constant__

// Thread-local: each thread block runs on a separate thread, or after another one.
#define __shared__ static thread_local

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <ucontext.h>

#pragma GCC visibility push(hidden)
namespace cpu {

struct Dim3 {
	unsigned x, y, z;
};

typedef void (*Kernel)(const void *argument);

// Data shared by the thread blocks of a launch.
struct Launch {
	Kernel kernel;
	const void *argument;
	Dim3 grid, block;
	unsigned shared, number;
	unsigned long long next, blocks; // index of the next block to run, and number of blocks
	int trapped;
	pthread_mutex_t mutex;
	pthread_t helpers[1024];
	int helper_count;
};

enum { STACK = 128 << 10, WARPS = 32, GUARD = 4096, GUARD_BYTE = 0x5c };

// The saved state of a fiber, or of the scheduler of a block.
#ifdef __x86_64__

struct Context {
	void *stack;
};

#else

struct Context {
	ucontext_t at;
};

#endif

struct Fiber {
	Context at;
	char *stack;
	bool fresh, waits, parked; // it has not run yet; it is in a kernel; it is at a barrier
	unsigned thread;
	Fiber *next;
};

// The values that the lanes of a warp exchange, for alternate shuffles.
struct Warp {
	uint64_t slot[2][32];
	unsigned arrived, live, turn;
};

// The state of an operating system thread, which runs one block at a time.
struct Worker {
	Launch *launch;
	Dim3 block_idx, thread_idx;
	unsigned threads, next, alive; // of the block: number of threads; the next to start; those that have not ended
	bool backwards;                // whether threads start in reverse order
	unsigned arrived, turn;        // at barriers
	bool all, result[2];
	Warp warp[WARPS];
	Fiber *current, *idle, *first, **last; // fibers without a thread; queue of runnable fibers
	Fiber *parked;                         // fibers at a barrier
	Context scheduler;
	bool progress, polled; // since the waiting fibers last ran
	char *shared;
	unsigned shared_size;
	Worker *pool;
};

extern __thread Worker *self;

// yield lets other threads of the block run, before a thread reads memory again.
void yield();

// trap ends the launch.
void trap(const char *why);

// barrier waits for all threads of the block that have not ended, and returns whether all passed true.
bool barrier(bool v);

// run performs a launch, and returns whether it trapped.
int run(Kernel kernel, const void *argument, const unsigned *grid, const unsigned *block, unsigned shared);

long long nanoseconds();

// processor_nanoseconds returns the processor time used by this process.
long long processor_nanoseconds();

// pause returns the processor to the scheduler of the block.
void pause();

inline void open_shuffle(Warp &w) { w.arrived = 0, w.turn++, self->progress = true; }

// shuffle gives each lane of a warp the value of another one. All lanes that have not ended take part.
template <typename T, typename From> T shuffle(unsigned mask, T v, From from) {
	static_assert(sizeof(T) <= 8, "a value of a shuffle");
	const int lane = self->current->thread % 32;
	Warp &w = self->warp[self->current->thread / 32];
	const unsigned turn = w.turn;
	if (~mask) trap("a shuffle of some lanes of a warp");
	memcpy(&w.slot[turn & 1][lane], &v, sizeof v);
	w.arrived |= 1u << lane;
	if (w.arrived == w.live) open_shuffle(w);
	else
		while (w.turn == turn) pause();
	memcpy(&v, &w.slot[turn & 1][from(lane)], sizeof v);
	return v;
}

inline void *shared() { return self->shared; }
inline unsigned shared_bytes() { return self->launch->shared; }

} // namespace cpu
#pragma GCC visibility pop

#define threadIdx (cpu::self->thread_idx)
#define blockIdx (cpu::self->block_idx)
#define blockDim (cpu::self->launch->block)
#define gridDim (cpu::self->launch->grid)

inline void __syncthreads() { cpu::barrier(true); }
inline bool __syncthreads_and(bool v) { return cpu::barrier(v); }
inline bool __syncthreads_or(bool v) { return !cpu::barrier(!v); }
inline void __nanosleep(unsigned) { cpu::yield(); }
inline void __syncwarp() {
	cpu::shuffle(~0u, 0, [](int lane) { return lane; });
}

template <typename T> T __shfl_sync(unsigned mask, T v, int from) {
	return cpu::shuffle(mask, v, [&](int) { return from & 31; });
}
template <typename T> T __shfl_xor_sync(unsigned mask, T v, int bits) {
	return cpu::shuffle(mask, v, [&](int lane) { return lane ^ bits; });
}
template <typename T> T __shfl_up_sync(unsigned mask, T v, unsigned by) {
	return cpu::shuffle(mask, v, [&](int lane) { return lane >= (int)by ? lane - (int)by : lane; });
}
template <typename T> T __shfl_down_sync(unsigned mask, T v, unsigned by) {
	return cpu::shuffle(mask, v, [&](int lane) { return lane + (int)by < 32 ? lane + (int)by : lane; });
}
inline int __all_sync(unsigned mask, int v) {
	for (int bits = 16; bits > 0; bits /= 2) v = (v != 0) & (__shfl_xor_sync(mask, v, bits) != 0);
	return v;
}
