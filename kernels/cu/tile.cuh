// A tile of the field: where it lies, in memory and among the others, and what its threads
// have to do with it. See tiles.cu.
//
// Build options: REAL, WIDTH, HEIGHT, LAYERS, REST.
#pragma once

#include "flags.cuh"
#include "four.cuh"
#include "packet.cuh"
#include "stencil.cuh"

#ifndef WIDTH
#define WIDTH 32
#define HEIGHT 32
#define LAYERS 1
#define REST 0
#endif

enum { X, Y, DEPTH, AXES };
enum { LOW, HIGH };

// Threads form LAYERS layers of WIDTH x HEIGHT points, which no tile is larger than. REST is
// how many layers of a tile registers hold, and ROWS how many rows of points a thread has then:
// rows that it has itself it need not get from shared memory.
enum { ROWS = REST && DIMS == 3 ? 2 : 1, THREADS = WIDTH * (HEIGHT / ROWS) * LAYERS };
static_assert(HEIGHT % ROWS == 0, "threads have all their rows");

// Where threads form several layers, most points at faces are no thread's own, and a list says
// which of them a thread sends.
enum { LISTED = LAYERS > 1 };

// Shared memory holds planes of points with ghosts around. They have an odd number of cells, so
// that points above each other lie in different banks, and so have the columns of ghosts beside
// layers that registers hold.
enum { PITCH = WIDTH + 2, PLANE = (DIMS == 3 ? PITCH * (HEIGHT + 2) : PITCH) | 1, COLUMN = REST | 1 };

typedef Packet<sizeof(REAL)> Mail;

// A side of this GPU's box: where its points go after each step, to whom the ghosts behind it
// come from.
struct Side {
	Mail *out;       // to the packets of even steps; null: nowhere
	REAL *ghost[2];  // of either field: where this GPU's first point would lie; for the last step
	Strides strides; // there
	i64 other;       // neighbour; HERE: this GPU; NOBODY: the ghosts stay as they are
};

enum { HERE = -1, NOBODY = -2 };

// Another GPU, as this one sees it.
struct Neighbour {
	const unsigned long long *my_count; // here: its blocks that have finished launches
	unsigned long long *its_count;      // there: the blocks of this GPU
	unsigned long long expected;        // in each launch
};

enum { NEIGHBOURS = 6 };

struct Tiles {
	i64 first, count, launch; // steps, and launches before
	REAL *field[2];
	Strides strides;
	i64 size[AXES], tiles[AXES]; // points and tiles
	i64 held;                    // layers that shared memory holds of a tile, at most
	Side side[AXES][2];
	Mail *inbox[AXES];
	Neighbour neighbour[NEIGHBOURS];
	Four *norms[2];             // with norms, by field: those of each block
	i64 limit;                  // ns to wait
	unsigned long long *failed; // see complain
};

// Of one side of a tile: its packets for even steps, from that of the tile's first point on.
struct Door {
	Mail *out;
	const Mail *in; // null: the ghosts stay
	int odd;        // how far the packets for odd steps are
	int ghost;      // how many cells away from its points their ghosts are
	int other;      // as in Side

	__device__ Mail *to_send(int place, unsigned step) const { return out + place + (step % 2 ? odd : 0); }
	__device__ const Mail *to_get(int place, unsigned step) const { return in + place + (step % 2 ? odd : 0); }
};

// A point at a face of a tile: its packet among those of the side, and its cell.
struct Errand {
	unsigned place : 29, side : 3;
	int cell;
};

static_assert(sizeof(Errand) == 8, "tiling.go counts on it");

// A tile, as its block sees it. It lies in shared memory.
struct Tile {
	int lo[AXES], n[AXES], of[AXES]; // from the first owned point; points; which of the tiles
	int held;                        // layers in shared memory
	Door door[2 * AXES];
	int errands;
};

static_assert(sizeof(Tile) <= 1 << 10, "tiling.go leaves no more room");

// What a thread holds in registers, where shared memory does not hold a whole tile: of its
// columns the layers behind those that are held there, and the ghosts below and above.
struct Columns {
	REAL rest[ROWS][REST ? REST : 1];
	REAL ghost[2][ROWS];
};

