// Whole time steps by one kernel a GPU: it sweeps, and stores the boundary points that
// neighbours need straight into their ghosts, over the link. Flags (flags.cuh) tell who
// has stored: a count for each neighbour, of its blocks that have finished a step.
//
// Step n reads field (n-1)%2 and writes field n%2. Ghosts of field n%2 may be written
// once their owner has finished step n-1, which read them last; its count says that too.
// (See stepNet.shell in step_net.go.)
//
// Build options: REAL; MOST, how many stores and neighbours there may be; RESIDENT_THREADS,
// the threads of a block that stays. Nothing here is read by the read-only path: ghosts
// change while a kernel runs, and with steps that stay on the device all else too.
//
// Some blocks sweep the boundary region, shells, and talk to the neighbours; the others
// sweep the interior, meanwhile.

#include "flags.cuh"
#include "window.cuh"

#ifndef MOST
#define MOST 6
#endif
#ifndef RESIDENT_THREADS
#define RESIDENT_THREADS 1024
#endif

// Where boundary points go beside their own place: into ghosts, of this GPU or another.
// Boxes are counted from this GPU's first owned point.
struct Target {
	int lo[3], hi[3];
	REAL *ghost[2];  // of either field: where this GPU's first point would lie
	Strides strides; // there
	i64 odd[3];      // where from a point lie the walls that its value is reflected about, in turn; 0: no more
};

// Another GPU, as this one sees it.
struct Neighbour {
	const unsigned long long *my_count; // here: its blocks that have finished steps
	unsigned long long *its_count;      // there: the blocks of this GPU
	unsigned long long expected;        // in each step
};

__device__ inline unsigned thread() { return threadIdx.x + blockDim.x * threadIdx.y; }
__device__ inline unsigned block() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }

// A box of the boundary region, and the blocks that sweep it, which follow each other.
struct Shell {
	int lo[3], size[3];
	i64 first, blocks;
	i64 targets, neighbours; // bits: which of them it goes to, and waits for

	__device__ unsigned points() const { return (unsigned)size[0] * (unsigned)size[1] * (unsigned)size[2]; }

	// number and threads are those of a thread among all that sweep it, in a block of shells.
	__device__ unsigned number(unsigned block) const {
		return (block - (unsigned)first) * (blockDim.x * blockDim.y) + thread();
	}
	__device__ unsigned threads() const { return (unsigned)blocks * blockDim.x * blockDim.y; }
};

enum { FACES = 6 };

struct Step {
	REAL *field[2]; // where the first owned point lies
	Strides strides;
	i64 first, count, launch; // steps, and launches before
	i64 shell_blocks, shells, degree;
	i64 shell_slabs;             // of a fused step: how many slabs of blocks those of shells take,
	i64 every;                   // each the first of so many
	i64 march, tiles[3];         // layers of a tile of the interior; tiles along x, y and the march
	i64 limit;                   // ns to wait for a neighbour
	unsigned long long *failed;  // see complain
	unsigned long long *arrived; // blocks that have finished steps; the highest bit says to stop
	Four *norms[2];              // of fused steps with norms, by field: those of each block
	Part interior;
	Shell shell[FACES];
	Target target[MOST];
	Neighbour neighbour[MOST];
};

#define STOP (1ull << 63)

// boundary sweeps a point of a shell.
template <bool NORMS = false>
__device__ __forceinline__ void boundary(const Step &s, const Shell &b, int to, unsigned n, Found *norms = 0) {
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
		if (REACH_X > 1 || REACH_Y > 1 || REACH_Z > 1) // walls are reflected about for what lies two points from them
			for (int i = 0; i < 3 && t.odd[i] != 0; i++) u = (REAL)2 * q[t.odd[i]] - u;
		t.ghost[to][at[0] + at[1] * t.strides.pitch + at[2] * t.strides.plane] = u;
	}
}

