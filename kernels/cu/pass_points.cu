// Several steps of a point function in one pass over memory, behind any walls: what pass.cu does for linear stencils.
//
// A field is an array of a variable that the function steps: it reads level 0 around points, and writes level +1. What it only
// reads is the same at each step, and is read from memory.
//
// A thread block stores the last level of a tile of columns, in some layers (planes; rows in two dimensions), and goes from layer to layer.
// Of each level but the last it holds the newest layers of all fields in rings in shared memory. A level follows the one before at a
// distance, so that one barrier a turn is enough for all levels. Blocks that meet a wall have another one, behind which they set
// ghosts of the levels, of each field by its own sides.
//
// levels.cuh, which points_source.go of kernels/temporal writes, has the fields and how the kernel is compiled:
//
//	FIELDS(X)                X(0) X(1) ... for the FIELD_COUNT fields
//	Field<f>                 T; FROM and TO, the arrays that are read and written; BEGIN, where its rings begin in shared memory, in bytes;
//	                         LOW and HIGH, how far it is read along x, y and layers, 4 bits each
//	Held<r>                  FIELD, the one that read array r is of; -1 for none
//	DEPTH                    levels
//	WIDE, HIGH               columns of a tile along x and, in three dimensions, along y
//	TURN                     layers a turn
//	ROWS                     that a thread computes before it stores them
//	THREADS, BLOCKS          launch bounds
//	LOW_X, HIGH_X, LOW_Y...  how far any field is read: along x, y and layers (L)
//	RING                     layers of a ring
//
// Grid: tiles along x, along y in three dimensions, chunks of layers. Block: THREADS.
#include "side.cuh"
#include "site.cuh"

#include "levels.cuh"

struct PointPass {
	Arrays arrays;
	i64 lo[3];                 // of the box, in the whole grid
	i64 n[3];                  // its points
	i64 chunk;                 // layers of a block
	int sides[FIELD_COUNT][6]; // of each field: x-, x+, y-, y+, z-, z+; all are open on the same ones
	Frame frame;               // of the first step
};
static_assert(sizeof(PointPass) == PASS_BYTES && sizeof(Frame) == FRAME_BYTES, "points_source.go lays them out");

enum {
	ALONG = DIMS - 1,    // the axis of layers
	LAG = TURN + HIGH_L, // layers that a level is behind the one before
	EX = WIDE + DEPTH * (LOW_X + HIGH_X),
	EY = DIMS == 3 ? HIGH + DEPTH * (LOW_Y + HIGH_Y) : 1,
	AREA = EX * EY,
	LEVEL_POINTS = RING * AREA
};

// How far a field is read along x, y and layers.
template <int F> __device__ constexpr int low(int axis) { return Field<F>::LOW >> 4 * axis & 15; }
template <int F> __device__ constexpr int high(int axis) { return Field<F>::HIGH >> 4 * axis & 15; }

// How many layers, rows or columns of a level are needed beyond a tile, and of ghosts beyond the box where it is open.
__device__ constexpr int below(int level, int axis) {
	return (DEPTH - level) * (axis == ALONG ? LOW_L : axis == 0 ? LOW_X : LOW_Y);
}
__device__ constexpr int above(int level, int axis) {
	return (DEPTH - level) * (axis == ALONG ? HIGH_L : axis == 0 ? HIGH_X : HIGH_Y);
}

// What a thread block knows of its tile. Places are counted from the first point of the box.
struct Tile {
	const PointPass &a;
	char *shared;
	int x0, y0, first, end; // what it stores begins at x0, y0 and the first layer, and ends before the end
	int n[3];

	__device__ __forceinline__ Tile(const PointPass &a)
	    : a(a), shared((char *)dynamic_shared()), x0((int)blockIdx.x * WIDE),
	      y0(DIMS == 3 ? (int)blockIdx.y * HIGH : 0), first((int)blockIdx.z * (int)a.chunk),
	      end((int)min((i64)first + a.chunk, a.n[ALONG])), n{(int)a.n[0], (int)a.n[1], (int)a.n[2]} {}

	__device__ __forceinline__ bool open(int side) const { return a.sides[0][side] == OPEN; }

	// The points of a level that are needed lie from here to there.
	__device__ __forceinline__ int begin(int level, int axis) const { return open(2 * axis) ? -below(level, axis) : 0; }
	__device__ __forceinline__ int finish(int level, int axis) const {
		return n[axis] + (open(2 * axis + 1) ? above(level, axis) : 0);
	}
	__device__ __forceinline__ int lowest(int level) const {
		return max(first - below(level, ALONG), begin(level, ALONG));
	}
	__device__ __forceinline__ int highest(int level) const {
		return min(end + above(level, ALONG), finish(level, ALONG));
	}

