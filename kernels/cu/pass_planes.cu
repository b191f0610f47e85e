// Several steps of a 7-point star in one pass over memory.
//
// A thread block has a tile of EX x EY columns and goes along z, plane by plane. A lane has VECTOR points beside each other along x, in ROWS
// rows; the warps of a block have rows above each other. Of each level but the last a thread holds two planes in registers: as plane k of
// level 0 comes, level l computes plane k - l, from the planes before, at and behind it, of which it needs neighbours along x and y at the
// middle one alone. These are those of other lanes, by shuffles, and, at the edges of a warp's rows, those of the warps beside it, which have
// left them in shared memory the plane before. A warp computes its edges first, tells the others, and then computes the rows
// between. Tiles overlap by DEPTH columns and rows at each side, runs of planes by DEPTH planes.
//
// Walls: a tile at a wall along x ends with the last point before it: its first or last lane reads the ghost of level 0 of that plane, which
// shared memory keeps for all levels. A tile at a wall along y ends with the row of ghosts. Planes of ghosts are planes of the march. Points
// of ghosts have at each level what they had at the one before.
//
// Grid: any number of blocks. They share the planes of all tiles; the best is as many as run at the same time. Block: 32 x TEAM threads.
// A box between two walls has EX columns or more; EY - 2 rows or more. Options: REAL; DEPTH; ROWS, at least 2; TEAM, at least 2 warps; LEAD, how many planes
// before it is used level 0 is asked for, one less than a power of two; and stencil.cuh.
#include "device.cuh"
#include "real.cuh"
#include "stencil.cuh"

#ifndef DEPTH // for editors
enum { DEPTH = 4, ROWS = 5, TEAM = 8, LEAD = 3 };
#endif

enum Side { OPEN, FIXED, MIRROR, REPEAT };

struct Pass {
	const REAL *from; // of the first point of the box
	REAL *to;
	i64 pitch, plane; // from row to row and from plane to plane, of both arrays
	int n[3];         // points of the box
	int sides[6];     // x-, x+, y-, y+, z-, z+
	int chunk;        // not read here
};

enum {
	BYTES = (int)sizeof(REAL),
	VECTOR = 16 / BYTES,
	EX = 32 * VECTOR,
	EY = ROWS * TEAM,
	MARGIN = (DEPTH + VECTOR - 1) / VECTOR * VECTOR, // columns of a tile that others store
	SLOTS = LEAD + 1,                                // planes of level 0
	GHOST_SLOTS = LEAD + DEPTH < 4 ? 4 : LEAD + DEPTH < 8 ? 8 : LEAD + DEPTH < 16 ? 16 : 32,

	// Shared memory, in bytes.
	ROW = 32 * 16,
	LEVEL = TEAM * 2 * ROW, // the edges of one level
	EDGES = 2 * DEPTH * LEVEL,
	PLANE = EY * ROW,
	GHOST_SLOT = 2 * ROWS * BYTES, // before the first column, and behind the last
	GHOSTS = GHOST_SLOTS * GHOST_SLOT,
	RING_AT = EDGES,
	GHOSTS_AT = RING_AT + SLOTS * PLANE,
	TOLD_AT = GHOSTS_AT + (TEAM * GHOSTS + 15) / 16 * 16,
	SHARED_BYTES = TOLD_AT + 8,

	WALL_WEIGHT = 17, // how long a plane of a tile at a wall takes, where 16 is that of another
};
static_assert((SLOTS & LEAD) == 0 && ROWS >= 2 && TEAM >= 2 && EX > 2 * MARGIN && EY > 2 * DEPTH + 1, "");

// How tiles of a length lie along an axis. Tiles overlap by a margin on each side. At walls there is a layer of ghosts in the tile, or none.
// The first aligned point lies so many before the box.
struct Axis {
	int n, length, margin, inside, shift;
	bool low, high; // walls
	int first, last, tiles;

