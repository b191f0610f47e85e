// Time steps of a field that stays on the multiprocessors, as in tiles.cu, but with several steps between exchanges.
// Each thread block keeps a tile in shared memory with ghosts STEPS wide. The steps of a group sweep the tile and,
// except for the last, the ghosts that the rest of the group reads: those whose distance from the tile, summed over the
// axes, does not exceed the number of remaining steps, since the stencil is a star of radius 1. After the last step the
// tile sends each point that other tiles have as a ghost, as a packet of the value and the exchange number, to these
// tiles on this GPU or others.
//
// Groups start with the launch, not at fixed step numbers: the fields have complete ghosts before and after it. The
// first group is shortened so that the others are complete. In a launch of up to STEPS steps it has one step, so that
// each launch of several steps has an exchange between two of them.
//
// Each ghost has two packets, for exchanges of even and of odd numbers. That is enough. Let tile A send a packet to
// tile B. B then has a point of A as a ghost, which is within STEPS of some point of B. So that point of B is a ghost
// of A, and A also receives from B in each exchange, whether or not they are adjacent. A sends exchange e+2 after a
// barrier at which it has received all of exchange e+1, including B's packets. B sent those after a barrier at which it
// had received all of exchange e. So no tile still waits for data that A overwrites. Tiles that exchange nothing need
// no order: neither reads packets or fields that the other stores. A also does not change its own points, or ghosts
// that B loads, in the loaded field before B has loaded them: it stores into that field at the end of a launch of two
// or more steps, after an exchange in which it received packets that B sent after loading. Packets of previous launches
// have been read: A first waits until all its neighbors have finished those launches, and the tiles of its own GPU have
// ended. Numbers are modulo 2^32, unique among packets in use. A launch that ends early skips the numbers of its
// remaining exchanges.
//
// Shared memory holds two copies of a tile. A step reads one and writes the other, so one barrier per step is enough.
// Ghosts behind walls that keep their values are in both. Ghosts behind mirrors are not stored: the point before the
// wall is read instead, even if that is a ghost.
//
// The axes of tiles are those of tiles.cu. Options: those of wide_tile.cuh; WITH_NORMS for the kernel with norms of the
// last step, CHECKS for the kernel that also computes those of other steps.

#include "wide_tile.cuh" // first: checks.cuh is also for tile.cuh

#include "checks.cuh"
#include "faults.cuh"
#include "wide_packets.cuh"

// The number of points of a column that are computed before they are stored: limited by registers and by an even
// division of the column.
template <bool NORMS> __device__ constexpr int batch() {
	const int bytes = NORMS && THREADS > 512 ? 8 : ARCH >= 1000 ? 16 : 32, most = bytes / sizeof(REAL);
	const int turns = (COLUMN + most - 1) / most;
	return (COLUMN + turns - 1) / turns;
}

// Sweep is a step of a thread's column, from one copy of the tile to the other.
template <bool NORMS> struct Sweep {
	const Column &column;
	const REAL *p;        // the next cell
	REAL *q;              // its destination
	int z;                // position along the depth
	int end;              // where all threads of the layer end (exclusive)
	int first, last, own; // cells to store, last is exclusive; number of own points of the tile
	int mirror;           // the position before a mirror along the depth
	REAL below, c;

	// make computes the given number of points.
	template <int N> __device__ __forceinline__ void make(FieldNorms<REAL> &norms) {
		REAL out[N], before[N];
#pragma unroll
		for (int d = 0; d < N; d++) {
			const REAL above = z + d == mirror ? c : p[(d + 1) * PLANE];
			const REAL *const here = p + d * PLANE;
			out[d] = apply([&](int dx, int dy, int dz) {
				const int along = DIMS == 3 ? dz : dy, adjacent = DIMS == 3 ? dy : 0;
				if (along != 0) return along < 0 ? below : above;
				if (dx != 0) return here[dx < 0 ? column.left : column.right];
				return adjacent == 0 ? c : here[adjacent < 0 ? column.front : column.back];
			});
			before[d] = c;
			below = c, c = above;
		}
		if (NORMS && column.outside == 0) {
			if (z >= 0 && z + N <= own) {
				norms.points(out, before);
			} else {
#pragma unroll
				for (int d = 0; d < N; d++)
					if (z + d >= 0 && z + d < own) norms.point(out[d], before[d]);
			}
		}
#pragma unroll
		for (int d = 0; d < N; d++)
			if (z + d >= first && z + d < last) q[d * PLANE] = out[d];
		p += N * PLANE, q += N * PLANE, z += N;
	}
};

