// Several steps of a 7-point star in one pass over memory.
//
// A thread block processes a tile of EX x EY columns plane by plane along z. A lane has VECTOR adjacent points along x
// in each of ROWS rows; the rows of a block's warps are stacked along y. For each level except the last, a thread holds
// two planes in registers. When plane k of level 0 arrives, level l computes plane k - l from planes k - l - 1 to k - l
// + 1 of the previous level. Only the middle plane needs neighbors along x and y. They come from other lanes by
// shuffles and, at the edges of a warp's rows, from adjacent warps, which stored them in shared memory one plane
// earlier. Warps signal each other after each of GROUPS groups of levels. Tiles overlap by DEPTH columns and rows at
// each side, runs of planes by DEPTH planes.
//
// Walls: a tile at a wall along x or y ends with the last point before it. Points beyond the wall are read from ghosts
// of level 0, which shared memory keeps for all levels, or are mirrored. Planes of ghosts along z are processed like
// other planes, but their points keep the value of the previous level. With option MOVING, shared memory keeps the
// ghosts of each level, and planes of ghosts are read for each level.
//
// Norms are those of the last step. Each thread keeps its norms in shared memory between planes, because the levels use
// up the registers.
//
// Grid: any number of blocks, which share the planes of all tiles; best is the number that run at the same time. Block:
// 32 x TEAM threads. A box has at least EX columns or EY rows between two walls. Options: REAL; DEPTH; ROWS; TEAM,
// warps; GROUPS; LEAD, how many planes ahead level 0 is loaded, one less than a power of two; EARLY, how many levels
// ahead points next to rows are requested, 0 or 1; MOVING, whether walls may move; those of pass_norms.cuh; and
// stencil.cuh.
#include "pass.cuh"
#include "pass_norms.cuh"
#include "pass_parts.cuh"

#ifndef DEPTH // for editors
enum { DEPTH = 4, ROWS = 4, TEAM = 8, GROUPS = 2, LEAD = 3, EARLY = 1 };
#endif

enum {
	BYTES = (int)sizeof(REAL),
	VECTOR = 16 / BYTES,
	EX = 32 * VECTOR,
	EY = ROWS * TEAM,
	MARGIN = (DEPTH + VECTOR - 1) / VECTOR * VECTOR, // columns of a tile that other tiles store
	SLOTS = LEAD + 1,                                // planes of level 0
#ifdef MOVING
	GHOST_LEVELS = DEPTH,  // levels with separate ghosts
	GHOST_SPAN = LEAD + 1, // planes for which ghosts are kept
#else
	GHOST_LEVELS = 1,
	GHOST_SPAN = LEAD + DEPTH,
#endif
	GHOST_SLOTS = GHOST_SPAN < 4 ? 4
	: GHOST_SPAN < 8             ? 8
	: GHOST_SPAN < 16            ? 16
	                             : 32,

	// Shared memory, in bytes.
	ROW = 32 * 16,
	LEVEL = TEAM * 2 * ROW, // the edges of one level
	EDGES = 2 * DEPTH * LEVEL,
	PLANE = EY * ROW,
	GHOST_SLOT = 2 * ROWS * BYTES, // before the first column and after the last
	GHOSTS = GHOST_SLOTS * GHOST_SLOT,
	GHOST_ROWS = GHOST_SLOTS * ROW,
	RING_AT = EDGES,
	GHOST_ROWS_AT = RING_AT + SLOTS * PLANE, // before the first row and after the last
	GHOSTS_AT = GHOST_ROWS_AT + GHOST_LEVELS * 2 * GHOST_ROWS,
	NORMS_AT = GHOSTS_AT + (GHOST_LEVELS * TEAM * GHOSTS + 15) / 16 * 16,
#ifdef NORMS
	READY_AT = NORMS_AT + 32 * TEAM * (int)sizeof(PassNorms),
	MOST_PLANES = RUNNING_TERMS / (ROWS * VECTOR), // planes per part; norms are settled after each part
#else
	READY_AT = NORMS_AT,
#endif
	PART_AT = READY_AT + GROUPS * 8,
	SHARED_BYTES = PART_AT + 96,
};

