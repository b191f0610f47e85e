// Several steps of a stencil whose points lie in three planes, a box of 19 or 27 points in three dimensions, in one
// pass over memory.
//
// The stencil adds up sums over points of one plane, see planar.cuh. A thread block processes a tile of EX x EY columns
// plane by plane along z. A lane has VECTOR adjacent points along x in each of ROWS rows; the rows of a block's warps
// are stacked along y. For each level except the last, shared memory holds the newest planes, and a thread holds the
// sums of two planes in registers, so each sum is computed once. When plane k of level 0 arrives, level l reads plane k
// - 2l + 1 of the previous level, which was stored one plane earlier, and computes the plane before it. One barrier per
// plane is enough. Tiles overlap by DEPTH columns and rows at each side, runs of planes by DEPTH planes.
//
// Walls: tiles include the ghost columns, rows and planes adjacent to the points. Ghosts that keep their values do so
// at each level. Mirrored ghosts are not stored; the point is read instead.
//
// Grid: any number of blocks, which share the planes of all tiles; best is the number that run at the same time. Block:
// 32 x TEAM threads. Options: REAL; DEPTH; ROWS; TEAM, warps; LEAD, how many planes ahead level 0 is loaded; and
// planar.cuh.
#include "pass.cuh"
#include "pass_parts.cuh"
#include "planar.cuh"

#ifndef DEPTH // for editors
enum { DEPTH = 2, ROWS = 4, TEAM = 8, LEAD = 2 };
#endif

enum {
	BYTES = (int)sizeof(REAL),
	VECTOR = 16 / BYTES,
	EX = 32 * VECTOR,
	EY = ROWS * TEAM,
	MARGIN = (DEPTH + VECTOR - 1) / VECTOR * VECTOR, // columns of a tile that other tiles store

	// Shared memory, in bytes.
	ROW = 32 * 16,
	PLANE = EY * ROW,
	FIRST_SLOTS = LEAD + 4, // planes of level 0
	SLOTS = 4,              // slots of other levels
	READY_AT = (FIRST_SLOTS + (DEPTH - 1) * SLOTS) * PLANE,
	PART_AT = READY_AT + 16,
	SHARED_BYTES = PART_AT + 96,

};

static_assert(ROWS <= 8 && EX > 2 * MARGIN && EY > 2 * DEPTH, "");

// How tiles of a given length are placed along an axis: at even distances from the first one. The tile that has the
// ghost behind the last point is the last.
struct Axis {
	int n, length, margin, begin0;
	bool low, high; // walls
	int tiles;

	// Tiles begin with a point whose distance from the box is shift, up to a multiple of the vector.
	__device__ __forceinline__ Axis(int n, int length, int margin, int vector, int shift, bool low, bool high)
	    : n(n), length(length), margin(margin), low(low), high(high) {
		begin0 = low ? (shift ? -shift : -vector) : -shift - margin;
		const int kept = begin0 + length - (high ? 1 : margin); // per tile
		tiles = n <= kept ? 1 : 1 + (n - kept + step() - 1) / step();
	}
	__device__ __forceinline__ int step() const { return length - 2 * margin; }
	__device__ __forceinline__ int begin(int tile) const { return begin0 + tile * step(); }
	// cut is the first point that a tile stores.
	__device__ __forceinline__ int cut(int tile) const {
		return tile == 0 ? 0 : tile >= tiles ? n : begin(tile) + margin;
	}
	// reach and end are the first point that may be read and the end of these points (exclusive).
	__device__ __forceinline__ int reach() const { return low ? -1 : -DEPTH; }
	__device__ __forceinline__ int end() const { return n + (high ? 1 : DEPTH); }
};

// A block's part of a tile, in shared memory: values used once per plane should not take registers.
struct Part {
	Run run;
	int last;                       // last plane that is read
	int steady, stop;               // planes of level 0: the last one away from walls along z, and the last one
	int x0, y0;                     // origin of the tile
	int cut_x, cut_y, end_x, end_y; // points that are stored
	bool plain;                     // whether the tile is away from walls, and is loaded and stored in whole vectors
};
static_assert(sizeof(Part) <= 96, "");

__device__ __forceinline__ Part &part() { return *(Part *)((char *)dynamic_shared() + PART_AT); }

