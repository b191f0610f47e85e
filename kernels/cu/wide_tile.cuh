// A tile with wide ghosts and the data of its thread block. See wide_tiles.cu.
//
// Options: REAL; STEPS between exchanges; WIDTH, HEIGHT and PLANES of the largest tile including its ghosts; GHOSTS_X,
// GHOSTS_Y and GHOSTS_DEPTH, the ghosts on each side; LAYERS of threads.
#pragma once

#include "common.cuh"
#include "flags.cuh"
#include "neighbor.cuh"
#include "norms.cuh"
#include "packet.cuh"
#include "real.cuh"
#include "stencil.cuh"
#include "watch.cuh"

#ifndef STEPS
#define STEPS 2
#define WIDTH 12
#define HEIGHT 12
#define PLANES 12
#define GHOSTS_X 2
#define GHOSTS_Y 2
#define GHOSTS_DEPTH 2
#define LAYERS 8
#endif

enum { X, Y, DEPTH, AXES };
enum { LOW, HIGH };

// Shared memory holds two copies of a tile, in planes of cells. A plane has an odd number of cells, so that points
// above each other are in different banks.
enum { PLANE = WIDTH * HEIGHT | 1, CELLS = PLANE * PLANES };

// The outermost rows and planes are only read. Threads form layers of whole warps, with one thread for each cell of the
// other rows, in order, so a warp accesses adjacent cells. Each thread has COLUMN consecutive cells along the depth.
enum {
	FIRST = DIMS == 3 ? WIDTH : 0,
	SWEPT = WIDTH * HEIGHT - 2 * FIRST,
	COLUMNS = (SWEPT + 31) / 32 * 32,
	THREADS = COLUMNS * LAYERS,
	COLUMN = (PLANES - 2 + LAYERS - 1) / LAYERS
};

typedef PacketOf<sizeof(REAL)> Packet;

enum { NEIGHBORS = 26, HERE = NEIGHBORS };

// A point that a tile sends and a ghost that it receives; the two are independent.
struct Item {
	unsigned place : 27; // index of the packet in its receiver
	unsigned to : 5;     // the receiver: a neighbor of this GPU, or HERE
	unsigned short cell, ghost;
};

static_assert(sizeof(Item) == 8, "as in wide_tiling.go");

// A tile of a GPU. The first point along each axis is at 0; sweeps of ghosts start no lower than from and end no higher
// than to (exclusive).
struct WideTile {
	int lo[AXES], n[AXES]; // first point in the box of the GPU; number of points
	int from[AXES], to[AXES];
	int sent, received; // number of items with a point and with a ghost
	i64 items;          // index of the first item among those of all tiles
	i64 packets;        // index of the first packet that it receives, within the GPU
	u64 near;           // bits of the neighbors that exchange with it
	u64 copies;         // bits of the copies that include points of it
};

// Points of this GPU that are also ghosts, on this GPU or another.
struct GhostCopy {
	int lo[AXES], hi[AXES];
	REAL *field[2];  // by field: address of point 0, 0, 0 of the box, which may be outside
	Strides strides; // of the ghosts
};

struct Tiles {
	i64 first, count, launch; // the first step, number of steps, and number of earlier launches
	i64 base;                 // the number of the first exchange
	Watch watch;
	REAL *field[2]; // the first owned point
	Strides strides;
	i64 mirrors[AXES][2]; // whether ghosts behind a side of the box mirror the points before it
	const WideTile *tiles;
	const Item *items;
	const unsigned char *senders; // by item: the sender of the ghost
	const GhostCopy *copies;
	i64 odd;                // number of packets of even exchanges of a GPU, which those of odd ones follow
	Packet *const *inboxes; // of all neighbors, and of this GPU
	const Neighbor *neighbors;
	i64 neighbor_count;
	NormSum *norms[2]; // by field: one per block of a launch with norms
	i64 limit;         // per wait, in ns
	u64 *failed;       // see report_timeout
	Checks checks;
};

// The tile of a thread block, in shared memory.
struct Tile : WideTile {
	Packet *inbox[NEIGHBORS + 1];
	struct {
		int due, follows; // whether an even and an odd step has a check, and whether it has one or follows one
	} plan[2];
	int over; // 1 + the check that has ended the launch; -1 after a timeout; 0
};

// outside returns the distance of a place from a tile along an axis.
__device__ __forceinline__ int outside(const WideTile &t, int axis, int at) {
	return max(0, max(-at, at - (t.n[axis] - 1)));
}

// A thread and its tile.
struct TileThread {
	const Tiles &s;
	const Tile &t;
	REAL *cells; // in shared memory: two copies of the tile and its ghosts
	Item *items; // in shared memory
	int thread;

	__device__ static int cell(int x, int y, int z) {
		return x + GHOSTS_X + (y + GHOSTS_Y) * WIDTH + (z + GHOSTS_DEPTH) * PLANE;
	}

	// in returns the address of a point of the tile, or of a ghost, in a field.
	__device__ REAL *in(REAL *first, int x, int y, int z) const {
		const i64 row = DIMS == 3 ? s.strides.pitch : 0, layer = DIMS == 3 ? s.strides.plane : s.strides.pitch;
		return first + (t.lo[X] + x) + (t.lo[Y] + y) * row + (t.lo[DEPTH] + z) * layer;
	}
};

__device__ __forceinline__ TileThread thread_of(const Tiles &s, Tile &t) {
	REAL *const cells = (REAL *)dynamic_shared();
	enum { BYTES = (2 * CELLS * sizeof(REAL) + 15) / 16 * 16 };
	return {s, t, cells, (Item *)((char *)cells + BYTES), (int)(threadIdx.x + threadIdx.y * COLUMNS)};
}

