// Several steps of a linear stencil in one pass over memory: any shape, any boundary condition.
//
// A thread block stores the last level of a tile of columns for a range of layers (planes, or rows in two dimensions)
// and processes the layers in order. For each level except the last, a ring in shared memory holds the newest layers.
// Tiles of lower levels are wider by the points that the levels above read, so blocks do not wait for each other. Each
// level lags behind the previous one, so that one barrier per turn is enough for all levels.
//
// Grid: tiles of WIDE columns along x and, in three dimensions, HIGH along y; chunks of layers. Block: THREADS.
// Options: REAL; DEPTH; the radii RX, RY and, across layers, RL; WIDE; HIGH; TURN, layers per turn; ROWS per thread,
// which share loads; THREADS; MOVING, whether walls may move; those of pass_norms.cuh; and stencil.cuh.
#include "pass.cuh"
#include "pass_norms.cuh"

#ifndef DEPTH // for editors
enum { DEPTH = 2, RX = 1, RY = 1, RL = 1, WIDE = 32, HIGH = 16, TURN = 1, ROWS = 4, THREADS = 256 };
#endif

enum {
	ALONG = DIMS - 1, // the axis of layers
	LAG = TURN + RL,  // layers by which a level lags behind the previous one
	RING = 2 * (TURN + RL),
	EX = WIDE + 2 * DEPTH * RX,
	EY = DIMS == 3 ? HIGH + 2 * DEPTH * RY : 1,
	AREA = EX * EY,
	SHARED_BYTES = DEPTH * RING * AREA * (int)sizeof(REAL)
};

// The tile of a thread block.
struct Tile {
	const Pass &a;
	REAL *shared;
	int x0, y0, first, end; // first stored point and layer; end of the stored layers (exclusive)
	i64 apart;              // stride between layers

	__device__ __forceinline__ Tile(const Pass &a)
	    : a(a), shared((REAL *)dynamic_shared()), x0((int)blockIdx.x * WIDE),
	      y0(DIMS == 3 ? (int)blockIdx.y * HIGH : 0), first((int)blockIdx.z * a.chunk),
	      end(min(first + a.chunk, a.n[ALONG])), apart(DIMS == 3 ? a.plane : a.pitch) {}

	__device__ __forceinline__ int low() const { return a.sides[2 * ALONG]; }
	__device__ __forceinline__ int high() const { return a.sides[2 * ALONG + 1]; }

	// The range of layers that a level holds, including those behind walls that keep their values.
	__device__ __forceinline__ int lowest(int level) const {
		const int lo = first - (DEPTH - level) * RL;
		return low() == OPEN ? lo : max(lo, level < DEPTH && (low() == FIXED || low() == ODD) ? -RL : 0);
	}
	__device__ __forceinline__ int highest(int level) const {
		const int hi = end + (DEPTH - level) * RL, n = a.n[ALONG];
		return high() == OPEN ? hi : min(hi, n + (level < DEPTH && (high() == FIXED || high() == ODD) ? RL : 0));
	}

	// The ring slot of a layer of a level. The offset keeps it nonnegative, as few layers lie before the box.
	__device__ __forceinline__ REAL *layer(int level, int layer) const {
		return shared + (level * RING + (layer + RING * 64) % RING) * AREA;
	}

	__device__ __forceinline__ i64 offset(int x, int y, int layer) const {
		return (i64)x + (DIMS == 3 ? (i64)y * a.pitch : 0) + (i64)layer * apart;
	}

	// Whether a column is a point, or a ghost that the level has. Other columns must not be read and are not needed.
	__device__ __forceinline__ bool reached(int level, int x, int y) const {
		return held(level, x, 0, RX) && (DIMS == 2 || held(level, y, 1, RY));
	}
	__device__ __forceinline__ bool held(int level, int at, int axis, int radius) const {
		const int low = a.sides[2 * axis] == OPEN ? DEPTH - level : 1,
		          high = a.sides[2 * axis + 1] == OPEN ? DEPTH - level : 1;
		return at >= -low * radius && at < a.n[axis] + high * radius;
	}

	// Whether the tile stores the value of a column in a layer and includes it in the norms.
	__device__ __forceinline__ bool counts(int x, int y, int layer) const {
#ifdef NORMS
		return x >= max(x0, a.lo[0]) && x < min(x0 + WIDE, a.hi[0]) && layer >= max(first, a.lo[ALONG]) &&
		       layer < min(end, a.hi[ALONG]) && (DIMS == 2 || (y >= max(y0, a.lo[1]) && y < min(y0 + HIGH, a.hi[1])));
#else
		return false;
#endif
	}

