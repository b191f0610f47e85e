// Time steps of a field that stays on the multiprocessors. Each thread block keeps a tile
// of the field in shared memory for all the steps of a launch. After each step it sends
// the points at its faces to the tiles beside it, on this GPU or another, as packets that
// hold a value and the number of the step: who waits for a packet looks at it until the
// step is there, so that no fence and no flag stand between a store and its use.
//
// There are two packets for each ghost point, for even and for odd steps. That is enough:
// a tile sends step n+2 after it has got step n+1 from the tile beside it, which sent that
// after it had read step n. Nor does a tile change the fields before those beside it have read
// them at the beginning of a launch: it has got their first packets by then. Steps count modulo
// 2^32 in packets, which nobody misses as long as no packet is so old.
//
// The stencil is a star that reaches one point (see tapsSource in taps.go). Build options:
// REAL, and PART where shared memory does not hold all layers of a tile.
//
// The axes of tiles are x, y and depth, the slowest of the field: in two dimensions y is
// the depth, and tiles are one point high. Threads form layers as wide and high as a tile;
// each has a column of points along the depth.
//
// Of a tile that is too large for shared memory only the first layers are held there. The
// rest is swept from one field to the other, which the second-level cache keeps.

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

// batch is how many points of a column are computed between two barriers: as many as the
// compiler has registers for.
__device__ constexpr int batch(bool norms) { return (norms ? 8 : __CUDA_ARCH__ < 1000 ? 32 : 16) / sizeof(REAL); }

// sweep makes a step of the layers that are held, in place: the points of a batch are stored
// when all threads have read what they need of them. What a column needs of the next layer's,
// which may be ahead of it, is read before the first batch is stored.
template <bool NORMS> __device__ __forceinline__ void sweep(const Worker &w, unsigned step, Found &norms) {
	enum { BATCH = batch(NORMS) };
	const Tile &t = w.t;
	const int pitch = w.pitch(), plane = w.plane(), length = (t.held + blockDim.z - 1) / blockDim.z;
	const bool mine = threadIdx.x < t.n[X] && threadIdx.y < t.n[Y];
	const int begin = threadIdx.z * length, here = mine ? min(length, t.held - begin) : 0;
	REAL *p = w.cells + w.cell(threadIdx.x, threadIdx.y, begin);
	REAL below, c, end;
	if (here > 0) {
		below = p[-plane], c = p[0], end = p[here * plane];
		if (REST && t.held < t.n[DEPTH]) end = value(w, step - 1, threadIdx.x, threadIdx.y, t.held);
	}
#pragma unroll 1
	for (int z = 0; z < length; z += BATCH, p += BATCH * plane) {
		REAL out[BATCH];
#pragma unroll
		for (int d = 0; d < BATCH; d++) {
			if (z + d >= here) break;
			const REAL above = z + d + 1 < here ? p[(d + 1) * plane] : end;
			out[d] = apply([&](int dx, int dy, int dz) {
				const int along = DIMS == 3 ? dz : dy;
				if (along != 0) return along < 0 ? below : above;
				return dx == 0 && (DIMS == 2 || dy == 0) ? c : p[d * plane + dx + (DIMS == 3 ? dy * pitch : 0)];
			});
			if (NORMS) norms.point(out[d], c);
			below = c;
			c = above;
		}
		__syncthreads();
#pragma unroll
		for (int d = 0; d < BATCH; d++)
			if (z + d < here) p[d * plane] = out[d];
	}
}

