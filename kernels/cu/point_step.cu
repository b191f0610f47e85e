// A stage of a time step by one kernel a GPU: it sweeps a point function, and stores the boundary
// points that neighbours need straight into their ghosts, over the link. Counts (flags.cuh) tell who
// has stored: one for each neighbour, of its blocks that have finished stages.
//
// Some blocks sweep the boundary region, slab by slab, and exchange signals with the neighbours; the
// others sweep the interior meanwhile. A block of a slab begins when the blocks of all neighbours
// that the slab exchanges points with have finished the stage before. So all ghosts that it reads
// have come, and those that it stores into nobody reads any more: whoever reads them signals too.
//
// No array is read by the read-only path (ALL_READ_ONLY is false): ghosts are written while the kernel
// runs.

#include "flags.cuh"
#include "stream.cuh"

#ifndef STAGE_BYTES
#define STAGE_BYTES sizeof(Stage)
#define FUSED_SINGLE 0
#define FUSED_LAYERS 1
#define FUSED_BLOCKS 1
#define FUSED_MEASURED_BLOCKS 1
#endif

// Where the points of a box of one written array go beside their own place: into ghosts, of this GPU
// or another. Boxes are of indices in the whole grid, as the points that are swept have them.
struct Target {
	i64 lo[3], hi[3];
	u64 ghost; // address that the point of index 0, 0, 0 has there, or would have
	Strides strides;
};

// Another GPU, as this one sees it.
struct Peer {
	const u64 *my_count; // here: its blocks that have finished stages
	u64 *its_count;      // there: the blocks of this GPU
	u64 expected;        // blocks that must have finished before this stage
};

// A box of the boundary region, and the blocks that sweep it, which follow each other.
struct Slab {
	i64 lo[3], nx, ny, nz;
	i64 first, blocks;
	i64 peers; // bits: which of them it waits for, and signals
};

enum { MAX_SLABS = 6, MAX_PEERS = 26 };

// How many arrays are written.
#define ONE_MORE(K) +1
enum { WRITE_COUNT = 0 WRITES(ONE_MORE) };
#undef ONE_MORE

struct Stage {
	Arrays arrays;
	double *totals; // of stages that measure: TOTALS numbers a block
	i64 layers;     // of a thread of the interior that streams
	Part interior;
	i64 slab_blocks, slabs, degree;
	i64 slab_layers, every; // how many layers of the grid of blocks those of slabs take, each the first of so many
	i64 limit;              // ns to wait for a neighbour
	u64 *timeout;           // see report_timeout
	const Target *targets;
	const i64 *ranges; // of each slab and written array the end of its targets, from those before on
	Slab slab[MAX_SLABS];
	Peer peer[MAX_PEERS];
	Frame frame;
};
static_assert(sizeof(Stage) == STAGE_BYTES && sizeof(Target) == 72, "fused.go lays them out");

__device__ inline unsigned thread_of_block() { return threadIdx.x + blockDim.x * threadIdx.y; }
__device__ inline unsigned block_of_grid() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }

// slab_of returns whose block it is among those of slabs.
__device__ inline int slab_of(const Stage &s, i64 block) {
	int i = 0;
	while (i + 1 < s.slabs && s.slab[i + 1].first <= block) i++;
	return i;
}

// wait_for_peer waits, in one thread for each peer, until one of a slab has finished the stage before.
__device__ inline bool wait_for_peer(const Stage &s, const Slab &b, int peer) {
	if (peer >= s.degree || !(b.peers >> peer & 1)) return true;
	if (wait_for_count(s.peer[peer].my_count, s.peer[peer].expected, s.limit)) return true;
	report_timeout(s.timeout, 1 + peer);
	return false;
}

// forward stores a value of one written array where else it goes.
template <int K>
__device__ __forceinline__ void forward(const Stage &s, int slab, const i64 *index, typename Written<K>::T value) {
	const i64 at = (i64)slab * WRITE_COUNT + K, end = s.ranges[at];
#pragma unroll 1
	for (i64 n = at == 0 ? 0 : s.ranges[at - 1]; n < end; n++) {
		const Target &t = s.targets[n];
		bool in = true;
#pragma unroll
		for (int a = 0; a < 3; a++) in = in && t.lo[a] <= index[a] && index[a] < t.hi[a];
		if (in)
			((typename Written<K>::T *)t.ghost)[index[0] + index[1] * t.strides.pitch + index[2] * t.strides.plane] =
			    value;
	}
}