// A point at a face of a tile. The side does not matter: it is 0 across it.
struct FacePoint {
	int x, y, z;
};

// What a thread has to do with a tile.
struct Worker {
	const Tiles &s;
	const Tile &t;
	REAL *cells;      // in shared memory: the tile, and its ghosts around
	Errand *errands;  // there
	int thread, x, y; // in its layer the thread has points from (x, y) on, in so many ROWS

	__device__ int layer() const { return LISTED ? threadIdx.z : 0; }
	__device__ bool has(int row) const { return x < t.n[X] && y + row < t.n[Y]; }

	// cell is where a point of a layer that is held lies, which may be one beyond a side. There
	// are layers of ghosts below and above unless registers hold these.
	__device__ int cell(int x, int y, int z) const {
		return 1 + x + (DIMS == 3 ? y + 1 : 0) * PITCH + (z + !REST) * PLANE;
	}
	__device__ int cells_held() const { return PLANE * ((int)s.held + 2 * !REST); }

	// view is one of two layers by which threads see a layer that is in registers.
	__device__ int view(int layer) const { return cells_held() + layer % 2 * WIDTH * HEIGHT; }

	// beside is the cell beside a layer that is in registers, for the ghost of a point there.
	// From the sweep until it is sent it holds the point.
	template <int AXIS> __device__ int beside(int high, int x, int y, int layer) const {
		return cells_held() + 2 * WIDTH * HEIGHT + layer +
		       COLUMN * (AXIS == X ? high * HEIGHT + y : 2 * HEIGHT + high * WIDTH + x);
	}

	// Of a point at a side ghost is where its ghost lies, and face where itself does, to be sent.
	// Those that registers hold lie nowhere.
	template <int AXIS> __device__ int ghost(int high, FacePoint p) const {
		if (AXIS != DEPTH && p.z >= t.held) return beside<AXIS>(high, p.x, p.y, p.z - t.held);
		return edge<AXIS>(high ? t.n[AXIS] : -1, p);
	}
	template <int AXIS> __device__ int face(int high, FacePoint p) const {
		if (AXIS != DEPTH && p.z >= t.held) return beside<AXIS>(high, p.x, p.y, p.z - t.held);
		return edge<AXIS>(high ? t.n[AXIS] - 1 : 0, p);
	}
	template <int AXIS> __device__ int edge(int at, FacePoint p) const {
		return cell(AXIS == X ? at : p.x, AXIS == Y ? at : p.y, AXIS == DEPTH ? at : p.z);
	}

	// place is that of the packet of a point in those of its side, from the tile's first.
	__device__ int place(int axis, int x, int y, int z) const {
		return axis == X ? z + y * (int)s.size[DEPTH] : x + (axis == Y ? z : y) * (int)s.size[X];
	}

	__device__ int area(int axis) const {
		return (int)s.size[axis == X ? Y : X] * (int)s.size[axis == DEPTH ? Y : DEPTH];
	}

	// slot is where packets of even steps lie that cross a cut between tiles upwards or
	// downwards; cut 0 is this GPU's low side. Those of odd steps follow.
	__device__ Mail *slot(int axis, i64 cut, int down) const {
		return s.inbox[axis] + (cut * 2 + down) * 2 * (i64)area(axis);
	}

	// in returns the address of a point of the tile in a field that lies so.
	__device__ REAL *in(REAL *first, const Strides &strides, int x, int y, int z) const {
		const i64 row = DIMS == 3 ? strides.pitch : 0, layer = DIMS == 3 ? strides.plane : strides.pitch;
		return first + (t.lo[X] + x) + (t.lo[Y] + y) * row + (t.lo[DEPTH] + z) * layer;
	}

	__device__ bool outer(int axis, int high) const { return t.of[axis] == (high ? s.tiles[axis] - 1 : 0); }

	__device__ Door door(int axis, int high) const;
	__device__ int lay_out(int axis, int high, int first) const;
};

