// One application of a stencil (stencil.Stencil) to boxes of a subdomain.
//
// Build options: REAL. The stencil stands before this file, see tapsSource in taps.go.
// The sums keep the order that stencil.Stencil gives, and the options forbid
// contraction, so that every kernel here and on the host gives the same bits.
//
// A thread works on groups of points that lie beside each other along x and fill 16
// bytes, which it loads and stores as one. Groups are aligned and boxes begin anywhere:
// of a group at the end of a row the points outside of the box are computed, from what
// ghosts and padding hold, and not stored.
//
// A layer is what lies in one place of the slowest axis: a plane in three dimensions, a
// row in two.

enum {
	VEC = 16 / sizeof(REAL),
	REACH = DIMS == 3 ? REACH_Z : REACH_Y, // along the slowest axis, in layers
	SIDE = DIMS == 3 ? REACH_Y : 0,        // within a layer, in rows
};

// A box of points, in groups along x.
struct Part {
	i64 first;      // the first point of the first group
	i64 nx, ny, nz; // points
	i64 head;       // points of the first group that lie before the box
	i64 groups;     // along x
	i64 slot;       // of sweeps with norms: where those of its blocks begin
};

struct Sweep {
	REAL *dst;
	const REAL *src;
	Four *norms;
	Strides strides;
	i64 march; // layers a thread marches through
	Part part[6];

	__device__ i64 layer() const { return DIMS == 3 ? strides.plane : strides.pitch; }
};

template <int N> struct alignas(N * sizeof(REAL)) Group { REAL v[N]; };

// Words of 4, 8 and 16 bytes.
template <int BYTES> struct Word;
template <> struct Word<4> { typedef unsigned Type; };
template <> struct Word<8> { typedef uint2 Type; };
template <> struct Word<16> { typedef uint4 Type; };

// read reads N points that lie beside each other, aligned to their size. The kernel does
// not write what it reads, so the read-only path may serve.
template <int N> __device__ __forceinline__ void read(REAL *to, const REAL *from) {
	typedef typename Word<N * sizeof(REAL)>::Type W;
	union {
		W word;
		REAL v[N];
	} u = {__ldg((const W *)from)};
#pragma unroll
	for (int i = 0; i < N; i++) to[i] = u.v[i];
}

// copy reads N points that lie beside each other, in words where WIDE says that groups
// are aligned.
template <int N, bool WIDE> __device__ __forceinline__ void copy(REAL *to, const REAL *from) {
	if constexpr (WIDE && (N & (N - 1)) == 0 && N <= VEC) {
		read<N>(to, from);
	} else {
#pragma unroll
		for (int i = 0; i < N; i++) read<1>(to + i, from + i);
	}
}

// What a thread holds around groups of N points, in LAYERS layers: of each row the group
// and what the stencil reads left and right of it.
enum { LEFT, CENTRE, RIGHT };

template <int N, int LAYERS> struct Window {
	REAL held[LAYERS][2 * SIDE + 1][N + 2 * REACH_X];

	// load reads one part of a row, which begins at from.
	__device__ __forceinline__ void load(int layer, int row, int part, const REAL *from) {
		REAL *to = held[layer][row];
		if (part == LEFT) copy<REACH_X, (N == VEC)>(to, from - REACH_X);
		if (part == CENTRE) copy<N, (N == VEC)>(to + REACH_X, from);
		if (part == RIGHT) copy<REACH_X, (N == VEC)>(to + REACH_X + N, from + N);
	}

	// step moves one part of a row a layer down.
	__device__ __forceinline__ void step(int layer, int row, int part) {
		const int from = part == LEFT ? 0 : part == CENTRE ? REACH_X : REACH_X + N;
		const int to = part == LEFT ? REACH_X : part == CENTRE ? REACH_X + N : 2 * REACH_X + N;
#pragma unroll
		for (int i = 0; i < N + 2 * REACH_X; i++)
			if (i >= from && i < to) held[layer][row][i] = held[layer + 1][row][i];
	}

	// sum applies the stencil to point v of the group in a layer.
	__device__ __forceinline__ REAL sum(int layer, int v) const {
		return apply([&](int dx, int dy, int dz) {
			return held[layer + (DIMS == 3 ? dz : dy)][SIDE + (DIMS == 3 ? dy : 0)][REACH_X + v + dx];
		});
	}

	__device__ __forceinline__ REAL centre(int layer, int v) const { return held[layer][SIDE][REACH_X + v]; }
};

