// A tile of a field, its neighbors, and the data of its thread block. See tiles.cu.
//
// Options: REAL, WIDTH, HEIGHT, LAYERS, REG_LAYERS.
#pragma once

#include "common.cuh"
#include "flags.cuh"
#include "neighbor.cuh"
#include "norms.cuh"
#include "packet.cuh"
#include "real.cuh"
#include "stencil.cuh"
#include "watch.cuh"

#ifndef WIDTH
#define WIDTH 32
#define HEIGHT 32
#define LAYERS 1
#define REG_LAYERS 0
#endif

enum { X, Y, DEPTH, AXES };
enum { LOW, HIGH };

// Threads form LAYERS layers of WIDTH x HEIGHT points, the size of the largest tile. REG_LAYERS layers of a tile are
// held in registers. If there are any, each thread has ROWS adjacent rows, since access between its own rows needs no
// shared memory.
enum { ROWS = REG_LAYERS && DIMS == 3 ? 2 : 1, THREADS = WIDTH * (HEIGHT / ROWS) * LAYERS };
static_assert(HEIGHT % ROWS == 0, "rows are divided evenly among threads");

// If threads form several layers, most points at faces belong to no thread, and a list assigns them.
enum { LISTED = LAYERS > 1 };

// Shared memory holds planes of points surrounded by ghosts. A plane has an odd number of cells, so that points above
// each other are in different banks; so has a column of ghosts next to layers in registers.
enum { PITCH = WIDTH + 2, PLANE = (DIMS == 3 ? PITCH * (HEIGHT + 2) : PITCH) | 1, COLUMN = REG_LAYERS | 1 };

typedef PacketOf<sizeof(REAL)> Packet;

// A side of the box of this GPU: where its points go after each step, and where its ghosts come from.
struct Side {
	Packet *out;     // packets of even steps; null: none are sent
	REAL *ghost[2];  // of each field: where the first owned point would be stored, for the last step
	Strides strides; // of the ghosts
	i64 other;       // neighbor; HERE: this GPU; NO_RANK: none, the ghosts are constant
};

enum { HERE = -1, NO_RANK = -2 };

enum { NEIGHBORS = 6 };

struct Tiles {
	i64 first, count, launch; // the first step, number of steps, and number of earlier launches
	i64 base;                 // added to steps for packet numbers: repeated steps get others
	Watch watch;
	REAL *field[2]; // the first owned point
	Strides strides;
	i64 size[AXES], tiles[AXES]; // points and tiles along each axis
	i64 held;                    // layers of the largest tile that are in shared memory
	Side side[AXES][2];
	Packet *inbox[AXES];
	Neighbor neighbor[NEIGHBORS];
	NormSum *norms[2]; // by field: one per block of a launch with norms
	i64 limit;         // per wait, in ns
	u64 *failed;       // see report_timeout
	Checks checks;
};

// The packets of one side of a tile for even steps, starting at that of its first point.
struct FaceChannel {
	Packet *out;
	const Packet *in; // null: the ghosts are constant
	int odd;          // the distance to the packets of odd steps
	int ghost;        // the distance from a point to its ghost, in cells
	int other;        // as in Side

	__device__ Packet *to_send(int place, unsigned step) const { return out + place + (step % 2 ? odd : 0); }
	__device__ const Packet *to_receive(int place, unsigned step) const { return in + place + (step % 2 ? odd : 0); }
};

// A point at a face of a tile: the index of its packet within the side, and its cell.
struct FaceItem {
	unsigned place : 29, side : 3;
	int cell;
};

static_assert(sizeof(FaceItem) == 8, "as in tiling.go");

// The tile of a thread block, in shared memory.
struct Tile {
	int lo[AXES], n[AXES], of[AXES]; // first point, number of points, position among the tiles
	int held;                        // layers in shared memory
	FaceChannel channel[2 * AXES];
	int items;
	struct {
		int due, follows; // whether an even and an odd step has a check, and whether it has one or follows one
	} plan[2];
	int over; // 1 + the check that has ended the launch; -1 after a timeout; 0
};

static_assert(sizeof(Tile) <= 1 << 10, "the room that tiling.go leaves");

