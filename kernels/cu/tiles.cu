// Time steps of a field that stays on the multiprocessors. Each thread block keeps a tile
// of the field in shared memory for all the steps of a launch. After each step it sends
// the points at its faces to the tiles beside it, on this GPU or another, as packets that
// hold a value and the number of the step: who waits for a packet looks at it until the
// step is there, so that no fence and no flag stand between a store and its use.
//
// There are two packets for each ghost point, for even and for odd steps. That is enough:
// a tile sends step n+2 after it has got step n+1 from the tile beside it, which sent that
// after it had read step n. Nor does a tile change the fields before those beside it have read
// them at the beginning of a launch: it has got their first packets by then. Steps count modulo
// 2^32 in packets, which nobody misses as long as no packet is so old.
//
// The stencil is a star that reaches one point (see tapsSource in taps.go). Build options:
// REAL; WIDTH, HEIGHT and LAYERS of the threads; REST where shared memory does not hold all
// layers of a tile; WITH_NORMS for the kernel that takes norms.
//
// The axes of tiles are x, y and depth, the slowest of the field: in two dimensions y is
// the depth, and tiles are one point high. Threads form layers as wide and high as a tile;
// each has a column of points along the depth.
//
// Of a tile that is too large for shared memory the last layers are held in registers. Threads
// form one layer then, and each has columns side by side.

#include "faces.cuh"

// batch is how many points of a column are computed between two barriers: as many as the
// compiler has registers for.
__device__ constexpr int batch(bool norms) { return (norms || ARCH >= 1000 ? 8 : REST ? 16 : 32) / sizeof(REAL); }

// sweep makes a step of the layers that are held, in place: the points of a batch are stored
// when all threads have read what they need of them. What a column needs of the next layer's,
// which may be ahead of it, is read before the first batch is stored. The layer after the
// last was as `next` says, if registers hold it.
template <bool NORMS>
__device__ __forceinline__ void sweep(const Worker &w, const Columns &mine, const REAL (&next)[ROWS], Found &norms) {
	enum { BATCH = batch(NORMS) };
	const int held = w.t.held, length = (held + LAYERS - 1) / LAYERS;
	const int begin = w.layer() * length, here = w.has(0) ? min(length, held - begin) : 0;
	REAL *p = w.cells + w.cell(w.x, w.y, begin);
	REAL below[ROWS], c[ROWS], end[ROWS];
#pragma unroll
	for (int row = 0; row < ROWS; row++) {
		if (here <= 0) break;
		below[row] = REST ? mine.ghost[LOW][row] : p[row * PITCH - PLANE];
		c[row] = p[row * PITCH];
		end[row] = REST ? next[row] : p[row * PITCH + here * PLANE];
	}
#pragma unroll 1
	for (int z = 0; z < length; z += BATCH, p += BATCH * PLANE) {
		REAL out[BATCH][ROWS];
#pragma unroll
		for (int d = 0; d < BATCH; d++) {
			if (z + d >= here) break;
			REAL above[ROWS];
#pragma unroll
			for (int row = 0; row < ROWS; row++)
				above[row] = z + d + 1 < here ? p[(d + 1) * PLANE + row * PITCH] : end[row];
#pragma unroll
			for (int row = 0; row < ROWS; row++) {
				out[d][row] = apply([&](int dx, int dy, int dz) {
					const int along = DIMS == 3 ? dz : dy, beside = DIMS == 3 ? row + dy : 0;
					if (along != 0) return along < 0 ? below[row] : above[row];
					return dx == 0 && beside >= 0 && beside < ROWS ? c[beside] : p[d * PLANE + dx + beside * PITCH];
				});
				if (NORMS && (row == 0 || w.has(row))) norms.point(out[d][row], c[row]);
			}
#pragma unroll
			for (int row = 0; row < ROWS; row++) below[row] = c[row], c[row] = above[row];
		}
		__syncthreads();
#pragma unroll
		for (int d = 0; d < BATCH; d++)
#pragma unroll
			for (int row = 0; row < ROWS; row++)
				if (z + d < here && (row == 0 || w.has(row))) p[d * PLANE + row * PITCH] = out[d][row];
	}
}