// finish sweeps the group of a layer whose first point is x points into the row, and
// stores what lies within it.
template <bool NORMS, int N, int LAYERS>
__device__ __forceinline__ void finish(REAL *to, const Window<N, LAYERS> &w, int layer, i64 x, i64 nx, Found &norms) {
	Group<N> out;
#pragma unroll
	for (int v = 0; v < N; v++) out.v[v] = w.sum(layer, v);
	if (x >= 0 && x + N <= nx) {
		*(Group<N> *)to = out;
		if (NORMS)
#pragma unroll
			for (int v = 0; v < N; v++) norms.point(out.v[v], w.centre(layer, v));
		return;
	}
#pragma unroll
	for (int v = 0; v < N; v++) {
		if (x + v < 0 || x + v >= nx) continue;
		to[v] = out.v[v];
		if (NORMS) norms.point(out.v[v], w.centre(layer, v));
	}
}

#define EACH_PART \
	_Pragma("unroll") for (int row = 0; row < 2 * SIDE + 1; row++) \
		_Pragma("unroll") for (int part = LEFT; part <= RIGHT; part++)

#if DIMS == 3

// march sweeps part[0], a large box. Each thread keeps a column of groups: it marches
// along z through a few planes and holds those before and behind in registers, so that
// it loads a row once. Blocks that live short, in the order of memory, keep what is read
// and written at one time close together, which DRAM likes; unrolling costs registers.
template <bool NORMS> __device__ __forceinline__ Found march(const Sweep &s) {
	const Part &r = s.part[0];
	Found norms = {0, 0, 0, 0};
	const i64 group = (i64)blockIdx.x * blockDim.x + threadIdx.x, x = group * VEC - r.head;
	const i64 y = (i64)blockIdx.y * blockDim.y + threadIdx.y;
	if (group >= r.groups || x + VEC <= 0 || y >= r.ny) return norms;
	const i64 pitch = s.strides.pitch, plane = s.strides.plane, z = blockIdx.z * s.march;
	const i64 o = r.first + group * VEC + y * pitch + z * plane;
	const REAL *__restrict__ p = s.src + o;
	REAL *__restrict__ q = s.dst + o;
	Window<VEC, 2 * REACH + 1> w;
#pragma unroll
	for (int m = -REACH; m < REACH; m++)
		EACH_PART if (m >= taps_low[row][part] && m < taps_high[row][part])
			w.load(m + REACH, row, part, p + m * plane + (row - SIDE) * pitch);
	const int planes = (int)min(s.march, r.nz - z);
#pragma unroll 1
	for (int k = 0; k < planes; k++) {
#pragma unroll
		for (int m = REACH; m >= -REACH; m--)
			EACH_PART if (m == taps_high[row][part])
				w.load(m + REACH, row, part, p + m * plane + (row - SIDE) * pitch);
		finish<NORMS>(q, w, REACH, x, r.nx, norms);
#pragma unroll
		for (int m = -REACH; m < REACH; m++)
			EACH_PART if (m >= taps_low[row][part] && m < taps_high[row][part]) w.step(m + REACH, row, part);
		p += plane;
		q += plane;
	}
	return norms;
}

#else