// A thread's cells along the depth and the adjacent cells. A cell before a mirror also represents its ghost.
struct Column {
	int cell;                     // of plane 0
	int left, right, front, back; // offsets of the adjacent cells
	int outside;                  // distance from the tile across the depth; STEPS: not swept
	int deep, from, to; // of the tile along the depth, in registers: number of points, start and end of sweeps

	__device__ __forceinline__ explicit Column(const TileThread &w) {
		const Tile &t = w.t;
		deep = t.n[DEPTH], from = t.from[DEPTH], to = t.to[DEPTH];
		const bool there = threadIdx.x < SWEPT;
		cell = FIRST + (there ? (int)threadIdx.x : 0);
		const int x = cell % WIDTH - GHOSTS_X, y = cell / WIDTH - GHOSTS_Y;
		const bool swept = there && x >= t.from[X] && x < t.to[X] && y >= t.from[Y] && y < t.to[Y];
		outside = swept ? ::outside(t, X, x) + ::outside(t, Y, y) : STEPS;
		left = x == t.from[X] && w.s.mirrors[X][LOW] ? 0 : -1;
		right = x == t.to[X] - 1 && w.s.mirrors[X][HIGH] ? 0 : 1;
		front = y == t.from[Y] && w.s.mirrors[Y][LOW] ? 0 : -WIDTH;
		back = y == t.to[Y] - 1 && w.s.mirrors[Y][HIGH] ? 0 : WIDTH;
	}
};

// first_plane returns the first position along the depth that the threads of a layer have.
__device__ __forceinline__ int first_plane() { return (int)threadIdx.y * COLUMN + 1 - GHOSTS_DEPTH; }

// load_tile loads a tile from a field, with all ghosts that the steps of a group read. Those behind walls never change
// and are loaded into both copies of the tile.
__device__ __forceinline__ void load_tile(const TileThread &w, REAL *field) {
	const Tile &t = w.t;
	enum { BATCH = 4 }; // loads in flight per thread
#pragma unroll 1
	for (int first = w.thread; first < CELLS; first += BATCH * THREADS) {
		REAL v[BATCH];
		bool there[BATCH];
#pragma unroll
		for (int i = 0; i < BATCH; i++) {
			const int c = first + i * THREADS;
			const int at[AXES] = {c % PLANE % WIDTH - GHOSTS_X, c % PLANE / WIDTH - GHOSTS_Y, c / PLANE - GHOSTS_DEPTH};
			int far = 0;
			there[i] = c < CELLS;
#pragma unroll
			for (int a = 0; a < AXES; a++) {
				const bool low = !w.s.mirrors[a][LOW], high = !w.s.mirrors[a][HIGH];
				there[i] = there[i] && at[a] >= t.from[a] - low && at[a] < t.to[a] + high;
				far += outside(t, a, at[a]);
			}
			there[i] = there[i] && far <= STEPS;
			if (there[i]) v[i] = *w.in(field, at[X], at[Y], at[DEPTH]);
		}
#pragma unroll
		for (int i = 0; i < BATCH; i++) {
			const int c = first + i * THREADS;
			if (there[i]) w.cells[c] = w.cells[c + CELLS] = v[i];
		}
	}
}

// each_own calls visit(x, y, z, cell) for the thread's points of the tile.
template <typename Visit> __device__ __forceinline__ void each_own(const TileThread &w, const Column &c, Visit visit) {
	if (c.outside > 0) return;
	const int x = c.cell % WIDTH - GHOSTS_X, y = c.cell / WIDTH - GHOSTS_Y;
	const int begin = max(0, first_plane()), end = min(w.t.n[DEPTH], first_plane() + COLUMN);
#pragma unroll 1
	for (int z = begin; z < end; z++) visit(x, y, z, c.cell + (z + GHOSTS_DEPTH) * PLANE);
}

// store_tile stores a tile into the field that a step writes.
__device__ __forceinline__ void store_tile(const TileThread &w, const Column &c, const REAL *cells, unsigned step) {
	REAL *const field = w.s.field[step % 2];
	each_own(w, c, [&](int x, int y, int z, int cell) { *w.in(field, x, y, z) = cells[cell]; });
}

// store_ghosts also stores points into ghosts of a field, for later launches.
__device__ __forceinline__ void store_ghosts(const TileThread &w, const REAL *cells, unsigned step) {
	const Tile &t = w.t;
#pragma unroll 1
	for (u64 left = t.copies; left; left &= left - 1) {
		const GhostCopy &copy = w.s.copies[__ffsll(left) - 1];
		int lo[AXES], n[AXES];
#pragma unroll
		for (int a = 0; a < AXES; a++) {
			lo[a] = max(0, copy.lo[a] - t.lo[a]);
			n[a] = min(t.n[a], copy.hi[a] - t.lo[a]) - lo[a];
		}
		REAL *const to = copy.field[step % 2];
		const i64 row = DIMS == 3 ? copy.strides.pitch : 0, layer = DIMS == 3 ? copy.strides.plane : copy.strides.pitch;
#pragma unroll 1
		for (int p = w.thread; p < n[X] * n[Y] * n[DEPTH]; p += THREADS) {
			const int x = lo[X] + p % n[X], y = lo[Y] + p / n[X] % n[Y], z = lo[DEPTH] + p / n[X] / n[Y];
			to[t.lo[X] + x + (t.lo[Y] + y) * row + (t.lo[DEPTH] + z) * layer] = cells[w.cell(x, y, z)];
		}
	}
}
