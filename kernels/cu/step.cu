// Whole time steps by one kernel a GPU: it sweeps, and stores the boundary points that
// neighbours need straight into their ghosts, over the link. Flags (flags.cuh) tell who
// has stored: a count for each neighbour, of its blocks that have finished a step.
//
// Step n reads field (n-1)%2 and writes field n%2. Ghosts of field n%2 may be written
// once their owner has finished step n-1, which read them last; its count says that too.
//
// The stencil is a star that reaches one point (see tapsSource in taps.go). Build options:
// REAL.
//
// Some blocks sweep the boundary region, shells, and talk to the neighbours; the others
// sweep the interior, meanwhile.

// Where boundary points go beside their own place: into ghosts, of this GPU or another.
// Boxes are counted from this GPU's first owned point.
struct Target {
	i64 lo[3], hi[3];
	REAL *ghost[2];   // of either field: where this GPU's first point would lie
	Strides strides;  // there
};

// Another GPU, as this one sees it.
struct Neighbour {
	const unsigned long long *my_count; // here: its blocks that have finished steps
	unsigned long long *its_count;      // there: the blocks of this GPU
	unsigned long long expected;        // in each step
};

// A box of the boundary region, and the blocks that sweep it, which follow each other.
struct Shell {
	i64 lo[3], size[3];
	i64 first, blocks;
	i64 targets, neighbours; // bits: which of them it goes to, and waits for
};

enum { FACES = 6 };

struct Step {
	REAL *field[2];
	Strides strides;
	i64 first, count, launch; // steps, and launches before
	i64 shell_blocks, shells, targets, degree;
	Shell shell[FACES];
	Target target[FACES];
	Neighbour neighbour[FACES];
	i64 lo[3], hi[3];    // the interior
	i64 march, tiles[3]; // planes (rows, in 2-D) of a tile; tiles along x, y and the march
	i64 limit;           // ns to wait for a neighbour
	unsigned long long *failed;  // in host memory: 1 + the neighbour waited for in vain
	unsigned long long *arrived; // blocks that have finished steps; the highest bit says to stop
};

#define STOP (1ull << 63)

// boundary sweeps a shell, a point a thread.
__device__ void boundary(const Step &s, const Shell &b, int to) {
	const REAL *src = s.field[1 - to];
	REAL *dst = s.field[to];
	const i64 pitch = s.strides.pitch, plane = s.strides.plane;
	const unsigned nx = (unsigned)b.size[0], ny = (unsigned)b.size[1], points = nx * ny * (unsigned)b.size[2];
	for (unsigned n = (unsigned)(blockIdx.x - b.first) * blockDim.x + threadIdx.x; n < points; n += (unsigned)b.blocks * blockDim.x) {
		const unsigned row = n / nx, layer = row / ny;
		const i64 at[3] = {b.lo[0] + (n - row * nx), b.lo[1] + (row - layer * ny), b.lo[2] + layer};
		const i64 o = at[0] + at[1] * pitch + at[2] * plane;
		const REAL *p = src + o;
		const REAL v = apply([&](int dx, int dy, int dz) { return p[dx + dy * pitch + dz * plane]; });
		dst[o] = v;
		for (int i = 0; i < s.targets; i++) {
			const Target &t = s.target[i];
			bool in = b.targets >> i & 1;
#pragma unroll
			for (int a = 0; a < 3; a++) in = in && t.lo[a] <= at[a] && at[a] < t.hi[a];
			if (in) t.ghost[to][at[0] + at[1] * t.strides.pitch + at[2] * t.strides.plane] = v;
		}
	}
}

// watch waits until a neighbour of a shell has finished a step, by one thread for each
// neighbour. It returns false, and ends the run, if that takes too long.
__device__ bool watch(const Step &s, const Shell &b, int neighbour, i64 n) {
	if (neighbour < 0 || neighbour >= s.degree || !(b.neighbours >> neighbour & 1)) return true;
	const Neighbour &other = s.neighbour[neighbour];
	if (await(other.my_count, n * other.expected, s.limit)) return true;
	release(s.failed, 1 + neighbour);
	atomicOr(s.arrived, STOP);
	return false;
}

// tell counts a step of this block for a neighbour of its shell, by one thread for each.
// The stores of all threads come before: a barrier and a fence at system scope carry
// that on.
__device__ void tell(const Step &s, const Shell &b, int neighbour) {
	if (0 <= neighbour && neighbour < s.degree && b.neighbours >> neighbour & 1) raise(s.neighbour[neighbour].its_count);
}