	__device__ __forceinline__ Axis(int n, int length, int margin, int inside, int shift, bool low, bool high)
	    : n(n), length(length), margin(margin), inside(inside), shift(shift), low(low), high(high) {
		first = length - margin - (low ? inside : margin) - shift;
		last = length - margin - (high ? inside : margin);
		const int single = low && high ? length - 2 * inside : low ? first : high ? last : first;
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
		if (low && tile == 0) return -inside;
		if (high && tile == tiles - 1) return n + inside - length;
		return (tile == 0 ? -shift : first + (tile - 1) * (length - 2 * margin)) - margin;
	}
};

// One plane of one level in a thread.
typedef REAL Level[ROWS][VECTOR];

// What a warp meets, as bits.
enum {
	X_LOW = 1, // walls beside its points
	X_HIGH = 2,
	Y_LOW = 4,
	Y_HIGH = 8,
	ODD = 16,  // points that may not be read, or are not stored, in whole vectors
	EDGE = 32, // planes that are ghosts, or beside them; levels that are not needed
	X = X_LOW | X_HIGH,
	Y = Y_LOW | Y_HIGH,
};

// A march of one warp through some planes of a tile.
struct March {
	const Pass &a;
	unsigned lane, warp;
	int k;              // plane of level 0
	int z0, z1;         // planes that are stored
	int last;           // plane that is read
	const REAL *from;   // the next plane to load, of the thread's first point
	REAL *to;           // the plane to be stored with plane k, there too
	int stored, read;   // bits: rows
	int columns, reach; // bits: points of a row that are stored, and read
	bool vectors;       // whether all lanes load and store whole vectors
	int fixed, mirror;  // bits: walls where the warp's points end
	Near own, ring, south, north, ghosts;
	Near told; // an mbarrier: all warps have computed and read the edges of a plane

	// load asks for a plane of level 0.
	template <int KIND> __device__ __forceinline__ void load(int z) {
		if (z <= last) {
			const Near at = ring + (z & LEAD) * PLANE;
			if (!(KIND & ODD) || vectors) {
#pragma unroll
				for (int r = 0; r < ROWS; r++)
					if (!(KIND & ODD) || ((read >> r & 1) && reach)) copy_near<16>(at + r * ROW, from + r * a.pitch);
			} else {
#pragma unroll 1
				for (int r = 0; r < ROWS; r++)
#pragma unroll
					for (int v = 0; v < VECTOR; v++)
						if ((read >> r & 1) && (reach >> v & 1)) copy_near<BYTES>(at + r * ROW + v * BYTES, from + r * a.pitch + v);
			}
			if (KIND & X) load_ghosts(z);
		}
		commit_async();
		from += a.plane;
	}

	// load_ghosts asks for those beside the first and the last column, one in a lane.
	__device__ __forceinline__ void load_ghosts(int z) const {
		const int r = lane & 15, side = lane >> 4;
		if (r < ROWS && (fixed >> side & 1) && (read >> r & 1))
			copy_near<BYTES>(ghosts + (z & (GHOST_SLOTS - 1)) * GHOST_SLOT + (side * ROWS + r) * BYTES,
			                 from - (int)lane * VECTOR + r * a.pitch + (side ? EX : -1));
	}