// next_part finds the block's next part.
__device__ __noinline__ void next_part(const Pass &a, Part &p) {
	const Axis ax(a.n[0], EX, MARGIN, VECTOR, (int)((u64)a.from / BYTES % VECTOR), a.sides[0] != OPEN,
	              a.sides[1] != OPEN);
	const Axis ay(a.n[1], EY, DEPTH, 1, 0, a.sides[2] != OPEN, a.sides[3] != OPEN);
	next_run(p.run, a, a.n[2], ax.tiles, ay.tiles, a.n[2]);
	const int x = p.run.tile_x, y = p.run.tile_y;
	p.x0 = ax.begin(x), p.y0 = ay.begin(y);
	p.cut_x = ax.cut(x), p.cut_y = ay.cut(y), p.end_x = ax.cut(x + 1), p.end_y = ay.cut(y + 1);
	p.plain = p.x0 >= (ax.low ? 0 : ax.reach()) && p.x0 + EX <= (ax.high ? a.n[0] : ax.end()) &&
	          p.y0 >= (ay.low ? 0 : ay.reach()) && p.y0 + EY <= (ay.high ? a.n[1] : ay.end()) &&
	          (p.cut_x - p.x0) % VECTOR == 0 && (p.end_x - p.x0) % VECTOR == 0;
	const bool high = a.sides[5] != OPEN;
	p.last = min(p.run.z1 - 1 + DEPTH, high ? a.n[2] : a.n[2] - 1 + DEPTH);
	p.stop = p.run.z1 - 1 + 2 * DEPTH, p.steady = high ? min(p.stop, a.n[2]) : p.stop;
}

// The special cases of a plane, as bits.
enum {
	SIDES = 1, // walls along x or y; points that must not be read or are not stored
	ENDS = 2,  // walls along z; planes that are not stored
	// Whether there is separate code for planes of a tile at a side that are away from walls along z. Blackwell lacks
	// the registers for it.
	APART = ARCH < 1000,
};

// A row of a lane: its points, and the adjacent ones.
struct Row {
	REAL c[VECTOR], west, east;

	__device__ __forceinline__ REAL at(int v) const { return v < 0 ? west : v < VECTOR ? c[v < VECTOR ? v : 0] : east; }
};

// A thread's data of a level: the sums of the newest plane and of the one before, and its points in both.
struct Level {
	REAL newer[ROWS][VECTOR][SUMS], older[ROWS][VECTOR][SUMS];
};

// The traversal of a part's planes by one warp.
struct March {
	const Pass &a;
	unsigned thread;
	int k;                // plane of level 0
	unsigned bits, walls; // see below

	__device__ __forceinline__ unsigned lane() const { return thread % 32; }
	__device__ __forceinline__ unsigned warp() const { return thread / 32; }

	// These bits share a register, since registers are scarce in the loops. The last is the parity of the phase to wait
	// for.
	__device__ __forceinline__ bool stored(int row) const { return bits >> row & 1; }
	__device__ __forceinline__ bool read(int row) const { return bits >> 8 >> row & 1; }
	__device__ __forceinline__ bool stored_column(int v) const { return bits >> 16 >> v & 1; }
	__device__ __forceinline__ bool stored_columns() const { return (bits >> 16 & 15) == (1 << VECTOR) - 1; }
	__device__ __forceinline__ bool read_columns() const { return bits >> 20 & 1; }
	__device__ __forceinline__ bool fixed(int row, int v) const { return (walls >> row | walls >> 8 >> v) & 1; }
	__device__ __forceinline__ bool mirror_low(int v) const { return walls >> 12 >> v & 1; }
	__device__ __forceinline__ bool mirror_high(int v) const { return walls >> 16 >> v & 1; }
	__device__ __forceinline__ bool mirror_x() const { return walls >> 20 & 1; }

	static __device__ __forceinline__ SharedAddress shared() { return shared_address(dynamic_shared()); }
	static __device__ __forceinline__ SharedAddress ready() { return shared() + READY_AT; }

	// The thread's first points in a plane of a level.
	__device__ __forceinline__ SharedAddress plane(int level, int z) const {
		const int slot =
		    level == 0 ? (z + 64 * FIRST_SLOTS) % FIRST_SLOTS : FIRST_SLOTS + (level - 1) * SLOTS + (z & (SLOTS - 1));
		return shared() + slot * PLANE + warp() * (ROWS * ROW) + lane() * 16;
	}

	// The address of the thread's first point of a plane, recomputed to save registers.
	__device__ __forceinline__ i64 offset(int z) const {
		return z * a.plane + (i64)(part().y0 + (int)warp() * ROWS) * a.pitch + (part().x0 + (int)lane() * VECTOR);
	}

	// load requests a plane of level 0.
	template <int KIND> __device__ __forceinline__ void load(int z) {
		if (z <= part().last) {
			const SharedAddress at = plane(0, z);
			const REAL *const from = a.from + offset(z);
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				if (!(KIND & SIDES) || (read(r) && read_columns())) copy_async<16>(at + r * ROW, from + r * a.pitch);
		}
		commit_async();
	}

