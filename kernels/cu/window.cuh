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
#pragma once

#include "four.cuh"
#include "stencil.cuh"

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

template <int N> struct alignas(N * sizeof(REAL)) Group {
	REAL v[N];
};

// Words of 4, 8 and 16 bytes.
template <int BYTES> struct Word;
template <> struct Word<4> {
	typedef unsigned Type;
};
template <> struct Word<8> {
	typedef uint2 Type;
};
template <> struct Word<16> {
	typedef uint4 Type;
};

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

template <int N, int LAYERS, int ROWS = 2 * SIDE + 1> struct Window {
	REAL held[LAYERS][ROWS][N + 2 * REACH_X];

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

// inside_of has a bit for each point of a group of N that lies within a row of nx points;
// the group begins x points into it.
template <int N> __device__ __forceinline__ unsigned inside_of(i64 x, i64 nx) {
	unsigned inside = 0;
#pragma unroll
	for (int v = 0; v < N; v++) inside |= (unsigned)(x + v >= 0 && x + v < nx) << v;
	return inside;
}

// In a march, whole groups and others share the code of their norms, which saves registers.
#ifdef MARCHES
enum { SHARED_NORMS = true };
#else
enum { SHARED_NORMS = false };
#endif

// put stores the points of a group that are inside: mostly all, as one word.
template <bool NORMS, int N>
__device__ __forceinline__ void put(REAL *to, const Group<N> &out, const Group<N> &before, unsigned all, Found &norms) {
	const unsigned inside = opaque(all);
	const bool whole = inside == (1u << N) - 1;
	if (whole) *(Group<N> *)to = out;
	if (whole && !(NORMS && SHARED_NORMS)) {
		if (NORMS)
#pragma unroll
			for (int v = 0; v < N; v++) norms.point(out.v[v], before.v[v]);
		return;
	}
#pragma unroll
	for (int v = 0; v < N; v++) {
		if (!(inside >> v & 1)) continue;
		if (!whole) to[v] = out.v[v];
		if (NORMS) norms.point(out.v[v], before.v[v]);
	}
}

// finish sweeps the group of a layer and puts it there.
template <bool NORMS, int N, int LAYERS>
__device__ __forceinline__ void finish(REAL *to, const Window<N, LAYERS> &w, int layer, unsigned inside, Found &norms) {
	Group<N> out, before;
#pragma unroll
	for (int v = 0; v < N; v++) out.v[v] = w.sum(layer, v), before.v[v] = w.centre(layer, v);
	put<NORMS>(to, out, before, inside, norms);
}

// Where in a large box a thread begins: at which group along x, at which row of a layer
// (in three dimensions), and at which layer.
struct Place {
	i64 group, row, layer;
};

// A column of groups of a large box, which lie behind each other in some layers, and of
// several rows beside each other (TALL): what one thread sweeps.
struct Column {
	i64 first;       // its first point
	unsigned inside; // of each group
	int layers;      // 0: there is nothing to sweep
	int rows;        // of those of the thread, how many there are in the box

	__device__ __forceinline__ Column(const Ends &f, const Part &r, const Place &at, i64 most) {
		const i64 deep = DIMS == 3 ? r.nz : r.ny;
		inside = inside_of<VEC>(at.group * VEC - r.head, r.nx);
		layers = 0;
		if (at.group >= r.groups || inside == 0 || (DIMS == 3 && at.row >= r.ny) || at.layer >= deep) return;
		layers = (int)min(most, deep - at.layer);
		rows = DIMS == 3 ? (int)min((i64)TALL, r.ny - at.row) : 1;
		first = r.first + at.group * VEC + (DIMS == 3 ? at.row * f.strides.pitch : 0) + at.layer * f.layer();
	}
};

// march sweeps a column of groups of a large box, in at most so many layers. Blocks that
// live short, in the order of memory, keep what is read and written at one time close
// together, which DRAM likes; unrolling costs registers. Rows are announced ANNOUNCED layers
// before they are loaded.
#ifdef LAYERED

// The sums of the stencil's parts in one layer, in some rows and around a group of each.
struct Held {
	Sums at[TALL][VEC];

	__device__ __forceinline__ void sum(const Window<VEC, 1, TALL + 2 * SIDE> &w) {
#pragma unroll
		for (int t = 0; t < TALL; t++)
#pragma unroll
			for (int v = 0; v < VEC; v++)
				at[t][v] = sums_of([&](int dx, int dy, int) { return w.held[0][t + SIDE + dy][REACH_X + v + dx]; });
	}
};

// The thread loads one layer after the other, in several rows of which it loads those
// between only once, and holds of each the sums of the stencil's parts there. They go to
// places in turn: the body of the loop is one turn, so that nothing has to be moved.
template <int AHEAD, bool NORMS>
__device__ __forceinline__ Found march(const Ends &f, const Part &r, const Place &at, i64 most) {
	Found norms = {0, 0, 0, 0};
	const Column c(f, r, at, most);
	if (c.layers == 0) return norms;
	const i64 pitch = f.strides.pitch, layer = f.layer();
	const REAL *__restrict__ p = f.src + c.first;
	REAL *__restrict__ q = f.dst + c.first;
	enum { PLACES = 2 * REACH + 1 };
	typedef Window<VEC, 1, TALL + 2 * SIDE> Rows;
	Held held[PLACES];
	const auto announce_layer = [&](int m) {
#pragma unroll
		for (int t = 0; t < TALL; t++) prefetch_l2(p + m * layer + t * pitch);
	};
	const auto load = [&](Rows &w, int m) {
#pragma unroll
		for (int row = 0; row < TALL + 2 * SIDE; row++) {
			const int here = row > 2 * SIDE ? min(row, c.rows + 2 * SIDE - 1) : row; // beyond them there may be nothing
#pragma unroll
			for (int part = LEFT; part <= RIGHT; part++) w.load(0, row, part, p + m * layer + (here - SIDE) * pitch);
		}
	};
#pragma unroll
	for (int m = 0; m < ANNOUNCED; m++)
		if (m < c.layers) announce_layer(REACH + m);
	{
		Rows w[2 * REACH];
#pragma unroll
		for (int m = 0; m < 2 * REACH; m++) load(w[m], m - REACH);
#pragma unroll
		for (int m = 0; m < 2 * REACH; m++) held[m].sum(w[m]);
	}
	int k = 0;
#pragma unroll 1
	while (true) {
#pragma unroll
		for (int turn = 0; turn < PLACES; turn++, k++) {
			if (k >= c.layers) return norms;
			if (k + ANNOUNCED < c.layers) announce_layer(REACH + ANNOUNCED);
			Rows w;
			load(w, REACH);
			held[(turn + 2 * REACH) % PLACES].sum(w);
#pragma unroll
			for (int t = 0; t < TALL; t++) {
				Group<VEC> out, before;
#pragma unroll
				for (int v = 0; v < VEC; v++) {
					const auto in = [&](int part, int m) {
						return held[(turn + REACH + m) % PLACES].at[t][v].of[part];
					};
					out.v[v] = sum_of(in), before.v[v] = in(0, 0);
				}
				if (t < c.rows) put<NORMS>(q + t * pitch, out, before, c.inside, norms);
			}
			p += layer;
			q += layer;
		}
	}
}

#else

// The thread holds the layers before and behind in registers, so that it loads a row once.
// What AHEAD layers need is loaded before the first of them is computed: more than one where
// threads are few.
template <int AHEAD, bool NORMS>
__device__ __forceinline__ Found march(const Ends &f, const Part &r, const Place &at, i64 most) {
	Found norms = {0, 0, 0, 0};
	const Column c(f, r, at, most);
	if (c.layers == 0) return norms;
	const i64 pitch = f.strides.pitch, layer = f.layer();
	const REAL *__restrict__ p = f.src + c.first;
	REAL *__restrict__ q = f.dst + c.first;
	Window<VEC, 2 * REACH + AHEAD> w;
#pragma unroll
	for (int m = 1; m < ANNOUNCED; m++)
		if (m < c.layers) prefetch_l2(p + (REACH + m) * layer);
#pragma unroll
	for (int m = -REACH; m < REACH; m++)
#pragma unroll
		for (int row = 0; row < 2 * SIDE + 1; row++)
#pragma unroll
			for (int part = LEFT; part <= RIGHT; part++)
				if (m >= taps_low[row][part] && m < taps_high[row][part])
					w.load(m + REACH, row, part, p + m * layer + (row - SIDE) * pitch);
#pragma unroll 1
	for (int k = 0; k < c.layers; k += AHEAD) {
#pragma unroll
		for (int d = 0; d < AHEAD; d++) {
			if (d > 0 && k + d >= c.layers) break;
			if (ANNOUNCED > 0 && k + d + ANNOUNCED < c.layers) prefetch_l2(p + (d + REACH + ANNOUNCED) * layer);
#pragma unroll
			for (int m = REACH; m >= -REACH; m--)
#pragma unroll
				for (int row = 0; row < 2 * SIDE + 1; row++)
#pragma unroll
					for (int part = LEFT; part <= RIGHT; part++)
						if (m == taps_high[row][part])
							w.load(d + m + REACH, row, part, p + (d + m) * layer + (row - SIDE) * pitch);
		}
#pragma unroll
		for (int d = 0; d < AHEAD; d++) {
			if (d > 0 && k + d >= c.layers) break;
			finish<NORMS>(q + d * layer, w, d + REACH, c.inside, norms);
		}
#pragma unroll
		for (int m = -REACH; m < REACH; m++)
#pragma unroll
			for (int row = 0; row < 2 * SIDE + 1; row++)
#pragma unroll
				for (int part = LEFT; part <= RIGHT; part++)
					if (m >= taps_low[row][part] && m < taps_high[row][part]) w.step(m + REACH, row, part, AHEAD);
		p += AHEAD * layer;
		q += AHEAD * layer;
	}
	return norms;
}

#endif

// slab_of_block counts what a grid of blocks has along the slowest axis, slabs of blocks, in
// two dimensions over two axes of the grid. large sweeps a large box by such a grid, a tile a
// block.
__device__ inline i64 slab_of_block() { return DIMS == 3 ? blockIdx.z : (i64)blockIdx.z * gridDim.y + blockIdx.y; }

enum { MARCH = 0 }; // instead of rows

#ifdef MARCHES

template <int, bool NORMS> __device__ __forceinline__ Found large(const Ends &f, const Part &r, i64 slab, i64 layers) {
	const i64 row = DIMS == 3 ? ((i64)blockIdx.y * blockDim.y + threadIdx.y) * TALL : 0;
	return march<1, NORMS>(f, r, Place{(i64)blockIdx.x * blockDim.x + threadIdx.x, row, slab * layers}, layers);
}

#else

// In two dimensions, where that takes few registers, each thread sweeps one group in each of
// ROWS rows, and loads all that it needs before it computes.
template <int ROWS, bool NORMS>
__device__ __forceinline__ Found large(const Ends &f, const Part &r, i64 slab, i64 = ROWS) {
	Found norms = {0, 0, 0, 0};
	const i64 group = (i64)blockIdx.x * blockDim.x + threadIdx.x, y = slab * ROWS;
	const unsigned inside = inside_of<VEC>(group * VEC - r.head, r.nx);
	if (group >= r.groups || inside == 0 || y >= r.ny) return norms;
	const i64 pitch = f.strides.pitch, o = r.first + group * VEC + y * pitch;
	const REAL *__restrict__ p = f.src + o;
	REAL *__restrict__ q = f.dst + o;
	const int here = (int)min((i64)ROWS, r.ny - y);
	Window<VEC, ROWS + 2 * REACH> w;
#pragma unroll
	for (int l = 0; l < ROWS + 2 * REACH; l++)
		if (l < here + 2 * REACH)
#pragma unroll
			for (int row = 0; row < 2 * SIDE + 1; row++)
#pragma unroll
				for (int part = LEFT; part <= RIGHT; part++)
					if (l - REACH >= taps_low[0][part] && l - REACH < ROWS + taps_high[0][part])
						w.load(l, row, part, p + (l - REACH) * pitch);
#pragma unroll
	for (int l = 0; l < ROWS; l++)
		if (l < here) finish<NORMS>(q + l * pitch, w, l + REACH, inside, norms);
	return norms;
}

#endif