	// Where level 0 begins to be loaded, with ghosts.
	__device__ __forceinline__ int bottom() const {
		return open(2 * ALONG) ? lowest(0) : max(first - below(0, ALONG), -LOW_L);
	}

	// Whether a point of the box, or a ghost, is one that level 0 of a field has in memory.
	template <int F> __device__ __forceinline__ bool reached(int x, int y, int layer) const {
		return held<F>(0, x) && (DIMS == 2 || held<F>(1, y)) && held<F>(ALONG, layer);
	}
	template <int F> __device__ __forceinline__ bool held(int axis, int at) const {
		const int reach = axis == ALONG ? 2 : axis;
		return at >= (open(2 * axis) ? begin(0, axis) : -low<F>(reach)) &&
		       at < (open(2 * axis + 1) ? finish(0, axis) : n[axis] + high<F>(reach));
	}

	// Whether anything that the tile reads lies behind a wall.
	__device__ __forceinline__ bool at_wall() const {
		bool meets = meets_wall(0, x0, x0 + WIDE) || meets_wall(ALONG, first, end);
		if (DIMS == 3) meets = meets || meets_wall(1, y0, y0 + HIGH);
		return meets;
	}
	__device__ __forceinline__ bool meets_wall(int axis, int from, int to) const {
		return (!open(2 * axis) && from < below(0, axis)) || (!open(2 * axis + 1) && to + above(0, axis) > n[axis]);
	}

	// Where a layer lies in a ring; layers before the box are few.
	__device__ __forceinline__ int slot(int layer) const { return (layer + RING * 64) % RING * AREA; }

	// The rings of a field, from a level on.
	template <int F> __device__ __forceinline__ typename Field<F>::T *ring(int level) const {
		return (typename Field<F>::T *)(shared + Field<F>::BEGIN) + level * LEVEL_POINTS;
	}

	// A point as memory has it.
	template <typename A> __device__ __forceinline__ typename A::T *memory(int x, int y, int layer) const {
		const Strides &s = a.arrays.strides[A::CLASS];
		const i64 row = a.lo[1] + (DIMS == 3 ? y : layer), plane = a.lo[2] + (DIMS == 3 ? layer : 0);
		return (typename A::T *)a.arrays.address[A::ARRAY] + (a.lo[0] + x) + row * s.pitch + plane * s.plane;
	}
};

// A point of a level and what lies around it: fields at the level before, and what is only read.
struct Here {
	const Tile &tile;
	int around[LOW_L + HIGH_L + 1]; // of the layers from the lowest that is read: where they lie in a ring
	int column;                     // in the tile of level 0
	int x, y, layer;
};

template <int LEVEL, typename R, int F> struct Seen {
	const Here &h;

	__device__ __forceinline__ typename R::T at(int, int, int dx, int dy, int dz) const {
		if (!R::reads(dx, dy, dz)) R::outside();
		if constexpr (F >= 0) {
			const int layer = DIMS == 3 ? dz : dy, row = DIMS == 3 ? dy * EX : 0;
			return h.tile.template ring<F>(LEVEL - 1)[h.around[LOW_L + layer] + h.column + row + dx];
		} else {
			return __ldg(
			    h.tile.template memory<R>(h.x + dx, h.y + (DIMS == 3 ? dy : 0), h.layer + (DIMS == 3 ? dz : dy)));
		}
	}
};

template <int LEVEL> struct AllSeen {
	const Here &h;

	template <int K> __device__ __forceinline__ Seen<LEVEL, Read<K>, Held<K>::FIELD> of(Constant<K>) const {
		return {h};
	}
};

// Frame, of the step that makes a level.
struct LevelFrame {
	Moment moment;
	const Coordinates &coordinates;
	const Parameters &parameters;
};

// at_column has a point computed.
template <int LEVEL> __device__ __forceinline__ void at_column(const Here &h, Results<1> &r) {
	const Frame &f = h.tile.a.frame;
	const LevelFrame frame = {
	    {f.moment.step + (LEVEL - 1), f.moment.start, f.moment.length}, f.coordinates, f.parameters};
	const i64 *lo = h.tile.a.lo;
	const i64 index[3] = {lo[0] + h.x, lo[1] + (DIMS == 3 ? h.y : h.layer), lo[2] + (DIMS == 3 ? h.layer : 0)};
	compute(frame, AllSeen<LEVEL>{h}, 0, index, r);
}