	// The offset of a row from the thread's first one. For mirrored ghosts it is the offset of the point. For rows
	// outside the tile it is arbitrary.
	template <int KIND> __device__ __forceinline__ int row_at(int r) const {
		if (KIND & SIDES) {
			const int y = part().y0 + (int)warp() * ROWS + r;
			if (y == -1 && a.sides[2] > FIXED) r++;
			if (y == a.n[1] && a.sides[3] > FIXED) r--;
		}
		if ((r < 0 && warp() == 0) || (r >= ROWS && warp() == TEAM - 1)) return 0;
		return r * ROW;
	}

	// adjacent reads the points next to a row.
	template <int KIND> __device__ __forceinline__ void adjacent(Row &row) const {
		row.west = __shfl_up_sync(~0u, row.c[VECTOR - 1], 1), row.east = __shfl_down_sync(~0u, row.c[0], 1);
		if (!(KIND & SIDES) || !mirror_x()) return;
#pragma unroll
		for (int v = 0; v < VECTOR; v++)
			if (mirror_low(v)) row.c[v] = row.at(v + 1);
#pragma unroll
		for (int v = 0; v < VECTOR; v++)
			if (mirror_high(v)) row.c[v] = row.at(v - 1);
		row.west = __shfl_up_sync(~0u, row.c[VECTOR - 1], 1), row.east = __shfl_down_sync(~0u, row.c[0], 1);
	}

	// store stores a row of the last level.
	template <int KIND> __device__ __forceinline__ void store(REAL *to, int r, const REAL (&made)[VECTOR]) const {
		if (!stored(r)) return;
		REAL *const row = to + r * a.pitch;
		if (stored_columns()) {
			store_vector(row, made);
		} else if (KIND & SIDES) {
#pragma unroll
			for (int v = 0; v < VECTOR; v++)
				if (stored_column(v)) row[v] = made[v];
		}
	}

	// sweep computes a plane of a level.
	template <int KIND, int LEVEL> __device__ __forceinline__ void sweep(Level &held) {
		const int q = k - 2 * LEVEL + 1, p = q - 1, n = a.n[2];
		int mirrored = q, below = p - 1;
		bool keeps = false,
		     first = false; // whether the plane is a ghost plane; whether plane -1 mirrors the new plane
		if (KIND & ENDS) {
			if (q == n && a.sides[5] > FIXED) mirrored = q - 1;
			if (p == 0 && a.sides[4] > FIXED) below = p;
			first = q == 0 && a.sides[4] > FIXED;
			keeps = (p == -1 && a.sides[4] == FIXED) || (p == n && a.sides[5] == FIXED);
		}
		const SharedAddress in = plane(LEVEL - 1, mirrored), at_p = plane(LEVEL - 1, p),
		                    at_below = plane(LEVEL - 1, below);
		const SharedAddress out = plane(LEVEL, p);
		REAL *const to = a.to + offset(p);
		// Always true, but the compiler must not know it. It then moves new values into the registers of older ones as
		// soon as those are dead.
		const bool taking = a.pitch != 0;
		Row row[ROWS + 2];
		load_shared(row[0].c, in + row_at<KIND>(-1));
		load_shared(row[1].c, in + row_at<KIND>(0));
		load_shared(row[2].c, in + row_at<KIND>(1));
		adjacent<KIND>(row[0]);
		adjacent<KIND>(row[1]);
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			REAL c[3][VECTOR]; // points of planes p - 1, p, q
			load_shared(c[0], at_below + r * ROW);
			load_shared(c[1], at_p + r * ROW);
			if (r + 2 <= ROWS) load_shared(row[r + 3 <= ROWS + 1 ? r + 3 : 0].c, in + row_at<KIND>(r + 2));
			adjacent<KIND>(row[r + 2]);
			REAL made[VECTOR];
#pragma unroll
			for (int v = 0; v < VECTOR; v++) {
				c[2][v] = row[r + 1].c[v];
				REAL sum[SUMS];
				plane_sums([&](int dx, int dy) { return row[r + 1 + dy].at(v + dx); }, sum);
				made[v] = combine([&](int which, int dz) {
					if (which == POINT) return c[1 + dz][v];
					return dz < 0 ? held.older[r][v][which] : dz == 0 ? held.newer[r][v][which] : sum[which];
				});
				if (keeps || ((KIND & SIDES) && fixed(r, v))) made[v] = c[1][v];
				if (!taking) continue;
#pragma unroll
				for (int i = 0; i < SUMS; i++) {
					held.older[r][v][i] = first ? sum[i] : held.newer[r][v][i];
					held.newer[r][v][i] = sum[i];
				}
			}
			if (LEVEL < DEPTH) store_shared(out + r * ROW, made);
			else if (!(KIND & ENDS) || (p >= part().run.z0 && p < part().run.z1)) store<KIND>(to, r, made);
			if (!taking) return; // never true: a compiler that moves later code up runs out of registers
		}
	}

	// sweeps computes a plane of each level above 0.
	template <int KIND, int LEVEL> __device__ __forceinline__ void sweeps(Level (&held)[DEPTH]) {
		if constexpr (LEVEL <= DEPTH) {
			sweep<KIND, LEVEL>(held[LEVEL - 1]);
			sweeps<KIND, LEVEL + 1>(held);
		}
	}

	// steps computes a plane of each level, for each plane of level 0 up to the last.
	template <int KIND> __device__ __forceinline__ void steps(Level (&held)[DEPTH], int last) {
#pragma unroll 1
		while (k <= last) {
			bits = opaque(bits), walls = opaque(walls), thread = opaque(thread);
			wait_async<LEAD - 1>();
			mbarrier_wait(ready(), bits >> 31);
			load<KIND>(k + LEAD);
			sweeps<KIND, 1>(held);
			__syncwarp();
			if (lane() < ARRIVALS) mbarrier_arrive(ready());
			bits ^= 1u << 31;
			k++;
		}
	}

	// look computes the bits of the thread.
	__device__ __forceinline__ void look(int x, int y) {
		const Part &p = part();
		bits &= 1u << 31, walls = 0;
		const auto side = [&](int at, int axis) { // the side behind which a point is the first ghost; -1: none
			return at == -1 && a.sides[2 * axis] != OPEN              ? a.sides[2 * axis]
			       : at == a.n[axis] && a.sides[2 * axis + 1] != OPEN ? a.sides[2 * axis + 1]
			                                                          : -1;
		};
		const auto within = [&](int at, int axis) { // whether a point may be read
			return at >= (a.sides[2 * axis] == OPEN ? -DEPTH : -1) &&
			       at < a.n[axis] + (a.sides[2 * axis + 1] == OPEN ? DEPTH : 1);
		};
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			if (y + r >= p.cut_y && y + r < p.end_y) bits |= 1u << r;
			if (within(y + r, 1)) bits |= 1u << 8 << r;
			if (side(y + r, 1) == FIXED) walls |= 1u << r;
		}
