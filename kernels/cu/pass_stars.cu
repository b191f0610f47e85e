// Several steps of a star of radius 2 (13 points in three dimensions) in one pass over memory.
//
// A thread block computes tiles of CX x CY columns plane by plane along z. A lane has VECTOR adjacent points along x in
// each of ROWS rows; the rows of a block's warps are stacked along y. For each level except the last, shared memory
// holds the newest planes, with two rows and a vector of columns around the tile. Those of level 0 are read as well, so
// that level 1 is valid in the whole tile; for each further level, tiles overlap by two more columns and rows at each
// side. Runs of planes overlap by as many planes.
//
// When plane k of level 0 arrives, level l computes plane k - 2l from five planes of the previous level. A thread holds
// its points of the lowest three in registers and reads the next one from shared memory. It reads the highest from
// there too or, from the second level on, has just computed it. Neighbors along x, and those next to a warp's rows, are
// read from shared memory, where they were stored two planes earlier. New planes overwrite planes that adjacent warps
// read one plane earlier: each pair of adjacent warps has a barrier, which they pass between the first level and the
// second in each plane.
//
// Walls: ghosts of level 0 are read. Ghosts of higher levels are stored in shared memory by the warp that has the
// points that determine them. Planes of ghosts that keep their values are processed like other planes; the others are
// computed where they are used.
//
// Grid: any number of blocks, which share the planes of all tiles; best is the number that run at the same time. Block:
// 32 x TEAM threads. Options: REAL; DEPTH; ROWS; TEAM, warps; LEAD, how many planes ahead level 0 is loaded; and
// stencil.cuh.
#include "pass.cuh"
#include "pass_parts.cuh"

#ifndef DEPTH // for editors
enum { DEPTH = 2, ROWS = 4, TEAM = 12, LEAD = 2 };
#endif

enum {
	BYTES = (int)sizeof(REAL),
	VECTOR = 16 / BYTES,
	REACH = 2,
	CX = 32 * VECTOR,
	CY = ROWS * TEAM,
	MARGIN_Y = REACH * (DEPTH - 1), // rows and columns of a tile that other tiles store
	MARGIN_X = (MARGIN_Y + VECTOR - 1) / VECTOR * VECTOR,

	// Shared memory, in bytes.
	ROW = 34 * 16,
	FIRST_ROW = REACH * ROW + 16, // the first point of a tile in a plane
	PLANE = (CY + 2 * REACH) * ROW,
	FIRST_SLOTS = LEAD + 3, // planes of level 0
	HELD = 3,               // planes held of each other level, and planes of a level in a thread
	READY_AT = (FIRST_SLOTS + (DEPTH - 1) * HELD) * PLANE,
	PART_AT = READY_AT + (TEAM / 2 + 1) * 16,
	SHARED_BYTES = PART_AT + 96,
};

static_assert(ROWS >= 2 && ROWS <= 8 && TEAM >= 2 && CY > 2 * MARGIN_Y, "");

// How tiles of a given length are placed along an axis: at even distances from the first one. Ghosts behind a boundary
// are adjacent to the last tile, or in it.
struct Axis {
	int n, length, margin, begin0;
	bool low, high; // walls
	int tiles;

	// The distance from the first aligned point to the box.
	__device__ __forceinline__ Axis(int n, int length, int margin, int shift, bool low, bool high)
	    : n(n), length(length), margin(margin), begin0(low ? -shift : -shift - margin), low(low), high(high) {
		const int kept = begin0 + length - (high ? 0 : margin); // per tile
		tiles = n <= kept ? 1 : 1 + (n - kept + step() - 1) / step();
	}
	__device__ __forceinline__ int step() const { return length - 2 * margin; }
	__device__ __forceinline__ int begin(int tile) const { return begin0 + tile * step(); }
	// cut is the first point that a tile stores.
	__device__ __forceinline__ int cut(int tile) const {
		return tile == 0 ? 0 : tile >= tiles ? n : begin(tile) + margin;
	}
	// reach and end are the first point that may be read and the end of these points (exclusive).
	__device__ __forceinline__ int reach() const { return -REACH * (low ? 1 : DEPTH); }
	__device__ __forceinline__ int end() const { return n + REACH * (high ? 1 : DEPTH); }
};

// A block's part of a tile, in shared memory: values used once per plane should not take registers.
struct Part {
	Run run;
	int last;                       // last plane that is read
	int begin, steady, stop;        // planes of level 0: first and last away from walls along z, and last
	int x0, y0;                     // origin of the tile
	int cut_x, cut_y, end_x, end_y; // points that are stored
	int walls;                      // walls adjacent to the tile or in it, as bits
	bool plain;                     // whether the tile is away from walls, and is loaded and stored in whole vectors
};
static_assert(sizeof(Part) <= 96, "");

