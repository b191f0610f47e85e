// Time steps of a field that stays on the multiprocessors. Each thread block keeps a tile of the field in
// shared memory for all steps of a launch. After each step it sends the points at its faces to the adjacent
// tiles, on this GPU or another, as packets of a value and the number of the step. The receiver polls a
// packet until it holds the step: no fence and no flag come between a store and its use.
//
// Each ghost has two packets, for even and for odd steps. That is enough: a tile sends step n+2 after it has received
// step n+1 from the adjacent tile, which sent that after it had read step n. Similarly, a tile does not change the
// fields before the adjacent tiles have read them at the start of a launch: it has received their first packets by
// then. Packets hold the step modulo 2^32, which is unique among packets in use; repeated steps, see checks.cuh, get
// different numbers.
//
// The axes of tiles are x, y and depth, the slowest axis of the field. In two dimensions y is the depth, and
// tiles are one point high. Threads form layers as wide and high as a tile. Each thread has a column of
// points along the depth.
//
// If a tile is too large for shared memory, its last layers are held in registers. Threads form one layer
// then, and each has adjacent columns.
//
// The stencil is a star of radius 1. Options: REAL; WIDTH, HEIGHT and LAYERS of the threads; REG_LAYERS;
// WITH_NORMS for the kernel with norms of the last step, CHECKS for the one with norms of others too.

#include "checks.cuh"
#include "faces.cuh"
#include "faults.cuh"

// batch returns how many points of a column are computed between two barriers, limited by registers.
__device__ constexpr int batch(bool norms) {
	return ((norms && THREADS > 512) || ARCH >= 1000 ? 8 : REG_LAYERS ? 16 : 32) / sizeof(REAL);
}

// Whole tells at compile time whether all points of a batch exist. If they do, loads are unconditional and are issued
// together.
template <bool VALUE> struct Whole {
	static constexpr bool IS = VALUE;
};

// sweep runs a step of the layers in shared memory, in place. The points of a batch are stored when all
// threads have read them. The point after the end of a column, which another thread may overwrite, is read
// before the first batch is stored. If that point is in registers, `next` has it, from before the step.
template <bool NORMS>
__device__ __forceinline__ void sweep(const TileThread &w, const Columns &mine, const REAL (&next)[ROWS],
                                      FieldNorms<REAL> &norms) {
	enum { BATCH = batch(NORMS) };
	const int held = w.t.held, length = (held + LAYERS - 1) / LAYERS;
	const int begin = w.layer() * length, here = w.has(0) ? min(length, held - begin) : 0;
	REAL *p = w.cells + w.cell(w.x, w.y, begin);
	REAL below[ROWS], c[ROWS], end[ROWS];
#pragma unroll
	for (int row = 0; row < ROWS; row++) {
		if (here <= 0) break;
		below[row] = REG_LAYERS ? mine.ghost[LOW][row] : p[row * PITCH - PLANE];
		c[row] = p[row * PITCH];
		end[row] = REG_LAYERS ? next[row] : p[row * PITCH + here * PLANE];
	}
#pragma unroll 1
	for (int z = 0; z < length; z += BATCH, p += BATCH * PLANE) {
		REAL out[ROWS][BATCH];
		const auto make = [&](auto whole) {
			constexpr bool WHOLE = decltype(whole)::IS;
			REAL before[ROWS][BATCH];
#pragma unroll
			for (int d = 0; d < BATCH; d++) {
				if (!WHOLE && z + d >= here) break;
				REAL above[ROWS];
#pragma unroll
				for (int row = 0; row < ROWS; row++)
					above[row] =
					    (WHOLE && d + 1 < BATCH) || z + d + 1 < here ? p[(d + 1) * PLANE + row * PITCH] : end[row];
#pragma unroll
				for (int row = 0; row < ROWS; row++) {
					out[row][d] = apply([&](int dx, int dy, int dz) {
						const int along = DIMS == 3 ? dz : dy, adjacent = DIMS == 3 ? row + dy : 0;
						if (along != 0) return along < 0 ? below[row] : above[row];
						const bool own = dx == 0 && adjacent >= 0 && adjacent < ROWS;
						return own ? c[adjacent] : p[d * PLANE + dx + adjacent * PITCH];
					});
					before[row][d] = c[row];
					if (NORMS && !WHOLE && (row == 0 || w.has(row))) norms.point(out[row][d], c[row]);
				}
#pragma unroll
				for (int row = 0; row < ROWS; row++) below[row] = c[row], c[row] = above[row];
			}
#pragma unroll
			for (int row = 0; row < ROWS; row++)
				if (NORMS && WHOLE && (row == 0 || w.has(row))) norms.points(out[row], before[row]);
		};
		if (NORMS && z + BATCH <= here) make(Whole<true>());
		else make(Whole<false>());
		__syncthreads();
#pragma unroll
		for (int d = 0; d < BATCH; d++)
#pragma unroll
			for (int row = 0; row < ROWS; row++)
				if (z + d < here && (row == 0 || w.has(row))) p[d * PLANE + row * PITCH] = out[row][d];
	}
}

