// Time steps by one kernel a GPU, which makes many of them without the host. Some blocks sweep the
// boundary region of a stage and store its points into the ghosts of neighbours too, the others sweep
// its interior. After each stage all blocks of the GPU wait for each other. Those of a slab also signal
// the neighbours of the slab that they have finished the stage, and wait until these have: so ghosts
// that the next stage reads have come, and those that it stores into are not read any more.
//
// All blocks must run at the same time.
//
// stages.cuh, which resident_plan.go of kernels/sweep writes, has of each stage a namespace with its
// point function and stage.cuh:
//
//	STAGES(X)                  X(0) X(1) ... for the stages
//	STAGE_COUNT                how many there are
//	MEASURES                   is defined where norms and reductions are taken
//	STEPS_THREADS              of a block

#define ALL_READ_ONLY false // ghosts and arrays are written while the kernel runs

#include "faults.cuh"
#include "stages.cuh"

#ifndef STEPS_BYTES
#define STEPS_BYTES sizeof(Steps)
#endif

struct Steps {
	i64 first, count;                    // steps of this launch, the first by the number of those before
	i64 step;                            // the number of the first in its run
	double start, length;                // see Moment
	i64 degree, limit;                   // ns to wait for a neighbour, and for other blocks
	u64 *report;                         // see report_timeout
	u64 *arrived;                        // blocks of this GPU that have finished stages, and STOP
	const i64 *before;                   // of each stage and neighbour: its blocks that finish earlier stages of a step
	Neighbour neighbour[MAX_NEIGHBOURS]; // whose blocks that finish stages of a step are so many
	Boundary boundary[STAGE_COUNT];
#define MEMBER(K) stage##K::Swept stage##K;
	STAGES(MEMBER)
#undef MEMBER
};
static_assert(sizeof(Steps) == STEPS_BYTES, "resident.go lays it out");

// Added to the count of blocks, it ends the steps.
#define STOP (1ull << 63)

// wait_for_neighbour waits, in one thread for each neighbour of the block's slab, until this one has
// finished all before a stage of a step. After a timeout it returns false, and stops all blocks.
__device__ inline bool wait_for_neighbour(const Steps &s, int stage, i64 step, int neighbour) {
	const Boundary &b = s.boundary[stage];
	if (blockIdx.x >= b.blocks || neighbour < 0 || neighbour >= s.degree) return true;
	if (!(b.slab[b.slab_of(blockIdx.x)].neighbours >> neighbour & 1)) return true;
	const Neighbour &other = s.neighbour[neighbour];
	const u64 finished = (u64)step * other.expected + (u64)s.before[stage * MAX_NEIGHBOURS + neighbour];
	if (wait_for_count(other.my_count, finished, s.limit, s.report)) return true;
	report_timeout(s.report, 1 + neighbour);
	atomicOr(s.arrived, STOP);
	return false;
}

// grid_barrier waits, in one thread, until all blocks have finished so many stages. It returns false
// after a timeout, here or in another block.
__device__ inline bool grid_barrier(const Steps &s, i64 stages) {
	const u64 all = (u64)stages * gridDim.x;
	u64 now;
	add_release_gpu(s.arrived, 1);
	const bool came = wait(s.limit, s.report, [&] { return (now = load_acquire_gpu(s.arrived)) >= all; });
	if (!came) report_timeout(s.report, THIS_DEVICE);
	return came && now < STOP;
}

// pass ends a stage: one warp waits for the other blocks, one signals the neighbours, and one waits for
// these, all at the same time. It returns false if the steps end here.
__device__ __forceinline__ bool pass(const Steps &s, int stage, i64 n) {
	const int me = (int)thread_of_block();
	__syncthreads();
	inject_fault(2 * (unsigned)(s.first + n) + 1);
	bool on = true;
	if (me == 0) on = grid_barrier(s, (s.first + n) * STAGE_COUNT + stage + 1);
	if (32 <= me && me < 64 && me - 32 < s.degree && blockIdx.x < s.boundary[stage].blocks) {
		const Boundary &b = s.boundary[stage];
		if (b.slab[b.slab_of(blockIdx.x)].neighbours >> (me - 32) & 1) signal(s.neighbour[me - 32].its_count);
	}
	if (64 <= me && me < 96) {
		if (stage + 1 < STAGE_COUNT) on = wait_for_neighbour(s, stage + 1, s.first + n, me - 64);
		else if (n + 1 < s.count) on = wait_for_neighbour(s, 0, s.first + n + 1, me - 64);
	}
	return __syncthreads_and(on);
}

template <bool MEASURED> __device__ __forceinline__ void make_steps(const Steps &s) {
	if (!__syncthreads_and(wait_for_neighbour(s, 0, s.first, (int)thread_of_block()))) return;
#pragma unroll 1
	for (i64 n = 0; n < s.count; n++) {
		inject_fault(2 * (unsigned)(s.first + n));
#define MAKE(K) \
	stage##K::make<MEASURED>(s.stage##K, s.boundary[K], {s.step + n, s.start, s.length}); \
	if (!pass(s, K, n)) return;
		STAGES(MAKE)
#undef MAKE
	}
}

#ifdef MEASURES
enum { TAKES_TOTALS = true };
#else
enum { TAKES_TOTALS = false };
#endif

// steps makes the steps of a launch; of those that measure the last leaves its totals.
extern "C" __global__ void __launch_bounds__(STEPS_THREADS, 1) steps(const __grid_constant__ Steps s) {
	grid_dependency_wait();
	make_steps<TAKES_TOTALS>(s);
}