__device__ __forceinline__ Part &part() { return *(Part *)((char *)dynamic_shared() + PART_AT); }

// next_part finds the block's next part.
__device__ __forceinline__ void next_part(const Pass &a, Part &p) {
	const Axis ax(a.n[0], CX, MARGIN_X, (int)((u64)a.from / BYTES % VECTOR), a.sides[0] != OPEN, a.sides[1] != OPEN);
	const Axis ay(a.n[1], CY, MARGIN_Y, 0, a.sides[2] != OPEN, a.sides[3] != OPEN);
	next_run_in_step(p.run, a.n[2], ax.tiles, ay.tiles, 2 * REACH * DEPTH);
	const int x = p.run.tile_x, y = p.run.tile_y;
	p.x0 = ax.begin(x), p.y0 = ay.begin(y);
	p.cut_x = ax.cut(x), p.cut_y = ay.cut(y), p.end_x = ax.cut(x + 1), p.end_y = ay.cut(y + 1);
	p.walls = (ax.low && x == 0) | (ax.high && x == ax.tiles - 1) << 1 | (ay.low && y == 0) << 2 |
	          (ay.high && y == ay.tiles - 1) << 3;
	p.plain = p.walls == 0 && p.x0 > ax.reach() && p.x0 + CX < ax.end() && p.y0 - REACH >= ay.reach() &&
	          p.y0 + CY + REACH <= ay.end() && (p.cut_x - p.x0) % VECTOR == 0 && (p.end_x - p.x0) % VECTOR == 0;
	const bool high = a.sides[5] != OPEN;
	p.stop = p.run.z1 - 1 + REACH * DEPTH, p.last = high ? min(p.stop, a.n[2] + REACH - 1) : p.stop;
	p.begin = max(p.run.z0, REACH) + REACH * DEPTH, p.steady = high ? min(p.stop, a.n[2] - 1) : p.stop;
}

// The places along an axis of the ghosts behind a side: the face, which is the layer adjacent to the points, and the
// points that determine them or, if none do, those adjacent to the face.
struct Ghost {
	int at, face, source;
	bool follows, odd; // see temporal.Side

	__device__ __forceinline__ Ghost(int n, int side, bool high, int layer) {
		const int inward = high ? -1 : 1;
		face = high ? n : -1, at = face - inward * layer, source = face + inward * (side == MIRROR ? layer + 1 : 1);
		follows = side == MIRROR || side == REPEAT, odd = side == ODD && layer > 0;
	}
};

// Points of a thread in a plane, and those that it holds of a level. Each plane replaces the third one before it, so
// their order rotates with the phase, from plane to plane.
typedef REAL Points[ROWS][VECTOR];
typedef Points Held[HELD];

// The special cases of a plane, as bits.
enum {
	SIDES = 1, // walls along x or y; points that must not be read or are not stored
	ENDS = 2,  // walls along z; planes that are not stored
};

// The traversal of a part's planes by one warp.
struct March {
	const Pass &a;
	unsigned thread;
	int k;                     // plane of level 0
	unsigned bits;             // see below
	SharedAddress own, newest; // the thread's first point in slot 0 of the ring, and in plane k
	i64 at;                    // the thread's first point in plane k in memory

	__device__ __forceinline__ int lane() const { return (int)(thread % 32); }
	__device__ __forceinline__ int warp() const { return (int)(thread / 32); }

	// These bits share a register, since registers are scarce in the loops. The last is the parity of the phase to wait
	// for.
	__device__ __forceinline__ bool stored(int row) const { return bits >> row & 1; }
	__device__ __forceinline__ bool read(int row) const { return bits >> 8 >> (row + REACH) & 1; }
	__device__ __forceinline__ bool stored_column(int v) const { return bits >> 20 >> v & 1; }
	__device__ __forceinline__ unsigned stored_columns() const { return bits >> 20 & 15; }
	__device__ __forceinline__ bool read_columns() const { return bits >> 24 & 1; }
	__device__ __forceinline__ bool read_adjacent() const { return bits >> 25 & 1; }
	__device__ __forceinline__ bool idle() const { return bits >> 26 & 1; } // whether the warp's results are not needed

	static __device__ __forceinline__ SharedAddress shared() { return shared_address(dynamic_shared()); }