// watch waits until a neighbour of a shell has finished a step, by one thread for each
// neighbour. It returns false, and ends the run, if that takes too long.
__device__ bool watch(const Step &s, const Shell &b, int neighbour, i64 n) {
	if (neighbour < 0 || neighbour >= s.degree || !(b.neighbours >> neighbour & 1)) return true;
	const Neighbour &other = s.neighbour[neighbour];
	if (await(other.my_count, n * other.expected, s.limit)) return true;
	complain(s.failed, 1 + neighbour);
	atomicOr(s.arrived, STOP);
	return false;
}

// tell counts a step of this block for a neighbour of its shell, by one thread for each.
// The stores of all threads come before: a barrier and a fence at system scope carry
// that on.
__device__ void tell(const Step &s, const Shell &b, int neighbour) {
	if (0 <= neighbour && neighbour < s.degree && b.neighbours >> neighbour & 1)
		raise(s.neighbour[neighbour].its_count);
}

// shell_of returns whose block it is among those of shells.
__device__ const Shell &shell_of(const Step &s, unsigned block) {
	int i = 0;
	while (i + 1 < s.shells && s.shell[i + 1].first <= block) i++;
	return s.shell[i];
}

__device__ __forceinline__ Ends ends(const Step &s, int to) { return {s.field[to], s.field[1 - to], s.strides}; }

// place_of returns where a thread begins in a tile of the interior: a thread a column of
// groups, which are as many along x, and then in rows (in two dimensions, behind each other),
// as the block has threads.
__device__ __forceinline__ Place place_of(const Step &s, unsigned tile) {
	const unsigned across = (unsigned)s.tiles[0], rest = tile / across;
	const unsigned up = (unsigned)s.tiles[1], deep = rest / up;
	const unsigned group = (tile - rest * across) * blockDim.x + threadIdx.x,
	               y = (rest - deep * up) * blockDim.y + threadIdx.y;
	if (DIMS == 3) return {group, y * TALL, deep * s.march};
	return {group, 0, y * s.march};
}

// gather waits, in one thread, until all blocks have finished step n. It returns false if
// the run ends.
__device__ bool gather(const Step &s, i64 n) {
	const unsigned long long all = (unsigned long long)n * gridDim.x;
	unsigned long long now;
	arrive(s.arrived);
	const bool came = wait(s.limit, [&] { return (now = peek_here(s.arrived)) >= all; });
	if (!came) complain(s.failed, ITSELF);
	__threadfence();
	return came && now < STOP;
}

// How many layers a thread of a resident kernel loads at once: more than one, where the
// compiler has registers for them.
enum { AHEAD = POINTS <= 7 ? 2 : 1 };

// inside makes the steps of a block that sweeps tiles of the interior.
__device__ void inside(const Step &s) {
	const unsigned mine = (unsigned)(blockIdx.x - s.shell_blocks), blocks = (unsigned)(gridDim.x - s.shell_blocks);
	const unsigned tiles = (unsigned)(s.tiles[0] * s.tiles[1] * s.tiles[2]);
	for (i64 n = s.first; n < s.first + s.count; n++) {
		const Ends e = ends(s, n % 2);
		disturb(2 * (unsigned)n);
		for (unsigned i = mine; i < tiles; i += blocks) march<AHEAD, false>(e, s.interior, place_of(s, i), s.march);
		__syncthreads();
		if (!__syncthreads_and(thread() > 0 || gather(s, n))) return;
	}
}

// outside makes the steps of a block that sweeps a shell. After each, one warp waits for
// the other blocks, one tells the neighbours, and one waits for these: what takes time
// does so at the same time.
__device__ void outside(const Step &s) {
	const Shell &b = shell_of(s, blockIdx.x);
	const int me = thread();
	if (!__syncthreads_and(watch(s, b, me, s.first - 1))) return;
	for (i64 n = s.first; n < s.first + s.count; n++) {
		disturb(2 * (unsigned)n);
		for (unsigned i = b.number(blockIdx.x); i < b.points(); i += b.threads()) boundary(s, b, n % 2, i);
		__syncthreads();
		disturb(2 * (unsigned)n + 1);
		bool on = true;
		if (me == 0) on = gather(s, n);
		if (32 <= me && me < 64) tell(s, b, me - 32);
		if (64 <= me && me < 96) on = watch(s, b, me - 64, n);
		if (!__syncthreads_and(on)) return;
	}
}