	// rows computes a plane of each level, of the rows at the edges or of those between. odd changes from plane to plane.
	template <int KIND, bool ENDS> __device__ __forceinline__ void rows(Level (&older)[DEPTH], Level (&old)[DEPTH], int odd) {
		const auto mine = [](int r) { return (r == 0 || r == ROWS - 1) == ENDS; };
		int top = DEPTH, z_low = -1, z_high = -1; // levels: the last needed; those that compute planes 0 and n - 1
		bool z_fixed_low = false, z_fixed_high = false;
		if (KIND & EDGE) {
			top = (k - z0 + DEPTH) >> 1;
			if (a.sides[4] != OPEN) z_low = k, z_fixed_low = a.sides[4] == FIXED;
			if (a.sides[5] != OPEN) z_high = k - a.n[2] + 1, z_fixed_high = a.sides[5] == FIXED;
		}
		Level now;
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			if (mine(r)) load_near(now[r], ring + (k & LEAD) * PLANE + r * ROW);
#pragma unroll
		for (int l = 1; l <= DEPTH; l++) {
			const int there = (odd * DEPTH + l - 1) * LEVEL, before = ((1 - odd) * DEPTH + l - 1) * LEVEL;
			if (ENDS) {
				store_near(own + there, now[0]);
				store_near(own + there + ROW, now[ROWS - 1]);
			}
#pragma unroll
			for (int r = 0; r < ROWS; r++) {
				if (!mine(r)) continue;
				if ((KIND & EDGE) && l > top) {
#pragma unroll
					for (int v = 0; v < VECTOR; v++) older[l - 1][r][v] = now[r][v];
					continue;
				}
				const REAL(&c)[VECTOR] = old[l - 1][r];
				REAL beside[VECTOR];
				if (r == 0) load_near(beside, south + before);
				if (r == ROWS - 1) load_near(beside, north + before);
				REAL west = __shfl_up_sync(~0u, c[VECTOR - 1], 1), east = __shfl_down_sync(~0u, c[0], 1);
				if (KIND & X) {
					const Near ghost = ghosts + ((k - l) & (GHOST_SLOTS - 1)) * GHOST_SLOT + r * BYTES;
					if (KIND & X_LOW) load_if(lane == 0 && (fixed & X_LOW), west, ghost);
					if (KIND & X_HIGH) load_if(lane == 31 && (fixed & X_HIGH), east, ghost + ROWS * BYTES);
					if ((KIND & X_LOW) && lane == 0 && (mirror & X_LOW)) west = c[0];
					if ((KIND & X_HIGH) && lane == 31 && (mirror & X_HIGH)) east = c[VECTOR - 1];
				}
				REAL next[VECTOR];
#pragma unroll
				for (int v = 0; v < VECTOR; v++) {
					const REAL xm = v > 0 ? c[v > 0 ? v - 1 : 0] : west, xp = v < VECTOR - 1 ? c[v < VECTOR - 1 ? v + 1 : 0] : east;
					REAL ym = r > 0 ? old[l - 1][r > 0 ? r - 1 : 0][v] : beside[v];
					REAL yp = r < ROWS - 1 ? old[l - 1][r < ROWS - 1 ? r + 1 : 0][v] : beside[v];
					REAL zm = older[l - 1][r][v], zp = now[r][v];
					if ((KIND & Y) && r == 1 && (mirror & Y_LOW)) ym = c[v];
					if ((KIND & Y) && r == ROWS - 2 && (mirror & Y_HIGH)) yp = c[v];
					if ((KIND & EDGE) && l == z_low && !z_fixed_low) zm = c[v];
					if ((KIND & EDGE) && l == z_high && !z_fixed_high) zp = c[v];
					next[v] = apply([&](int dx, int dy, int dz) {
						return dx < 0 ? xm : dx > 0 ? xp : dy < 0 ? ym : dy > 0 ? yp : dz < 0 ? zm : dz > 0 ? zp : c[v];
					});
					if ((KIND & Y) && r == 0 && (fixed & Y_LOW)) next[v] = c[v];
					if ((KIND & Y) && r == ROWS - 1 && (fixed & Y_HIGH)) next[v] = c[v];
					if ((KIND & EDGE) && ((l == z_low + 1 && z_fixed_low) || (l == z_high - 1 && z_fixed_high))) next[v] = c[v];
				}
#pragma unroll
				for (int v = 0; v < VECTOR; v++) older[l - 1][r][v] = now[r][v], now[r][v] = next[v];
			}
		}
		if ((KIND & EDGE) && (k - DEPTH < z0 || k - DEPTH >= z1)) return;
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			if (!mine(r) || !(stored >> r & 1)) continue;
			REAL *const row = to + r * a.pitch;
			if (!(KIND & ODD) || vectors) {
				if (columns) store_vector(row, now[r]);
			} else {
#pragma unroll
				for (int v = 0; v < VECTOR; v++)
					if (columns >> v & 1) row[v] = now[r][v];
			}
		}
	}

	template <int KIND> __device__ __forceinline__ void step(Level (&older)[DEPTH], Level (&old)[DEPTH], int odd) {
		wait_async<LEAD - 1>();
		if (KIND & X) __syncwarp();
		barrier_wait(told, 1 - odd);
		rows<KIND, true>(older, old, odd);
		__syncwarp();
		if (lane == 0) barrier_arrive(told);
		load<KIND>(k + LEAD);
		if (ROWS > 2) rows<KIND, false>(older, old, odd);
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

	// march computes planes z0 to z1 of a tile.
	__device__ __forceinline__ void march(const Axis &ax, const Axis &ay, int tile_x, int tile_y) {
		const int x0 = ax.begin(tile_x), y0 = ay.begin(tile_y), x = x0 + (int)lane * VECTOR, y = y0 + (int)warp * ROWS;
		fixed = mirror = 0;
		const auto wall = [&](bool here, int side, int bit) {
			if (here) (a.sides[side] == FIXED ? fixed : mirror) |= bit;
		};
		wall(ax.low && tile_x == 0, 0, X_LOW);
		wall(ax.high && tile_x == ax.tiles - 1, 1, X_HIGH);
		wall(ay.low && tile_y == 0 && warp == 0, 2, Y_LOW);
		wall(ay.high && tile_y == ay.tiles - 1 && warp == TEAM - 1, 3, Y_HIGH);

		// What may be read: ghosts too, but none behind walls along x, which are read apart.
		const int x_first = ax.low ? 0 : -DEPTH, x_end = ax.n + (ax.high ? 0 : DEPTH);
		const int y_first = ay.low ? -1 : -DEPTH, y_end = ay.n + (ay.high ? 1 : DEPTH);
		const int cut_x = ax.cut(tile_x), cut_y = ay.cut(tile_y), end_x = ax.cut(tile_x + 1), end_y = ay.cut(tile_y + 1);
		stored = columns = read = reach = 0;
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			if (y + r >= y_first && y + r < y_end) read |= 1 << r;
			if (y + r >= cut_y && y + r < end_y) stored |= 1 << r;
		}
#pragma unroll
		for (int v = 0; v < VECTOR; v++) {
			if (x + v >= x_first && x + v < x_end) reach |= 1 << v;
			if (x + v >= cut_x && x + v < end_x) columns |= 1 << v;
		}
		const int all = (1 << VECTOR) - 1;
		vectors = __all_sync(~0u, (x + ax.shift) % VECTOR == 0 && (columns == 0 || columns == all) && (reach == 0 || reach == all));
		const bool whole = __all_sync(~0u, vectors && reach == all && read == (1 << ROWS) - 1);
		const auto is = [&](int walls) { return __all_sync(~0u, whole && ((fixed | mirror) & ~walls) == 0); }; // so that the compiler sees no divergence
		const bool plain = is(0), x_low = is(X_LOW), x_high = is(X_HIGH), along_y = is(Y);

		const bool low = a.sides[4] != OPEN, high = a.sides[5] != OPEN;
		k = low ? max(z0 - DEPTH, -1) : z0 - DEPTH;
		last = min(z1 - 1 + DEPTH, high ? a.n[2] : a.n[2] - 1 + DEPTH);
		const int stop = z1 - 1 + DEPTH, steady = high ? min(stop, a.n[2] - 1) : stop;
		from = a.from + k * a.plane + y * a.pitch + x, to = a.to + (k - DEPTH) * a.plane + y * a.pitch + x;
		__syncwarp();
#pragma unroll 1
		for (int i = 0; i < LEAD; i++) load<X | ODD>(k + i);
		Level even[DEPTH], odd[DEPTH];
#pragma unroll
		for (int i = 0; i < DEPTH * ROWS * VECTOR; i++) (&even[0][0][0])[i] = (&odd[0][0][0])[i] = 0;
#pragma unroll 1
		while (k <= stop) {
			const int edge = max(z0, 1) + DEPTH;
			if (k < edge || k >= steady)
				steps<X | Y | ODD | EDGE>(even, odd, k < edge ? min(edge, stop + 1) : stop + 1);
			else if (plain)
				steps<0>(even, odd, steady);
			else if (x_low)
				steps<X_LOW>(even, odd, steady);
			else if (x_high)
				steps<X_HIGH>(even, odd, steady);
			else if (along_y)
				steps<Y>(even, odd, steady);
			else
				steps<X | Y | ODD>(even, odd, steady);
		}
	}
};