// sweep runs a step: of the tile, and of the ghosts that the remaining steps of the group read.
template <bool NORMS>
__device__ __forceinline__ void sweep(const TileThread &w, const Column &c, const REAL *from, REAL *to, int left,
                                      FieldNorms<REAL> &norms) {
	enum { BATCH = batch<NORMS>() };
	static_assert(BATCH <= 8, "less than a batch is at most 4, 2 and 1");
	const int reach = left - c.outside, n = c.deep;
	// Do not use -left in an inner max: NVRTC 13.0 loses the sign of values negated there.
	const int begin = max(0, max(first_plane() + left, c.from + left)) - left;
	const int end = min(first_plane() + COLUMN, min(c.to, n + left));
	if (reach < 0 || begin >= end) return;
	const int at = c.cell + (begin + GHOSTS_DEPTH) * PLANE;
	const bool low = begin == c.from && w.s.mirrors[DEPTH][LOW];
	Sweep<NORMS> s = {
	    c, from + at, to + at, begin, end, -reach, n + reach, n, w.s.mirrors[DEPTH][HIGH] ? c.to - 1 : PLANES};
	s.c = s.p[0], s.below = low ? s.c : s.p[-PLANE];
#pragma unroll 1
	while (s.z + BATCH <= s.end) s.template make<BATCH>(norms);
	if (BATCH > 4 && s.z + 4 <= s.end) s.template make<4>(norms);
	if (BATCH > 2 && s.z + 2 <= s.end) s.template make<2>(norms);
	if (BATCH > 1 && s.z < s.end) s.template make<1>(norms);
}

// wait_for_neighbors waits until the neighbors that exchange with the tile have finished all launches before this one.
// It returns false after a timeout.
__device__ bool wait_for_neighbors(const TileThread &w) {
	bool all = true;
#pragma unroll 1
	for (int i = w.thread; i < w.s.neighbor_count; i += THREADS) {
		const Neighbor &other = w.s.neighbors[i];
		if (!(w.t.near >> i & 1) || wait_for_count(other.my_count, w.s.launch * other.expected, w.s.limit, w.s.failed))
			continue;
		report_timeout(w.s.failed, 1 + i);
		all = false;
	}
	return all;
}

// notify counts the launch of this block for the neighbors that exchange with the tile.
__device__ void notify(const TileThread &w) {
#pragma unroll 1
	for (int i = w.thread; i < w.s.neighbor_count; i += THREADS)
		if (w.t.near >> i & 1) signal(w.s.neighbors[i].its_count);
}

// begin finds the tile of a block and loads it. It returns false after a timeout.
__device__ __forceinline__ bool begin(const Tiles &s, Tile &t, TileThread &w) {
	if (w.thread == 0) (WideTile &)t = s.tiles[blockIdx.x];
	if (w.thread <= s.neighbor_count) {
		const int of = w.thread < s.neighbor_count ? w.thread : HERE;
		t.inbox[of] = s.inboxes[of];
	}
	__syncthreads();
	for (int i = w.thread; i < max(t.sent, t.received); i += THREADS) w.items[i] = s.items[t.items + i];
	if (!__syncthreads_and(wait_for_neighbors(w))) return false;
	load_tile(w, s.field[(s.first - 1) % 2]);
	__syncthreads();
	return true;
}

// end stores the points that neighbors read, after the last step.
__device__ __forceinline__ void end(const TileThread &w, const REAL *cells, unsigned step) {
	store_ghosts(w, cells, step);
	__syncthreads();
	notify(w);
}

