// Traversals of large boxes: how a thread sweeps a point function over a column of groups.
//
// Build options, from accesses.cuh: STREAMS, whether threads go from layer to layer and hold the adjacent layers;
// ROWS_PER_THREAD, per layer; L2_PREFETCH, how many layers ahead a row is prefetched into the L2 cache.
#include "site.cuh"

// A box of points, in groups along x.
struct Part {
	i64 lo[3];          // index of the first point of the first group
	i64 nx, ny, nz;     // points
	i64 head;           // points of the first group that lie before the box
	i64 groups;         // along x
	i64 slot;           // for sweeps that measure: offset of the results of its blocks
	i64 first[CLASSES]; // offset of the first point, in elements from index 0, 0, 0
};

// inside_of has a bit for each point of a group of N that is within a row of nx points; the group starts at point x.
template <int N> __device__ __forceinline__ unsigned inside_of(i64 x, i64 nx) {
	unsigned inside = 0;
#pragma unroll
	for (int v = 0; v < N; v++) inside |= (unsigned)(x + v >= 0 && x + v < nx) << v;
	return inside;
}

// The starting position of a thread in a large box: the group along x, the row of a layer (in three dimensions), and
// the layer.
struct Place {
	i64 group, row, layer;
};

// cursor_at is the position of a group of a box in all arrays.
template <int N> __device__ __forceinline__ Cursor cursor_at(const Arrays &a, const Part &r, const Place &at) {
	i64 place[CLASSES];
#pragma unroll
	for (int k = 0; k < CLASSES; k++)
		place[k] =
		    r.first[k] + at.group * N * along_x(k) +
		    (DIMS == 3 ? at.row * a.strides[k].pitch + at.layer * a.strides[k].plane : at.layer * a.strides[k].pitch);
	return Cursor(a, place);
}

// A column of groups of a large box that one thread sweeps: the same group in several layers and ROWS_PER_THREAD
// adjacent rows.
template <int N> struct Column {
	unsigned inside; // bits of the points in the box, in each group
	int layers;      // 0: there is nothing to sweep
	int rows;        // the thread's rows that are in the box
	i64 index[3];    // of its first point

	__device__ __forceinline__ Column(const Part &r, const Place &at, i64 most) {
		const i64 deep = DIMS == 3 ? r.nz : r.ny;
		inside = inside_of<N>(at.group * N - r.head, r.nx);
		layers = 0;
		if (at.group >= r.groups || inside == 0 || (DIMS == 3 && at.row >= r.ny) || at.layer >= deep) return;
		layers = (int)min(most, deep - at.layer);
		rows = DIMS == 3 ? (int)min((i64)ROWS_PER_THREAD, r.ny - at.row) : 1;
		index[0] = r.lo[0] + at.group * N;
		index[1] = r.lo[1] + (DIMS == 3 ? at.row : at.layer);
		index[2] = r.lo[2] + (DIMS == 3 ? at.layer : 0);
	}
};

// stream sweeps a column of groups of a large box, with at most the given number of layers. Short-lived blocks in
// memory order keep concurrent reads and writes close together, which suits DRAM; unrolling costs registers.
#ifdef LAYERED

// The sums of a linear stencil's parts in one layer, for some rows and the groups around each.
struct PartSums {
	Sums at[ROWS_PER_THREAD][GROUP];

	template <typename Rows> __device__ __forceinline__ void sum(const Rows &w) {
#pragma unroll
		for (int t = 0; t < ROWS_PER_THREAD; t++)
#pragma unroll
			for (int v = 0; v < GROUP; v++)
				at[t][v] = sums_of(
				    [&](int dx, int dy, int) { return w.held[0][t + dy - Read<0>::ROW_LOW][Read<0>::LEFT + v + dx]; });
	}
};

// The data that LAYERED reads of a layer: ROWS_PER_THREAD rows and those around.
struct LayerRows : Read<0> {
	enum { LOW = 0, HIGH = 0, ROW_LOW = Read<0>::ROW_LOW, ROW_HIGH = Read<0>::ROW_HIGH + ROWS_PER_THREAD - 1 };
};