	// Whether the tile reads no points behind a boundary along x or y.
	__device__ __forceinline__ bool inside() const {
		const bool along_x =
		    (a.sides[0] == OPEN || x0 >= DEPTH * RX) && (a.sides[1] == OPEN || x0 + WIDE + DEPTH * RX <= a.n[0]);
		return along_x && (DIMS == 2 || ((a.sides[2] == OPEN || y0 >= DEPTH * RY) &&
		                                 (a.sides[3] == OPEN || y0 + HIGH + DEPTH * RY <= a.n[1])));
	}
};

// A layer of a level, and the layers of the previous level that the stencil reads.
struct Layer {
	const REAL *around[2 * RL + 1];
	const REAL *face[2 * RL + 1]; // behind an odd side: the face layer; around is the layer inward of it
	bool odd[2 * RL + 1];
	bool behind; // whether the layer is behind a wall that keeps its values

	__device__ __forceinline__ Layer(const Tile &t, int level, int layer) {
		const int n = t.a.n[ALONG];
		behind = place(layer, n, t.low(), t.high()).fixed;
#pragma unroll
		for (int d = -RL; d <= RL; d++) {
			const Place p = place(layer + d, n, t.low(), t.high());
			const int inward = layer + d < 0 ? 1 : -1;
			odd[d + RL] = p.odd;
			face[d + RL] = t.layer(level - 1, p.at + inward);
			around[d + RL] = t.layer(level - 1, p.odd ? p.at + 2 * inward : p.at);
		}
	}

	// The value of the level in a column of the tile of level 0.
	__device__ __forceinline__ REAL value(int cx, int cy) const {
		return apply([&](int dx, int dy, int dz) {
			const int d = RL + (DIMS == 3 ? dz : dy), o = (DIMS == 3 ? (cy + dy) * EX : 0) + cx + dx;
			if (RL == 2 && odd[d]) return (REAL)2 * face[d][o] - around[d][o];
			return around[d][o];
		});
	}
};

// The value of a ghost that does not depend on other points: the value at level 0, unless it changes with time.
template <int LEVEL> __device__ __forceinline__ REAL kept(const Tile &t, int x, int y, int layer) {
	const Pass &a = t.a;
#ifdef MOVING
	const int at[3] = {x, DIMS == 3 ? y : layer, DIMS == 3 ? layer : 0};
	int side = 0, walls = 0; // the boundary that the ghost is behind, and their number
#pragma unroll
	for (int axis = 0; axis < DIMS; axis++) {
		const bool below = at[axis] < 0 && a.sides[2 * axis] != OPEN,
		           above = at[axis] >= a.n[axis] && a.sides[2 * axis + 1] != OPEN;
		if (below || above) side = 2 * axis + above, walls++;
	}
	const Wall &w = a.walls[side];
	if (walls == 1 && w.values)
		return w.values[(side < 2 ? at[1] : at[0]) + (side < 4 ? at[2] : at[1]) * w.width + (LEVEL - 1) * w.level];
#endif
	return a.from[t.offset(x, y, layer)];
}

// The value of a level in a column next to or behind a boundary.
template <int LEVEL>
__device__ __forceinline__ REAL value_at_wall(const Tile &t, const Layer &l, int cx, int cy, int x, int y, int layer) {
	const Pass &a = t.a;
	const Place px = place(x, a.n[0], a.sides[0], a.sides[1]);
	const Place py = DIMS == 3 ? place(y, a.n[1], a.sides[2], a.sides[3]) : Place{0, false, false};
	if (l.behind || px.fixed || py.fixed) return kept<LEVEL>(t, px.at, py.at, layer);
	const int sx = cx + px.at - x, sy = DIMS == 3 ? cy + py.at - y : 0;
	const int in_x = x < 0 ? 1 : -1, in_y = y < 0 ? 1 : -1;
	const auto along_x = [&](int at, int from_y) { // in one row of points
		if (!px.odd) return l.value(sx, at);
		return (REAL)2 * kept<LEVEL>(t, x + in_x, from_y, layer) - l.value(sx + 2 * in_x, at);
	};
	if (!py.odd) return along_x(sy, py.at);
	return (REAL)2 * kept<LEVEL>(t, px.at, y + in_y, layer) - along_x(sy + 2 * in_y, y + 2 * in_y);
}