	// The barrier between a warp and the one below it; the next barrier is between it and the one above. The outermost
	// warps have no neighbor on one side.
	static __device__ __forceinline__ SharedAddress barrier(int warp) { return shared() + READY_AT + warp * 8; }

	// The warp's first row, and the thread's first column.
	__device__ __forceinline__ int row() const { return part().y0 + warp() * ROWS; }
	__device__ __forceinline__ int column() const { return part().x0 + lane() * VECTOR; }

	// The thread's first points in a plane of level 0, at a distance of up to 3 before plane k. That slot is the one
	// for plane k + LEAD.
	__device__ __forceinline__ SharedAddress first_level(int before) const {
		return newest - own < before * PLANE ? newest + (FIRST_SLOTS - before) * PLANE : newest - before * PLANE;
	}
	// The thread's first points in the plane of another level that it computes in a phase.
	__device__ __forceinline__ SharedAddress other_level(int level, int phase) const {
		return own + (FIRST_SLOTS + (level - 1) * HELD + phase % HELD) * PLANE;
	}
	// The thread's first points in a plane of a level, at a given distance before the newest.
	template <int LEVEL> __device__ __forceinline__ SharedAddress plane(int phase, int before) const {
		return LEVEL == 0 ? first_level(before) : other_level(LEVEL, phase + HELD - before);
	}

	// load requests a plane of level 0, at a given distance from plane k.
	template <int KIND> __device__ __forceinline__ void load(int ahead, SharedAddress to) const {
		if (k + ahead <= part().last) {
			const REAL *const from = a.from + at + ahead * a.plane;
#pragma unroll
			for (int r = -REACH; r < ROWS + REACH; r++)
				if ((r >= 0 || warp() == 0) && (r < ROWS || warp() == TEAM - 1) &&
				    (!KIND || (read(r) && read_columns())))
					copy_async<16>(to + r * ROW, from + r * a.pitch);
			const int r = lane() / 2, vectors = (lane() & 1 ? 32 : -1) - lane();
			if (read_adjacent()) copy_async<16>(to + r * ROW + vectors * 16, from + r * a.pitch + vectors * VECTOR);
		}
		commit_async();
	}

	// store stores a row of the last level.
	template <int KIND> __device__ __forceinline__ void store(int r, const REAL (&made)[VECTOR]) const {
		REAL *const row = a.to + at - REACH * DEPTH * a.plane + r * a.pitch;
		const bool whole = stored_columns() == (1 << VECTOR) - 1;
		store_vector_if(stored(r) && whole, row, made);
		if (!KIND || whole || !stored(r) || stored_columns() == 0) return;
#pragma unroll
		for (int v = 0; v < VECTOR; v++)
			if (stored_column(v)) row[v] = made[v];
	}

	// behind computes the values of the first and the second plane behind a side along z, if the side sets them. The
	// distance of a plane is the number of points between it and the side; inward is the plane on the other side.
	static __device__ __forceinline__ void behind(int side, int distance, REAL here, REAL inward, REAL &first,
	                                              REAL &second) {
		const bool follows = side == MIRROR || side == REPEAT;
		if (distance == 1 && follows) second = first;
		if (distance != 0) return;
		if (side == ODD) second = (REAL)2 * first - here;
		if (follows) second = side == MIRROR ? inward : here, first = here;
	}

