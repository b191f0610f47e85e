// A tile of the field: where it lies, in memory and among the others, and what its threads
// have to do with it. See tiles.cu.
//
// Build options: REAL, PART.

enum { X, Y, DEPTH, AXES };
enum { LOW, HIGH };

#ifdef PART
enum { REST = true };
#else
enum { REST = false };
#endif

typedef Packet<sizeof(REAL)> Mail;

// A side of this GPU's box: where its points go after each step, and whom the ghosts
// behind it come from.
struct Side {
	Mail *out;        // to the packets of even steps; null: nowhere
	REAL *ghost[2];   // of either field: where this GPU's first point would lie; for the last step
	Strides strides;  // there
	i64 to, from;     // neighbours; HERE: this GPU; NOBODY: the ghosts stay as they are
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
	int from;       // as in Side

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
	int held;                        // layers in shared memory; the rest stays in the fields
	Door door[2 * AXES];
	int errands;
};

static_assert(sizeof(Tile) <= 1 << 10, "tiling.go leaves no more room");

// What a thread has to do with a tile.
struct Worker {
	const Tiles &s;
	const Tile &t;
	REAL *cells;     // in shared memory: the tile, and its ghosts around
	Errand *errands; // there
	int thread, threads;

	__device__ bool listed() const { return !REST && blockDim.z > 1; }
	__device__ int pitch() const { return blockDim.x + 2; }
	__device__ int plane() const { return DIMS == 3 ? pitch() * (blockDim.y + 2) : pitch(); }

	// cell is where a point of a layer that is held lies, which may be one beyond a side.
	__device__ int cell(int x, int y, int z) const { return 1 + x + (DIMS == 3 ? y + 1 : 0) * pitch() + (z + 1) * plane(); }

	// cells_held is how many cells there are. Those of the ghosts beside the rest follow.
	__device__ int cells_held() const { return plane() * ((int)s.held + 2); }

	// ghost is where the ghost of a point at a side lies. Behind the last layer that is held lie
	// the ghosts of the tile's last layer.
	template <int AXIS> __device__ int ghost(int high, int x, int y, int z) const {
		if (AXIS == DEPTH) return cell(x, y, high ? t.held : -1);
		if (!REST || z < t.held) return cell(AXIS != X ? x : high ? t.n[X] : -1, AXIS != Y ? y : high ? t.n[Y] : -1, z);
		const int wide = DIMS == 3 ? blockDim.x : 0, high_side = AXIS == X ? blockDim.y : wide; // how long faces are there
		return cells_held() + (z - t.held) * 2 * (wide + blockDim.y) + high * high_side + (AXIS == X ? y : 2 * blockDim.y + x);
	}

	// place is that of the packet of a point in those of its side, from the tile's first.
	__device__ int place(int axis, int x, int y, int z) const {
		return axis == X ? z + y * (int)s.size[DEPTH] : x + (axis == Y ? z : y) * (int)s.size[X];
	}

	__device__ int area(int axis) const { return (int)s.size[axis == X ? Y : X] * (int)s.size[axis == DEPTH ? Y : DEPTH]; }

	// slot is where packets of even steps lie that cross a cut between tiles upwards or
	// downwards; cut 0 is this GPU's low side. Those of odd steps follow.
	__device__ Mail *slot(int axis, i64 cut, int down) const { return s.inbox[axis] + (cut * 2 + down) * 2 * (i64)area(axis); }