__device__ const Shell &shell_of(const Step &s) {
	int i = 0;
	while (i + 1 < s.shells && s.shell[i + 1].first <= blockIdx.x) i++;
	return s.shell[i];
}

// Points that lie side by side and are loaded and stored together.
template <int WIDTH>
struct alignas(sizeof(REAL) * WIDTH) Pack {
	REAL at[WIDTH];
};

// A tile of the interior, as a thread sees it: a warp takes 32 packs along x, each at a
// place that is a multiple of its width; the warps take rows, in 2-D stretches of rows.
// All of it marches through some planes.
struct Tile {
	i64 place;       // of the first pack, from the first owned point
	int planes;      // 0: none for this thread
	unsigned inside; // a bit for each point of a pack that is in the interior
};

template <int WIDTH>
__device__ Tile tile_of(const Step &s, unsigned number) {
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
	const unsigned across = (unsigned)s.tiles[0], rest = number / across;
	const i64 x = s.lo[0] / WIDTH * WIDTH + ((i64)(number - rest * across) * 32 + lane) * WIDTH;
#if DIMS == 3
	const unsigned up = (unsigned)s.tiles[1], deep = rest / up;
	const i64 y = s.lo[1] + (i64)(rest - deep * up) * warps + warp, k = s.lo[2] + deep * s.march;
	const i64 planes = y < s.hi[1] ? s.hi[2] - k : 0, place = x + y * s.strides.pitch + k * s.strides.plane;
#else
	const i64 k = s.lo[1] + ((i64)rest * warps + warp) * s.march;
	const i64 planes = s.hi[1] - k, place = x + k * s.strides.pitch;
#endif
	Tile t;
	t.place = place;
	t.planes = x < s.hi[0] ? (int)max((i64)0, min(planes, s.march)) : 0;
	t.inside = 0;
#pragma unroll
	for (int i = 0; i < WIDTH; i++)
		if (s.lo[0] <= x + i && x + i < s.hi[0]) t.inside |= 1u << i;
	return t;
}

// sweep_tile sweeps a tile. Points of a pack that lie outside are left alone. What so many
// planes need is loaded before the first of them is stored: few threads then wait less,
// and many have too few registers.
template <int WIDTH, int BATCH>
__device__ void sweep_tile(const Step &s, const Tile &t, int to) {
	typedef Pack<WIDTH> Points;
	const i64 pitch = s.strides.pitch, step = DIMS == 3 ? s.strides.plane : pitch;
	const REAL *p = s.field[1 - to] + t.place;
	REAL *q = s.field[to] + t.place;
	if (t.planes == 0) return;
	Points below = *(const Points *)(p - step), c = *(const Points *)p;
#pragma unroll 1
	for (int k = 0; k < t.planes; k += BATCH) {
		Points above[BATCH], ym[BATCH], yp[BATCH];
		REAL xm[BATCH], xp[BATCH];
#pragma unroll
		for (int d = 0; d < BATCH; d++) {
			if (d > 0 && k + d >= t.planes) break;
			const REAL *here = p + d * step;
			above[d] = *(const Points *)(here + step);
#if DIMS == 3
			ym[d] = *(const Points *)(here - pitch);
			yp[d] = *(const Points *)(here + pitch);
#endif
			xm[d] = here[-1], xp[d] = here[WIDTH];
		}
#pragma unroll
		for (int d = 0; d < BATCH; d++) {
			if (d > 0 && k + d >= t.planes) break;
			Points out;
#pragma unroll
			for (int i = 0; i < WIDTH; i++) {
				const REAL west = i > 0 ? c.at[i > 0 ? i - 1 : 0] : xm[d], east = i + 1 < WIDTH ? c.at[i + 1 < WIDTH ? i + 1 : 0] : xp[d];
				out.at[i] = apply([&](int dx, int dy, int dz) {
					const int slow = DIMS == 3 ? dz : dy;
					if (slow != 0) return slow < 0 ? below.at[i] : above[d].at[i];
					if (dx != 0) return dx < 0 ? west : east;
					return dy == 0 ? c.at[i] : dy < 0 ? ym[d].at[i] : yp[d].at[i];
				});
			}
			if (t.inside == (1u << WIDTH) - 1) {
				*(Points *)q = out;
			} else {
#pragma unroll
				for (int i = 0; i < WIDTH; i++)
					if (t.inside >> i & 1) q[i] = out.at[i];
			}
			below = c;
			c = above[d];
			q += step;
		}
		p += BATCH * step;
	}
}