// resident makes many steps. All its blocks run at once.
extern "C" __global__ void __launch_bounds__(RESIDENT_THREADS, 1) resident(const __grid_constant__ Step s) {
	after_predecessor();
	if (blockIdx.x < s.shell_blocks) outside(s);
	else inside(s);
}

// edge makes a step of a block of shells. In its loop all that it needs to know of the shell is
// looked up again for each point, which saves registers.
template <bool NORMS> __device__ Found edge(const Step &s, unsigned block) {
	Found norms = {0, 0, 0, 0};
	if (block >= s.shell_blocks) return norms;
	const Shell &b = shell_of(s, block);
	if (!__syncthreads_and(watch(s, b, thread(), s.first - 1))) return norms;
	disturb(2 * (unsigned)s.first);
	const unsigned at = (unsigned)(&b - s.shell);
#pragma unroll 1
	for (unsigned n = b.number(block); n < s.shell[opaque(at)].points(); n += s.shell[opaque(at)].threads())
		boundary<NORMS>(s, s.shell[opaque(at)], s.first % 2, n, &norms);
	__syncthreads();
	disturb(2 * (unsigned)s.first + 1);
	tell(s, b, thread());
	return norms;
}

// fused makes one step. The slabs of blocks that sweep shells come early: they are started
// early, and those of the neighbours too, so that who waits has not long to wait; and with
// slabs of the interior between them, so that memory has work while they wait. These sweep
// as the kernels of sweep.cu do.
template <int ROWS, bool NORMS> __device__ __forceinline__ void fused(const Step &s) {
	const unsigned slab = (unsigned)slab_of_block(), every = (unsigned)s.every, turn = slab / every;
	const unsigned blocks = DIMS == 3 ? gridDim.x * gridDim.y : gridDim.x; // of a slab
	Found norms;
	if (turn * every == slab && turn < s.shell_slabs) norms = edge<NORMS>(s, block() - (slab - turn) * blocks);
	else {
		const Ends e = ends(s, s.first % 2);
		norms = large<ROWS, NORMS>(e, s.interior, (i64)(slab - min(turn + 1, (unsigned)s.shell_slabs)), s.march);
	}
	if (NORMS) over_block(norms.four(), s.norms[s.first % 2] + block());
}

#ifdef MARCHES

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS) fused_march(const __grid_constant__ Step s) {
	after_predecessor();
	fused<MARCH, false>(s);
}

extern "C" __global__ void __launch_bounds__(FUSED_NORMS_THREADS, FUSED_NORMS_BLOCKS)
    fused_march_norms(const __grid_constant__ Step s) {
	after_predecessor();
	fused<MARCH, true>(s);
}

#else

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS) fused_rows2(const __grid_constant__ Step s) {
	after_predecessor();
	fused<2, false>(s);
}

extern "C" __global__ void __launch_bounds__(FUSED_NORMS_THREADS, FUSED_NORMS_BLOCKS)
    fused_rows2_norms(const __grid_constant__ Step s) {
	after_predecessor();
	fused<2, true>(s);
}

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS) fused_rows4(const __grid_constant__ Step s) {
	after_predecessor();
	fused<4, false>(s);
}

extern "C" __global__ void __launch_bounds__(FUSED_NORMS_THREADS, FUSED_NORMS_BLOCKS)
    fused_rows4_norms(const __grid_constant__ Step s) {
	after_predecessor();
	fused<4, true>(s);
}

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS) fused_rows8(const __grid_constant__ Step s) {
	after_predecessor();
	fused<8, false>(s);
}

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS)
    fused_rows8_norms(const __grid_constant__ Step s) {
	after_predecessor();
	fused<8, true>(s);
}

#endif
