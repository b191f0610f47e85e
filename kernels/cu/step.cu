// Time steps by one kernel on each GPU. Some blocks sweep the boundary region, which is cut into slabs,
// and store its points straight into the ghosts of neighbours. The others sweep the interior meanwhile.
// For each neighbour a count in this GPU's memory says how many of the neighbour's blocks have finished
// a step.
//
// Step n reads field (n-1)%2 and writes field n%2. Ghosts of field n%2 may be written once their owner
// has finished step n-1, which read them last. Its count says that too; see stepGroup.slab in
// step_group.go.
//
// Nothing is loaded through the read-only path: ghosts change while a kernel runs, and in resident steps
// so do the fields.
//
// Options: REAL; MAX_STORES, how many stores and neighbours there may be; RESIDENT_THREADS, the threads
// of a block of resident steps.

#include "faults.cuh"
#include "flags.cuh"
#include "large.cuh"
#include "neighbour.cuh"

#ifndef MAX_STORES
#define MAX_STORES 6
#endif
#ifndef RESIDENT_THREADS
#define RESIDENT_THREADS 1024
#endif

// Ghosts, of this GPU or another, that boundary points are stored into too. The box of these points is
// relative to the first point that this GPU owns.
struct Target {
	int lo[3], hi[3];
	REAL *ghost[2];  // of each field: where the first owned point of this GPU would be stored
	Strides strides; // of the ghosts
	i64 odd[3];      // offsets from a point to the boundary values that it is reflected about, in turn; 0: none
};

__device__ inline unsigned thread() { return threadIdx.x + blockDim.x * threadIdx.y; }
__device__ inline unsigned block() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }

// A box of the boundary region, and the consecutive blocks that sweep it.
struct Slab {
	int lo[3], size[3];
	i64 first, blocks;
	u64 targets, neighbours; // a bit for each target of its points, and for each neighbour that it waits for

	__device__ unsigned points() const { return (unsigned)size[0] * (unsigned)size[1] * (unsigned)size[2]; }

	// The number of a thread among those of the slab, and how many these are.
	__device__ unsigned number(unsigned block) const {
		return (block - (unsigned)first) * (blockDim.x * blockDim.y) + thread();
	}
	__device__ unsigned threads() const { return (unsigned)blocks * blockDim.x * blockDim.y; }
};

enum { FACES = 6 };

struct Step {
	REAL *field[2]; // the first owned point
	Strides strides;
	i64 first, count, launch; // the first step, how many, and the launches before
	i64 slab_blocks, slabs, degree;
	i64 boundary_layers;  // of a fused step: the layers of the grid whose blocks sweep slabs
	i64 every;            // each is the first of so many layers of the grid
	i64 layers, tiles[3]; // layers of a tile of the interior; tiles along x, y and the layers
	i64 limit;            // of a wait, in ns
	u64 *failed;          // see report_timeout
	u64 *arrived;         // blocks that have finished steps, and STOP
	NormSum *norms[2];    // by field: of the blocks of a fused step with norms
	SweepPart interior;
	Slab slab[FACES];
	Target target[MAX_STORES];
	Neighbour neighbour[MAX_STORES];
};

// Added to the count of blocks, it ends resident steps.
#define STOP (1ull << 63)

// boundary sweeps point n of a slab, and stores it into its targets.
template <bool NORMS = false>
__device__ __forceinline__ void boundary(const Step &s, const Slab &b, int to, unsigned n, NormPartial *norms = 0) {
	const i64 pitch = s.strides.pitch, plane = s.strides.plane;
	const unsigned nx = (unsigned)b.size[0], ny = (unsigned)b.size[1], row = n / nx, layer = row / ny;
	const int at[3] = {b.lo[0] + (int)(n - row * nx), b.lo[1] + (int)(row - layer * ny), b.lo[2] + (int)layer};
	const i64 o = at[0] + at[1] * pitch + at[2] * plane;
	const REAL *p = s.field[1 - to] + o;
	REAL *q = s.field[to] + o;
	const REAL v = apply([&](int dx, int dy, int dz) { return p[dx + dy * pitch + dz * plane]; });
	*q = v;
	if (NORMS) norms->point(v, p[0]);
#pragma unroll 1
	for (unsigned left = (unsigned)b.targets; left != 0; left &= left - 1) {
		const Target &t = s.target[__ffs(left) - 1];
		bool in = true;
#pragma unroll
		for (int a = 0; a < 3; a++) in = in && t.lo[a] <= at[a] && at[a] < t.hi[a];
		if (!in) continue;
		REAL u = v;
		if (RADIUS_X > 1 || RADIUS_Y > 1 || RADIUS_Z > 1) // only then are values reflected
			for (int i = 0; i < 3 && t.odd[i] != 0; i++) u = (REAL)2 * q[t.odd[i]] - u;
		t.ghost[to][at[0] + at[1] * t.strides.pitch + at[2] * t.strides.plane] = u;
	}
}

