// Several steps of a 5-point star in one pass over memory.
//
// A block has TEAM adjacent warps, with POINTS columns per lane. It stores a strip of columns, row by row along y. For
// each level except the last, a thread holds two rows in registers. When row r of level 0 arrives, level l computes row
// r - l from rows r - l - 1 to r - l + 1 of the previous level. Only the middle row needs neighbors along x. They come
// from other lanes by shuffles, and from the adjacent warp, which stored them in shared memory one row earlier. Strips
// overlap by DEPTH columns at each side, and runs of rows by DEPTH rows.
//
// Walls: the column of ghosts behind a wall is the first point of a strip's first lane, or the last point of its last
// lane. Rows of ghosts are processed like other rows. Each level recomputes ghosts. With option MOVING, ghosts that
// keep their values differ between levels: those of columns are loaded into shared memory a few rows ahead, and those
// of rows are read where they are needed.
//
// Norms of the last NORMS steps are computed along with the levels, in registers, from the points that the strip
// stores. They are combined after each run, and before a sum reaches its maximum number of terms.
//
// Grid: any number of blocks, which share the rows of all strips; best is the number that run at the same time. Block:
// 32 x TEAM threads. Options: REAL; DEPTH; POINTS, at least 2; TEAM; BLOCKS, per multiprocessor, which limits
// registers; GROUPS of levels, after each of which the warps of a team signal each other; LEAD, how many rows ahead
// level 0 is loaded; MOVING, whether walls may move; those of pass_norms.cuh; and stencil.cuh.
#include "pass.cuh"
#include "pass_norms.cuh"

#ifndef DEPTH // for editors
enum { DEPTH = 4, POINTS = 4, TEAM = 4, BLOCKS = 2, GROUPS = 2, LEAD = 2 };
#endif

enum {
	SPAN = 32 * POINTS,  // columns per warp
	WIDTH = TEAM * SPAN, // columns per team
	// elements of one access
	VECTOR = POINTS * sizeof(REAL) % 16 == 0 ? 16 / sizeof(REAL)
	: POINTS * sizeof(REAL) % 8 == 0         ? 8 / sizeof(REAL)
	                                         : 1,
	BEFORE = (DEPTH + 3) & ~3,            // columns of a strip before those that it stores
	KEPT = (WIDTH - BEFORE - DEPTH) & ~3, // columns stored by a strip between others
	FIRST = KEPT + ((DEPTH - 1) & ~3),    // columns stored by the first strip, at a wall
	LAST = KEPT + DEPTH - 1,              // columns stored by the last strip, at a wall
	RING = LEAD + 3,                      // rows: those loaded ahead, and three in use
	NARROW = 2 * DEPTH,                   // fewer columns between walls use narrow
	NARROW_WIDTH = NARROW + 1,
	RING_COUNT = TEAM * RING * SPAN,
	NARROW_COUNT = DEPTH * 3 * NARROW_WIDTH,
	COUNT = RING_COUNT > NARROW_COUNT ? RING_COUNT : NARROW_COUNT,
#ifdef NORMS
	ALL = (1 << POINTS) - 1,                // points of a lane, as bits
	MOST_ROWS = RUNNING_TERMS / POINTS - 2, // rows before norms are combined, two less than fit
#endif
};
static_assert(KEPT >= DEPTH && POINTS >= 2 && DEPTH <= 32, "");

// The stencil's sum at a point, from its value and its neighbors.
__device__ __forceinline__ REAL star(REAL c, REAL xm, REAL xp, REAL ym, REAL yp) {
	return apply([&](int dx, int dy, int) { return dx < 0 ? xm : dx > 0 ? xp : dy < 0 ? ym : dy > 0 ? yp : c; });
}

// A run of rows of a strip, in shared memory to save registers.
struct StripRun {
	i64 place;  // end of this run among the rows of all strips, by cost; -1 before the first
	int at;     // the team's first column
	int x0, x1; // columns that are stored
	int y0, y1; // rows that are stored
};

// shift_of returns the number of columns from the first aligned vector of a row to the box.
__device__ __forceinline__ int shift_of(const Pass &a) { return (int)((u64)a.from / sizeof(REAL) % VECTOR); }