// sweep_registers runs a step of the layers in registers, before those in shared memory change. It publishes one layer
// at a time to all threads, and stores points at faces in the cells that they are sent from. A thread has points at no
// more than one face across x and one across y.
__device__ __forceinline__ void sweep_registers(const TileThread &w, Columns &mine) {
	const int x = w.x, y = w.y, last_row = w.t.n[Y] - 1 - y;
	const bool first = x == 0, last = x == w.t.n[X] - 1, front = y == 0;
	REAL *const beside_x = w.cells + w.adjacent<X>(last, x, y, 0), *const beside_y =
	                                                                   w.cells + w.adjacent<Y>(!front, x, y, 0);
	const bool out_x = (first || last) && w.t.channel[2 * X + last].in, out_y = w.t.channel[2 * Y + !front].in;
	const bool is_there[2] = {w.has(0), w.has(ROWS - 1)};
	REAL below[ROWS];
#pragma unroll
	for (int row = 0; row < ROWS; row++) below[row] = w.cells[w.cell(x, y + row, w.t.held - 1)];
#pragma unroll
	for (int k = 0; k < REG_LAYERS; k++) {
		REAL *const p = w.cells + w.view(k) + x + y * WIDTH;
		REAL c[ROWS];
#pragma unroll
		for (int row = 0; row < ROWS; row++) p[row * WIDTH] = c[row] = mine.reg[row][k];
		__syncthreads();
#pragma unroll
		for (int row = 0; row < ROWS; row++) {
			if (is_there[row]) {
				REAL *const at_x = beside_x + row * COLUMN + k, *const at_y = beside_y + k;
				const bool low = DIMS == 3 && front && row == 0, high = DIMS == 3 && !front && row == last_row;
				const REAL out = apply([&](int dx, int dy, int dz) {
					const int along = DIMS == 3 ? dz : dy, adjacent = DIMS == 3 ? row + dy : 0;
					if (along != 0)
						return along < 0            ? below[row]
						       : k + 1 < REG_LAYERS ? mine.reg[row][k + 1]
						                            : mine.ghost[HIGH][row];
					REAL v = dx == 0 && adjacent >= 0 && adjacent < ROWS ? c[adjacent] : p[adjacent * WIDTH + dx];
					if (dx != 0 && (dx < 0 ? first : last)) v = *at_x;
					if (adjacent != row && (adjacent < row ? low : high)) v = *at_y;
					return v;
				});
				mine.reg[row][k] = out;
				if (out_x) *at_x = out;
				if ((low || high) && out_y) *at_y = out;
			}
		}
#pragma unroll
		for (int row = 0; row < ROWS; row++) below[row] = c[row];
	}
}

// measure computes the norms of the last step from both fields, using values that the thread has stored itself. It is
// for tiles with layers in registers, whose sweep has no registers left for norms.
__device__ __forceinline__ void measure(const TileThread &w, unsigned step, FieldNorms<REAL> &norms) {
	each_row(w, [&](int row, int y) {
#pragma unroll 4
		for (int z = 0; z < w.t.n[DEPTH]; z++)
			norms.point(*w.in(w.s.field[step % 2], w.s.strides, w.x, y, z),
			            *w.in(w.s.field[(step - 1) % 2], w.s.strides, w.x, y, z));
	});
}

