// How thread blocks sweep large boxes.
//
// Threads stream in z, or along y in two dimensions: each goes through some layers, and holds what the
// next ones need. Stencils of radius 1 in two dimensions have threads that sweep some rows at once.
#pragma once

#include "window.cuh"

// Where in a large box a thread begins: the group along x, the row of a layer (in three dimensions), and
// the layer.
struct Place {
	i64 group, row, layer;
};

// What one thread sweeps of a large box: a group in each of some layers, and of ROWS_PER_THREAD adjacent
// rows.
struct Column {
	i64 first;       // point
	unsigned inside; // see inside_of
	int layers;      // 0: nothing to sweep
	int rows;        // of the thread, in the box

	__device__ __forceinline__ Column(const SweptFields &f, const SweepPart &r, const Place &at, i64 most) {
		const i64 deep = DIMS == 3 ? r.nz : r.ny;
		inside = inside_of<VEC>(at.group * VEC - r.head, r.nx);
		layers = 0;
		if (at.group >= r.groups || inside == 0 || (DIMS == 3 && at.row >= r.ny) || at.layer >= deep) return;
		layers = (int)min(most, deep - at.layer);
		rows = DIMS == 3 ? (int)min((i64)ROWS_PER_THREAD, r.ny - at.row) : 1;
		first = r.first + at.group * VEC + (DIMS == 3 ? at.row * f.strides.pitch : 0) + at.layer * f.layer();
	}
};

// stream sweeps a column of groups through at most so many layers. Blocks that are short-lived, and start
// in the order of memory, keep the accesses of a time close together, which suits DRAM. Unrolling would
// cost registers. Rows are prefetched into the L2 cache L2_PREFETCH layers before they are loaded.
#ifdef LAYERED

// The sums of the parts of the stencil in one layer, for the groups of all rows of the thread.
struct Held {
	Sums at[ROWS_PER_THREAD][VEC];

	__device__ __forceinline__ void sum(const Window<VEC, 1, ROWS_PER_THREAD + 2 * ROW_RADIUS> &w) {
#pragma unroll
		for (int t = 0; t < ROWS_PER_THREAD; t++)
#pragma unroll
			for (int v = 0; v < VEC; v++)
				at[t][v] =
				    sums_of([&](int dx, int dy, int) { return w.held[0][t + ROW_RADIUS + dy][RADIUS_X + v + dx]; });
	}
};

// The thread loads each layer once, and holds the sums of the parts of the stencil there. These are kept
// in a ring: the loop is unrolled to one round of it, so that nothing is moved.
template <int PREFETCH, bool NORMS>
__device__ __forceinline__ NormPartial stream(const SweptFields &f, const SweepPart &r, const Place &at, i64 most) {
	NormPartial norms = {0, 0, 0, 0};
	const Column c(f, r, at, most);
	if (c.layers == 0) return norms;
	const i64 pitch = f.strides.pitch, layer = f.layer();
	const REAL *__restrict__ p = f.src + c.first;
	REAL *__restrict__ q = f.dst + c.first;
	enum { PLACES = 2 * RADIUS + 1 };
	typedef Window<VEC, 1, ROWS_PER_THREAD + 2 * ROW_RADIUS> Rows;
	Held held[PLACES];
	const auto prefetch_layer = [&](int m) {
#pragma unroll
		for (int t = 0; t < ROWS_PER_THREAD; t++) prefetch_l2(p + m * layer + t * pitch);
	};
	const auto load = [&](Rows &w, int m) {
#pragma unroll
		for (int row = 0; row < ROWS_PER_THREAD + 2 * ROW_RADIUS; row++) {
			const int here = row > 2 * ROW_RADIUS ? min(row, c.rows + 2 * ROW_RADIUS - 1) : row; // memory may end there
#pragma unroll
			for (int part = LEFT; part <= RIGHT; part++)
				w.load(0, row, part, p + m * layer + (here - ROW_RADIUS) * pitch);
		}
	};
#pragma unroll
	for (int m = 0; m < L2_PREFETCH; m++)
		if (m < c.layers) prefetch_layer(RADIUS + m);
	{
		Rows w[2 * RADIUS];
#pragma unroll
		for (int m = 0; m < 2 * RADIUS; m++) load(w[m], m - RADIUS);
#pragma unroll
		for (int m = 0; m < 2 * RADIUS; m++) held[m].sum(w[m]);
	}
	int k = 0;
#pragma unroll 1
	while (true) {
#pragma unroll
		for (int turn = 0; turn < PLACES; turn++, k++) {
			if (k >= c.layers) return norms;
			if (k + L2_PREFETCH < c.layers) prefetch_layer(RADIUS + L2_PREFETCH);
			Rows w;
			load(w, RADIUS);
			held[(turn + 2 * RADIUS) % PLACES].sum(w);
#pragma unroll
			for (int t = 0; t < ROWS_PER_THREAD; t++) {
				Group<VEC> out, before;
#pragma unroll
				for (int v = 0; v < VEC; v++) {
					const auto in = [&](int part, int m) {
						return held[(turn + RADIUS + m) % PLACES].at[t][v].of[part];
					};
					out.v[v] = sum_of(in), before.v[v] = in(0, 0);
				}
				if (t < c.rows) store_group<NORMS>(q + t * pitch, out, before, c.inside, norms);
			}
			p += layer;
			q += layer;
		}
	}
}

#else