#pragma unroll
		for (int v = 0; v < VECTOR; v++) {
			if (x + v >= p.cut_x && x + v < p.end_x) bits |= 1u << 16 << v;
			if (within(x + v, 0)) bits |= 1u << 20; // a vector is read as a whole if a point may be read
			if (side(x + v, 0) == FIXED) walls |= 1u << 8 << v;
			if (side(x + v, 0) > FIXED) walls |= (x + v < 0 ? 1u << 12 : 1u << 16) << v;
		}
		if (a.sides[0] > FIXED || a.sides[1] > FIXED) walls |= 1u << 20;
	}

	// march computes the planes of the part.
	__device__ __forceinline__ void march() {
		const Part &p = part();
		const int x = p.x0 + (int)lane() * VECTOR, y = p.y0 + (int)warp() * ROWS, z0 = p.run.z0;
		look(x, y);
		k = a.sides[4] != OPEN ? max(z0 - DEPTH, -1) : z0 - DEPTH;
#pragma unroll 1
		for (int i = 0; i < LEAD; i++) load<SIDES>(k + i);
		Level held[DEPTH];
#pragma unroll
		for (int l = 0; l < DEPTH; l++)
#pragma unroll
			for (int r = 0; r < ROWS; r++)
#pragma unroll
				for (int v = 0; v < VECTOR; v++) {
#pragma unroll
					for (int i = 0; i < SUMS; i++) held[l].newer[r][v][i] = held[l].older[r][v][i] = 0;
				}
		const int begin = max(z0, 1) + 2 * DEPTH;
#pragma unroll 1
		while (k <= part().stop) {
			if (k < begin || k > part().steady || (!APART && !part().plain))
				steps<SIDES | ENDS>(held, k < begin ? min(begin - 1, part().stop) : part().stop);
			else if (part().plain) steps<0>(held, part().steady);
			else if (APART) steps<SIDES>(held, part().steady);
		}
	}
};

extern "C" __global__ void __launch_bounds__(32 * TEAM, 1) pass_sums(const __grid_constant__ Pass a) {
	grid_dependency_wait();
	March m{a};
	m.thread = threadIdx.x, m.bits = 1u << 31;
	if (threadIdx.x == 0) {
		part().run.place = 0;
		mbarrier_init(m.ready(), TEAM * ARRIVALS);
	}
#pragma unroll 1
	while (true) {
		__syncthreads();
		if (threadIdx.x == 0) next_part(a, part());
		__syncthreads();
		if (part().run.z1 == 0) return;
		m.march();
	}
}