// advance runs a step of a tile. A barrier is required before its points are read.
template <bool NORMS>
__device__ __forceinline__ void advance(const TileThread &w, Columns &mine, FieldNorms<REAL> &norms) {
	REAL next[ROWS];
#pragma unroll
	for (int row = 0; row < ROWS; row++) next[row] = mine.reg[row][0];
	if (REG_LAYERS) sweep_registers(w, mine);
	sweep<NORMS>(w, mine, next, norms);
}

// each_side calls visit(axis, high) for the sides of a tile, each in a different thread.
template <typename Visit> __device__ __forceinline__ void each_side(const TileThread &w, Visit visit) {
#pragma unroll 1
	for (int side = w.thread; side < 2 * AXES; side += THREADS) visit(side / 2, side % 2);
}

// wait_for_neighbors waits until the neighbors that store into the ghosts of the tile have finished all
// launches before this one. It returns false after a timeout.
__device__ bool wait_for_neighbors(const TileThread &w) {
	bool all = true;
	each_side(w, [&](int axis, int high) {
		const i64 from = w.s.side[axis][high].other;
		if (from < 0 || !w.outer(axis, high)) return;
		const Neighbor &other = w.s.neighbor[from];
		if (wait_for_count(other.my_count, w.s.launch * other.expected, w.s.limit, w.s.failed)) return;
		report_timeout(w.s.failed, 1 + from);
		all = false;
	});
	return all;
}

// notify counts the launch of this block for the neighbors into whose ghosts it has stored.
__device__ void notify(const TileThread &w) {
	each_side(w, [&](int axis, int high) {
		const i64 to = w.s.side[axis][high].other;
		if (to >= 0 && w.outer(axis, high)) signal(w.s.neighbor[to].its_count);
	});
}

// The largest values of the norms.
struct Largest {
	double change, value;

	__device__ void join(const Largest &o) { change = larger(change, o.change), value = larger(value, o.value); }
};

// reduce_tile writes the reduction of the norms of all threads, one part at a time, so that it needs the space of one
// StoredSum per thread. It overwrites the cells, which threads must not need any more. Unlike reduce_block of norms.cuh
// it supports any number of threads.
__device__ void reduce_tile(const TileThread &w, FieldNorms<REAL> &norms, NormSum *result) {
	BinnedNorms mine;
	mine.take(norms);
	Largest largest = {mine.max_change, mine.max_value};
	reduce_block(largest, (Largest *)w.cells, w.thread, THREADS, &largest);
	reduce_block(StoredSum::of(mine.change), (StoredSum *)w.cells, w.thread, THREADS, &result->sum_change2);
	reduce_block(StoredSum::of(mine.value), (StoredSum *)w.cells, w.thread, THREADS, &result->sum2);
	if (w.thread == 0) result->max_change = largest.change, result->max = largest.value;
}

// begin finds the tile of a block and loads it. It returns false after a timeout.
__device__ __forceinline__ bool begin(const Tiles &s, Tile &t, TileThread &w, Columns &mine) {
	if (w.thread == 0) place_tile(s, t);
	__syncthreads();
	w.items = (FaceItem *)(w.cells + ((w.cells_held() * sizeof(REAL) + 15) & ~15) / sizeof(REAL));
	each_side(w, [&](int axis, int high) { t.channel[2 * axis + high] = w.channel(axis, high); });
	if (!__syncthreads_and(wait_for_neighbors(w))) return false;
	REAL *const before = s.field[(s.first - 1) % 2];
	load_tile(w, mine, before);
	load_ghosts<X>(w, mine, before);
	load_ghosts<Y>(w, mine, before);
	load_ghosts<DEPTH>(w, mine, before);
	int items = 0;
#pragma unroll
	for (int f = 0; f < 2 * AXES && LISTED; f++) items = w.list_items(f / 2, f % 2, items);
	if (w.thread == 0) t.items = items;
	__syncthreads();
	return true;
}

// end stores the points that neighbors read, after the last step.
__device__ __forceinline__ void end(const TileThread &w, const Columns &mine, unsigned step) {
	store_ghosts<X>(w, mine, step);
	store_ghosts<Y>(w, mine, step);
	store_ghosts<DEPTH>(w, mine, step);
	__syncthreads();
	notify(w);
}