// The thread holds the window in registers, so that it loads each row once. It loads what PREFETCH layers
// need before it computes the first of them: more than one if there are few threads.
template <int PREFETCH, bool NORMS>
__device__ __forceinline__ NormPartial stream(const SweptFields &f, const SweepPart &r, const Place &at, i64 most) {
	NormPartial norms = {0, 0, 0, 0};
	const Column c(f, r, at, most);
	if (c.layers == 0) return norms;
	const i64 pitch = f.strides.pitch, layer = f.layer();
	const REAL *__restrict__ p = f.src + c.first;
	REAL *__restrict__ q = f.dst + c.first;
	Window<VEC, 2 * RADIUS + PREFETCH> w;
#pragma unroll
	for (int m = 1; m < L2_PREFETCH; m++)
		if (m < c.layers) prefetch_l2(p + (RADIUS + m) * layer);
#pragma unroll
	for (int m = -RADIUS; m < RADIUS; m++)
#pragma unroll
		for (int row = 0; row < 2 * ROW_RADIUS + 1; row++)
#pragma unroll
			for (int part = LEFT; part <= RIGHT; part++)
				if (m >= taps_low[row][part] && m < taps_high[row][part])
					w.load(m + RADIUS, row, part, p + m * layer + (row - ROW_RADIUS) * pitch);
#pragma unroll 1
	for (int k = 0; k < c.layers; k += PREFETCH) {
#pragma unroll
		for (int d = 0; d < PREFETCH; d++) {
			if (d > 0 && k + d >= c.layers) break;
			if (L2_PREFETCH > 0 && k + d + L2_PREFETCH < c.layers) prefetch_l2(p + (d + RADIUS + L2_PREFETCH) * layer);
#pragma unroll
			for (int m = RADIUS; m >= -RADIUS; m--)
#pragma unroll
				for (int row = 0; row < 2 * ROW_RADIUS + 1; row++)
#pragma unroll
					for (int part = LEFT; part <= RIGHT; part++)
						if (m == taps_high[row][part])
							w.load(d + m + RADIUS, row, part, p + (d + m) * layer + (row - ROW_RADIUS) * pitch);
		}
#pragma unroll
		for (int d = 0; d < PREFETCH; d++) {
			if (d > 0 && k + d >= c.layers) break;
			sweep_group<NORMS>(q + d * layer, w, d + RADIUS, c.inside, norms);
		}
#pragma unroll
		for (int m = -RADIUS; m < RADIUS; m++)
#pragma unroll
			for (int row = 0; row < 2 * ROW_RADIUS + 1; row++)
#pragma unroll
				for (int part = LEFT; part <= RIGHT; part++)
					if (m >= taps_low[row][part] && m < taps_high[row][part]) w.step(m + RADIUS, row, part, PREFETCH);
		p += PREFETCH * layer;
		q += PREFETCH * layer;
	}
	return norms;
}

#endif

// grid_layer returns the place of a block along the slowest axis, which in two dimensions takes two axes
// of the grid.
__device__ inline i64 grid_layer() { return DIMS == 3 ? blockIdx.z : (i64)blockIdx.z * gridDim.y + blockIdx.y; }

// large sweeps the tile of a block of a large box, in so many layers from layer * layers on. ROWS is
// STREAM, or how many rows a thread sweeps at once.
enum { STREAM = 0 };

#ifdef STREAMS

template <int, bool NORMS>
__device__ __forceinline__ NormPartial large(const SweptFields &f, const SweepPart &r, i64 layer, i64 layers) {
	const i64 row = DIMS == 3 ? ((i64)blockIdx.y * blockDim.y + threadIdx.y) * ROWS_PER_THREAD : 0;
	return stream<1, NORMS>(f, r, Place{(i64)blockIdx.x * blockDim.x + threadIdx.x, row, layer * layers}, layers);
}

#else

// Each thread sweeps one group in each of ROWS rows, and loads all that it needs before it computes.
template <int ROWS, bool NORMS>
__device__ __forceinline__ NormPartial large(const SweptFields &f, const SweepPart &r, i64 layer, i64 = ROWS) {
	NormPartial norms = {0, 0, 0, 0};
	const i64 group = (i64)blockIdx.x * blockDim.x + threadIdx.x, y = layer * ROWS;
	const unsigned inside = inside_of<VEC>(group * VEC - r.head, r.nx);
	if (group >= r.groups || inside == 0 || y >= r.ny) return norms;
	const i64 pitch = f.strides.pitch, o = r.first + group * VEC + y * pitch;
	const REAL *__restrict__ p = f.src + o;
	REAL *__restrict__ q = f.dst + o;
	const int here = (int)min((i64)ROWS, r.ny - y);
	Window<VEC, ROWS + 2 * RADIUS> w;
#pragma unroll
	for (int l = 0; l < ROWS + 2 * RADIUS; l++)
		if (l < here + 2 * RADIUS)
#pragma unroll
			for (int row = 0; row < 2 * ROW_RADIUS + 1; row++)
#pragma unroll
				for (int part = LEFT; part <= RIGHT; part++)
					if (l - RADIUS >= taps_low[0][part] && l - RADIUS < ROWS + taps_high[0][part])
						w.load(l, row, part, p + (l - RADIUS) * pitch);
#pragma unroll
	for (int l = 0; l < ROWS; l++)
		if (l < here) sweep_group<NORMS>(q + l * pitch, w, l + RADIUS, inside, norms);
	return norms;
}

#endif