// The position of a launch within its groups.
struct Place {
	int left;          // steps in the group after the next step
	unsigned exchange; // the number of the next exchange

	__device__ explicit Place(const Tiles &s) {
		left = s.count <= STEPS ? 0 : (int)((s.count - 1) % STEPS);
		exchange = (unsigned)s.base;
	}

	// next advances past a step, given the number of steps after it, which may include further groups.
	__device__ __forceinline__ void next(unsigned steps) {
		if (left > 0) left--;
		else left = (int)min((unsigned)STEPS, steps) - 1, exchange++;
	}
};

#ifndef CHECKS

// run_steps runs the steps of a launch, and computes the norms of the last.
template <bool NORMS> __device__ __forceinline__ void run_steps(const Tiles &s) {
	__shared__ Tile t;
	TileThread w = thread_of(s, t);
	if (!begin(s, t, w)) return;
	const Column column(w);
	REAL *now = w.cells, *next = w.cells + CELLS;
	FieldNorms<REAL> norms;            // a column has fewer points than RUNNING_TERMS
	unsigned step = (unsigned)s.first; // modulo 2^32
	Place place(s);
#pragma unroll 1
	for (unsigned left = (unsigned)s.count; left > NORMS; left--, step++) {
		inject_fault(3 * step);
		sweep<false>(w, column, now, next, place.left, norms);
		__syncthreads();
		REAL *const made = next;
		next = now, now = made;
		inject_fault(3 * step + 1);
		const bool exchanges = place.left == 0 && left > 1;
		if (exchanges) send(w, now, place.exchange);
		if (left <= 2) store_tile(w, column, now, step);
		inject_fault(3 * step + 2);
		if (exchanges && !__syncthreads_and(receive(w, now, place.exchange))) return;
		place.next(left - 1);
	}
	if (NORMS) {
		sweep<true>(w, column, now, next, 0, norms);
		__syncthreads();
		now = next;
		store_tile(w, column, now, step++);
	}
	end(w, now, step - 1);
	if (NORMS) {
		BinnedNorms mine;
		mine.take(norms);
		reduce_block(mine, s.norms[(step - 1) % 2] + blockIdx.x);
	}
}

#else

// run_checked runs the steps of a launch with checks, and computes the norms of the last. The work of a step is read
// before the barrier after its sweep; that of the next step is also planned before it.
__device__ __forceinline__ void run_checked(const Tiles &s) {
	__shared__ Tile t;
	__shared__ TileNorms kept;
	TileThread w = thread_of(s, t);
	if (w.thread == 0) plan_step(s, t, (unsigned)s.first), t.over = 0;
	if (!begin(s, t, w)) return;
	const Column column(w);
	REAL *now = w.cells, *next = w.cells + CELLS;
	unsigned step = (unsigned)s.first; // modulo 2^32
	Place place(s);
#pragma unroll 1
	for (unsigned left = (unsigned)s.count; left > 0; left--, step++) {
		inject_fault(3 * step);
		const bool due = left == 1 || t.plan[step % 2].due,
		           follows = left == 2 || (left > 2 && t.plan[step % 2].follows);
		if (w.thread == 0) plan_step(s, t, step + 1);
		FieldNorms<REAL> norms;
		if (due) {
			sweep<true>(w, column, now, next, place.left, norms);
			kept.keep(w, norms);
		} else {
			sweep<false>(w, column, now, next, place.left, norms);
		}
		__syncthreads();
		REAL *const made = next;
		next = now, now = made;
		inject_fault(3 * step + 1);
		const bool exchanges = place.left == 0 && left > 1;
		if (exchanges) send(w, now, place.exchange);
		if (follows) {
			follow(w, t, kept, step, left == 2);
			__syncthreads();
			if (t.over) break; // before the fields change
		}
		if (left <= 2) store_tile(w, column, now, step);
		inject_fault(3 * step + 2);
		if (exchanges && !__syncthreads_and(receive(w, now, place.exchange))) return;
		place.next(left - 1);
	}
	tell(w, t, step);
	if (t.over) {
		if (t.over > 0) notify(w);
		return;
	}
	end(w, now, step - 1);
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