__device__ __forceinline__ TileThread thread_of(const Tiles &s, Tile &t) {
	const int thread = threadIdx.x + (threadIdx.y + threadIdx.z * (HEIGHT / ROWS)) * WIDTH;
	return {s, t, (REAL *)dynamic_shared(), 0, thread, (int)threadIdx.x, (int)threadIdx.y * ROWS};
}

#ifndef CHECKS

// run_steps runs the steps of a launch, and computes the norms of the last.
template <bool NORMS> __device__ __forceinline__ void run_steps(const Tiles &s) {
	__shared__ Tile t;
	TileThread w = thread_of(s, t);
	Columns mine;
	if (!begin(s, t, w, mine)) return;
	const OwnItem first = own_item(w);
	const bool in_sweep = NORMS && !REG_LAYERS;
	FieldNorms<REAL> norms;            // a column has fewer points than RUNNING_TERMS
	unsigned step = (unsigned)s.first; // modulo 2^32, as in packets
#pragma unroll 1
	for (unsigned left = (unsigned)s.count; left > in_sweep; left--, step++) {
		inject_fault(3 * step);
		advance<false>(w, mine, norms);
		__syncthreads();
		inject_fault(3 * step + 1);
		if (left > 1) send(w, mine, first, step + (unsigned)s.base);
		if (left <= 2) store_tile(w, mine, step);
		inject_fault(3 * step + 2);
		if (left > 1 && !__syncthreads_and(receive(w, mine, first, step + (unsigned)s.base))) return;
	}
	if (in_sweep) {
		advance<true>(w, mine, norms);
		__syncthreads();
		store_tile(w, mine, step++);
	} else if (NORMS) {
		measure(w, step - 1, norms);
	}
	end(w, mine, step - 1);
	if (NORMS) reduce_tile(w, norms, s.norms[(step - 1) % 2] + blockIdx.x);
}

#else

// run_checked runs the steps of a launch with checks, and computes the norms of the last.
__device__ __forceinline__ void run_checked(const Tiles &s) {
	__shared__ Tile t;
	__shared__ TileNorms kept;
	TileThread w = thread_of(s, t);
	Columns mine;
	if (w.thread == 0) plan_step(s, t, (unsigned)s.first), t.over = 0;
	if (!begin(s, t, w, mine)) return;
	OwnItem first = own_item(w);
	unsigned step = (unsigned)s.first; // modulo 2^32
#pragma unroll 1
	for (unsigned left = (unsigned)s.count; left > 0; left--, step++) {
		inject_fault(3 * step);
		FieldNorms<REAL> norms;
		if (left == 1 || t.plan[step % 2].due) {
			advance<true>(w, mine, norms);
			kept.keep(w, norms);
		} else {
			advance<false>(w, mine, norms);
		}
		__syncthreads();
		inject_fault(3 * step + 1);
		if (left > 1) {
			send(w, mine, first, step + (unsigned)s.base);
			if (t.plan[step % 2].follows || left == 2) {
				follow(w, t, kept, step, left == 2);
				first = own_item(w);                                 // computed here to save registers before
				if (left == 2 && !__syncthreads_and(!t.over)) break; // before the fields change
			}
			if (w.thread == 0) plan_step(s, t, step + 1);
		}
		if (left <= 2) store_tile(w, mine, step);
		inject_fault(3 * step + 2);
		if (left > 1 && !__syncthreads_and(receive(w, mine, first, step + (unsigned)s.base))) return;
		if (t.over) break;
	}
	tell(w, t, step);
	if (t.over) {
		if (t.over > 0) notify(w);
		return;
	}
	end(w, mine, step - 1);
	kept.join(w, s.norms[(step - 1) % 2] + blockIdx.x);
}

#endif

// tile_steps runs the steps of a launch; all its blocks must run at the same time. With option WITH_NORMS it also
// computes the norms of the last step; with CHECKS also those of other steps, and it may end at one of them.
extern "C" __global__ void __launch_bounds__(THREADS, 1) tile_steps(const __grid_constant__ Tiles s) {
	grid_dependency_wait();
#ifdef CHECKS
	run_checked(s);
#elif defined(WITH_NORMS)
	run_steps<true>(s);
#else
	run_steps<false>(s);
#endif
}