struct Shared {
	alignas(16) REAL rows[COUNT];
	// For even and odd rows, at each seam between warps, for each level: the columns before and after it.
	REAL edge[2][TEAM + 1][2][DEPTH];
#ifdef MOVING
	REAL ghosts
	    [2][RING]
	    [DEPTH]; // at the walls before the first and after the last column: those requested with a row of the ring
#endif
	StripRun run;
	u64 ready[GROUPS]; // mbarriers: the team has stored the edges of a group of levels, and read the previous ones
};

struct alignas(VECTOR * sizeof(REAL)) Vector {
	REAL v[VECTOR];
};

// One row of one level in a lane.
typedef REAL Level[POINTS];

#ifdef MOVING
// at_wall returns the place of the value of a moving wall at a level, for a row of a wall along x or a column of a wall
// along y. Where walls have no values, it returns a place that has one: results computed from it are not needed.
__device__ __forceinline__ const REAL *at_wall(const Pass &a, int side, int level, int at) {
	const Wall &w = a.walls[side];
	const int low = side < 2 ? a.sides[2] : a.sides[0], high = side < 2 ? a.sides[3] : a.sides[1];
	const int n = side < 2 ? a.n[1] : a.n[0];
	return w.values + (level - 1) * w.level +
	       min(max(at, low == OPEN ? 1 - DEPTH : 0), n - 1 + (high == OPEN ? DEPTH - 1 : 0));
}
#endif

// The traversal of a run's rows by one warp.
struct March {
	const Pass &a;
	Shared &shared;
	int lane, warp;
	int r;            // row of level 0
	int last;         // last row that is read
	int slot[4];      // offsets in the ring of rows r - 2, r - 1, r, and of a free one, in elements
	const REAL *from; // the lane's first vector in the next row to load
	REAL *to;         // the lane's first vector in the row stored with row r
	int keep, kept;   // columns that are stored: first and number, from the warp's first
	int read, reads;  // columns that may be read
	bool keep_first, mirror_first, keep_last, mirror_last; // whether the lane has ghosts
	SharedAddress ring, ready, edge;                       // edge: the seam before the warp
#ifdef NORMS
	PassNorms norms;
	unsigned counted;      // points of the lane that are included in the norms, as bits
	int count_row, counts; // rows that are included in the norms: first and number
#endif
#ifdef MOVING
	int column;                     // the lane's first point
	bool moving_first, moving_last; // whether the warp has ghosts of a moving wall
#endif

	__device__ __forceinline__ REAL *rows() const { return shared.rows + warp * (RING * SPAN); }

	// load loads one row ahead. SLOW loads rows point by point.
	template <bool SLOW> __device__ __forceinline__ void load(int row, int at) {
		if (row <= last) {
			if (SLOW) {
#pragma unroll
				for (int p = 0; p < POINTS; p++) {
					const int x = p * 32 + lane;
					if ((unsigned)(x - read) < (unsigned)reads)
						copy_async<sizeof(REAL)>(ring + (at + x) * (int)sizeof(REAL), from + (x - lane * VECTOR));
				}
			} else {
				const SharedAddress q = ring + (at + lane * VECTOR) * (int)sizeof(REAL);
#pragma unroll
				for (int j = 0; j < POINTS / VECTOR; j++)
					copy_async<VECTOR * sizeof(REAL)>(q + j * 32 * VECTOR * (int)sizeof(REAL), from + j * 32 * VECTOR);
			}
		}
#ifdef MOVING
		if (SLOW) load_ghosts(row, at);
#endif
		commit_async();
		from += a.pitch;
	}

#ifdef MOVING
	// ghosts returns the ghosts of the wall at a side that are used when the row of level 0 in a given slot of the ring
	// arrives. Those of level l are l rows before that row.
	__device__ __forceinline__ SharedAddress ghosts(int side, int at) const {
		return shared_address(shared.ghosts[side]) + at / SPAN * (DEPTH * (int)sizeof(REAL));
	}

