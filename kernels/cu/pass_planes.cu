// Several steps of a 7-point star in one pass over memory.
//
// A thread block has a tile of EX x EY columns and goes along z, plane by plane. A lane has VECTOR points beside each other along x, in ROWS
// rows. Of each level but the last a thread holds two planes in registers: as plane p of level 0 comes, level l computes plane p - l, from
// the planes before, at and behind it, of which it needs neighbours along x and y at the middle one alone. These are those of
// other lanes, by shuffles, and, at the edges of a warp's rows, those of other warps, which have left them in shared memory the turn before: so
// one barrier a plane is enough. Tiles overlap by DEPTH columns at each side.
//
// Grid: tiles of EX - 2 * MARGIN columns along x, tiles of EY - 2 * DEPTH along y, chunks of planes. Block: 32 x WARPS_A_BLOCK threads.
// Options: REAL; DEPTH; ROWS; WARPS_A_BLOCK; LEAD, how many planes before it is used level 0 is asked for; and stencil.cuh.
#include "device.cuh"
#include "real.cuh"
#include "stencil.cuh"

#ifndef DEPTH // for editors
enum { DEPTH = 4, ROWS = 6, WARPS_A_BLOCK = 8, LEAD = 3 };
#endif

enum Side { OPEN, FIXED, MIRROR, REPEAT };

struct Pass {
	const REAL *from; // of the first point of the box
	REAL *to;
	i64 pitch, plane; // from row to row and from plane to plane, of both arrays
	int n[3];         // points of the box
	int sides[6];     // x-, x+, y-, y+, z-, z+
	int chunk;        // planes of a block
};

enum {
	VECTOR = 16 / (int)sizeof(REAL),
	EX = 32 * VECTOR,
	EY = ROWS * WARPS_A_BLOCK,
	MARGIN = (DEPTH + VECTOR - 1) / VECTOR * VECTOR,
	SLOTS = LEAD + 1,
	EDGES = 2 * DEPTH * WARPS_A_BLOCK * 2 * EX, // by turn, level, warp, and its first or last row
	SHARED_BYTES = (EDGES + SLOTS * EX * EY) * (int)sizeof(REAL)
};

struct alignas(16) Vector {
	REAL v[VECTOR];
};

// What a thread knows of its columns.
struct Columns {
	const Pass &a;
	Vector *edges, *ring;
	int x, y;       // of its first point, which may lie before the box
	int first, end; // planes that the block stores
	unsigned warp, lane;
	bool mirror_low, mirror_high; // along z
	unsigned held, low, high;     // points along x that keep their values, and that mirrored ghosts lie beside: bits

	__device__ __forceinline__ Columns(const Pass &a)
	    : a(a), edges((Vector *)dynamic_shared()), ring(edges + EDGES / VECTOR), first((int)blockIdx.z * a.chunk),
	      end(min(first + a.chunk, a.n[2])) {
		const unsigned thread = opaque(threadIdx.x); // so that nothing of this is kept from turn to turn
		warp = thread / 32;
		lane = thread % 32;
		// Vectors are aligned in memory, and the box may begin within one.
		const int shift = (int)((u64)a.from / sizeof(REAL) % VECTOR);
		x = (int)blockIdx.x * (EX - 2 * MARGIN) - MARGIN + (int)lane * VECTOR - shift;
		y = (int)blockIdx.y * (EY - 2 * DEPTH) - DEPTH + (int)warp * ROWS;
		mirror_low = a.sides[4] == MIRROR || a.sides[4] == REPEAT;
		mirror_high = a.sides[5] == MIRROR || a.sides[5] == REPEAT;
		held = low = high = 0;
#pragma unroll
		for (int v = 0; v < VECTOR; v++) {
			if ((a.sides[0] == FIXED && x + v == -1) || (a.sides[1] == FIXED && x + v == a.n[0])) held |= 1u << v;
			if (a.sides[0] > FIXED && x + v == 0) low |= 1u << v;
			if (a.sides[1] > FIXED && x + v == a.n[0] - 1) high |= 1u << v;
		}
	}

