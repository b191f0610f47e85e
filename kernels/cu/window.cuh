// The window of points that a thread holds to apply a stencil, for all kernels that sweep.
//
// Sums are in the order of stencil.Stencil and the compiler does not contract them, so that all kernels
// and the host give the same bits.
//
// A thread works on groups of adjacent points along x that fill 16 bytes, which it loads and stores as
// one word. Groups are aligned; boxes are not. The points of a group outside of the box are computed
// from ghosts and padding, and not stored.
//
// A layer is a plane in three dimensions and a row in two.
//
// Options: REAL; READ_ONLY, if nothing is written, while the kernel runs, that it reads.
#pragma once

#include "norms.cuh"
#include "stencil.cuh"

enum {
	VEC = 16 / sizeof(REAL),
	RADIUS = DIMS == 3 ? RADIUS_Z : RADIUS_Y, // along the slowest axis, in layers
	ROW_RADIUS = DIMS == 3 ? RADIUS_Y : 0,    // within a layer, in rows
};

// A box of points, in groups along x.
struct SweepPart {
	i64 first;      // the first point of the first group
	i64 nx, ny, nz; // points
	i64 head;       // points of the first group before the box
	i64 groups;     // along x
	i64 slot;       // of the norms of its first block
};

// The field that a sweep writes, and the one that it reads.
struct SweptFields {
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

// load loads a word, through the read-only path if it need not see what others write.
template <typename W> __device__ __forceinline__ W load(const W *from) {
#ifdef READ_ONLY
	return __ldg(from);
#else
	return *from;
#endif
}

// load_aligned loads N adjacent points, which are aligned to their size.
template <int N> __device__ __forceinline__ void load_aligned(REAL *to, const REAL *from) {
	typedef typename Word<N * sizeof(REAL)>::Type W;
	union {
		W word;
		REAL v[N];
	} u = {load((const W *)from)};
#pragma unroll
	for (int i = 0; i < N; i++) to[i] = u.v[i];
}

// load_points loads N adjacent points, in words if WIDE says that groups are aligned.
template <int N, bool WIDE> __device__ __forceinline__ void load_points(REAL *to, const REAL *from) {
	if constexpr (WIDE && (N & (N - 1)) == 0 && N <= VEC) {
		load_aligned<N>(to, from);
	} else {
#pragma unroll
		for (int i = 0; i < N; i++) load_aligned<1>(to + i, from + i);
	}
}

// What a thread holds around groups of N points, in LAYERS layers: of each row the group, and what the
// stencil reads left and right of it.
enum { LEFT, CENTRE, RIGHT };

template <int N, int LAYERS, int ROWS = 2 * ROW_RADIUS + 1> struct Window {
	REAL held[LAYERS][ROWS][N + 2 * RADIUS_X];

	// load loads one part of a row, whose group begins at from.
	__device__ __forceinline__ void load(int layer, int row, int part, const REAL *from) {
		REAL *to = held[layer][row];
		if (part == LEFT) load_points<RADIUS_X, (N == VEC)>(to, from - RADIUS_X);
		if (part == CENTRE) load_points<N, (N == VEC)>(to + RADIUS_X, from);
		if (part == RIGHT) load_points<RADIUS_X, (N == VEC)>(to + RADIUS_X + N, from + N);
	}

	// step moves one part of a row down to a layer, from `by` layers above it.
	__device__ __forceinline__ void step(int layer, int row, int part, int by) {
		const int from = part == LEFT ? 0 : part == CENTRE ? RADIUS_X : RADIUS_X + N;
		const int to = part == LEFT ? RADIUS_X : part == CENTRE ? RADIUS_X + N : 2 * RADIUS_X + N;
#pragma unroll
		for (int i = 0; i < N + 2 * RADIUS_X; i++)
			if (i >= from && i < to) held[layer][row][i] = held[layer + by][row][i];
	}

	// sum applies the stencil to point v of the group in a layer.
	__device__ __forceinline__ REAL sum(int layer, int v) const {
		return apply([&](int dx, int dy, int dz) {
			return held[layer + (DIMS == 3 ? dz : dy)][ROW_RADIUS + (DIMS == 3 ? dy : 0)][RADIUS_X + v + dx];
		});
	}

	__device__ __forceinline__ REAL centre(int layer, int v) const { return held[layer][ROW_RADIUS][RADIUS_X + v]; }
};

// inside_of returns a bit for each point of a group of N that lies in a row of nx points. The group
// begins x points into the row.
template <int N> __device__ __forceinline__ unsigned inside_of(i64 x, i64 nx) {
	unsigned inside = 0;
#pragma unroll
	for (int v = 0; v < N; v++) inside |= (unsigned)(x + v >= 0 && x + v < nx) << v;
	return inside;
}

// A thread that streams has one code for the norms of all groups, which saves registers.
#ifdef STREAMS
enum { SHARED_NORMS = true };
#else
enum { SHARED_NORMS = false };
#endif

// store_group stores the points of a group that are inside: usually all, as one word.
template <bool NORMS, int N>
__device__ __forceinline__ void store_group(REAL *to, const Group<N> &out, const Group<N> &before, unsigned all,
                                            NormPartial &norms) {
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

// sweep_group applies the stencil to the group of a layer, and stores the result.
template <bool NORMS, int N, int LAYERS>
__device__ __forceinline__ void sweep_group(REAL *to, const Window<N, LAYERS> &w, int layer, unsigned inside,
                                            NormPartial &norms) {
	Group<N> out, before;
#pragma unroll
	for (int v = 0; v < N; v++) out.v[v] = w.sum(layer, v), before.v[v] = w.centre(layer, v);
	store_group<NORMS>(to, out, before, inside, norms);
}