// sweep_rest makes a step of the layers in registers, before those in shared memory change. It
// shows one layer after the other to all threads, and leaves points at faces where they are
// sent from. A thread is at one face across x and at one across y at most.
__device__ __forceinline__ void sweep_rest(const Worker &w, Columns &mine) {
	const int x = w.x, y = w.y, last_row = w.t.n[Y] - 1 - y;
	const bool first = x == 0, last = x == w.t.n[X] - 1, front = y == 0;
	REAL *const beside_x = w.cells + w.beside<X>(last, x, y, 0), *const beside_y =
	                                                                 w.cells + w.beside<Y>(!front, x, y, 0);
	const bool out_x = (first || last) && w.t.door[2 * X + last].in, out_y = w.t.door[2 * Y + !front].in;
	const bool is_there[2] = {w.has(0), w.has(ROWS - 1)};
	REAL below[ROWS];
#pragma unroll
	for (int row = 0; row < ROWS; row++) below[row] = w.cells[w.cell(x, y + row, w.t.held - 1)];
#pragma unroll
	for (int k = 0; k < REST; k++) {
		REAL *const p = w.cells + w.view(k) + x + y * WIDTH;
		REAL c[ROWS];
#pragma unroll
		for (int row = 0; row < ROWS; row++) p[row * WIDTH] = c[row] = mine.rest[row][k];
		__syncthreads();
#pragma unroll
		for (int row = 0; row < ROWS; row++) {
			if (is_there[row]) {
				REAL *const at_x = beside_x + row * COLUMN + k, *const at_y = beside_y + k;
				const bool low = DIMS == 3 && front && row == 0, high = DIMS == 3 && !front && row == last_row;
				const REAL out = apply([&](int dx, int dy, int dz) {
					const int along = DIMS == 3 ? dz : dy, beside = DIMS == 3 ? row + dy : 0;
					if (along != 0)
						return along < 0 ? below[row] : k + 1 < REST ? mine.rest[row][k + 1] : mine.ghost[HIGH][row];
					REAL v = dx == 0 && beside >= 0 && beside < ROWS ? c[beside] : p[beside * WIDTH + dx];
					if (dx != 0 && (dx < 0 ? first : last)) v = *at_x;
					if (beside != row && (beside < row ? low : high)) v = *at_y;
					return v;
				});
				mine.rest[row][k] = out;
				if (out_x) *at_x = out;
				if ((low || high) && out_y) *at_y = out;
			}
		}
#pragma unroll
		for (int row = 0; row < ROWS; row++) below[row] = c[row];
	}
}

// measure takes the norms of the last step, from what the thread has kept of it and of the one
// before, by one layer of threads. Where registers hold a part there are too few of them to do so
// in the sweep.
__device__ __forceinline__ void measure(const Worker &w, unsigned step, Found &norms) {
	each_row(w, [&](int row, int y) {
#pragma unroll 4
		for (int z = 0; z < w.t.n[DEPTH]; z++)
			norms.point(*w.in(w.s.field[step % 2], w.s.strides, w.x, y, z),
			            *w.in(w.s.field[(step - 1) % 2], w.s.strides, w.x, y, z));
	});
}

// advance makes a step of a tile.
template <bool NORMS> __device__ __forceinline__ void advance(const Worker &w, Columns &mine, Found &norms) {
	REAL next[ROWS];
#pragma unroll
	for (int row = 0; row < ROWS; row++) next[row] = mine.rest[row][0];
	if (REST) sweep_rest(w, mine);
	sweep<NORMS>(w, mine, next, norms);
	__syncthreads();
}

// each_side calls visit(axis, high) for the sides of a tile, the threads sharing them.
template <typename Visit> __device__ __forceinline__ void each_side(const Worker &w, Visit visit) {
#pragma unroll 1
	for (int side = w.thread; side < 2 * AXES; side += THREADS) visit(side / 2, side % 2);
}

// ready waits until the neighbours that store into this tile's ghosts have made all
// launches before this one, by one thread for each side of a tile.
__device__ bool ready(const Worker &w) {
	bool all = true;
	each_side(w, [&](int axis, int high) {
		const i64 from = w.s.side[axis][high].other;
		if (from < 0 || !w.outer(axis, high)) return;
		const Neighbour &other = w.s.neighbour[from];
		if (await(other.my_count, w.s.launch * other.expected, w.s.limit)) return;
		complain(w.s.failed, 1 + from);
		all = false;
	});
	return all;
}