// Data that a thread holds in registers if the tile does not fit in shared memory: the last layers of its columns, and
// the ghosts below and above.
struct Columns {
	REAL reg[ROWS][REG_LAYERS ? REG_LAYERS : 1];
	REAL ghost[2][ROWS];
};

// A point at a face of a tile. Its coordinate across the face is 0 at both sides.
struct FacePoint {
	int x, y, z;
};

// A thread and its tile.
struct TileThread {
	const Tiles &s;
	const Tile &t;
	REAL *cells;      // in shared memory: the tile surrounded by ghosts
	FaceItem *items;  // in shared memory
	int thread, x, y; // the thread has the points (x, y) to (x, y + ROWS - 1) of each layer

	__device__ int layer() const { return LISTED ? threadIdx.z : 0; }
	__device__ bool has(int row) const { return x < t.n[X] && y + row < t.n[Y]; }

	// cell returns the cell of a point, or of a ghost beyond a side, of a layer in shared memory. There are
	// layers of ghosts below and above, unless registers hold those.
	__device__ int cell(int x, int y, int z) const {
		return 1 + x + (DIMS == 3 ? y + 1 : 0) * PITCH + (z + !REG_LAYERS) * PLANE;
	}
	__device__ int cells_held() const { return PLANE * ((int)s.held + 2 * !REG_LAYERS); }

	// view returns one of two layers that publish a layer in registers to all threads.
	__device__ int view(int layer) const { return cells_held() + layer % 2 * WIDTH * HEIGHT; }

	// adjacent returns the cell of a ghost next to a layer in registers. Between the sweep and sending, it holds the
	// point at the face instead.
	template <int AXIS> __device__ int adjacent(int high, int x, int y, int layer) const {
		return cells_held() + 2 * WIDTH * HEIGHT + layer +
		       COLUMN * (AXIS == X ? high * HEIGHT + y : 2 * HEIGHT + high * WIDTH + x);
	}

	// ghost returns the cell of the ghost of a point at a face, and face returns the cell of the point to be sent.
	template <int AXIS> __device__ int ghost(int high, FacePoint p) const {
		if (AXIS != DEPTH && p.z >= t.held) return adjacent<AXIS>(high, p.x, p.y, p.z - t.held);
		return edge<AXIS>(high ? t.n[AXIS] : -1, p);
	}
	template <int AXIS> __device__ int face(int high, FacePoint p) const {
		if (AXIS != DEPTH && p.z >= t.held) return adjacent<AXIS>(high, p.x, p.y, p.z - t.held);
		return edge<AXIS>(high ? t.n[AXIS] - 1 : 0, p);
	}
	template <int AXIS> __device__ int edge(int at, FacePoint p) const {
		return cell(AXIS == X ? at : p.x, AXIS == Y ? at : p.y, AXIS == DEPTH ? at : p.z);
	}

	// place returns the index of a point's packet within a side.
	__device__ int place(int axis, int x, int y, int z) const {
		return axis == X ? z + y * (int)s.size[DEPTH] : x + (axis == Y ? z : y) * (int)s.size[X];
	}

	__device__ int area(int axis) const {
		return (int)s.size[axis == X ? Y : X] * (int)s.size[axis == DEPTH ? Y : DEPTH];
	}

	// slot returns the packets of even steps that cross a cut between tiles upwards or downwards. Cut 0 is the
	// low side of the box. Packets of odd steps follow.
	__device__ Packet *slot(int axis, i64 cut, int down) const {
		return s.inbox[axis] + (cut * 2 + down) * 2 * (i64)area(axis);
	}

	// in returns the address of a point of the tile in a field.
	__device__ REAL *in(REAL *first, const Strides &strides, int x, int y, int z) const {
		const i64 row = DIMS == 3 ? strides.pitch : 0, layer = DIMS == 3 ? strides.plane : strides.pitch;
		return first + (t.lo[X] + x) + (t.lo[Y] + y) * row + (t.lo[DEPTH] + z) * layer;
	}

	__device__ bool outer(int axis, int high) const { return t.of[axis] == (high ? s.tiles[axis] - 1 : 0); }

	__device__ FaceChannel channel(int axis, int high) const;
	__device__ int list_items(int axis, int high, int first) const;
};