static_assert((SLOTS & LEAD) == 0 && ROWS <= 8 && EX > 2 * MARGIN && EY > 2 * DEPTH, "");

// How tiles of a given length are placed along an axis. Tiles overlap by a margin on each side. shift is the
// distance from the first aligned point to the box.
struct Axis {
	int n, length, margin, shift;
	bool low, high; // walls
	int first, last, tiles;

	__device__ __forceinline__ Axis(int n, int length, int margin, int shift, bool low, bool high)
	    : n(n), length(length), margin(margin), shift(shift), low(low), high(high) {
		first = length - (low ? margin : 2 * margin) - shift;
		last = length - (high ? margin : 2 * margin);
		const int single = low && high ? length : high ? last : first;
		const int step = length - 2 * margin;
		tiles = n <= single ? 1 : 2 + max(0, (n - first - last + step - 1) / step);
	}
	// cut is the first point that a tile stores.
	__device__ __forceinline__ int cut(int tile) const {
		if (tile <= 0) return 0;
		if (tile >= tiles) return n;
		const int at = first + (tile - 1) * (length - 2 * margin);
		return high ? min(at, n - margin) : at;
	}
	// begin is the first point of a tile.
	__device__ __forceinline__ int begin(int tile) const {
		if (low && tile == 0) return 0;
		if (high && tile == tiles - 1) return n - length;
		return (tile == 0 ? -shift : first + (tile - 1) * (length - 2 * margin)) - margin;
	}
	// reach and end are the first point that may be read and the end of these points (exclusive).
	__device__ __forceinline__ int reach() const { return low ? 0 : -DEPTH; }
	__device__ __forceinline__ int end() const { return n + (high ? 0 : DEPTH); }
};

// One plane of one level in a thread.
typedef REAL Level[ROWS][VECTOR];

// The special cases of a tile, as bits.
enum {
	X_LOW = 1, // boundaries adjacent to the tile's points
	X_HIGH = 2,
	Y_LOW = 4,
	Y_HIGH = 8,
	PARTIAL = 16, // whole vectors include points that must not be read or are not stored
	ENDS = 32,    // planes that are ghosts or adjacent to them; levels that are not needed
	X = X_LOW | X_HIGH,
	Y = Y_LOW | Y_HIGH,
};

// A block's part of a tile, in shared memory: values used once per plane should not take registers.
struct Part {
	Run run;
	int last;                       // last plane that is read
	int steady, stop;               // planes of level 0: the last one without ENDS, and the last one
	int x0, y0;                     // origin of the tile
	int cut_x, cut_y, end_x, end_y; // points that are stored
	int walls;                      // walls adjacent to the tile
	int kind;                       // bits of planes without ENDS
	bool vectors;                   // whether the tile is loaded and stored in whole vectors
};
static_assert(sizeof(Part) <= 96, "");

__device__ __forceinline__ Part &part() { return *(Part *)((char *)dynamic_shared() + PART_AT); }

// next_part finds the block's next part.
__device__ __noinline__ void next_part(const Pass &a, Part &p) {
	const Axis ax(a.n[0], EX, MARGIN, (int)((u64)a.from / BYTES % VECTOR), a.sides[0] != OPEN, a.sides[1] != OPEN);
	const Axis ay(a.n[1], EY, DEPTH, 0, a.sides[2] != OPEN, a.sides[3] != OPEN);
#ifdef NORMS
	next_run(p.run, a, a.n[2], ax.tiles, ay.tiles, MOST_PLANES);
#else
	next_run(p.run, a, a.n[2], ax.tiles, ay.tiles, a.n[2]);
#endif
	const int tile_x = p.run.tile_x, tile_y = p.run.tile_y;
	p.x0 = ax.begin(tile_x), p.y0 = ay.begin(tile_y);
	p.cut_x = ax.cut(tile_x), p.cut_y = ay.cut(tile_y), p.end_x = ax.cut(tile_x + 1), p.end_y = ay.cut(tile_y + 1);
	p.walls = (ax.low && tile_x == 0 ? X_LOW : 0) | (ax.high && tile_x == ax.tiles - 1 ? X_HIGH : 0) |
	          (ay.low && tile_y == 0 ? Y_LOW : 0) | (ay.high && tile_y == ay.tiles - 1 ? Y_HIGH : 0);
	// A vector may be read as a whole if it contains a point that may be read.
	p.vectors =
	    (p.x0 + ax.shift) % VECTOR == 0 && (p.cut_x + ax.shift) % VECTOR == 0 && (p.end_x + ax.shift) % VECTOR == 0;
	const bool whole = p.vectors && p.x0 > ax.reach() - VECTOR && p.x0 + EX < ax.end() + VECTOR && p.y0 >= ay.reach() &&
	                   p.y0 + EY <= ay.end();
	p.kind = !whole || (p.walls & X) == X ? PARTIAL : p.walls & X ? p.walls & X : p.walls ? Y : 0;

	const bool high = a.sides[5] != OPEN;
	p.last = min(p.run.z1 - 1 + DEPTH, high ? a.n[2] : a.n[2] - 1 + DEPTH);
	p.stop = p.run.z1 - 1 + DEPTH, p.steady = high ? min(p.stop, a.n[2] - 1) : p.stop;
}