// sweep_rest makes a step of the layers that are not held, by one layer of threads, before
// those that are held change.
template <bool NORMS> __device__ __forceinline__ void sweep_rest(const Worker &w, unsigned step, Found &norms) {
	const Tile &t = w.t;
	const int x = threadIdx.x, y = threadIdx.y;
	if (!REST || t.held == t.n[DEPTH] || x >= t.n[X] || y >= t.n[Y]) return;
	const i64 pitch = w.s.strides.pitch, layer = DIMS == 3 ? w.s.strides.plane : pitch;
	const REAL *p = w.field(w.s.field[(step - 1) % 2], w.s.strides, x, y, t.held);
	REAL *q = w.field(w.s.field[step % 2], w.s.strides, x, y, t.held);
	REAL below = w.cells[w.cell(x, y, t.held - 1)], c = *p;
#pragma unroll 1
	for (int z = t.held; z < t.n[DEPTH]; z++, p += layer, q += layer) {
		const REAL above = z + 1 < t.n[DEPTH] ? p[layer] : w.cells[w.ghost<DEPTH>(HIGH, x, y, z)];
		const REAL left = x > 0 ? p[-1] : w.cells[w.ghost<X>(LOW, x, y, z)];
		const REAL right = x + 1 < t.n[X] ? p[1] : w.cells[w.ghost<X>(HIGH, x, y, z)];
		REAL front = 0, back = 0;
		if (DIMS == 3) {
			front = y > 0 ? p[-pitch] : w.cells[w.ghost<Y>(LOW, x, y, z)];
			back = y + 1 < t.n[Y] ? p[pitch] : w.cells[w.ghost<Y>(HIGH, x, y, z)];
		}
		const REAL out = apply([&](int dx, int dy, int dz) {
			const int along = DIMS == 3 ? dz : dy;
			if (along != 0) return along < 0 ? below : above;
			if (dx != 0) return dx < 0 ? left : right;
			return DIMS == 2 || dy == 0 ? c : dy < 0 ? front : back;
		});
		*q = out;
		if (NORMS) norms.point(out, c);
		below = c;
		c = above;
	}
}

// advance makes a step of a tile.
template <bool NORMS> __device__ __forceinline__ void advance(const Worker &w, unsigned step, Found &norms) {
	sweep_rest<NORMS>(w, step, norms);
	sweep<NORMS>(w, step, norms);
	__syncthreads();
}

// Where threads form several layers, so that most points at faces are no thread's own, a
// list says which of them a thread sends. The first errand of a thread is its only one for
// small tiles.
struct First {
	Mail *out;
	const Mail *in;
	int odd, cell, ghost;
};

// send_listed sends the points at the faces of a tile.
__device__ __forceinline__ void send_listed(const Worker &w, const First &first, unsigned step) {
	if (w.thread < w.t.errands) first.out[step % 2 ? first.odd : 0].put(w.cells[first.cell], step);
#pragma unroll 1
	for (int i = w.thread + w.threads; i < w.t.errands; i += w.threads) {
		const Errand e = w.errands[i];
		const Door &d = w.t.door[e.side];
		d.to_send(e.place, step)->put(w.cells[e.cell], step);
	}
}

// A packet that a thread waits for.
struct Awaited {
	const Mail *from; // null: none
	int ghost;        // the cell that it is for
	int side;         // where it comes in
	Mail got;
};

// look_for looks for the packet of an errand, if there are so many.
__device__ __forceinline__ Awaited look_for(const Worker &w, int errand, unsigned step) {
	Awaited a = {0};
	if (errand >= w.t.errands) return a;
	const Errand e = w.errands[errand];
	const Door &d = w.t.door[e.side];
	a.from = d.to_get(e.place, step);
	a.ghost = e.cell + d.ghost;
	a.side = e.side;
	a.got = a.from->look();
	return a;
}

// take waits for a packet and puts its value where it belongs. It returns false if it does
// not come within the limit, and says so.
__device__ __forceinline__ bool take(const Worker &w, Awaited a, unsigned step) {
	if (!a.from) return true;
	const bool came = a.got.of(step) || wait(w.s.limit, [&] {
		a.got = a.from->look();
		return a.got.of(step);
	});
	if (came) {
		w.cells[a.ghost] = a.got.value();
	} else {
		const int from = w.t.door[a.side].from;
		complain(w.s.failed, from >= 0 ? 1 + from : ITSELF);
	}
	return came;
}