// tell counts the launch of this block for the neighbours whose ghosts it stored.
__device__ void tell(const Worker &w) {
	each_side(w, [&](int axis, int high) {
		const i64 to = w.s.side[axis][high].other;
		if (to >= 0 && w.outer(axis, high)) raise(w.s.neighbour[to].its_count);
	});
}

// total puts the sum of all threads' norms there, by halves, after a barrier behind which
// nobody needs the cells. Other than over_block it takes blocks of any size.
__device__ void total(const Worker &w, const Found &norms, Four *there) {
	Four *all = (Four *)w.cells;
	all[w.thread] = norms.four();
#pragma unroll 1
	for (int n = THREADS; n > 1; n = (n + 1) / 2) {
		__syncthreads();
		if (w.thread < n / 2) all[w.thread].add(all[w.thread + (n + 1) / 2]);
	}
	if (w.thread == 0) *there = all[0];
}

// make makes the steps of a launch, with the norms of the last.
template <bool NORMS> __device__ __forceinline__ void make(const Tiles &s) {
	__shared__ Tile t;
	const int thread = threadIdx.x + (threadIdx.y + threadIdx.z * (HEIGHT / ROWS)) * WIDTH;
	Worker w = {s, t, (REAL *)dynamic_shared(), 0, thread, (int)threadIdx.x, (int)threadIdx.y * ROWS};
	if (thread == 0) place_tile(s, t);
	__syncthreads();
	w.errands = (Errand *)(w.cells + ((w.cells_held() * sizeof(REAL) + 15) & ~15) / sizeof(REAL));
	each_side(w, [&](int axis, int high) { t.door[2 * axis + high] = w.door(axis, high); });
	if (!__syncthreads_and(ready(w))) return;
	Columns mine;
	REAL *const before = s.field[(s.first - 1) % 2];
	fill(w, mine, before);
	fill_ghosts<X>(w, mine, before);
	fill_ghosts<Y>(w, mine, before);
	fill_ghosts<DEPTH>(w, mine, before);
	int errands = 0;
#pragma unroll
	for (int f = 0; f < 2 * AXES && LISTED; f++) errands = w.lay_out(f / 2, f % 2, errands);
	if (thread == 0) t.errands = errands;
	__syncthreads();
	First first = {};
	if (thread < errands) {
		const Errand e = w.errands[thread];
		const Door &d = t.door[e.side];
		first = First{d.out + e.place, d.in + e.place, d.odd, e.cell, e.cell + d.ghost};
	}
	const bool in_sweep = NORMS && !REST;
	Found norms = {0, 0, 0, 0};
	unsigned step = (unsigned)s.first; // modulo 2^32, as packets have it
#pragma unroll 1
	for (unsigned left = (unsigned)s.count; left > in_sweep; left--, step++) {
		disturb(3 * step);
		advance<false>(w, mine, norms);
		disturb(3 * step + 1);
		if (left > 1) send(w, mine, first, step);
		if (left <= 2) keep(w, mine, step);
		disturb(3 * step + 2);
		if (left > 1 && !__syncthreads_and(receive(w, mine, first, step))) return;
	}
	if (in_sweep) {
		advance<true>(w, mine, norms);
		keep(w, mine, step++);
	} else if (NORMS) {
		measure(w, step - 1, norms);
	}
	hand_over<X>(w, mine, step - 1);
	hand_over<Y>(w, mine, step - 1);
	hand_over<DEPTH>(w, mine, step - 1);
	__syncthreads();
	tell(w);
	if (NORMS) total(w, norms, s.norms[(step - 1) % 2] + blockIdx.x);
}

#ifndef WITH_NORMS

// hold makes the steps of a launch. All its blocks run at once.
extern "C" __global__ void __launch_bounds__(THREADS, 1) hold(const __grid_constant__ Tiles s) {
	after_predecessor();
	make<false>(s);
}

#else

// hold_norms does so too, and takes the norms of the last step.
extern "C" __global__ void __launch_bounds__(THREADS, 1) hold_norms(const __grid_constant__ Tiles s) {
	after_predecessor();
	make<true>(s);
}

#endif