	// sweep computes a plane of a level. From the second level on, made has the points two planes above at the previous
	// level.
	template <int KIND, int PHASE, int LEVEL> __device__ __forceinline__ void sweep(Held &held, Points &made) const {
		const int p = k - REACH * LEVEL;
		const SharedAddress at = plane<LEVEL - 1>(PHASE, 2), at_next = plane<LEVEL - 1>(PHASE, 1);
		const Points &lowest = held[PHASE], &lower = held[(PHASE + 1) % HELD], &middle = held[(PHASE + 2) % HELD];
		REAL row[ROWS + 2 * REACH][VECTOR];
		const auto get = [&](int r) {
			if (r < 0 || r >= ROWS) load_shared(row[r + REACH], at + r * ROW);
			else
#pragma unroll
				for (int v = 0; v < VECTOR; v++) row[r + REACH][v] = middle[r][v];
		};
#pragma unroll
		for (int r = -REACH; r < REACH; r++) get(r);
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			REAL west[VECTOR], east[VECTOR], next[VECTOR], newest_row[VECTOR];
			load_shared(west, at + r * ROW - 16);
			load_shared(east, at + r * ROW + 16);
			load_shared(next, at_next + r * ROW);
			if (LEVEL == 1) load_shared(newest_row, newest + r * ROW);
			get(r + REACH);
			const REAL(&c)[VECTOR] = row[r + REACH];
#pragma unroll
			for (int v = 0; v < VECTOR; v++) {
				REAL z[] = {lowest[r][v], lower[r][v], c[v], next[v], LEVEL == 1 ? newest_row[v] : made[r][v]};
				if ((KIND & ENDS) && LEVEL > 1) {
					const REAL low = z[1], high = z[3];
					behind(a.sides[4], p, c[v], high, z[1], z[0]);
					behind(a.sides[5], a.n[2] - 1 - p, c[v], low, z[3], z[4]);
				}
				made[r][v] = apply([&](int dx, int dy, int dz) {
					const int i = v + dx;
					return dy != 0      ? row[r + REACH + dy][v]
					       : dx == 0    ? z[REACH + dz]
					       : i < 0      ? west[i < 0 ? VECTOR + i : 0]
					       : i < VECTOR ? c[i < VECTOR ? i : 0]
					                    : east[i < VECTOR ? 0 : i - VECTOR];
				});
				if ((KIND & ENDS) &&
				    ((p < 0 && a.sides[4] != OPEN) || (p >= a.n[2] && a.sides[5] != OPEN))) // planes of ghosts
					made[r][v] = c[v];
			}
#pragma unroll
			for (int v = 0; v < VECTOR; v++) held[PHASE][r][v] = next[v];
			if (LEVEL == DEPTH && (!(KIND & ENDS) || (p >= part().run.z0 && p < part().run.z1)))
				store<KIND>(r, made[r]);
			if ((KIND || ROWS > 4) && a.pitch == 0)
				return; // never true: a compiler that moves later code up runs out of registers
		}
	}

	// leave stores a plane of a level to shared memory, with the ghosts that its points determine.
	template <int KIND, int PHASE, int LEVEL> __device__ __forceinline__ void leave(const Points &made) const {
		const SharedAddress at = plane<LEVEL>(PHASE, 0), before = plane<LEVEL - 1>(PHASE, 2);
		const int walls = KIND ? part().walls : 0, end = walls >> 3 & 1 ? a.n[1] - row() : ROWS;
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			if (!KIND || r < end) store_shared(at + r * ROW, made[r]);
		if (walls == 0) return;
#pragma unroll 1
		for (int i = 0; i < 4; i++)
			if (walls >> 2 >> i / 2 & 1) leave_row(at, before, Ghost(a.n[1], a.sides[2 + i / 2], i >= 2, i % 2));
		__syncwarp();
		const int side = lane() >> 1 & 1, r = lane() >> 2;
		if (r < ROWS && (walls >> side & 1))
			leave_column(at + r * ROW, before + r * ROW, Ghost(a.n[0], a.sides[side], side, lane() & 1));
	}

	// leave_row stores a row of ghosts if a row of the warp determines it. Its plane may differ from the plane of the
	// previous level.
	__device__ __forceinline__ void leave_row(SharedAddress at, SharedAddress before, const Ghost &g) const {
		const int source = g.source - row();
		if (source < 0 || source >= ROWS) return;
		const auto in = [&](SharedAddress plane, int y) { return plane + (y - row()) * ROW; };
		REAL value[VECTOR], from[VECTOR];
		load_shared(value, g.follows ? in(at, g.source) : in(before, g.odd ? g.face : g.at));
		load_shared(from, in(at, g.source));
#pragma unroll
		for (int v = 0; v < VECTOR; v++)
			if (g.odd) value[v] = (REAL)2 * value[v] - from[v];
		store_shared(in(at, g.at), value);
	}

	// leave_column sets a ghost in a row.
	__device__ __forceinline__ void leave_column(SharedAddress at, SharedAddress before, const Ghost &g) const {
		const auto in = [&](SharedAddress row, int x) { return row + (x - column()) * BYTES; };
		REAL value = 0, from = 0;
		load_shared_if(true, value, g.follows ? in(at, g.source) : in(before, g.odd ? g.face : g.at));
		load_shared_if(g.odd, from, in(at, g.source));
		if (g.odd) value = (REAL)2 * value - from;
		store_shared_if(true, value, in(at, g.at));
	}

	// sweeps computes a plane of each level after the first, whose plane is in made.
	template <int KIND, int PHASE, int LEVEL>
	__device__ __forceinline__ void sweeps(Held (&held)[DEPTH], Points &made) const {
		if constexpr (LEVEL <= DEPTH) {
			leave<KIND, PHASE, LEVEL - 1>(made);
			sweep<KIND, PHASE, LEVEL>(held[LEVEL - 1], made);
			sweeps<KIND, PHASE, LEVEL + 1>(held, made);
		}
	}

	// step computes a plane of each level.
	template <int KIND, int PHASE> __device__ __forceinline__ void step(Held (&held)[DEPTH]) {
		bits = opaque(bits), thread = opaque(thread);
		wait_async<LEAD - 1>();
		Points made;
		if (!KIND || !idle()) sweep<KIND, PHASE, 1>(held[0], made);
		mbarrier_wait(barrier(warp()), bits >> 31);
		mbarrier_wait(barrier(warp() + 1), bits >> 31);
		load<KIND>(LEAD, first_level(3));
		if (!KIND || !idle()) sweeps<KIND, PHASE, 2>(held, made);
		__syncwarp();
		if (lane() < ARRIVALS) mbarrier_arrive(barrier(warp())), mbarrier_arrive(barrier(warp() + 1));
		bits ^= 1u << 31;
		at += a.plane;
		newest += PLANE;
		if (newest == own + FIRST_SLOTS * PLANE) newest = own;
		k++;
	}

	// ends reports whether the next planes of level 0 are at a wall along z, or are not needed by all levels.
	__device__ __forceinline__ bool ends() const { return k < part().begin || k + HELD - 1 > part().steady; }

	// steps computes a plane of each level in each phase, and repeats while the kind of planes is the same.
	template <int KIND> __device__ __forceinline__ void steps(Held (&held)[DEPTH]) {
#pragma unroll 1
		do {
			step<KIND, 0>(held), step<KIND, 1>(held), step<KIND, 2>(held);
		} while (KIND & ENDS ? ends() && k <= part().stop : !ends());
	}

	// look computes the bits of the thread.
	__device__ __forceinline__ void look() {
		const Part &p = part();
		const int x = column(), y = row(), adjacent = p.x0 + (lane() & 1 ? CX : -VECTOR);
		const auto within = [&](int at, int count, int axis) { // whether at least one of some points may be read
			return at + count > -REACH * (a.sides[2 * axis] == OPEN ? DEPTH : 1) &&
			       at < a.n[axis] + REACH * (a.sides[2 * axis + 1] == OPEN ? DEPTH : 1);
		};
		bits &= 1u << 31;
#pragma unroll
		for (int r = -REACH; r < ROWS + REACH; r++) {
			if (r >= 0 && r < ROWS && y + r >= p.cut_y && y + r < p.end_y) bits |= 1u << r;
			if (within(y + r, 1, 1)) bits |= 1u << 8 << (r + REACH);
		}
#pragma unroll
		for (int v = 0; v < VECTOR; v++)
			if (x + v >= p.cut_x && x + v < p.end_x) bits |= 1u << 20 << v;
		if (within(x, VECTOR, 0)) bits |= 1u << 24; // a vector is read as a whole if a point may be read
		if (lane() < 2 * ROWS && within(y + lane() / 2, 1, 1) && within(adjacent, VECTOR, 0)) bits |= 1u << 25;
		if (y >= a.n[1] + (a.sides[3] == OPEN ? MARGIN_Y : 0)) bits |= 1u << 26;
	}

	// march computes the planes of the part.
	__device__ __forceinline__ void march() {
		look();
		const int first = part().run.z0 - REACH * DEPTH;
		k = a.sides[4] != OPEN ? max(first, -REACH) : first;
		at = k * a.plane + row() * a.pitch + column();
		newest = own;
#pragma unroll 1
		for (int i = 0; i < LEAD; i++) load<SIDES>(i, own + i * PLANE);
		Held held[DEPTH] = {};
#pragma unroll 1
		while (k <= part().stop) {
			if (ends()) steps<SIDES | ENDS>(held);
			else if (part().plain) steps<0>(held);
			else steps<SIDES>(held);
		}
	}
};

extern "C" __global__ void __launch_bounds__(32 * TEAM, 1) pass_stars(const __grid_constant__ Pass a) {
	grid_dependency_wait();
	March m{a};
	m.thread = threadIdx.x, m.bits = 1u << 31;
	m.own = m.shared() + FIRST_ROW + m.warp() * (ROWS * ROW) + m.lane() * 16;
	if (threadIdx.x == 0) part().run.place = 0;
	if (threadIdx.x <= TEAM)
		mbarrier_init(m.barrier(threadIdx.x), (threadIdx.x == 0 || threadIdx.x == TEAM ? 1 : 2) * ARRIVALS);
#pragma unroll 1
	while (true) {
		__syncthreads();
		if (threadIdx.x == 0) next_part(a, part());
		__syncthreads();
		if (part().run.z1 == 0) return;
		m.march();
	}
}