// receive_listed waits for the ghosts of a tile. It returns false if one does not come.
__device__ __forceinline__ bool receive_listed(const Worker &w, const First &first, unsigned step) {
	if (w.thread < w.t.errands) {
		const Mail *const from = first.in + (step % 2 ? first.odd : 0);
		if (!take(w, Awaited{from, first.ghost, w.errands[w.thread].side, from->look()}, step)) return false;
	}
#pragma unroll 1
	for (int i = w.thread + w.threads; i < w.t.errands; i += 2 * w.threads) {
		const Awaited one = look_for(w, i, step), other = look_for(w, i + w.threads, step);
		if (!take(w, one, step) || !take(w, other, step)) return false;
	}
	return true;
}

// each_face_point calls visit(x, y, z) for the points at both faces across an axis, along
// which the caller knows where they lie, one layer of threads sharing them.
template <int AXIS, typename Visit> __device__ __forceinline__ void each_face_point(const Worker &w, Visit visit) {
	const int x = threadIdx.x, y = threadIdx.y, *n = w.t.n;
	if (AXIS != X && x >= n[X] || AXIS != Y && y >= n[Y] || AXIS == Y && DIMS == 2) return;
	if constexpr (AXIS == DEPTH) {
		visit(x, y, 0);
	} else {
#pragma unroll 1
		for (int z = AXIS == X ? x : y; z < n[DEPTH]; z += AXIS == X ? blockDim.x : blockDim.y) visit(AXIS == X ? 0 : x, AXIS == Y ? 0 : y, z);
	}
}

// send_faces sends the points at two faces of a tile.
template <int AXIS> __device__ __forceinline__ void send_faces(const Worker &w, unsigned step) {
	each_face_point<AXIS>(w, [&](int x, int y, int z) {
		const int at = w.place(AXIS, x, y, z), end = w.t.n[AXIS] - 1;
		REAL v[2];
#pragma unroll
		for (int high = LOW; high <= HIGH; high++)
			v[high] = value(w, step, AXIS == X ? high * end : x, AXIS == Y ? high * end : y, AXIS == DEPTH ? high * end : z);
#pragma unroll
		for (int high = LOW; high <= HIGH; high++) {
			const Door &d = w.t.door[2 * AXIS + high];
			if (d.in) d.to_send(at, step)->put(v[high], step);
		}
	});
}

// receive_faces waits for the ghosts at two faces. It returns false if one does not come.
template <int AXIS> __device__ __forceinline__ bool receive_faces(const Worker &w, unsigned step) {
	bool all = true;
	each_face_point<AXIS>(w, [&](int x, int y, int z) {
		if (!all) return;
		const int at = w.place(AXIS, x, y, z);
		Awaited a[2];
#pragma unroll
		for (int high = LOW; high <= HIGH; high++) {
			const Door &d = w.t.door[2 * AXIS + high];
			a[high] = Awaited{d.in ? d.to_get(at, step) : 0, w.ghost<AXIS>(high, x, y, z), 2 * AXIS + high};
			if (d.in) a[high].got = a[high].from->look();
		}
		all = take(w, a[LOW], step) && take(w, a[HIGH], step);
	});
	return all;
}

// send sends the points at the faces of a tile.
__device__ __forceinline__ void send(const Worker &w, const First &first, unsigned step) {
	if (w.listed()) return send_listed(w, first, step);
	send_faces<DEPTH>(w, step);
	send_faces<Y>(w, step);
	send_faces<X>(w, step);
}

// receive waits for the ghosts of a tile. It returns false if one does not come.
__device__ __forceinline__ bool receive(const Worker &w, const First &first, unsigned step) {
	if (w.listed()) return receive_listed(w, first, step);
	return receive_faces<DEPTH>(w, step) && receive_faces<Y>(w, step) && receive_faces<X>(w, step);
}

// each_side calls visit(axis, high) for the sides of a tile, the threads sharing them.
template <typename Visit> __device__ __forceinline__ void each_side(const Worker &w, Visit visit) {
#pragma unroll 1
	for (int side = w.thread; side < 2 * AXES; side += w.threads) visit(side / 2, side % 2);
}