	// Whether the block computes nothing beside or behind a wall along x or y.
	__device__ __forceinline__ bool inside() const {
		const int x0 = (int)blockIdx.x * (EX - 2 * MARGIN) - MARGIN - VECTOR,
		          y0 = (int)blockIdx.y * (EY - 2 * DEPTH) - DEPTH;
		return (a.sides[0] == OPEN || x0 > 0) && (a.sides[1] == OPEN || x0 + EX + VECTOR < a.n[0]) &&
		       (a.sides[2] == OPEN || y0 > 0) && (a.sides[3] == OPEN || y0 + EY < a.n[1]);
	}

	// Where the edge of a warp's rows lies: its first or its last.
	__device__ __forceinline__ Vector *edge(int turn, int level, unsigned of, int last) const {
		return edges + ((((turn & 1) * DEPTH + level) * WARPS_A_BLOCK + of) * 2 + last) * 32 + lane;
	}

	// The planes of level 0 that are read.
	__device__ __forceinline__ int lowest() const {
		return max(first - DEPTH, a.sides[4] == OPEN ? -DEPTH : a.sides[4] == FIXED ? -1 : 0);
	}
	__device__ __forceinline__ int highest() const {
		return min(end + DEPTH, a.n[2] + (a.sides[5] == OPEN ? DEPTH : a.sides[5] == FIXED ? 1 : 0));
	}

	// ask asks for a plane of level 0. What lies beyond the ghosts is 0.
	__device__ __forceinline__ void ask(int z) const {
		const bool along_x =
		    x + VECTOR > (a.sides[0] == OPEN ? -DEPTH : -1) && x < a.n[0] + (a.sides[1] == OPEN ? DEPTH : 1);
		const int low_y = a.sides[2] == OPEN ? -DEPTH : -1, high_y = a.n[1] + (a.sides[3] == OPEN ? DEPTH : 1);
		if (z < highest()) {
			const REAL *from = a.from + x + (i64)y * a.pitch + (i64)z * a.plane;
			Vector *to = ring + ((unsigned)(z + 1024) % SLOTS * EY + warp * ROWS) * 32 + lane;
#pragma unroll
			for (int r = 0; r < ROWS; r++, from += a.pitch, to += 32) {
				const bool there = along_x && y + r >= low_y && y + r < high_y;
				copy_async(to, there ? from : a.from - (u64)a.from / sizeof(REAL) % VECTOR, there);
			}
		}
		commit_async();
	}
};

// The planes that a thread holds.
struct Held {
	REAL plane[DEPTH][2][ROWS][VECTOR];
};

