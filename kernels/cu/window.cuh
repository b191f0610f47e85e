// How a thread sweeps a stencil (stencil.Stencil) over a box: the window of points that it
// holds, and the ways through large boxes, for all kernels that sweep.
//
// Build options: REAL, and READ_ONLY where nothing writes, while the kernel runs, what it
// reads. The stencil stands before this file, see tapsSource in taps.go. The sums keep the
// order that stencil.Stencil gives, and the options forbid contraction, so that every
// kernel here and on the host gives the same bits.
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

// The field that a sweep writes and the one that it reads.
struct Ends {
	REAL *dst;
	const REAL *src;
	Strides strides;

	__device__ i64 layer() const { return DIMS == 3 ? strides.plane : strides.pitch; }
};

template <int N> struct alignas(N * sizeof(REAL)) Group { REAL v[N]; };

// Words of 4, 8 and 16 bytes.
template <int BYTES> struct Word;
template <> struct Word<4> { typedef unsigned Type; };
template <> struct Word<8> { typedef uint2 Type; };
template <> struct Word<16> { typedef uint4 Type; };

// fetch reads a word, through the read-only path where that may serve: it need not see
// what others write.
template <typename W> __device__ __forceinline__ W fetch(const W *from) {
#ifdef READ_ONLY
	return __ldg(from);
#else
	return *from;
#endif
}

// read reads N points that lie beside each other, aligned to their size.
template <int N> __device__ __forceinline__ void read(REAL *to, const REAL *from) {
	typedef typename Word<N * sizeof(REAL)>::Type W;
	union {
		W word;
		REAL v[N];
	} u = {fetch((const W *)from)};
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

	// step moves one part of a row down to a layer, by so many layers.
	__device__ __forceinline__ void step(int layer, int row, int part, int by) {
		const int from = part == LEFT ? 0 : part == CENTRE ? REACH_X : REACH_X + N;
		const int to = part == LEFT ? REACH_X : part == CENTRE ? REACH_X + N : 2 * REACH_X + N;
#pragma unroll
		for (int i = 0; i < N + 2 * REACH_X; i++)
			if (i >= from && i < to) held[layer][row][i] = held[layer + by][row][i];
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

// Where in a large box a thread begins: at which group along x, at which row of a layer
// (in three dimensions), and at which layer.
struct Place {
	i64 group, row, layer;
};

// march sweeps groups of a large box that lie behind each other in at most so many layers,
// a column of them: the thread holds the layers before and behind in registers, so that it
// loads a row once. What AHEAD layers need is loaded before the first of them is computed:
// more than one where threads are few. Blocks that live short, in the order of memory,
// keep what is read and written at one time close together, which DRAM likes; unrolling
// costs registers.
template <int AHEAD, bool NORMS>
__device__ __forceinline__ Found march(const Ends &f, const Part &r, const Place &at, i64 most) {
	Found norms = {0, 0, 0, 0};
	const i64 x = at.group * VEC - r.head, deep = DIMS == 3 ? r.nz : r.ny;
	if (at.group >= r.groups || x + VEC <= 0 || (DIMS == 3 && at.row >= r.ny) || at.layer >= deep) return norms;
	const i64 pitch = f.strides.pitch, layer = f.layer();
	const i64 o = r.first + at.group * VEC + (DIMS == 3 ? at.row * pitch : 0) + at.layer * layer;
	const REAL *__restrict__ p = f.src + o;
	REAL *__restrict__ q = f.dst + o;
	Window<VEC, 2 * REACH + AHEAD> w;
#pragma unroll
	for (int m = -REACH; m < REACH; m++)
		EACH_PART if (m >= taps_low[row][part] && m < taps_high[row][part])
			w.load(m + REACH, row, part, p + m * layer + (row - SIDE) * pitch);
	const int layers = (int)min(most, deep - at.layer);
#pragma unroll 1
	for (int k = 0; k < layers; k += AHEAD) {
#pragma unroll
		for (int d = 0; d < AHEAD; d++) {
			if (d > 0 && k + d >= layers) break;
#pragma unroll
			for (int m = REACH; m >= -REACH; m--)
				EACH_PART if (m == taps_high[row][part])
					w.load(d + m + REACH, row, part, p + (d + m) * layer + (row - SIDE) * pitch);
		}
#pragma unroll
		for (int d = 0; d < AHEAD; d++) {
			if (d > 0 && k + d >= layers) break;
			finish<NORMS>(q + d * layer, w, d + REACH, x, r.nx, norms);
		}
#pragma unroll
		for (int m = -REACH; m < REACH; m++)
			EACH_PART if (m >= taps_low[row][part] && m < taps_high[row][part]) w.step(m + REACH, row, part, AHEAD);
		p += AHEAD * layer;
		q += AHEAD * layer;
	}
	return norms;
}

// slab_of_block counts what a grid of blocks has along the slowest axis, slabs of blocks, in
// two dimensions over two axes of the grid. large sweeps a large box by such a grid, a tile a
// block.
#if DIMS == 3

__device__ inline i64 slab_of_block() { return blockIdx.z; }

template <bool NORMS> __device__ __forceinline__ Found large(const Ends &f, const Part &r, i64 slab, i64 layers) {
	const Place at = {(i64)blockIdx.x * blockDim.x + threadIdx.x, (i64)blockIdx.y * blockDim.y + threadIdx.y, slab * layers};
	return march<1, NORMS>(f, r, at, layers);
}

#else

__device__ inline i64 slab_of_block() { return (i64)blockIdx.z * gridDim.y + blockIdx.y; }

// In two dimensions each thread sweeps one group in each of ROWS rows, and loads all that it
// needs before it computes.
template <int ROWS, bool NORMS> __device__ __forceinline__ Found large(const Ends &f, const Part &r, i64 slab, i64 = ROWS) {
	Found norms = {0, 0, 0, 0};
	const i64 group = (i64)blockIdx.x * blockDim.x + threadIdx.x, x = group * VEC - r.head, y = slab * ROWS;
	if (group >= r.groups || x + VEC <= 0 || y >= r.ny) return norms;
	const i64 pitch = f.strides.pitch, o = r.first + group * VEC + y * pitch;
	const REAL *__restrict__ p = f.src + o;
	REAL *__restrict__ q = f.dst + o;
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
