// Time steps by one kernel per GPU, which runs many of them without the host. Some blocks sweep the boundary region of
// a stage and also store its points into the ghosts of neighbors; the others sweep its interior. After each stage all
// blocks of the GPU wait for each other. Those of a slab also signal the neighbors of the slab that they have finished
// the stage, and wait for the signals of these neighbors. So ghosts that the next stage reads have arrived, and those
// that it stores into are no longer read.
//
// All blocks must run at the same time.
//
// stages.cuh, from resident_plan.go of kernels/sweep, has for each stage a namespace with its point function and
// stage.cuh:
//
//	STAGES(X)                  X(0) X(1) ... for the stages
//	STAGE_COUNT                how many there are
//	MEASURES                   is defined where norms and reductions are taken
//	STEPS_THREADS              of a block
//	PACED                      the last stage, where the lengths of steps are computed here, see courant.cuh

#define ALL_READ_ONLY false // ghosts and arrays are written while the kernel runs

#include "faults.cuh"
#include "stages.cuh"
#ifdef PACED
#include "courant.cuh"
#endif

#ifndef STEPS_BYTES
#define STEPS_BYTES sizeof(Steps)
#endif

struct Steps {
	i64 first, count;                 // the number of steps before this launch, and of its steps
	i64 step;                         // the number of the first step within its run
	double start, length;             // see Moment
	i64 degree, limit;                // ns to wait for a neighbor, and for other blocks
	u64 *report;                      // see report_timeout
	u64 *arrived;                     // blocks of this GPU that have finished stages, and STOP
	const i64 *before;                // for each stage and neighbor: its blocks that finish earlier stages of a step
	Neighbor neighbor[MAX_NEIGHBORS]; // expected: blocks that finish stages, per step
	Boundary boundary[STAGE_COUNT];
#define MEMBER(K) stage##K::Swept stage##K;
	STAGES(MEMBER)
#undef MEMBER
#ifdef PACED
	Pacing pacing;
#endif
};
static_assert(sizeof(Steps) == STEPS_BYTES, "resident.go lays it out");

// Added to the count of blocks to end the steps.
#define STOP (1ull << 63)

#ifdef PACED
enum { BARRIERS = STAGE_COUNT + 1 }; // of a step
#else
enum { BARRIERS = STAGE_COUNT };
#endif

// wait_for_neighbor waits, in one thread for each neighbor of the block's slab, until the neighbor has finished
// everything before a stage of a step. After a timeout it returns false, and stops all blocks.
__device__ inline bool wait_for_neighbor(const Steps &s, int stage, i64 step, int neighbor) {
	const Boundary &b = s.boundary[stage];
	if (blockIdx.x >= b.blocks || neighbor < 0 || neighbor >= s.degree) return true;
	if (!(b.slab[b.slab_of(blockIdx.x)].neighbors >> neighbor & 1)) return true;
	const Neighbor &other = s.neighbor[neighbor];
	const u64 finished = (u64)step * other.expected + (u64)s.before[stage * MAX_NEIGHBORS + neighbor];
	if (wait_for_count(other.my_count, finished, s.limit, s.report)) return true;
	report_timeout(s.report, 1 + neighbor);
	atomicOr(s.arrived, STOP);
	return false;
}

// grid_barrier waits, in one thread, until all blocks have finished the given number of stages. It returns false after
// a timeout, here or in another block.
__device__ inline bool grid_barrier(const Steps &s, i64 stages) {
	const u64 all = (u64)stages * gridDim.x;
	u64 now;
	add_release_gpu(s.arrived, 1);
	const bool came = wait(s.limit, s.report, [&] { return (now = load_acquire_gpu(s.arrived)) >= all; });
	if (!came) report_timeout(s.report, THIS_DEVICE);
	return came && now < STOP;
}