// boundary sweeps a slab, a point a thread at a time.
template <bool MEASURED> __device__ __forceinline__ Totals boundary(const Stage &s, i64 block) {
	Totals totals;
	if (block >= s.slab_blocks) return totals;
	const int at = slab_of(s, block);
	const Slab &b = s.slab[at];
	const int me = (int)thread_of_block();
	if (!__syncthreads_and(wait_for_peer(s, b, me))) return totals;
	const unsigned threads = blockDim.x * blockDim.y, nx = (unsigned)b.nx, ny = (unsigned)b.ny;
	const i64 points = b.nx * b.ny * b.nz, step = b.blocks * threads;
#pragma unroll 1
	for (i64 n = (block - b.first) * threads + me; n < points; n += step) {
		const i64 row = n / nx;
		const i64 index[3] = {b.lo[0] + (n - row * nx), b.lo[1] + row % ny, b.lo[2] + row / ny};
		i64 place[CLASSES];
#pragma unroll
		for (int k = 0; k < CLASSES; k++)
			place[k] = index[0] + index[1] * s.arrays.strides[k].pitch + index[2] * s.arrays.strides[k].plane;
		const Cursor c(s.arrays, place);
		Windows<1, 1> w;
		w.all(1, c);
		Results<1> r;
		compute(s.frame, w, 0, index, r);
#define STORE(K) store<MEASURED, K>(c, 0, w, 0, r, 1u, totals);
		WRITES(STORE)
#undef STORE
#define FORWARD(K) forward<K>(s, at, index, r.of(Constant<K>()).v[0]);
		WRITES(FORWARD)
#undef FORWARD
		if constexpr (MEASURED) totals.add(r, 0);
	}
	__syncthreads();
	if (me < s.degree && (b.peers >> me & 1)) signal(s.peer[me].its_count);
	return totals;
}

// reduce_block puts all that the threads of a block found there.
__device__ __forceinline__ void reduce_block(const Totals &t, double *there) {
#define NORM(K) reduce_block(t.norm##K, there), there += 4;
	NORMS(NORM)
#undef NORM
#define REDUCED(K) reduce_block(Reduced<K>::OP, t.reduced##K, there), there++;
	REDUCTIONS(REDUCED)
#undef REDUCED
}

// make_stage makes a stage. The layers of blocks that sweep slabs come early: they are started early, and
// those of the neighbours too, so that who waits has not long to wait; and with layers of the
// interior between them, so that memory has work while they wait. These sweep as the kernels of
// point.cu do.
template <bool MEASURED, typename Interior>
__device__ __forceinline__ void make_stage(const Stage &s, Interior interior) {
	const i64 layer = grid_layer(), turn = layer / s.every;
	const i64 blocks = DIMS == 3 ? (i64)gridDim.x * gridDim.y : gridDim.x; // of a layer
	Totals totals;
	if (turn * s.every == layer && turn < s.slab_layers)
		totals = boundary<MEASURED>(s, block_of_grid() - (layer - turn) * blocks);
	else totals = interior(layer - min(turn + 1, s.slab_layers));
	if constexpr (MEASURED) reduce_block(totals, s.totals + TOTALS * (i64)block_of_grid());
}

// Build options, which fused_gpu.go writes: FUSED_SINGLE, whether threads of the interior have one point in each layer;
// FUSED_LAYERS, how many layers they take where they do not stream; FUSED_BLOCKS and
// FUSED_MEASURED_BLOCKS, how many blocks a multiprocessor shall have registers for.
enum { FUSED_GROUP = FUSED_SINGLE ? 1 : GROUP };

template <bool MEASURED> __device__ __forceinline__ Totals interior(const Stage &s, i64 layer) {
#ifdef STREAMS
	return stream<FUSED_GROUP, 1, MEASURED>(s.frame, s.arrays, s.interior, place_of_thread(layer, s.layers), s.layers);
#else
	return layers<FUSED_GROUP, FUSED_LAYERS, MEASURED>(s.frame, s.arrays, s.interior,
	                                                   place_of_thread(layer, FUSED_LAYERS));
#endif
}

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, FUSED_BLOCKS) fused(const __grid_constant__ Stage s) {
	grid_dependency_wait();
	make_stage<false>(s, [&](i64 layer) { return interior<false>(s, layer); });
}

#if TOTALS > 0

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, FUSED_MEASURED_BLOCKS)
    fused_measured(const __grid_constant__ Stage s) {
	grid_dependency_wait();
	make_stage<true>(s, [&](i64 layer) { return interior<true>(s, layer); });
}

#endif