// wait_for_neighbour waits, in one thread for each neighbour, until a neighbour of the slab has finished
// a step. After a timeout it returns false, and stops resident steps.
__device__ bool wait_for_neighbour(const Step &s, const Slab &b, int neighbour, i64 n) {
	if (neighbour < 0 || neighbour >= s.degree || !(b.neighbours >> neighbour & 1)) return true;
	const Neighbour &other = s.neighbour[neighbour];
	if (wait_for_count(other.my_count, n * other.expected, s.limit)) return true;
	report_timeout(s.failed, 1 + neighbour);
	atomicOr(s.arrived, STOP);
	return false;
}

// notify counts a step of this block, in one thread for each neighbour of the slab. The barrier before it
// orders the stores of all threads before the count.
__device__ void notify(const Step &s, const Slab &b, int neighbour) {
	if (0 <= neighbour && neighbour < s.degree && b.neighbours >> neighbour & 1)
		signal(s.neighbour[neighbour].its_count);
}

// slab_of returns the slab of a block.
__device__ const Slab &slab_of(const Step &s, unsigned block) {
	int i = 0;
	while (i + 1 < s.slabs && s.slab[i + 1].first <= block) i++;
	return s.slab[i];
}

__device__ __forceinline__ SweptFields fields(const Step &s, int to) {
	return {s.field[to], s.field[1 - to], s.strides};
}

// place_of returns where a thread begins in a tile of the interior, which has a column of groups for each
// thread of the block. In two dimensions threads along y take consecutive layers.
__device__ __forceinline__ Place place_of(const Step &s, unsigned tile) {
	const unsigned across = (unsigned)s.tiles[0], rest = tile / across;
	const unsigned up = (unsigned)s.tiles[1], deep = rest / up;
	const unsigned group = (tile - rest * across) * blockDim.x + threadIdx.x,
	               y = (rest - deep * up) * blockDim.y + threadIdx.y;
	if (DIMS == 3) return {group, y * ROWS_PER_THREAD, deep * s.layers};
	return {group, 0, y * s.layers};
}

// grid_barrier waits, in one thread, until all blocks have finished step n. It returns false after a
// timeout, here or in another block.
__device__ bool grid_barrier(const Step &s, i64 n) {
	const u64 all = (u64)n * gridDim.x;
	u64 now;
	add_release_gpu(s.arrived, 1);
	const bool came = wait(s.limit, [&] { return (now = load_acquire_gpu(s.arrived)) >= all; });
	if (!came) report_timeout(s.failed, THIS_DEVICE);
	return came && now < STOP;
}

// Layers that a thread of resident steps loads at once: more than one, if there are registers for them.
enum { PREFETCH = POINTS <= 7 ? 2 : 1 };

// interior_steps makes the steps of a block of the interior, which sweeps some tiles.
__device__ void interior_steps(const Step &s) {
	const unsigned mine = (unsigned)(blockIdx.x - s.slab_blocks), blocks = (unsigned)(gridDim.x - s.slab_blocks);
	const unsigned tiles = (unsigned)(s.tiles[0] * s.tiles[1] * s.tiles[2]);
	for (i64 n = s.first; n < s.first + s.count; n++) {
		const SweptFields e = fields(s, n % 2);
		inject_fault(2 * (unsigned)n);
		for (unsigned i = mine; i < tiles; i += blocks)
			stream<PREFETCH, false>(e, s.interior, place_of(s, i), s.layers);
		__syncthreads();
		if (!__syncthreads_and(thread() > 0 || grid_barrier(s, n))) return;
	}
}