#ifdef NORMS
// The norms of the thread since they were last settled.
__device__ __forceinline__ PassNorms &norms_of_thread() {
	return ((PassNorms *)((char *)dynamic_shared() + NORMS_AT))[threadIdx.x];
}
#endif

// The traversal of a part's planes by one warp.
struct March {
	const Pass &a;
	unsigned lane, warp;
	int k;            // plane of level 0
	const REAL *from; // the thread's first point in the next plane to load
	REAL *to;         // the thread's first point in the plane stored with plane k
	unsigned bits;    // see below
	SharedAddress own, ring, south, north;
#ifdef NORMS
	unsigned counted; // points included in the norms: bits of rows, and from bit 8 on of columns
#endif

	// These bits share a register, since registers are scarce in the loops.
	__device__ __forceinline__ bool stored(int row) const { return bits >> row & 1; }
	__device__ __forceinline__ bool read(int row) const { return bits >> 8 >> row & 1; }
	__device__ __forceinline__ bool stored_column(int v) const { return bits >> 16 >> v & 1; }
	__device__ __forceinline__ bool stored_columns() const { return bits >> 16 & 15; }
	__device__ __forceinline__ bool read_column(int v) const { return bits >> 20 >> v & 1; }
	__device__ __forceinline__ bool read_columns() const { return bits >> 20 & 15; }
	__device__ __forceinline__ bool fixed(int wall) const {
		return bits >> 24 & wall;
	} // whether the warp's points end there
	__device__ __forceinline__ bool mirror(int wall) const { return bits >> 28 & wall; }

	static __device__ __forceinline__ SharedAddress shared() { return shared_address(dynamic_shared()); }
	// The ghosts of a level that were requested with plane z of level 0.
	__device__ __forceinline__ SharedAddress ghosts(int level, int z) const {
		return shared() + GHOSTS_AT + (level * TEAM + warp) * GHOSTS + (z & (GHOST_SLOTS - 1)) * GHOST_SLOT;
	}
	__device__ __forceinline__ SharedAddress ghost_row(int level, int z) const {
		return shared() + GHOST_ROWS_AT + level * 2 * GHOST_ROWS + lane * 16 + (z & (GHOST_SLOTS - 1)) * ROW;
	}
	// mbarriers: all warps have stored and read the edges of some levels.
	static __device__ __forceinline__ SharedAddress ready(int group) { return shared() + READY_AT + group * 8; }

	// load_row requests a row of level 0.
	template <int KIND> __device__ __forceinline__ void load_row(SharedAddress at, const REAL *row) const {
		if (!(KIND & PARTIAL)) {
			copy_async<16>(at, row);
		} else if (part().vectors) {
			if (read_columns()) copy_async<16>(at, row);
		} else {
#pragma unroll
			for (int v = 0; v < VECTOR; v++)
				if (read_column(v)) copy_async<BYTES>(at + v * BYTES, row + v);
		}
	}