// rows sweeps part[0], a large box: each thread has one group in each of ROWS rows, and
// loads all that it needs before it computes.
template <int ROWS, bool NORMS> __device__ __forceinline__ Found rows(const Sweep &s) {
	const Part &r = s.part[0];
	Found norms = {0, 0, 0, 0};
	const i64 group = (i64)blockIdx.x * blockDim.x + threadIdx.x, x = group * VEC - r.head;
	const i64 y = ((i64)blockIdx.z * gridDim.y + blockIdx.y) * ROWS;
	if (group >= r.groups || x + VEC <= 0 || y >= r.ny) return norms;
	const i64 pitch = s.strides.pitch, o = r.first + group * VEC + y * pitch;
	const REAL *__restrict__ p = s.src + o;
	REAL *__restrict__ q = s.dst + o;
	const int here = (int)min((i64)ROWS, r.ny - y);
	Window<VEC, ROWS + 2 * REACH> w;
#pragma unroll
	for (int l = 0; l < ROWS + 2 * REACH; l++)
		if (l < here + 2 * REACH)
			EACH_PART if (l - REACH >= taps_low[0][part] && l - REACH < ROWS + taps_high[0][part])
				w.load(l, row, part, p + (l - REACH) * pitch);
#pragma unroll
	for (int l = 0; l < ROWS; l++)
		if (l < here) finish<NORMS>(q + l * pitch, w, l + REACH, x, r.nx, norms);
	return norms;
}

#endif

// flat sweeps several small or thin boxes in one launch, a group of N points a thread:
// box b is the work of the blocks with blockIdx.y = b.
template <int N, bool NORMS> __device__ __forceinline__ Found flat(const Sweep &s) {
	const Part &r = s.part[blockIdx.y];
	Found norms = {0, 0, 0, 0};
	const REAL *__restrict__ src = s.src;
	REAL *__restrict__ dst = s.dst;
	const Region groups = {0, r.groups, r.ny, r.nz};
	const i64 count = r.groups * r.ny * r.nz;
	for (i64 n = thread_index(); n < count; n += thread_count()) {
		const Point g = point(groups, n);
		const i64 o = r.first + g.x * N + g.y * s.strides.pitch + g.z * s.strides.plane;
		Window<N, 2 * REACH + 1> w;
#pragma unroll
		for (int m = -REACH; m <= REACH; m++)
			EACH_PART if (m >= taps_low[row][part] && m <= taps_high[row][part])
				w.load(m + REACH, row, part, src + o + m * s.layer() + (row - SIDE) * s.strides.pitch);
		finish<NORMS>(dst + o, w, REACH, g.x * N - r.head, r.nx, norms);
	}
	return norms;
}

// large_slot is the slot of a block of a large box, flat_slot of one of thin boxes.
__device__ inline i64 large_slot(const Sweep &s) {
	return s.part[0].slot + blockIdx.x + (i64)gridDim.x * (blockIdx.y + (i64)gridDim.y * blockIdx.z);
}

__device__ inline i64 flat_slot(const Sweep &s) { return s.part[blockIdx.y].slot + blockIdx.x; }

// KERNELS are a sweep and the same sweep with norms. PLAIN and WITH are their launch
// bounds, threads and blocks, that let the compiler give them registers enough and not
// more than leave room for the threads that hide the latency of memory.
#define KERNELS(NAME, PLAIN, WITH, SLOT, ...) \
	extern "C" __global__ void __launch_bounds__ PLAIN NAME(const __grid_constant__ Sweep s) { \
		after_predecessor(); \
		__VA_ARGS__ false>(s); \
	} \
	extern "C" __global__ void __launch_bounds__ WITH NAME##_norms(const __grid_constant__ Sweep s) { \
		after_predecessor(); \
		over_block(__VA_ARGS__ true>(s).four(), s.norms + SLOT(s)); \
	}

#if DIMS == 3 && POINTS <= 7
KERNELS(sweep_march, (512), (512), large_slot, march<)
#elif DIMS == 3 && POINTS <= 19
KERNELS(sweep_march, (512, 2), (512, 1), large_slot, march<)
#elif DIMS == 3
KERNELS(sweep_march, (512, 1), (512, 1), large_slot, march<)
#else
KERNELS(sweep_rows2, (256, 1), (256, 1), large_slot, rows<2,)
KERNELS(sweep_rows4, (256, 1), (256, 1), large_slot, rows<4,)
KERNELS(sweep_rows8, (256, 1), (256, 1), large_slot, rows<8,)
#endif
KERNELS(sweep_flat, (256, 1), (256, 1), flat_slot, flat<VEC,)
KERNELS(sweep_points, (256, 1), (256, 1), flat_slot, flat<1,)