// ready waits until the neighbours that store into this tile's ghosts have made all
// launches before this one, by one thread for each side of a tile.
__device__ bool ready(const Worker &w) {
	bool all = true;
	each_side(w, [&](int axis, int high) {
		const i64 from = w.s.side[axis][high].from;
		if (from < 0 || !w.outer(axis, high)) return;
		const Neighbour &other = w.s.neighbour[from];
		if (await(other.my_count, w.s.launch * other.expected, w.s.limit)) return;
		complain(w.s.failed, 1 + from);
		all = false;
	});
	return all;
}

// tell counts the launch of this block for the neighbours whose ghosts it stored.
__device__ void tell(const Worker &w) {
	each_side(w, [&](int axis, int high) {
		const i64 to = w.s.side[axis][high].to;
		if (to >= 0 && w.outer(axis, high)) raise(w.s.neighbour[to].its_count);
	});
}

// total puts the sum of all threads' norms there, by halves, after a barrier behind which
// nobody needs the cells. Other than over_block it takes blocks of any size.
__device__ void total(const Worker &w, const Found &norms, Four *there) {
	Four *all = (Four *)w.cells;
	all[w.thread] = norms.four();
#pragma unroll 1
	for (int n = w.threads; n > 1; n = (n + 1) / 2) {
		__syncthreads();
		if (w.thread < n / 2) all[w.thread].add(all[w.thread + (n + 1) / 2]);
	}
	if (w.thread == 0) *there = all[0];
}

// make makes the steps of a launch, with the norms of the last.
template <bool NORMS> __device__ __forceinline__ void make(const Tiles &s) {
	extern __shared__ double2 memory[];
	__shared__ Tile t;
	const int thread = threadIdx.x + (threadIdx.y + threadIdx.z * blockDim.y) * blockDim.x;
	Worker w = {s, t, (REAL *)memory, 0, thread, (int)(blockDim.x * blockDim.y * blockDim.z)};
	if (thread == 0) place_tile(s, t);
	__syncthreads();
	w.errands = (Errand *)(w.cells + ((w.cells_held() * sizeof(REAL) + 15) & ~15) / sizeof(REAL));
	each_side(w, [&](int axis, int high) { t.door[2 * axis + high] = w.door(axis, high); });
	if (!__syncthreads_and(ready(w))) return;
	fill(w, s.field[(s.first - 1) % 2]);
	int errands = 0;
#pragma unroll
	for (int f = 0; f < 2 * AXES && w.listed(); f++) errands = w.lay_out(f / 2, f % 2, errands);
	if (thread == 0) t.errands = errands;
	__syncthreads();
	First first = {};
	if (thread < errands) {
		const Errand e = w.errands[thread];
		const Door &d = t.door[e.side];
		first = First{d.out + e.place, d.in + e.place, d.odd, e.cell, e.cell + d.ghost};
	}
	Found norms;
	unsigned step = (unsigned)s.first; // modulo 2^32, as packets have it
#pragma unroll 1
	for (unsigned left = (unsigned)s.count; left > (NORMS ? 1 : 0); left--, step++) {
		disturb(3 * step);
		advance<false>(w, step, norms);
		disturb(3 * step + 1);
		if (left > 1) send(w, first, step);
		if (left <= 2) keep(w, step);
		disturb(3 * step + 2);
		if (left > 1 && !__syncthreads_and(receive(w, first, step))) return;
	}
	if (NORMS) {
		norms = Found{0, 0, 0, 0};
		advance<true>(w, step, norms);
		keep(w, step++);
	}
	hand_over(w, step - 1);
	__syncthreads();
	tell(w);
	if (NORMS) total(w, norms, s.norms[(step - 1) % 2] + blockIdx.x);
}

// hold makes the steps of a launch. All its blocks run at once. hold_norms does so too, and
// takes the norms of the last step.
extern "C" __global__ void __launch_bounds__(1024, 1) hold(const __grid_constant__ Tiles s) {
	after_predecessor();
	make<false>(s);
}

extern "C" __global__ void __launch_bounds__(1024, 1) hold_norms(const __grid_constant__ Tiles s) {
	after_predecessor();
	make<true>(s);
}