	// load requests a plane of level 0.
	template <int KIND> __device__ __forceinline__ void load(int z) {
		if (z <= part().last) {
			const SharedAddress at = ring + (z & LEAD) * PLANE;
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				if (!(KIND & PARTIAL) || read(r)) load_row<KIND>(at + r * ROW, from + r * a.pitch);
			if (KIND & Y) {
				const SharedAddress slot = ghost_row(0, z);
				if (fixed(Y_LOW)) load_row<KIND>(slot, from - a.pitch);
				if (fixed(Y_HIGH)) load_row<KIND>(slot + GHOST_ROWS, from + ROWS * a.pitch);
			}
			if (KIND & X) load_ghosts(0, z, from);
		}
#ifdef MOVING
		if (KIND & (X | Y)) {
#pragma unroll 1
			for (int level = 1; level < DEPTH; level++) load_moving<KIND>(level, z);
		}
#endif
		commit_async();
		from += a.plane;
	}

	// load_ghosts requests the ghosts next to the first and the last column, one per lane.
	__device__ __forceinline__ void load_ghosts(int level, int z, const REAL *plane) const {
		const int r = lane & 15, side = lane >> 4;
		if (r >= ROWS || !fixed(1 << side) || !read(r)) return;
		const REAL *ghost = plane - (int)lane * VECTOR + r * a.pitch + (side ? EX : -1);
#ifdef MOVING
		const Wall &w = side ? a.walls[1] : a.walls[0];
		if (level > 0 && w.values)
			ghost = w.values + (level - 1) * w.level + at_wall(z - level, 2) * w.width + at_wall(row() + r, 1);
#endif
		copy_async<BYTES>(ghosts(level, z) + (side * ROWS + r) * BYTES, ghost);
	}

#ifdef MOVING
	// The thread's first row and column.
	__device__ __forceinline__ int row() const { return part().y0 + (int)warp * ROWS; }
	__device__ __forceinline__ int column() const { return part().x0 + (int)lane * VECTOR; }

	// at_wall returns the place along an axis or, where walls have no values, one where they do: results computed from
	// these are not needed.
	__device__ __forceinline__ i64 at_wall(int at, int axis) const {
		return min(max(at, a.sides[2 * axis] == OPEN ? 1 - DEPTH : 0),
		           a.n[axis] - 1 + (a.sides[2 * axis + 1] == OPEN ? DEPTH - 1 : 0));
	}

	// load_moving requests the ghosts of a level that are used in the plane after z.
	template <int KIND> __device__ __forceinline__ void load_moving(int level, int z) const {
		const REAL *const plane = from + (at_wall(z - level, 2) - z) * a.plane;
		if (KIND & X) load_ghosts(level, z, plane);
		if (KIND & Y) {
			const SharedAddress slot = ghost_row(level, z);
			if (fixed(Y_LOW)) load_moving_row<KIND>(slot, a.walls[2], level, z, plane - a.pitch);
			if (fixed(Y_HIGH)) load_moving_row<KIND>(slot + GHOST_ROWS, a.walls[3], level, z, plane + ROWS * a.pitch);
		}
	}
	template <int KIND>
	__device__ __forceinline__ void load_moving_row(SharedAddress at, const Wall &w, int level, int z,
	                                                const REAL *still) const {
		if (!w.values) return load_row<KIND>(at, still);
		const REAL *const moving = w.values + (level - 1) * w.level + at_wall(z - level, 2) * w.width;
#pragma unroll
		for (int v = 0; v < VECTOR; v++) copy_async<BYTES>(at + v * BYTES, moving + at_wall(column() + v, 0));
	}
#endif

	// kept returns a level's value of a ghost within a plane of ghosts, whose value differed at the previous level.
	__device__ __forceinline__ REAL kept(int level, bool low, int r, int v, REAL before) const {
#ifdef MOVING
		const Wall &w = low ? a.walls[4] : a.walls[5];
		if (level < DEPTH && w.values)
			return w.values[(level - 1) * w.level + at_wall(row() + r, 1) * w.width + at_wall(column() + v, 0)];
#endif
		return before;
	}

#ifdef NORMS
	// count sets the bits of points included in the norms.
	__device__ __forceinline__ void count(int x, int y) {
		counted = 0;
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			if (stored(r) && y + r >= a.lo[1] && y + r < a.hi[1]) counted |= 1u << r;
#pragma unroll
		for (int v = 0; v < VECTOR; v++)
			if (stored_column(v) && x + v >= a.lo[0] && x + v < a.hi[0]) counted |= 256u << v;
	}