// sweep computes the layers of a level in one turn.
template <int LEVEL> __device__ __forceinline__ void sweep(const Tile &t, int turn, bool inside, PassNorms &norms) {
	enum {
		LESS = DEPTH - LEVEL,
		W = WIDE + 2 * LESS * RX,
		H = DIMS == 3 ? HIGH + 2 * LESS * RY : 1,
		BEGIN_X = LEVEL * RX, // in the tile of level 0
		BEGIN_Y = DIMS == 3 ? LEVEL * RY : 0,
		STRIPS = (H + ROWS - 1) / ROWS
	};
	const int at = turn - LEVEL * LAG, lo = max(at, t.lowest(LEVEL)), hi = min(at + TURN, t.highest(LEVEL));
	for (int layer = lo; layer < hi; layer++) {
		const Layer l(t, LEVEL, layer);
		REAL *const to = t.layer(LEVEL % DEPTH, layer);
		for (int i = (int)threadIdx.x; i < W * STRIPS; i += THREADS) {
			const int cx = BEGIN_X + i % W, x = t.x0 - DEPTH * RX + cx;
#pragma unroll
			for (int row = 0; row < ROWS; row++) {
				const int cy = BEGIN_Y + i / W * ROWS + row, y = DIMS == 3 ? t.y0 - DEPTH * RY + cy : 0;
				if (DIMS == 3 && cy >= BEGIN_Y + H) continue;
				if ((!inside || l.behind) && !t.reached(LEVEL, x, y))
					continue; // layers behind walls are read from level 0
				if (LEVEL == DEPTH && (x >= t.a.n[0] || (DIMS == 3 && y >= t.a.n[1]))) continue;
				const REAL v = inside && !l.behind ? l.value(cx, cy) : value_at_wall<LEVEL>(t, l, cx, cy, x, y, layer);
				if (LEVEL == DEPTH) store_layer(t.a, layer, t.a.to + t.offset(x, y, layer), [&](REAL *at) { *at = v; });
				else to[(DIMS == 3 ? cy * EX : 0) + cx] = v;
				if (t.counts(x, y, layer)) norms.add<DEPTH - LEVEL>(v, l.around[RL][(DIMS == 3 ? cy * EX : 0) + cx]);
			}
		}
	}
}

// sweeps computes all levels above 0.
template <int LEVEL> struct Sweeps {
	static __device__ __forceinline__ void all(const Tile &t, int turn, bool inside, PassNorms &norms) {
		sweep<LEVEL>(t, turn, inside, norms);
		Sweeps<LEVEL + 1>::all(t, turn, inside, norms);
	}
};
template <> struct Sweeps<DEPTH + 1> {
	static __device__ __forceinline__ void all(const Tile &, int, bool, PassNorms &) {}
};

extern "C" __global__ void __launch_bounds__(THREADS, 1) pass(const __grid_constant__ Pass a) {
	grid_dependency_wait();
	const Tile t(a);
	const bool inside = t.inside();
	PassNorms norms;
#ifdef NORMS
	enum {
		MOST = (EX * ((EY + ROWS - 1) / ROWS) + THREADS - 1) / THREADS * ROWS * TURN, // points per thread and turn
		TURNS = RUNNING_TERMS / MOST
	};
	static_assert(TURNS > 0, "too many points for a sum");
	int turns = 0; // since norms were last settled
#endif
	enum { LOADS = (AREA * TURN + THREADS - 1) / THREADS };
	for (int turn = t.lowest(0); turn < t.end + DEPTH * LAG; turn += TURN) {
		REAL loaded[LOADS]; // level 0 of this turn, which the levels above read in later turns
#pragma unroll
		for (int k = 0; k < LOADS; k++) {
			const int i = k * THREADS + (int)threadIdx.x, layer = turn + i / AREA;
			const int x = t.x0 - DEPTH * RX + i % AREA % EX, y = DIMS == 3 ? t.y0 - DEPTH * RY + i % AREA / EX : 0;
			const bool there = i < AREA * TURN && layer < t.highest(0) && t.reached(0, x, y);
			loaded[k] = there ? a.from[t.offset(x, y, layer)] : (REAL)0;
		}
		Sweeps<1>::all(t, turn, inside, norms);
#pragma unroll
		for (int k = 0; k < LOADS; k++) {
			const int i = k * THREADS + (int)threadIdx.x;
			if (i < AREA * TURN) t.layer(0, turn + i / AREA)[i % AREA] = loaded[k];
		}
		__syncthreads();
#ifdef NORMS
		if (++turns == TURNS) norms.settle(a), turns = 0;
#endif
	}
#ifdef NORMS
	norms.settle(a);
#endif
}