// gather waits, in one thread, until all blocks have finished step n. It returns false if
// the run ends.
__device__ bool gather(const Step &s, i64 n) {
	const unsigned long long all = (unsigned long long)n * gridDim.x;
	unsigned long long now;
	__threadfence();
	asm volatile("red.relaxed.gpu.global.add.u64 [%0], 1;" ::"l"(s.arrived) : "memory");
	do asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(s.arrived) : "memory");
	while (now < all);
	__threadfence();
	return now < STOP;
}

// How many planes a thread of a resident kernel loads at once: two, where the compiler has
// registers for them.
#if __CUDA_ARCH__ < 1000
enum { AHEAD = 2 };
#else
enum { AHEAD = 1 };
#endif

// inside makes the steps of a block that sweeps tiles of the interior. Most blocks have
// one at most, whose place they know from the start.
template <int WIDTH>
__device__ void inside(const Step &s) {
	const unsigned mine = (unsigned)(blockIdx.x - s.shell_blocks), blocks = (unsigned)(gridDim.x - s.shell_blocks);
	const unsigned tiles = (unsigned)(s.tiles[0] * s.tiles[1] * s.tiles[2]);
	Tile first = {};
	if (mine < tiles) first = tile_of<WIDTH>(s, mine);
	for (i64 n = s.first; n < s.first + s.count; n++) {
		sweep_tile<WIDTH, AHEAD>(s, first, n % 2);
		for (unsigned i = mine + blocks; i < tiles; i += blocks) sweep_tile<WIDTH, AHEAD>(s, tile_of<WIDTH>(s, i), n % 2);
		__syncthreads();
		if (!__syncthreads_and(threadIdx.x > 0 || gather(s, n))) return;
	}
}

// outside makes the steps of a block that sweeps a shell. After each, one warp waits for
// the other blocks, one tells the neighbours, and one waits for these: what takes time
// does so at the same time.
__device__ void outside(const Step &s) {
	const Shell &b = shell_of(s);
	const int me = threadIdx.x;
	if (!__syncthreads_and(watch(s, b, me, s.first - 1))) return;
	for (i64 n = s.first; n < s.first + s.count; n++) {
		boundary(s, b, n % 2);
		__syncthreads();
		bool on = true;
		if (me == 0) on = gather(s, n);
		if (32 <= me && me < 64) tell(s, b, me - 32);
		if (64 <= me && me < 96) on = watch(s, b, me - 64, n);
		if (!__syncthreads_and(on)) return;
	}
}

// resident makes many steps. All its blocks run at once.
template <int WIDTH>
__device__ void resident(const Step &s) {
	if (blockIdx.x < s.shell_blocks) outside(s);
	else inside<WIDTH>(s);
}

enum { WIDE = 16 / sizeof(REAL) };

extern "C" __global__ void __launch_bounds__(1024, 1) resident_wide(const __grid_constant__ Step s) {
	after_predecessor();
	resident<WIDE>(s);
}

extern "C" __global__ void __launch_bounds__(1024, 1) resident_narrow(const __grid_constant__ Step s) {
	after_predecessor();
	resident<1>(s);
}

// fused makes one step. The blocks that sweep shells come first: they are started first,
// and those of the neighbours too, so that who waits has not long to wait. (Six blocks a
// multiprocessor hide what memory takes: 512^3 float64 on an H200 in 551 us, with four in
// 585.)
#if __CUDA_ARCH__ < 1000
enum { FUSED_BLOCKS = 6 };
#else
enum { FUSED_BLOCKS = 5 };
#endif

extern "C" __global__ void __launch_bounds__(256, FUSED_BLOCKS) fused(const __grid_constant__ Step s) {
	after_predecessor();
	const int to = s.first % 2;
	if (blockIdx.x >= s.shell_blocks) return sweep_tile<WIDE, 1>(s, tile_of<WIDE>(s, blockIdx.x - s.shell_blocks), to);
	const Shell &b = shell_of(s);
	if (!__syncthreads_and(watch(s, b, threadIdx.x, s.first - 1))) return;
	boundary(s, b, to);
	__syncthreads();
	tell(s, b, threadIdx.x);
}