// place_tile finds out where a block's tile lies.
__device__ void place_tile(const Tiles &s, Tile &t) {
	t.of[X] = (int)(blockIdx.x % s.tiles[X]);
	t.of[Y] = (int)(blockIdx.x / s.tiles[X] % s.tiles[Y]);
	t.of[DEPTH] = (int)(blockIdx.x / (s.tiles[X] * s.tiles[Y]));
#pragma unroll
	for (int a = 0; a < AXES; a++) {
		t.lo[a] = (int)(s.size[a] * t.of[a] / s.tiles[a]);
		t.n[a] = (int)(s.size[a] * (t.of[a] + 1) / s.tiles[a]) - t.lo[a];
	}
	t.held = t.n[DEPTH] - REST;
}

__device__ Door Worker::door(int axis, int high) const {
	const i64 cut = t.of[axis] + high;
	const int ghost = axis == X ? 1 : axis == Y ? PITCH : PLANE;
	const i64 first = place(axis, t.lo[X], t.lo[Y], t.lo[DEPTH]);
	Door d = {slot(axis, cut, !high) + first, slot(axis, cut, high) + first, area(axis), high ? ghost : -ghost, HERE};
	if (outer(axis, high)) {
		const Side &side = s.side[axis][high];
		d.out = side.out + first;
		d.other = (int)side.other;
		if (d.other == NOBODY) d.in = 0;
	}
	return d;
}

// lay_out lists the points at a side from a place in the list on, and returns their end.
__device__ int Worker::lay_out(int axis, int high, int first) const {
	if (!t.door[2 * axis + high].in || (DIMS == 2 && axis == Y)) return first;
	const int wide = t.n[axis == X ? DEPTH : X], points = wide * t.n[axis == Y ? DEPTH : Y];
	for (int i = thread; i < points; i += THREADS) {
		const int v = i / wide, u = i - v * wide, edge = high ? t.n[axis] - 1 : 0;
		const int x = axis == X ? edge : u, y = axis == Y ? edge : v, z = axis == X ? u : axis == Y ? v : edge;
		errands[first + i] = Errand{(unsigned)place(axis, x, y, z), (unsigned)(2 * axis + high), cell(x, y, z)};
	}
	return first + points;
}

// each_row calls visit(row, y) for the rows that a thread has points in.
template <typename Visit> __device__ __forceinline__ void each_row(const Worker &w, Visit visit) {
#pragma unroll
	for (int row = 0; row < ROWS; row++)
		if (w.has(row)) visit(row, w.y + row);
}

// fill loads the points of a tile.
__device__ __forceinline__ void fill(const Worker &w, Columns &mine, REAL *from) {
	enum { AHEAD = 4 }; // loads of a thread under way
	const int held = w.t.held, x = w.x;
	each_row(w, [&](int row, int y) {
#pragma unroll 1
		for (int z = w.layer(); z < held; z += AHEAD * LAYERS) {
			REAL v[AHEAD];
#pragma unroll
			for (int i = 0; i < AHEAD; i++)
				if (z + i * LAYERS < held) v[i] = *w.in(from, w.s.strides, x, y, z + i * LAYERS);
#pragma unroll
			for (int i = 0; i < AHEAD; i++)
				if (z + i * LAYERS < held) w.cells[w.cell(x, y, z + i * LAYERS)] = v[i];
		}
#pragma unroll
		for (int k = 0; k < REST; k++) mine.rest[row][k] = *w.in(from, w.s.strides, x, y, held + k);
	});
}

// keep stores a tile into the field of a step.
__device__ __forceinline__ void keep(const Worker &w, const Columns &mine, unsigned step) {
	REAL *const field = w.s.field[step % 2];
	each_row(w, [&](int row, int y) {
#pragma unroll 1
		for (int z = w.layer(); z < w.t.held; z += LAYERS)
			*w.in(field, w.s.strides, w.x, y, z) = w.cells[w.cell(w.x, y, z)];
#pragma unroll
		for (int k = 0; k < REST; k++) *w.in(field, w.s.strides, w.x, y, w.t.held + k) = mine.rest[row][k];
	});
}