extern "C" __global__ void __launch_bounds__(32 * TEAM, 1) pass_planes(const __grid_constant__ Pass a) {
	grid_dependency_wait();
	March m{a};
	m.lane = threadIdx.x % 32, m.warp = threadIdx.x / 32;
	const Near shared = near_address(dynamic_shared());
	m.told = shared + TOLD_AT;
	m.own = shared + m.warp * (2 * ROW) + m.lane * 16;
	m.south = m.warp > 0 ? m.own - ROW : m.own;
	m.north = m.warp < TEAM - 1 ? m.own + 2 * ROW : m.own;
	m.ring = shared + RING_AT + m.warp * (ROWS * ROW) + m.lane * 16;
	m.ghosts = shared + GHOSTS_AT + m.warp * GHOSTS;
	if (threadIdx.x == 0) barrier_init(m.told, TEAM);
	__syncthreads();

	const int shift = (int)((u64)a.from / BYTES % VECTOR);
	const Axis ax(a.n[0], EX, MARGIN, 0, shift, a.sides[0] != OPEN, a.sides[1] != OPEN);
	const Axis ay(a.n[1], EY, DEPTH, 1, 0, a.sides[2] != OPEN, a.sides[3] != OPEN);

	// Tiles row by row. Those of the first and last row and column weigh more.
	const i64 planes = a.n[2];
	const int inner = max(0, ax.tiles - 2), ends = ax.tiles - inner;
	const i64 row_at_wall = (i64)ax.tiles * WALL_WEIGHT, row = (i64)ends * WALL_WEIGHT + (i64)inner * 16;
	const int rows_between = max(0, ay.tiles - 2);
	const i64 total = ((ay.tiles - rows_between) * row_at_wall + rows_between * row) * planes;
	i64 place = total * blockIdx.x / gridDim.x;
	const i64 stop = total * (blockIdx.x + 1) / gridDim.x;
#pragma unroll 1
	while (place < stop) {
		i64 at = place / planes; // of the weights of all tiles
		int tile_x, tile_y = 0, weight = WALL_WEIGHT;
		if (at >= row_at_wall) {
			tile_y = (int)min((at - row_at_wall) / row, (i64)rows_between) + 1;
			at -= row_at_wall + (tile_y - 1) * row;
		}
		i64 begin = place / planes - at; // of this row
		if (tile_y == 0 || tile_y == ay.tiles - 1 || at < WALL_WEIGHT) {
			tile_x = (int)(at / WALL_WEIGHT);
			begin += (i64)tile_x * WALL_WEIGHT;
		} else {
			tile_x = 1 + (int)min((at - WALL_WEIGHT) / 16, (i64)inner);
			begin += WALL_WEIGHT + (i64)(tile_x - 1) * 16;
			if (tile_x <= inner) weight = 16;
		}
		begin *= planes;
		m.z0 = (int)((place - begin) / weight);
		m.z1 = (int)min((stop - begin) / weight, planes);
		if (m.z0 < m.z1) m.march(ax, ay, tile_x, tile_y);
		place = begin + planes * weight;
	}
}