// keep puts a point where the next level, or memory, has it.
template <int LEVEL> __device__ __forceinline__ void keep(const Here &h, int slot, Results<1> &r) {
	if constexpr (LEVEL == DEPTH) {
#define STORE(K) *h.tile.template memory<Written<K>>(h.x, h.y, h.layer) = r.of(Constant<K>()).v[0];
		WRITES(STORE)
#undef STORE
	} else {
#define STORE(F) h.tile.template ring<F>(LEVEL)[slot + h.column] = r.of(Constant<Field<F>::TO>()).v[0];
		FIELDS(STORE)
#undef STORE
	}
}

// sweep computes the layers of a level in a turn.
template <int LEVEL> __device__ __forceinline__ void sweep(const Tile &t, int turn) {
	enum {
		W = EX - LEVEL * (LOW_X + HIGH_X),
		H = DIMS == 3 ? EY - LEVEL * (LOW_Y + HIGH_Y) : 1,
		STRIPS = (H + ROWS - 1) / ROWS
	};
	const int at = turn - LEVEL * LAG, lo = max(at, t.lowest(LEVEL)), hi = min(at + TURN, t.highest(LEVEL));
	const int begin_x = t.begin(LEVEL, 0), end_x = t.finish(LEVEL, 0);
	const int begin_y = DIMS == 3 ? t.begin(LEVEL, 1) : 0, end_y = DIMS == 3 ? t.finish(LEVEL, 1) : 1;
#pragma unroll 1
	for (int layer = lo; layer < hi; layer++) {
		Here h = {t};
		h.layer = layer;
#pragma unroll
		for (int d = -LOW_L; d <= HIGH_L; d++) h.around[d + LOW_L] = t.slot(layer + d);
		const int slot = t.slot(layer);
#pragma unroll 1
		for (int i = (int)threadIdx.x; i < W * STRIPS; i += THREADS) {
			const int cx = LEVEL * LOW_X + i % W, row = i / W * ROWS;
			h.x = t.x0 - DEPTH * LOW_X + cx;
			if (h.x < begin_x || h.x >= end_x) continue;
			Results<1> r[ROWS];
			const auto each = [&](const auto &f) {
#pragma unroll
				for (int k = 0; k < ROWS; k++) {
					const int cy = DIMS == 3 ? LEVEL * LOW_Y + row + k : 0;
					h.y = DIMS == 3 ? t.y0 - DEPTH * LOW_Y + cy : 0;
					h.column = cy * EX + cx;
					if (row + k < H && h.y >= begin_y && h.y < end_y) f(r[k]);
				}
			};
			each([&](Results<1> &one) { at_column<LEVEL>(h, one); });
			each([&](Results<1> &one) { keep<LEVEL>(h, slot, one); });
		}
	}
}

// sweeps computes all levels from one on.
template <int LEVEL> struct Sweeps {
	static __device__ __forceinline__ void all(const Tile &t, int turn) {
		sweep<LEVEL>(t, turn);
		Sweeps<LEVEL + 1>::all(t, turn);
	}
};
template <> struct Sweeps<DEPTH + 1> {
	static __device__ __forceinline__ void all(const Tile &, int) {}
};

// ghost is the value of a field at a level in a ghost, which follows from points before walls that are held.
template <int F>
__device__ __forceinline__ typename Field<F>::T ghost(const Tile &t, int level, int x, int y, int layer) {
	typedef typename Field<F>::T T;
	typedef Read<Field<F>::FROM> Level0;
	const int *s = t.a.sides[F];
	const Place px = place(x, t.n[0], s[0], s[1]), pl = place(layer, t.n[ALONG], s[2 * ALONG], s[2 * ALONG + 1]);
	const Place py = DIMS == 3 ? place(y, t.n[1], s[2], s[3]) : Place{0, false, false};
	if (px.fixed || py.fixed || pl.fixed) return *t.template memory<Level0>(px.at, py.at, pl.at);
	const int in_x = x < 0 ? 1 : -1, in_y = y < 0 ? 1 : -1, in_l = layer < 0 ? 1 : -1;
	const T *ring = t.template ring<F>(level);
	const auto point = [&](int x, int y, int layer) {
		const int cx = x - t.x0 + DEPTH * LOW_X, cy = DIMS == 3 ? y - t.y0 + DEPTH * LOW_Y : 0;
		return ring[t.slot(layer) + cy * EX + cx];
	};
	const auto along_x = [&](int y, int layer) {
		if (!px.odd) return point(px.at, y, layer);
		return (T)((T)2 * *t.template memory<Level0>(x + in_x, y, layer) - point(x + 2 * in_x, y, layer));
	};
	const auto along_y = [&](int layer) {
		if (!py.odd) return along_x(py.at, layer);
		return (T)((T)2 * *t.template memory<Level0>(px.at, y + in_y, layer) - along_x(y + 2 * in_y, layer));
	};
	if (!pl.odd) return along_y(pl.at);
	return (T)((T)2 * *t.template memory<Level0>(px.at, py.at, layer + in_l) - along_y(layer + 2 * in_l));
}