// place_tile finds the tile of a block.
__device__ void place_tile(const Tiles &s, Tile &t) {
	t.of[X] = (int)(blockIdx.x % s.tiles[X]);
	t.of[Y] = (int)(blockIdx.x / s.tiles[X] % s.tiles[Y]);
	t.of[DEPTH] = (int)(blockIdx.x / (s.tiles[X] * s.tiles[Y]));
#pragma unroll
	for (int a = 0; a < AXES; a++) {
		t.lo[a] = (int)(s.size[a] * t.of[a] / s.tiles[a]);
		t.n[a] = (int)(s.size[a] * (t.of[a] + 1) / s.tiles[a]) - t.lo[a];
	}
	t.held = t.n[DEPTH] - REG_LAYERS;
}

__device__ FaceChannel TileThread::channel(int axis, int high) const {
	const i64 cut = t.of[axis] + high;
	const int ghost = axis == X ? 1 : axis == Y ? PITCH : PLANE;
	const i64 first = place(axis, t.lo[X], t.lo[Y], t.lo[DEPTH]);
	FaceChannel d = {slot(axis, cut, !high) + first, slot(axis, cut, high) + first, area(axis), high ? ghost : -ghost,
	                 HERE};
	if (outer(axis, high)) {
		const Side &side = s.side[axis][high];
		d.out = side.out + first;
		d.other = (int)side.other;
		if (d.other == NO_RANK) d.in = 0;
	}
	return d;
}

// list_items lists the points at a side, starting at an index of the list, and returns the end of the list (exclusive).
__device__ int TileThread::list_items(int axis, int high, int first) const {
	if (!t.channel[2 * axis + high].in || (DIMS == 2 && axis == Y)) return first;
	const int wide = t.n[axis == X ? DEPTH : X], points = wide * t.n[axis == Y ? DEPTH : Y];
	for (int i = thread; i < points; i += THREADS) {
		const int v = i / wide, u = i - v * wide, edge = high ? t.n[axis] - 1 : 0;
		const int x = axis == X ? edge : u, y = axis == Y ? edge : v, z = axis == X ? u : axis == Y ? v : edge;
		items[first + i] = FaceItem{(unsigned)place(axis, x, y, z), (unsigned)(2 * axis + high), cell(x, y, z)};
	}
	return first + points;
}

// each_row calls visit(row, y) for the rows in which a thread has points.
template <typename Visit> __device__ __forceinline__ void each_row(const TileThread &w, Visit visit) {
#pragma unroll
	for (int row = 0; row < ROWS; row++)
		if (w.has(row)) visit(row, w.y + row);
}

// load_tile loads a tile from a field.
__device__ __forceinline__ void load_tile(const TileThread &w, Columns &mine, REAL *from) {
	enum { BATCH = 4 }; // loads in flight per thread
	const int held = w.t.held, x = w.x;
	each_row(w, [&](int row, int y) {
#pragma unroll 1
		for (int z = w.layer(); z < held; z += BATCH * LAYERS) {
			REAL v[BATCH];
#pragma unroll
			for (int i = 0; i < BATCH; i++)
				if (z + i * LAYERS < held) v[i] = *w.in(from, w.s.strides, x, y, z + i * LAYERS);
#pragma unroll
			for (int i = 0; i < BATCH; i++)
				if (z + i * LAYERS < held) w.cells[w.cell(x, y, z + i * LAYERS)] = v[i];
		}
#pragma unroll
		for (int k = 0; k < REG_LAYERS; k++) mine.reg[row][k] = *w.in(from, w.s.strides, x, y, held + k);
	});
}

// store_tile stores a tile into the field that a step writes.
__device__ __forceinline__ void store_tile(const TileThread &w, const Columns &mine, unsigned step) {
	REAL *const field = w.s.field[step % 2];
	each_row(w, [&](int row, int y) {
#pragma unroll 1
		for (int z = w.layer(); z < w.t.held; z += LAYERS)
			*w.in(field, w.s.strides, w.x, y, z) = w.cells[w.cell(w.x, y, z)];
#pragma unroll
		for (int k = 0; k < REG_LAYERS; k++) *w.in(field, w.s.strides, w.x, y, w.t.held + k) = mine.reg[row][k];
	});
}