// pass ends a stage: one warp waits for the other blocks, one signals the neighbors, and one waits for the neighbors,
// all at the same time. It returns false if the steps end here.
__device__ __forceinline__ bool pass(const Steps &s, int stage, i64 n) {
	const int me = (int)thread_of_block();
	__syncthreads();
	inject_fault(2 * (unsigned)(s.first + n) + 1);
	bool on = true;
	if (me == 0) on = grid_barrier(s, (s.first + n) * BARRIERS + stage + 1);
	if (32 <= me && me < 64 && me - 32 < s.degree && blockIdx.x < s.boundary[stage].blocks) {
		const Boundary &b = s.boundary[stage];
		if (b.slab[b.slab_of(blockIdx.x)].neighbors >> (me - 32) & 1) signal(s.neighbor[me - 32].its_count);
	}
	if (64 <= me && me < 96) {
		if (stage + 1 < STAGE_COUNT) on = wait_for_neighbor(s, stage + 1, s.first + n, me - 64);
		else if (n + 1 < s.count) on = wait_for_neighbor(s, 0, s.first + n + 1, me - 64);
	}
	return __syncthreads_and(on);
}

#ifdef PACED

// finish_step computes the length and the parameters of the step after the n-th of a launch, in one warp. It returns
// false after a timeout.
__device__ inline bool finish_step(const Steps &s, i64 n) {
	const Pacing &p = s.pacing;
	double speed;
	if (!largest_speed(p, s.PACED.totals[(s.step + n) % PACED::PHASES], PACED::SLOT_NUMBERS,
	                   (unsigned)(s.first + n + 1), s.limit, s.report, speed))
		return false;
	if (thread_of_block() > 0) return true;
	Paced now = {(u64)n + 1, n == 0 ? p.now : p.state->now, n == 0 ? s.length : p.state->length, 0, 0};
	now.now += now.last;
	now.length = next_length(p, now.now, speed);
	if (p.endless != 0 && !(now.length > 0)) now.length = now.last;
	now.start = now.now - (double)(s.step + n) * now.length;
	*p.state = *p.report = now;
#define GIVE(K) stage##K::give(s.stage##K.given, s.step + n + 1, now.start, now.length);
	STAGES(GIVE)
#undef GIVE
	return true;
}

// pace ends a step, after all of its stages. It returns false if the steps end here.
__device__ __forceinline__ bool pace(const Steps &s, i64 n) {
	bool on = true;
	if (blockIdx.x == 0 && thread_of_block() < 32 && !finish_step(s, n)) atomicOr(s.arrived, STOP);
	if (thread_of_block() == 0) {
		on = grid_barrier(s, (s.first + n + 1) * BARRIERS);
		on = on && __longlong_as_double((i64)load_relaxed_gpu((const u64 *)&s.pacing.state->length)) > 0;
	}
	return __syncthreads_and(on);
}

// next_of returns a number of the state for the n-th step, or that of the first one.
__device__ __forceinline__ double next_of(const double &next, double first, i64 n) {
	return n == 0 ? first : __longlong_as_double((i64)load_relaxed_gpu((const u64 *)&next));
}
#define MOMENT(N) {s.step + N, next_of(s.pacing.state->start, s.start, N), next_of(s.pacing.state->length, s.length, N)}

#else

__device__ __forceinline__ bool pace(const Steps &, i64) { return true; }
#define MOMENT(N) {s.step + N, s.start, s.length}

#endif

template <bool MEASURED> __device__ __forceinline__ void make_steps(const Steps &s) {
	if (!__syncthreads_and(wait_for_neighbor(s, 0, s.first, (int)thread_of_block()))) return;
#pragma unroll 1
	for (i64 n = 0; n < s.count; n++) {
		inject_fault(2 * (unsigned)(s.first + n));
#define MAKE(K) \
	stage##K::make<MEASURED>(s.stage##K, s.boundary[K], MOMENT(n)); \
	if (!pass(s, K, n)) return;
		STAGES(MAKE)
#undef MAKE
		if (!pace(s, n)) return;
	}
}

#ifdef MEASURES
enum { TAKES_TOTALS = true };
#else
enum { TAKES_TOTALS = false };
#endif

// steps runs the steps of a launch; the last step of a measured launch stores its totals.
extern "C" __global__ void __launch_bounds__(STEPS_THREADS, 1) steps(const __grid_constant__ Steps s) {
	grid_dependency_wait();
	make_steps<TAKES_TOTALS>(s);
}