	// add adds points of a plane of the last level to the norms; excluded points count as 0 before and after. Four
	// points are added together, so that the code for rare terms is generated only once.
	__device__ __forceinline__ void add(const Level &now, const Level &before) const {
		if (k - DEPTH < a.lo[2] || k - DEPTH >= a.hi[2]) return;
		enum { TOGETHER = VECTOR < 4 ? 4 / VECTOR : 1 }; // rows
#pragma unroll
		for (int first = 0; first < ROWS; first += TOGETHER) {
			if (!(counted >> first & ((1 << TOGETHER) - 1))) continue;
			REAL u[TOGETHER * VECTOR], c[TOGETHER * VECTOR];
#pragma unroll
			for (int i = 0; i < TOGETHER * VECTOR; i++) {
				const int r = first + i / VECTOR, v = i % VECTOR;
				const bool counts = r < ROWS && (counted >> r & 1) && (counted >> 8 >> v & 1);
				u[i] = counts ? now[r < ROWS ? r : 0][v] : 0, c[i] = counts ? before[r < ROWS ? r : 0][v] : 0;
			}
			norms_of_thread().points(u, c);
		}
	}
#endif

	// step computes a plane of each level, replacing the older plane. odd alternates between planes.
	template <int KIND> __device__ __forceinline__ void step(Level (&older)[DEPTH], Level (&old)[DEPTH], int odd) {
		bits = opaque(bits), lane = opaque(lane),
		warp = opaque(warp); // so that values derived from it are not kept in registers between planes
		wait_async<LEAD - 1>();
		if (KIND & X) __syncwarp();
		int top = DEPTH, z_low = -1, z_high = -1; // levels: the last needed; those that compute planes 0 and n - 1
		bool z_fixed_low = false, z_fixed_high = false;
		if (KIND & ENDS) {
			top = (k - part().run.z0 + DEPTH) >> 1;
			if (a.sides[4] != OPEN) z_low = k, z_fixed_low = a.sides[4] == FIXED;
			if (a.sides[5] != OPEN) z_high = k - a.n[2] + 1, z_fixed_high = a.sides[5] == FIXED;
		}
		Level now;
#pragma unroll
		for (int r = 0; r < ROWS; r++) load_shared(now[r], ring + (k & LEAD) * PLANE + r * ROW);
		load<KIND>(k + LEAD);

		// Points next to the rows of a level are requested EARLY levels before they are used.
		REAL below[2][VECTOR], above[2][VECTOR], west[2][ROWS], east[2][ROWS];
		const auto ask = [&](int l) {
			const int group = (l - 1) * GROUPS / DEPTH, before = ((1 - odd) * DEPTH + l - 1) * LEVEL;
			if (l == 1 || group != (l - 2) * GROUPS / DEPTH) mbarrier_wait(ready(group), 1 - odd);
			SharedAddress low = south + before, high = north + before;
			if (KIND & Y) {
				const SharedAddress slot = GHOST_LEVELS > 1 ? ghost_row(l - 1, k - 1) : ghost_row(0, k - l);
				if (fixed(Y_LOW)) low = slot;
				if (fixed(Y_HIGH)) high = slot + GHOST_ROWS;
			}
			load_shared(below[l & 1], low);
			load_shared(above[l & 1], high);
#pragma unroll
			for (int r = 0; r < ROWS; r++) {
				const REAL(&c)[VECTOR] = old[l - 1][r];
				REAL &w = west[l & 1][r], &e = east[l & 1][r];
				w = __shfl_up_sync(~0u, c[VECTOR - 1], 1), e = __shfl_down_sync(~0u, c[0], 1);
				if (KIND & X) {
					const SharedAddress ghost =
					    (GHOST_LEVELS > 1 ? ghosts(l - 1, k - 1) : ghosts(0, k - l)) + r * BYTES;
					if (KIND & X_LOW) load_shared_if(lane == 0 && fixed(X_LOW), w, ghost);
					if (KIND & X_HIGH) load_shared_if(lane == 31 && fixed(X_HIGH), e, ghost + ROWS * BYTES);
					if ((KIND & X_LOW) && lane == 0 && mirror(X_LOW)) w = c[0];
					if ((KIND & X_HIGH) && lane == 31 && mirror(X_HIGH)) e = c[VECTOR - 1];
				}
			}
		};
		// Always true, but the compiler must not know it. It then moves a new plane into the registers of the older one
		// as soon as that is dead. Otherwise it holds three planes of each level and spills.
		const bool taking = a.pitch != 0;
		if (EARLY) ask(1);
#pragma unroll
		for (int l = 1; l <= DEPTH; l++) {
			if (l + EARLY <= DEPTH) ask(l + EARLY);
			const int group = (l - 1) * GROUPS / DEPTH, there = (odd * DEPTH + l - 1) * LEVEL;
			store_shared(own + there, now[0]);
			store_shared(own + there + ROW, now[ROWS - 1]);
			if (l == DEPTH || group != l * GROUPS / DEPTH) {
				__syncwarp();
				if (lane < ARRIVALS) mbarrier_arrive(ready(group));
			}
			if ((KIND & ENDS) && l > top) {
#pragma unroll
				for (int i = 0; i < ROWS * VECTOR; i++) (&older[l - 1][0][0])[i] = (&now[0][0])[i];
				continue;
			}
#pragma unroll
			for (int r = 0; r < ROWS; r++) {
				const REAL(&c)[VECTOR] = old[l - 1][r];
				REAL next[VECTOR];
#pragma unroll
				for (int v = 0; v < VECTOR; v++) {
					const REAL xm = v > 0 ? c[v > 0 ? v - 1 : 0] : west[l & 1][r],
					           xp = v < VECTOR - 1 ? c[v < VECTOR - 1 ? v + 1 : 0] : east[l & 1][r];
					const REAL ym = r > 0 ? old[l - 1][r > 0 ? r - 1 : 0][v] : below[l & 1][v];
					const REAL yp = r < ROWS - 1 ? old[l - 1][r < ROWS - 1 ? r + 1 : 0][v] : above[l & 1][v];
					REAL zm = older[l - 1][r][v], zp = now[r][v];
					if ((KIND & ENDS) && l == z_low && !z_fixed_low) zm = c[v];
					if ((KIND & ENDS) && l == z_high && !z_fixed_high) zp = c[v];
					next[v] = apply([&](int dx, int dy, int dz) {
						return dx < 0 ? xm : dx > 0 ? xp : dy < 0 ? ym : dy > 0 ? yp : dz < 0 ? zm : dz > 0 ? zp : c[v];
					});
					if ((KIND & ENDS) && ((l == z_low + 1 && z_fixed_low) || (l == z_high - 1 && z_fixed_high)))
						next[v] = kept(l, l == z_low + 1, r, v, c[v]);
				}
#pragma unroll
				for (int v = 0; v < VECTOR; v++) {
					if (taking) older[l - 1][r][v] = now[r][v];
					now[r][v] = next[v];
				}
			}
		}
		if (!(KIND & ENDS) || (k - DEPTH >= part().run.z0 && k - DEPTH < part().run.z1)) {
#ifdef NORMS
			add(now, old[DEPTH - 1]);
#endif
			store_layer(a, k - DEPTH, to, [&](REAL *at) {
#pragma unroll
				for (int r = 0; r < ROWS; r++) {
					if (!stored(r)) continue;
					REAL *const row = at + r * a.pitch;
					if (!(KIND & PARTIAL) || part().vectors) {
						if (stored_columns()) store_vector(row, now[r]);
					} else {
#pragma unroll
						for (int v = 0; v < VECTOR; v++)
							if (stored_column(v)) row[v] = now[r][v];
					}
				}
			});
		}
		to += a.plane;
		k++;
	}

