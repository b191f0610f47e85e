// Rounds that compute, exchange, or do both, to measure overlap like Gysi, Bär and Hoefler 2016: while a rank waits,
// others on its multiprocessor compute.
//
// THREADS is the number of threads per rank.
#include "lap.cuh"
#include "ranks.cuh"

using namespace ranks;

// Ranks with 1024 threads in total fit on a multiprocessor: a thread has 64 registers. NVRTC 13.0 spills nothing before
// sm_100; if proxies serve devices, or on later GPUs, it spills some words around puts.
#define OVERLAP_BOUNDS __launch_bounds__(THREADS, 1024 / THREADS)

// The lap of a rank, in shared memory: registers are scarce.
struct Part : Lap {
	char *mine, *own; // the rank's area, and its private bytes
	i64 late;         // amount of the first round's work that is done at the end
	int other;        // the rank that it exchanges messages with
};

// Newton's iteration for the inverse square root of one number per thread, in the private bytes of a rank, with space
// for the results. Work is the number of iterations per thread.
class Newton {
	// Initial values that a thread iterates concurrently. Each operation waits for the previous one in its chain: with
	// one chain per thread, the latency of a chain would determine the time, even while others wait for messages.
	enum { CHAINS = 4 };

  public:
	__device__ explicit Newton(const Part &part) { ((double *)part.own)[threadIdx.x] = 2.0 + threadIdx.x; }

	// compute iterates y = y * (1.5 - a / 2 * y * y), from below the square root of 3 / a, as convergence requires. It
	// has no division, which would branch between the chains, and a single a: with more, registers would suffice only
	// for two chains at a time.
	__device__ __forceinline__ void compute(const Part &part, i64 work) {
		double *const number = (double *)part.own + threadIdx.x, half = 0.5 * *number, y[CHAINS];
#pragma unroll
		for (int k = 0; k < CHAINS; k++) y[k] = 0.01 / (1 << k);
#pragma unroll 1
		for (int left = (int)work; left > 0; left--)
#pragma unroll
			for (int k = 0; k < CHAINS; k++) y[k] *= 1.5 - half * y[k] * y[k];
#pragma unroll
		for (int k = 0; k < CHAINS; k++) number[(1 + k) * THREADS] = y[k];
	}
};

// Copies from the first half of a rank's private bytes to the second. Work is bytes, a multiple of 16, at most such a
// half. Rounds advance through the halves, so that caches do not hold the copied data.
class Copy {
	enum { WORDS = 4 }; // in flight per thread
	i64 at = 0;

  public:
	__device__ explicit Copy(const Part &) {}

	__device__ __forceinline__ void compute(const Part &part, i64 work) {
		const i64 half = part.span / 2;
		if (at + work > half) at = 0;
		const uint4 *from = (const uint4 *)(part.own + at) + threadIdx.x;
		at += work;
#pragma unroll 1
		for (int left = (int)(work / 16) - (int)threadIdx.x; left > 0;
		     left -= WORDS * THREADS, from += WORDS * THREADS) {
			uint4 v[WORDS], *const to = (uint4 *)((char *)from + half);
#pragma unroll
			for (int k = 0; k < WORDS; k++)
				if (k * THREADS < left) v[k] = from[k * THREADS];
#pragma unroll
			for (int k = 0; k < WORDS; k++)
				if (k * THREADS < left) to[k * THREADS] = v[k];
		}
	}
};

// Each rank computes, if there is work, and exchanges a message with a rank of the other device, if the message has
// bytes.
template <typename Computing> __device__ __forceinline__ void rounds(const World &world) {
	__shared__ State state;
	__shared__ Part part;
	Rank rank(world, state);
	if (threadIdx.x == 0) {
		const i64 me = rank.index(DEVICE), n = rank.size(DEVICE);
		(Lap &)part = rank.data<Lap>();
		part.mine = part.area_of(me), part.own = part.mine + 4 * part.bytes;
		part.other = (rank.index() + rank.size() / 2) % rank.size();
		// Blocks are assigned to multiprocessors round-robin: the distance of those that share one is the number of
		// multiprocessors. Each postpones a greater share of its first work to the end than the one before, so that one
		// computes while another sends. All have the same amount of work.
		part.late = part.apart > 1 ? part.work / 16 * (me * part.apart / n) / part.apart * 16 : 0;
	}
	__syncthreads();
	Computing computing(part);
	const Window w = rank.create_window(WORLD, part.mine, part.bytes);
	rank.start_timer();
	rank.barrier(WORLD);
#pragma unroll 1
	for (i64 i = 0; i <= part.rounds; i++) {
		const i64 work = i == 0 ? part.work - part.late : i < part.rounds ? part.work : part.late;
		if (work > 0) computing.compute(part, work);
		if (part.bytes == 0 || i == part.rounds) continue;
		rank.put_notify(w, part.other, 0, part.bytes, part.mine + part.bytes, 0);
		if (!rank.wait_notifications(0, 1)) break;
	}
	rank.stop_timer();
	rank.free_window(w);
	rank.finish();
}

extern "C" __global__ void OVERLAP_BOUNDS overlap_newton(const __grid_constant__ World world) { rounds<Newton>(world); }

extern "C" __global__ void OVERLAP_BOUNDS overlap_copy(const __grid_constant__ World world) { rounds<Copy>(world); }