// The thread loads one layer at a time, in several rows whose shared neighbors it loads only once, and holds the sums
// of the stencil's parts for each. The sums rotate through the slots: the body of the loop is one rotation, so that no
// data is moved.
template <int N, int PREFETCH, bool MEASURED, typename F>
__device__ __forceinline__ Totals stream(const F &, const Arrays &a, const Part &r, const Place &at, i64 most) {
	typedef Read<0> R;
	typedef Written<0> W;
	Totals totals;
	const Column<N> c(r, at, most);
	if (c.layers == 0) return totals;
	const Cursor cursor = cursor_at<N>(a, r, at);
	const i64 pitch = cursor.pitch<R>(), layer = cursor.layer<R>(), to_pitch = cursor.pitch<W>(),
	          to_layer = cursor.layer<W>();
	const typename R::T *__restrict__ p = cursor.of<R>();
	typename W::T *__restrict__ q = cursor.of<W>();
	enum { REACH = R::HIGH, PLACES = 2 * REACH + 1, SIDE = -R::ROW_LOW };
	typedef Window<LayerRows, N, 1> Rows;
	PartSums held[PLACES];
	const auto prefetch = [&](int m) {
#pragma unroll
		for (int t = 0; t < ROWS_PER_THREAD; t++) prefetch_l2(p + m * layer + t * pitch);
	};
	const auto load = [&](Rows &w, int m) {
#pragma unroll
		for (int row = 0; row < ROWS_PER_THREAD + 2 * SIDE; row++) {
			const int here = row > 2 * SIDE ? min(row, c.rows + 2 * SIDE - 1) : row; // rows beyond these may not exist
#pragma unroll
			for (int part = LEFT_PART; part <= RIGHT_PART; part++)
				w.load(0, row, part, p + m * layer + (here - SIDE) * pitch);
		}
	};
#pragma unroll
	for (int m = 0; m < L2_PREFETCH; m++)
		if (m < c.layers) prefetch(REACH + m);
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
			if (k >= c.layers) return totals;
			if (k + L2_PREFETCH < c.layers) prefetch(REACH + L2_PREFETCH);
			Rows w;
			load(w, REACH);
			held[(turn + 2 * REACH) % PLACES].sum(w);
#pragma unroll
			for (int t = 0; t < ROWS_PER_THREAD; t++) {
				Group<typename W::T, N> out, before;
#pragma unroll
				for (int v = 0; v < N; v++) {
					const auto in = [&](int part, int m) {
						return held[(turn + REACH + m) % PLACES].at[t][v].of[part];
					};
					out.v[v] = sum_of(in), before.v[v] = in(0, 0);
				}
				if (t >= c.rows) continue;
				if constexpr (MEASURED && W::NORM >= 0)
					put<true, N>(
					    q + t * to_pitch, out, c.inside, [&](int v) { return before.v[v]; },
					    &totals.template norm<W::NORM>());
				else put<false, N>(q + t * to_pitch, out, c.inside, 0, (int *)0);
			}
			p += layer;
			q += to_layer;
		}
	}
}

#else

// The thread holds adjacent layers in registers, so that it loads each row once. The data of PREFETCH layers is loaded
// before the first of them is computed: more than one if there are few threads.
template <int N, int PREFETCH, bool MEASURED, typename F>
__device__ __forceinline__ Totals stream(const F &f, const Arrays &a, const Part &r, const Place &at, i64 most) {
	Totals totals;
	Column<N> c(r, at, most);
	if (c.layers == 0) return totals;
	Cursor cursor = cursor_at<N>(a, r, at);
	Windows<N, PREFETCH> w;
#pragma unroll
	for (int m = 1; m < L2_PREFETCH; m++)
		if (m < c.layers) w.prefetch(m, cursor);
	w.fill(cursor);
#pragma unroll 1
	for (int k = 0; k < c.layers; k += PREFETCH) {
#pragma unroll
		for (int d = 0; d < PREFETCH; d++) {
			if (d > 0 && k + d >= c.layers) break;
			if (L2_PREFETCH > 0 && k + d + L2_PREFETCH < c.layers) w.prefetch(d + L2_PREFETCH, cursor);
			w.next(d, cursor);
		}
#pragma unroll
		for (int d = 0; d < PREFETCH; d++) {
			if (d > 0 && k + d >= c.layers) break;
			finish<MEASURED>(f, cursor, d, w, d, c.index, c.inside, totals);
			c.index[DIMS - 1]++;
		}
		w.step();
		cursor.step(PREFETCH);
	}
	return totals;
}

#endif

// grid_layer returns the position of a block along the slowest axis, which uses two axes of the grid in two dimensions.
__device__ inline i64 grid_layer() { return DIMS == 3 ? blockIdx.z : (i64)blockIdx.z * gridDim.y + blockIdx.y; }

// place_of_thread returns the starting position of a thread in a grid of blocks, given how many layers of the box a
// layer of the grid has.
__device__ __forceinline__ Place place_of_thread(i64 layer, i64 layers) {
	const i64 row = DIMS == 3 ? ((i64)blockIdx.y * blockDim.y + threadIdx.y) * ROWS_PER_THREAD : 0;
	return {(i64)blockIdx.x * blockDim.x + threadIdx.x, row, layer * layers};
}

// layers sweeps one group in each of up to LAYERS layers, and loads all data before it computes: in two dimensions, if
// that takes few registers, and if no layer is read twice.
template <int N, int LAYERS, bool MEASURED, typename F>
__device__ __forceinline__ Totals layers(const F &f, const Arrays &a, const Part &r, const Place &at) {
	Totals totals;
	Column<N> c(r, at, LAYERS);
	if (c.layers == 0) return totals;
	const Cursor cursor = cursor_at<N>(a, r, at);
	Windows<N, LAYERS> w;
	w.all(c.layers, cursor);
#pragma unroll
	for (int l = 0; l < LAYERS; l++)
		if (l < c.layers) {
			finish<MEASURED>(f, cursor, l, w, l, c.index, c.inside, totals);
			c.index[DIMS - 1]++;
		}
	return totals;
}