	template <int KIND> __device__ __forceinline__ void steps(Level (&even)[DEPTH], Level (&odd)[DEPTH], int end) {
#pragma unroll 1
		do {
			step<KIND>(even, odd, 0);
			step<KIND>(odd, even, 1);
		} while (k < end);
	}

	// march computes the planes of the part.
	__device__ __forceinline__ void march() {
		const Part &p = part();
		const int x = p.x0 + (int)lane * VECTOR, y = p.y0 + (int)warp * ROWS;
		bits = 0;
#pragma unroll
		for (int side = 0; side < 4; side++)
			if ((p.walls >> side & 1) && (side < 2 || warp == (side == 2 ? 0 : TEAM - 1)))
				bits |= 1u << (a.sides[side] == FIXED ? 24 : 28) << side;
		south = warp > 0 ? own - ROW : own; // mirrored rows are in the warp's own edges
		north = warp < TEAM - 1 ? own + 2 * ROW : own + ROW;

		const auto within = [&](int at, int axis) { // whether a point may be read
			return at >= (a.sides[2 * axis] == OPEN ? -DEPTH : 0) &&
			       at < a.n[axis] + (a.sides[2 * axis + 1] == OPEN ? DEPTH : 0);
		};
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			if (within(y + r, 1)) bits |= 1u << 8 << r;
			if (y + r >= p.cut_y && y + r < p.end_y) bits |= 1u << r;
		}
#pragma unroll
		for (int v = 0; v < VECTOR; v++) {
			if (within(x + v, 0)) bits |= 1u << 20 << v;
			if (x + v >= p.cut_x && x + v < p.end_x) bits |= 1u << 16 << v;
		}
#ifdef NORMS
		count(x, y);
#endif
		k = a.sides[4] != OPEN ? max(p.run.z0 - DEPTH, -1) : p.run.z0 - DEPTH;
		from = a.from + k * a.plane + y * a.pitch + x, to = a.to + (k - DEPTH) * a.plane + y * a.pitch + x;
#pragma unroll 1
		for (int i = 0; i < LEAD; i++) load<X | Y | PARTIAL>(k + i);
		Level even[DEPTH], odd[DEPTH];
#pragma unroll
		for (int i = 0; i < DEPTH * ROWS * VECTOR; i++) (&even[0][0][0])[i] = (&odd[0][0][0])[i] = 0;
#pragma unroll 1
		while (k <= part().stop) {
			const int edge = max(part().run.z0, 1) + DEPTH, kind = part().kind;
			if (k < edge || k >= part().steady)
				steps<X | Y | PARTIAL | ENDS>(even, odd, k < edge ? min(edge, part().stop + 1) : part().stop + 1);
			else if (kind == 0) steps<0>(even, odd, part().steady);
			else if (kind == Y) steps<Y>(even, odd, part().steady);
			else if (kind == X_LOW) steps<X_LOW | Y>(even, odd, part().steady);
			else if (kind == X_HIGH) steps<X_HIGH | Y>(even, odd, part().steady);
			else steps<X | Y | PARTIAL>(even, odd, part().steady);
		}
	}
};

extern "C" __global__ void __launch_bounds__(32 * TEAM, 1) pass_planes(const __grid_constant__ Pass a) {
	grid_dependency_wait();
	March m{a};
	m.lane = threadIdx.x % 32, m.warp = threadIdx.x / 32;
	m.own = m.shared() + m.warp * (2 * ROW) + m.lane * 16;
	m.ring = m.shared() + RING_AT + m.warp * (ROWS * ROW) + m.lane * 16;
	if (threadIdx.x == 0) part().run.place = 0;
	if (threadIdx.x < GROUPS) mbarrier_init(m.ready(threadIdx.x), TEAM * ARRIVALS);
#ifdef NORMS
	norms_of_thread() = PassNorms();
#endif
#pragma unroll 1
	while (true) {
#ifdef NORMS
		norms_of_thread().settle(a); // first write norms of no points: a block may have no part
#endif
		__syncthreads();
		if (threadIdx.x == 0) next_part(a, part());
		__syncthreads();
		if (part().run.z1 == 0) return;
		m.march();
	}
}