	// load_ghosts requests the ghosts of all levels next to the warp's points, one level per lane.
	__device__ __forceinline__ void load_ghosts(int row, int at) const {
		if (lane >= DEPTH - 1) return;
		const int offset = lane * (int)sizeof(REAL);
		if (moving_first) copy_async<sizeof(REAL)>(ghosts(0, at) + offset, at_wall(a, 0, lane + 1, row - lane - 1));
		if (moving_last) copy_async<sizeof(REAL)>(ghosts(1, at) + offset, at_wall(a, 1, lane + 1, row - lane - 1));
	}
#endif

#ifdef NORMS
	// add adds a row of a level to its norms. END: only some of the lane's points.
	template <bool END, bool EDGE>
	__device__ __forceinline__ void add(int level, const REAL (&now)[POINTS], const REAL (&before)[POINTS]) {
		if (counted == 0 || (unsigned)(r - level - count_row) >= (unsigned)counts) return;
		FieldNorms<REAL> &of = norms.of[DEPTH - level];
		REAL u[POINTS], c[POINTS]; // a zero changes nothing
#pragma unroll
		for (int p = 0; p < POINTS; p++) {
			const bool here = !END || (counted >> p & 1);
			u[p] = here ? now[p] : 0, c[p] = here ? before[p] : 0;
		}
		if (EDGE) of.seldom(u, c);
		else of.many(u, c);
	}
#endif

	// hold and held access the lane's points of a row in the ring.
	__device__ __forceinline__ void hold(int at, const REAL (&v)[POINTS]) const {
		Vector *mine = (Vector *)(rows() + at + lane * POINTS);
#pragma unroll
		for (int j = 0; j < POINTS / VECTOR; j++) {
			Vector w;
#pragma unroll
			for (int k = 0; k < VECTOR; k++) w.v[k] = v[j * VECTOR + k];
			mine[j] = w;
		}
	}
	__device__ __forceinline__ void held(int at, REAL (&v)[POINTS]) const {
		const Vector *mine = (const Vector *)(rows() + at + lane * POINTS);
#pragma unroll
		for (int j = 0; j < POINTS / VECTOR; j++) {
			const Vector w = mine[j];
#pragma unroll
			for (int k = 0; k < VECTOR; k++) v[j * VECTOR + k] = w.v[k];
		}
	}

	// store writes a row, reordered to memory order in an unused row of the ring.
	template <bool SLOW> __device__ __forceinline__ void store(const REAL (&v)[POINTS]) {
		hold(slot[0], v);
		__syncwarp();
		const REAL *row = rows() + slot[0];
		store_layer(a, r - DEPTH, to, [&](REAL *there) {
			if (SLOW) {
#pragma unroll
				for (int p = 0; p < POINTS; p++) {
					const int x = p * 32 + lane;
					if ((unsigned)(x - keep) < (unsigned)kept) there[x - lane * VECTOR] = row[x];
				}
			} else {
#pragma unroll
				for (int j = 0; j < POINTS / VECTOR; j++) {
					const int x = (j * 32 + lane) * VECTOR;
					if ((unsigned)(x - keep) < (unsigned)kept)
						*(Vector *)(there + j * 32 * VECTOR) = *(const Vector *)(row + x);
				}
			}
		});
	}