	// field returns the address of a point of the tile in a field that lies so.
	__device__ REAL *field(REAL *first, const Strides &strides, int x, int y, int z) const {
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
	t.held = min(t.n[DEPTH], (int)s.held);
}

__device__ Door Worker::door(int axis, int high) const {
	const i64 cut = t.of[axis] + high;
	const int ghost = axis == X ? 1 : axis == Y ? pitch() : plane();
	const i64 first = place(axis, t.lo[X], t.lo[Y], t.lo[DEPTH]);
	Door d = {slot(axis, cut, !high) + first, slot(axis, cut, high) + first, area(axis), high ? ghost : -ghost, HERE};
	if (outer(axis, high)) {
		const Side &side = s.side[axis][high];
		d.out = side.out + first;
		d.from = (int)side.from;
		if (d.from == NOBODY) d.in = 0;
	}
	return d;
}

// lay_out lists the points at a side from a place in the list on, and returns their end.
__device__ int Worker::lay_out(int axis, int high, int first) const {
	if (!t.door[2 * axis + high].in || (DIMS == 2 && axis == Y)) return first;
	const int wide = t.n[axis == X ? DEPTH : X], points = wide * t.n[axis == Y ? DEPTH : Y];
	for (int i = thread; i < points; i += threads) {
		const int v = i / wide, u = i - v * wide, edge = high ? t.n[axis] - 1 : 0;
		const int x = axis == X ? edge : u, y = axis == Y ? edge : v, z = axis == X ? u : axis == Y ? v : edge;
		errands[first + i] = Errand{(unsigned)place(axis, x, y, z), (unsigned)(2 * axis + high), cell(x, y, z)};
	}
	return first + points;
}

// each_point calls visit(x, y, z) for the points of a tile, the threads sharing them.
template <typename Visit> __device__ __forceinline__ void each_point(const Worker &w, Visit visit) {
	const int x = threadIdx.x, y = threadIdx.y;
	if (x >= w.t.n[X] || y >= w.t.n[Y]) return;
#pragma unroll 1
	for (int z = threadIdx.z; z < w.t.n[DEPTH]; z += blockDim.z) visit(x, y, z);
}

// fill loads a tile and the points around it, but for what stays in the field.
__device__ void fill(const Worker &w, REAL *from) {
	each_point(w, [&](int x, int y, int z) {
		const Tile &t = w.t;
		auto load = [&](int to, int x, int y, int z) { w.cells[to] = *w.field(from, w.s.strides, x, y, z); };
		if (z < t.held) load(w.cell(x, y, z), x, y, z);
		if (x == 0) load(w.ghost<X>(LOW, x, y, z), -1, y, z);
		if (x == t.n[X] - 1) load(w.ghost<X>(HIGH, x, y, z), x + 1, y, z);
		if (DIMS == 3 && y == 0) load(w.ghost<Y>(LOW, x, y, z), x, -1, z);
		if (DIMS == 3 && y == t.n[Y] - 1) load(w.ghost<Y>(HIGH, x, y, z), x, y + 1, z);
		if (z == 0) load(w.ghost<DEPTH>(LOW, x, y, z), x, y, -1);
		if (z == t.n[DEPTH] - 1) load(w.ghost<DEPTH>(HIGH, x, y, z), x, y, z + 1);
	});
}

// value returns a point after a step.
__device__ __forceinline__ REAL value(const Worker &w, unsigned step, int x, int y, int z) {
	return !REST || z < w.t.held ? w.cells[w.cell(x, y, z)] : *w.field(w.s.field[step % 2], w.s.strides, x, y, z);
}

// keep stores a tile into the field of a step.
__device__ void keep(const Worker &w, unsigned step) {
	each_point(w, [&](int x, int y, int z) {
		if (z < w.t.held) *w.field(w.s.field[step % 2], w.s.strides, x, y, z) = w.cells[w.cell(x, y, z)];
	});
}

// hand_over stores the points at the sides of this GPU into ghosts, for whoever works with
// the fields after the launch.
__device__ void hand_over(const Worker &w, unsigned step) {
	each_point(w, [&](int x, int y, int z) {
		auto store = [&](int axis, int high, int at) {
			const Side &side = w.s.side[axis][high];
			if (at == (high ? w.t.n[axis] - 1 : 0) && w.outer(axis, high) && side.out)
				*w.field(side.ghost[step % 2], side.strides, x, y, z) = value(w, step, x, y, z);
		};
		store(X, LOW, x), store(X, HIGH, x);
		if (DIMS == 3) store(Y, LOW, y), store(Y, HIGH, y);
		store(DEPTH, LOW, z), store(DEPTH, HIGH, z);
	});
}