// turn takes plane z of level 0, and computes one plane of each level above. PARITY is which of two planes of a level is the older.
template <bool WALLS, int PARITY> __device__ __forceinline__ void turn(const Pass &a, Held &h, int z) {
	const Columns c(a);
	const Vector *loaded = c.ring + ((unsigned)(z + 1024) % SLOTS * EY + c.warp * ROWS) * 32 + c.lane;
	const int last = z - DEPTH; // the plane that the last level computes
	REAL *to = a.to + c.x + (i64)c.y * a.pitch + (i64)last * a.plane;
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		Vector now = load_shared(loaded + r * 32);
		const int y = c.y + r;
		const bool row_held = WALLS && ((a.sides[2] == FIXED && y == -1) || (a.sides[3] == FIXED && y == a.n[1]));
		const bool row_low = WALLS && a.sides[2] > FIXED && y == 0,
		           row_high = WALLS && a.sides[3] > FIXED && y == a.n[1] - 1;
#pragma unroll
		for (int l = 1; l <= DEPTH; l++) {
			const REAL(&middle)[VECTOR] = h.plane[l - 1][1 - PARITY][r];
			REAL(&before)[VECTOR] = h.plane[l - 1][PARITY][r];
			if (r == 0) *c.edge(PARITY, l - 1, c.warp, 0) = now;
			if (r == ROWS - 1) *c.edge(PARITY, l - 1, c.warp, 1) = now;
			Vector south, north;
#pragma unroll
			for (int v = 0; v < VECTOR; v++) {
				if (r > 0) south.v[v] = h.plane[l - 1][1 - PARITY][r > 0 ? r - 1 : 0][v];
				if (r < ROWS - 1) north.v[v] = h.plane[l - 1][1 - PARITY][r < ROWS - 1 ? r + 1 : 0][v];
			}
			if (r == 0) south = load_shared(c.edge(1 - PARITY, l - 1, c.warp > 0 ? c.warp - 1 : 0, 1));
			if (r == ROWS - 1)
				north = load_shared(c.edge(1 - PARITY, l - 1, c.warp < WARPS_A_BLOCK - 1 ? c.warp + 1 : c.warp, 0));
			const REAL west = __shfl_up_sync(~0u, middle[VECTOR - 1], 1), east = __shfl_down_sync(~0u, middle[0], 1);
			const int at = z - l;
			const bool plane_held = (a.sides[4] == FIXED && at == -1) || (a.sides[5] == FIXED && at == a.n[2]);
			const bool plane_low = c.mirror_low && at == 0, plane_high = c.mirror_high && at == a.n[2] - 1;
			Vector next;
#pragma unroll
			for (int v = 0; v < VECTOR; v++) {
				const REAL centre = middle[v];
				REAL xm = v > 0 ? middle[v > 0 ? v - 1 : 0] : west,
				     xp = v < VECTOR - 1 ? middle[v < VECTOR - 1 ? v + 1 : 0] : east;
				REAL ym = south.v[v], yp = north.v[v], zm = before[v], zp = now.v[v];
				if (WALLS) {
					if (c.low >> v & 1) xm = centre;
					if (c.high >> v & 1) xp = centre;
					if (row_low) ym = centre;
					if (row_high) yp = centre;
				}
				if (plane_low) zm = centre;
				if (plane_high) zp = centre;
				const REAL value = apply([&](int dx, int dy, int dz) {
					return dx < 0 ? xm : dx > 0 ? xp : dy < 0 ? ym : dy > 0 ? yp : dz < 0 ? zm : dz > 0 ? zp : centre;
				});
				next.v[v] = plane_held || (WALLS && (row_held || (c.held >> v & 1))) ? centre : value;
			}
#pragma unroll
			for (int v = 0; v < VECTOR; v++) before[v] = now.v[v];
			now = next;
		}
		const int in = (int)c.warp * ROWS + r;
		if (last >= c.first && last < c.end && in >= DEPTH && in < EY - DEPTH && y < a.n[1] &&
		    (int)c.lane * VECTOR >= MARGIN && (int)c.lane * VECTOR < EX - MARGIN) {
			REAL *const row = to + (i64)r * a.pitch;
			if (c.x >= 0 && c.x + VECTOR <= a.n[0]) {
				*(Vector *)row = now;
			} else {
#pragma unroll
				for (int v = 0; v < VECTOR; v++)
					if (c.x + v >= 0 && c.x + v < a.n[0]) row[v] = now.v[v];
			}
		}
	}
}

template <bool WALLS> __device__ __forceinline__ void march(const Pass &a) {
	Held h;
	const int begin = Columns(a).lowest(), end = Columns(a).end + DEPTH;
#pragma unroll 1
	for (int k = 0; k < LEAD; k++) Columns(a).ask(begin + k);
#pragma unroll 1
	for (int z = begin; z < end; z += 2) {
		Columns(a).ask(z + LEAD);
		wait_async<LEAD>();
		turn<WALLS, 0>(a, h, z);
		__syncthreads();
		Columns(a).ask(z + 1 + LEAD);
		wait_async<LEAD>();
		turn<WALLS, 1>(a, h, z + 1);
		__syncthreads();
	}
	wait_async<0>();
}

extern "C" __global__ void __launch_bounds__(32 * WARPS_A_BLOCK, 1) pass_planes(const __grid_constant__ Pass a) {
	grid_dependency_wait();
	if (Columns(a).inside()) march<false>(a);
	else march<true>(a);
}