	// step computes one row of each level, replacing the older row. odd alternates between rows. END: the lane may have
	// ghosts of a wall along x, and rows are accessed point by point. EDGE: rows may be ghosts of a wall along y, and
	// some levels or rows are not needed.
	template <bool END, bool EDGE>
	__device__ __forceinline__ void step(Level (&older)[DEPTH], Level (&old)[DEPTH], int odd) {
#ifdef NORMS // registers are scarce: no values derived from these are kept between rows
		lane = (int)opaque((unsigned)lane), warp = (int)opaque((unsigned)warp);
#endif
		wait_async<LEAD - 1>();
		__syncwarp();
		load<END>(r + LEAD, slot[3]);
		REAL now[POINTS];
		if (END) {
			REAL *mine = rows() + slot[2] + lane * POINTS;
			if (mirror_first) mine[0] = mine[1];
			if (mirror_last) mine[POINTS - 1] = mine[POINTS - 2];
		}
		held(slot[1], old[0]), held(slot[2], now);
		int top = 0, ghost = -1, above = -1, behind = -1; // levels: last needed; those that compute rows -1, 0 and n
		bool behind_mirror = false;
		if (EDGE) {
			top = (r - shared.run.y0 + DEPTH) >> 1;
			if (a.sides[2] > FIXED) above = r;
			if (a.sides[2] == FIXED) ghost = r + 1;
			if (a.sides[3] != OPEN) behind = r - a.n[1], behind_mirror = a.sides[3] > FIXED;
			if (above == 0) hold(slot[1], now), held(slot[1], old[0]);
			if (behind == 0 && behind_mirror) hold(slot[2], old[0]), held(slot[2], now);
		}
		held(slot[0], older[0]);
		// Always true, but the compiler must not know it. It then moves a new row into the registers of the older one
		// as soon as that is dead. Otherwise it holds three rows of each level and spills.
		const bool taking = a.pitch != 0;
		const bool first = lane == 0, end = lane == 31;
#pragma unroll
		for (int l = 1; l <= DEPTH; l++) {
			const int g = (l - 1) * GROUPS / DEPTH;
			if (TEAM > 1 && (l == 1 || g != (l - 2) * GROUPS / DEPTH)) mbarrier_wait(ready + g * 8, 1 - odd);
			REAL made[POINTS];
			if (!EDGE || l <= top) {
				REAL xm = __shfl_up_sync(~0u, old[l - 1][POINTS - 1], 1), xp = __shfl_down_sync(~0u, old[l - 1][0], 1);
				if (TEAM > 1) {
					const int at = ((1 - odd) * (TEAM + 1) * 2 * DEPTH + l - 1) * (int)sizeof(REAL);
					load_shared_if(first, xm, edge + at);
					load_shared_if(end, xp, edge + 3 * DEPTH * (int)sizeof(REAL) + at);
				}
#pragma unroll
				for (int p = 0; p < POINTS; p++)
					made[p] = star(old[l - 1][p], p > 0 ? old[l - 1][p - 1] : xm,
					               p + 1 < POINTS ? old[l - 1][p + 1] : xp, older[l - 1][p], now[p]);
				if (END) {
					if (keep_first) made[0] = old[l - 1][0];
					if (mirror_first) made[0] = made[1];
					if (keep_last) made[POINTS - 1] = old[l - 1][POINTS - 1];
					if (mirror_last) made[POINTS - 1] = made[POINTS - 2];
#ifdef MOVING
					if (l < DEPTH) {
						const int offset = (l - 1) * (int)sizeof(REAL);
						load_shared_if(keep_first && moving_first, made[0], ghosts(0, slot[2]) + offset);
						load_shared_if(keep_last && moving_last, made[POINTS - 1], ghosts(1, slot[2]) + offset);
					}
#endif
				}
				if (EDGE && l < DEPTH) {
					if (l == ghost || (l == behind && !behind_mirror)) {
#pragma unroll
						for (int p = 0; p < POINTS; p++) made[p] = old[l - 1][p];
#ifdef MOVING
						const int side = l == ghost ? 2 : 3;
						if (a.walls[side].values) {
#pragma unroll
							for (int p = 0; p < POINTS; p++) made[p] = *at_wall(a, side, l, column + p);
						}
#endif
					}
					if (l == behind && behind_mirror) {
#pragma unroll
						for (int p = 0; p < POINTS; p++) made[p] = old[l][p];
					}
					if (l == above) {
#pragma unroll
						for (int p = 0; p < POINTS; p++) old[l][p] = made[p];
					}
				}
			} else {
#pragma unroll
				for (int p = 0; p < POINTS; p++) made[p] = now[p];
			}
			if (TEAM > 1) {
				const int at = (odd * (TEAM + 1) * 2 * DEPTH + l - 1) * (int)sizeof(REAL);
				store_shared_if(first, now[0], edge + DEPTH * (int)sizeof(REAL) + at);
				store_shared_if(end, now[POINTS - 1], edge + 2 * DEPTH * (int)sizeof(REAL) + at);
				if (l == DEPTH || g != l * GROUPS / DEPTH) {
					if (first || end) mbarrier_arrive(ready + g * 8);
				}
			}
#ifdef NORMS
			if (l > DEPTH - NORMS) add<END, EDGE>(l, made, old[l - 1]);
#endif
#pragma unroll
			for (int p = 0; p < POINTS; p++) {
				if (l > 1 && taking) older[l - 1][p] = now[p];
				now[p] = made[p];
			}
		}
		if (!EDGE || (r - DEPTH >= shared.run.y0 && r - DEPTH < shared.run.y1)) store<END>(now);
		to += a.pitch;
		r++;
		const int next = slot[2] + SPAN;
		slot[3] = slot[0], slot[0] = slot[1], slot[1] = slot[2], slot[2] = next < RING * SPAN ? next : 0;
	}