// ghosts_of sets the ghosts of a field in a layer of a level, which may be one of ghosts.
template <int F> __device__ __forceinline__ void ghosts_of(const Tile &t, int level, int layer) {
	const int w = EX - level * (LOW_X + HIGH_X), h = DIMS == 3 ? EY - level * (LOW_Y + HIGH_Y) : 1;
	const bool behind = layer < t.begin(level, ALONG) || layer >= t.finish(level, ALONG);
	if (!t.template held<F>(ALONG, layer)) return;
#pragma unroll 1
	for (int i = (int)threadIdx.x; i < w * h; i += THREADS) {
		const int cx = level * LOW_X + i % w, cy = DIMS == 3 ? level * LOW_Y + i / w : 0;
		const int x = t.x0 - DEPTH * LOW_X + cx, y = DIMS == 3 ? t.y0 - DEPTH * LOW_Y + cy : 0;
		const bool beside = (x < 0 && !t.open(0)) || (x >= t.n[0] && !t.open(1)) ||
		                    (DIMS == 3 && ((y < 0 && !t.open(2)) || (y >= t.n[1] && !t.open(3))));
		if ((behind || beside) && t.template reached<F>(x, y, layer))
			t.template ring<F>(level)[t.slot(layer) + cy * EX + cx] = ghost<F>(t, level, x, y, layer);
	}
}

// ghosts sets those that follow from the layers of all levels in a turn.
__device__ __forceinline__ void ghosts(const Tile &t, int turn) {
#define GHOSTS(F) ghosts_of<F>(t, level, layer);
#pragma unroll 1
	for (int level = 1; level < DEPTH; level++) {
		const int at = turn - level * LAG, lo = max(at, t.lowest(level)), hi = min(at + TURN, t.highest(level));
#pragma unroll 1
		for (int of = lo; of < hi; of++) {
			// The layer itself, ghosts below that follow from it, and all ghosts behind the last layer.
			const bool last = of == t.n[ALONG] - 1;
			const int low = of < LOW_L && !t.open(2 * ALONG) ? (last ? LOW_L - of : 1) : 0;
			const int high = last && !t.open(2 * ALONG + 1) ? HIGH_L : 0;
#pragma unroll 1
			for (int k = 0; k <= low + high; k++) {
				const int layer = k == 0 ? of : k <= low ? -of - k : of + k - low;
				FIELDS(GHOSTS)
			}
		}
	}
#undef GHOSTS
}

// load begins to copy layers of level 0 of a field, which the levels above read in turns to come.
template <int F> __device__ __forceinline__ void load(const Tile &t, int turn) {
	typedef typename Field<F>::T T;
	typedef Read<Field<F>::FROM> Level0;
	T *const ring = t.template ring<F>(0);
#pragma unroll 1
	for (int layer = turn; layer < turn + TURN; layer++) {
		if (layer >= t.end + above(0, ALONG) || !t.template held<F>(ALONG, layer)) continue;
		T *const to = ring + t.slot(layer);
		for (int i = (int)threadIdx.x; i < AREA; i += THREADS) {
			const int x = t.x0 - DEPTH * LOW_X + i % EX, y = DIMS == 3 ? t.y0 - DEPTH * LOW_Y + i / EX : 0;
			if (!t.template reached<F>(x, y, layer)) continue;
			const T *from = t.template memory<Level0>(x, y, layer);
			if constexpr (sizeof(T) >= 4) copy_async<sizeof(T)>(shared_address(to + i), from);
			else to[i] = *from;
		}
	}
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) pass_points(const __grid_constant__ PointPass a) {
	grid_dependency_wait();
	const Tile t(a);
	const bool at_wall = t.at_wall();
#pragma unroll 1
	for (int turn = t.bottom(); turn < t.end + DEPTH * LAG; turn += TURN) {
#define LOAD(F) load<F>(t, turn);
		FIELDS(LOAD)
#undef LOAD
		commit_async();
		Sweeps<1>::all(t, turn);
		if (at_wall) {
			__syncthreads();
			ghosts(t, turn);
		}
		wait_async<0>();
		__syncthreads();
	}
}