// boundary_steps makes the steps of a block of a slab. After each step one warp waits for the other
// blocks, one notifies the neighbours, and one waits for these, all at the same time.
__device__ void boundary_steps(const Step &s) {
	const Slab &b = slab_of(s, blockIdx.x);
	const int me = thread();
	if (!__syncthreads_and(wait_for_neighbour(s, b, me, s.first - 1))) return;
	for (i64 n = s.first; n < s.first + s.count; n++) {
		inject_fault(2 * (unsigned)n);
		for (unsigned i = b.number(blockIdx.x); i < b.points(); i += b.threads()) boundary(s, b, n % 2, i);
		__syncthreads();
		inject_fault(2 * (unsigned)n + 1);
		bool on = true;
		if (me == 0) on = grid_barrier(s, n);
		if (32 <= me && me < 64) notify(s, b, me - 32);
		if (64 <= me && me < 96) on = wait_for_neighbour(s, b, me - 64, n);
		if (!__syncthreads_and(on)) return;
	}
}

// resident makes many steps. All its blocks must run at the same time.
extern "C" __global__ void __launch_bounds__(RESIDENT_THREADS, 1) resident(const __grid_constant__ Step s) {
	grid_dependency_wait();
	if (blockIdx.x < s.slab_blocks) boundary_steps(s);
	else interior_steps(s);
}

// boundary_step makes a step of a block of a slab. Its loop looks the slab up again for each point, which
// saves registers.
template <bool NORMS> __device__ NormPartial boundary_step(const Step &s, unsigned block) {
	NormPartial norms = {0, 0, 0, 0};
	if (block >= s.slab_blocks) return norms;
	const Slab &b = slab_of(s, block);
	if (!__syncthreads_and(wait_for_neighbour(s, b, thread(), s.first - 1))) return norms;
	inject_fault(2 * (unsigned)s.first);
	const unsigned at = (unsigned)(&b - s.slab);
#pragma unroll 1
	for (unsigned n = b.number(block); n < s.slab[opaque(at)].points(); n += s.slab[opaque(at)].threads())
		boundary<NORMS>(s, s.slab[opaque(at)], s.first % 2, n, &norms);
	__syncthreads();
	inject_fault(2 * (unsigned)s.first + 1);
	notify(s, b, thread());
	return norms;
}

// fused makes one step. The layers of the grid that sweep slabs come early, so that they and those of the
// neighbours start early and wait little. Layers that sweep the interior, as sweep.cu does, come between
// them, so that memory is busy while they wait.
template <int ROWS, bool NORMS> __device__ __forceinline__ void fused(const Step &s) {
	const unsigned layer = (unsigned)grid_layer(), every = (unsigned)s.every, turn = layer / every;
	const unsigned blocks = DIMS == 3 ? gridDim.x * gridDim.y : gridDim.x; // of a layer
	NormPartial norms;
	if (turn * every == layer && turn < s.boundary_layers) {
		norms = boundary_step<NORMS>(s, block() - (layer - turn) * blocks);
	} else {
		const SweptFields e = fields(s, s.first % 2);
		norms = large<ROWS, NORMS>(e, s.interior, (i64)(layer - min(turn + 1, (unsigned)s.boundary_layers)), s.layers);
	}
	if (NORMS) reduce_block(norms.total(), s.norms[s.first % 2] + block());
}

#ifdef STREAMS

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS) fused_stream(const __grid_constant__ Step s) {
	grid_dependency_wait();
	fused<STREAM, false>(s);
}

extern "C" __global__ void __launch_bounds__(FUSED_NORMS_THREADS, FUSED_NORMS_BLOCKS)
    fused_stream_norms(const __grid_constant__ Step s) {
	grid_dependency_wait();
	fused<STREAM, true>(s);
}

#else

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS) fused_rows2(const __grid_constant__ Step s) {
	grid_dependency_wait();
	fused<2, false>(s);
}

extern "C" __global__ void __launch_bounds__(FUSED_NORMS_THREADS, FUSED_NORMS_BLOCKS)
    fused_rows2_norms(const __grid_constant__ Step s) {
	grid_dependency_wait();
	fused<2, true>(s);
}

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS) fused_rows4(const __grid_constant__ Step s) {
	grid_dependency_wait();
	fused<4, false>(s);
}

extern "C" __global__ void __launch_bounds__(FUSED_NORMS_THREADS, FUSED_NORMS_BLOCKS)
    fused_rows4_norms(const __grid_constant__ Step s) {
	grid_dependency_wait();
	fused<4, true>(s);
}

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS) fused_rows8(const __grid_constant__ Step s) {
	grid_dependency_wait();
	fused<8, false>(s);
}

#endif