	// steps computes two rows of each level.
	template <bool END, bool EDGE> __device__ __forceinline__ void steps(Level (&even)[DEPTH], Level (&odd)[DEPTH]) {
		step<END, EDGE>(even, odd, 0);
		step<END, EDGE>(odd, even, 1);
	}

	// march computes the rows of the team's run.
	__device__ __forceinline__ void march() {
		const int at = shared.run.at, x0 = shared.run.x0, x1 = shared.run.x1, x = at + warp * SPAN;
		const int y0 = shared.run.y0, y1 = shared.run.y1;
		const bool low = a.sides[2] != OPEN, high = a.sides[3] != OPEN;
		const bool left = a.sides[0] != OPEN && at == -1 && warp == 0 && lane == 0;
		const bool right = a.sides[1] != OPEN && at + WIDTH == a.n[0] + 1 && warp == TEAM - 1 && lane == 31;
		keep_first = left && a.sides[0] == FIXED, mirror_first = left && a.sides[0] > FIXED;
		keep_last = right && a.sides[1] == FIXED, mirror_last = right && a.sides[1] > FIXED;
		const int lo = max(x, a.sides[0] == OPEN ? -DEPTH : -1),
		          hi = min(x + SPAN, a.n[0] + (a.sides[1] == OPEN ? DEPTH : 1));
		read = lo - x, reads = max(hi - lo, 0);
		const int from_x = max(x, x0), to_x = min(x + SPAN, x1);
		keep = from_x - x, kept = max(to_x - from_x, 0);
#ifdef NORMS
		count(x + lane * POINTS, max(from_x, a.lo[0]), min(to_x, a.hi[0]));
		const bool whole = __all_sync(~0u, counted == 0 || counted == ALL); // a lane includes all of its points or none
#else
		const bool whole = true;
#endif
#ifdef MOVING
		column = x + lane * POINTS;
		moving_first = a.sides[0] == FIXED && x == -1 && a.walls[0].values;
		moving_last = a.sides[1] == FIXED && x + SPAN == a.n[0] + 1 && a.walls[1].values;
#endif
		const bool fast =
		    __all_sync(~0u, reads == SPAN && (x + shift_of(a)) % VECTOR == 0 &&
			                    (kept == 0 || (keep % VECTOR == 0 && kept % VECTOR == 0)) &&
			                    (a.sides[0] == OPEN || x != -1) && (a.sides[1] == OPEN || x + SPAN != a.n[0] + 1));
		r = low ? max(y0 - DEPTH, -1) : y0 - DEPTH;
		last = min(y1 - 1 + DEPTH, high ? a.n[1] : a.n[1] - 1 + DEPTH);
		const int stop = y1 - 1 + DEPTH, plain = high ? min(stop, a.n[1] - 1) : stop;
		from = a.from + r * a.pitch + (x + lane * VECTOR), to = a.to + (r - DEPTH) * a.pitch + (x + lane * VECTOR);
#pragma unroll
		for (int i = 0; i < 4; i++) slot[i] = ((i + RING - 2) % RING) * SPAN;
		slot[3] = LEAD * SPAN;
		__syncwarp();
#pragma unroll
		for (int i = 0; i < LEAD; i++) load<true>(r + i, i * SPAN);
		Level even[DEPTH], odd[DEPTH];
#pragma unroll
		for (int l = 0; l < DEPTH; l++)
#pragma unroll
			for (int p = 0; p < POINTS; p++) even[l][p] = odd[l][p] = 0;
#ifdef NORMS
		int full = r + MOST_ROWS; // row before which norms are combined
#pragma unroll 1
		while (true) {
			if (r > stop || r >= full) norms.settle(a), full = r + MOST_ROWS;
			if (r > stop) return;
			const int until = min(plain, full);
#else
		const int until = plain;
#pragma unroll 1
		while (r <= stop) {
#endif
			if (r < shared.run.y0 + DEPTH || r + 1 > plain) {
				steps<true, true>(even, odd);
			} else if (!fast || !whole) {
#pragma unroll 1
				do steps<true, false>(even, odd);
				while (r + 1 <= until);
			} else {
#pragma unroll 1
				do steps<false, false>(even, odd);
				while (r + 1 <= until);
			}
		}
	}

#ifdef NORMS
	// count finds the lane's points, starting at a given column, and the rows that are included in the norms, within
	// some columns.
	__device__ __forceinline__ void count(int x, int from_x, int to_x) {
		counted = 0;
#pragma unroll
		for (int p = 0; p < POINTS; p++)
			if (x + p >= from_x && x + p < to_x) counted |= 1u << p;
		count_row = max(shared.run.y0, a.lo[1]), counts = max(0, min(shared.run.y1, a.hi[1]) - count_row);
	}
#endif
};

// narrow computes rows y0 to y1 of a few columns between two walls. Each level holds three rows in shared memory.
// Mirrored ghosts are not stored.
__device__ __noinline__ void narrow(const Pass &a, REAL *held, int y0, int y1) {
	const int n = a.n[0], low = a.sides[2] == OPEN ? y0 - DEPTH : max(y0 - DEPTH, -1);
	const int ghost = a.sides[2] == OPEN ? -1 - DEPTH : -1,
	          behind = a.sides[3] == OPEN ? a.n[1] + DEPTH : a.n[1]; // rows
	const auto row = [&](int level, int y) { return held + (level * 3 + (y + 3 * DEPTH + 3) % 3) * NARROW_WIDTH + 1; };
#ifdef NORMS
	PassNorms norms;
	norms.settled = true;
	int joined = low; // row before which norms were combined
#endif
#pragma unroll 1
	for (int r = low; r <= y1 - 1 + DEPTH; r++) {
		__syncthreads();
		if (r <= (a.sides[3] == OPEN ? behind - 1 : behind))
			for (int x = (int)threadIdx.x - 1; x <= n; x += TEAM * 32) row(0, r)[x] = a.from[r * a.pitch + x];
#pragma unroll 1
		for (int l = 1; l <= DEPTH; l++) {
			const int y = r - l;
			__syncthreads();
			if (y < low || y > behind || (l == DEPTH && (y < y0 || y >= y1))) continue;
			const REAL *at = row(l - 1, y),
			           *below = row(l - 1, y == 0 && a.sides[2] != OPEN && a.sides[2] > FIXED ? y : y - 1),
			           *above = row(l - 1, y == a.n[1] - 1 && a.sides[3] != OPEN && a.sides[3] > FIXED ? y : y + 1);
			for (int x = (int)threadIdx.x - 1; x <= n; x += TEAM * 32) {
				REAL v = at[x];
				if (y != ghost && y != behind && x >= 0 && x < n)
					v = star(v, at[x == 0 && a.sides[0] > FIXED ? x : x - 1],
					         at[x == n - 1 && a.sides[1] > FIXED ? x : x + 1], below[x], above[x]);
#ifdef MOVING
				else {
					const int side = y == ghost ? 2 : y == behind ? 3 : x < 0 ? 0 : 1;
					if (l < DEPTH && a.walls[side].values) v = *at_wall(a, side, l, side < 2 ? y : x);
				}
#endif
#ifdef NORMS
				const bool counts = x >= a.lo[0] && x < a.hi[0] && y >= max(y0, a.lo[1]) && y < min(y1, a.hi[1]);
#pragma unroll
				for (int k = 0; k < NORMS; k++)
					if (l == DEPTH - k && counts) norms.of[k].point(v, at[x]);
#endif
				if (l < DEPTH) row(l, y)[x] = v;
				else if (x >= 0 && x < n) store_layer(a, y, a.to + y * a.pitch + x, [&](REAL *to) { *to = v; });
			}
		}
#ifdef NORMS
		if (r == y1 - 1 + DEPTH || r - joined == MOST_ROWS) norms.settle(a), joined = r;
#endif
	}
	__syncthreads();
}

// next_run finds the team's next run of rows of a strip, in one thread.
__device__ __noinline__ void next_run(const Pass &a, StripRun &run) {
	const i64 rows = a.n[1], team = blockIdx.x, teams = gridDim.x;
	const int n = a.n[0], shift = shift_of(a);
	const bool left = a.sides[0] != OPEN, right = a.sides[1] != OPEN;
	const int first = (left ? FIRST : KEPT) - shift, last = right ? LAST : KEPT;
	const int single = left && right ? 0 : left ? first : last;
	const int strips = n <= single ? 1 : 2 + max(0, (n - first - last + KEPT - 1) / KEPT);

	// cut is the first column that a strip stores. Strips at walls store enough columns that no other strip reaches the
	// wall.
	const auto cut = [&](int strip) {
		if (strip <= 0) return 0;
		if (strip >= strips) return n;
		if (strips == 2) return max(n - last, min(n / 2, first));
		const int x = first + (strip - 1) * KEPT;
		return right ? min(x, n - DEPTH) : x;
	};

	// Even shares, or teams at the same rows of all strips where that costs no more than starting a second strip.
	// Similar to next_run of pass_parts.cuh.
	const i64 start = min((i64)a.start, rows * strips / teams / 4);
	const i64 length = rows + start, plain = length * 16, end = length * a.weight;
	const i64 total = strips == 1 ? end : 2 * end + (strips - 2) * plain;
	const i64 stop = total * (team + 1) / teams, each = teams / strips;
	i64 place = run.place < 0 ? total * team / teams : run.place;
	int strip = 0;
	i64 y0 = 0, y1 = 0;
	if (each > 0 && (rows + each - 1) / each <= (rows * strips + teams - 1) / teams + 2 * DEPTH) {
		const i64 chunk = team / strips;
		if (run.place < 0 && chunk < each)
			strip = (int)(team % strips), y0 = rows * chunk / each, y1 = rows * (chunk + 1) / each;
		place = stop;
	}
	while (y0 == y1 && place < stop) {
		i64 base = 0, all = end;
		strip = 0;
		if (place >= end) {
			strip = 1 + (int)min((place - end) / plain, (i64)strips - 2);
			base = end + (strip - 1) * plain, all = strip == strips - 1 ? end : plain;
		}
		const auto row = [&](i64 there) { return min(max((there - base) / (all / length) - start, (i64)0), rows); };
		y0 = row(place), y1 = row(stop);
		place = base + all;
	}
	run.place = place;
	run.y0 = (int)y0, run.y1 = (int)y1;
	run.x0 = cut(strip), run.x1 = cut(strip + 1);
	run.at = left && strip == 0             ? -1
	         : right && strip == strips - 1 ? n + 1 - WIDTH
	                                        : (strip == 0 ? -shift : run.x0) - BEFORE;
}

extern "C" __global__ void __launch_bounds__(TEAM * 32, BLOCKS) pass_strips(const __grid_constant__ Pass a) {
	grid_dependency_wait();
	Shared &shared = *(Shared *)dynamic_shared();
#ifdef NORMS
	if (threadIdx.x == 0) {
#pragma unroll
		for (int k = 0; k < NORMS; k++) a.norms[k][blockIdx.x] = NormSum::none();
	}
#endif
	if (a.n[1] <= 0 || a.n[0] <= 0) return;
	if (a.sides[0] != OPEN && a.sides[1] != OPEN && a.n[0] < NARROW) {
		const i64 rows = a.n[1];
		const int y0 = (int)(rows * blockIdx.x / gridDim.x), y1 = (int)(rows * (blockIdx.x + 1) / gridDim.x);
		if (y0 < y1) narrow(a, shared.rows, y0, y1);
		return;
	}
	March m{a, shared};
	m.lane = threadIdx.x % 32, m.warp = threadIdx.x / 32;
	m.ring = shared_address(m.rows()), m.ready = shared_address(shared.ready),
	m.edge = shared_address(shared.edge[0][m.warp]);
#ifdef NORMS
	m.norms.settled = true; // a.norms has been initialized
#endif
	if (TEAM > 1 && threadIdx.x < GROUPS) mbarrier_init(m.ready + threadIdx.x * 8, 2 * TEAM);
	if (threadIdx.x == 0) shared.run.place = -1;
#pragma unroll 1
	while (true) {
		__syncthreads();
		if (threadIdx.x == 0) next_run(a, shared.run);
		__syncthreads();
		if (shared.run.y0 == shared.run.y1) return;
		m.march();
	}
}
