// Time steps by device ranks: thread blocks, each of which owns a tile of its GPU's subdomain and runs all steps of a
// launch there. A point is also stored into each of its ghosts, on a neighbor's GPU or on this one. Then the rank
// notifies its partners: the ranks that read its stores, and those whose stores it reads. It stores through the
// pointers of windows, one value per thread, so that faces need not be read again to be put.
//
// Why that is safe. Being partners is mutual. Step n reads levels up to n and stores level n + 1 over the oldest level,
// which steps after n - 1 read only at the point itself. A rank starts step n once it has a notification of step n - 1
// from each partner.
//  - The data that it reads has arrived: a partner or the rank itself stored it in step n - 1 or before. A partner
//    notifies after a barrier of its block, with release order, and the rank waits with acquire order.
//  - The data that it overwrites is not needed: each reader, of the point or of a ghost, is a partner, and has read it
//    in step n - 1 or before.
// So a rank is at most one step ahead of a partner: it cannot end step n + 1 before the partner has ended step n. But
// it may notify of step n before another partner has notified of step n - 1. Notifications of even and of odd steps
// have separate tags, so that they cannot be confused; those of step n + 1 arrive only after the rank itself has ended
// step n, and so has consumed all of step n - 1. At the start of a launch all data has arrived.
//
// accesses.cuh describes the point function, see site.cuh. Build options: RANK_THREADS, per block; RANK_BLOCKS, per
// multiprocessor; RANK_LAYERS, the maximum number of layers that a thread loads before it computes; RANK_STEPS_BYTES,
// the size of struct RankSteps in Go.

#define ALL_READ_ONLY false // ghosts and arrays are written while the kernel runs

#include "faults.cuh"
#include "ranks.cuh"
#include "swept.cuh"

#ifndef RANK_THREADS
#define RANK_THREADS 512
#define RANK_BLOCKS 1
#define RANK_LAYERS 1
#define RANK_STEPS_BYTES sizeof(RankSteps)
#endif

// The tile of a rank. An empty tile has no partners. A thread sweeps columns of groups in some layers, which are rows
// in two dimensions.
struct Tile {
	int lo[3], size[3];
	int grouped;                      // whether its rows consist of whole, aligned groups
	int layers;                       // of a column, up to RANK_LAYERS
	int stride[3];                    // the threads of a block, counted in columns along x, y and the layers
	unsigned first_partner, partners; // index of the first one in the list of this GPU, and their number
};
static_assert(sizeof(Tile) == 52, "ranks.go lays it out");

// Data that the ranks of a GPU share, in its memory.
struct RankSteps {
	Arrays arrays[PHASES];
	const Target *targets[PHASES];
	const unsigned *lists[PHASES]; // for each tile and written array: the start of its targets; last, the end
	const Tile *tiles;
	const int *partners; // ranks of the world
	Given given;
};
static_assert(sizeof(RankSteps) == RANK_STEPS_BYTES, "ranks.go lays it out");

// The data of a launch. Steps are counted as in Moment.
struct RankSpan {
	const RankSteps *steps;
	i64 step, count;
	double start, length;
};

// Data that a rank keeps in shared memory for each step.
struct RankTile {
	enum { NEAR = PHASES <= 4 ? 24 : 96 / PHASES + 1, PARTNERS = 64 };
	Tile tile;
	int partners[PARTNERS]; // used if it has at most this many
	Arrays arrays[PHASES];
	Given given;
	unsigned lists[PHASES][WRITE_COUNT + 1];
	Target near[PHASES][NEAR];
};

// The targets of a tile in a phase, in the form that forward needs.
struct TileTargets {
	const Target *all;
	const unsigned *lists;

	__device__ __forceinline__ unsigned begin(int k) const { return lists[k]; }
	__device__ __forceinline__ unsigned end(int k) const { return lists[k + 1]; }
	__device__ __forceinline__ const Target &target(unsigned n) const { return all[n]; }
};

// copy_words copies a struct of 4-byte words, using the threads of a block.
__device__ inline void copy_words_of_block(void *to, const void *from, unsigned bytes) {
	for (unsigned i = threadIdx.x; i < bytes / 4; i += blockDim.x) ((unsigned *)to)[i] = ((const unsigned *)from)[i];
}

// hold copies the data that a rank needs of its tile.
__device__ inline void hold(RankTile &h, const RankSteps &s, unsigned tile) {
	copy_words_of_block(&h.tile, s.tiles + tile, sizeof(Tile));
	const Tile &its = s.tiles[tile];
	if (its.partners <= RankTile::PARTNERS)
		copy_words_of_block(h.partners, s.partners + its.first_partner, its.partners * sizeof(int));
	copy_words_of_block(h.arrays, s.arrays, sizeof h.arrays);
	copy_words_of_block(&h.given, &s.given, sizeof(Given));
	for (int phase = 0; phase < PHASES; phase++) {
		const unsigned *const lists = s.lists[phase] + tile * WRITE_COUNT;
		const unsigned first = lists[0], count = lists[WRITE_COUNT] - first;
		for (unsigned i = threadIdx.x; i <= WRITE_COUNT; i += blockDim.x) h.lists[phase][i] = lists[i] - first;
		if (count <= RankTile::NEAR)
			copy_words_of_block(h.near[phase], s.targets[phase] + first, count * sizeof(Target));
	}
	__syncthreads();
}

// targets_of returns the targets of a tile: in shared memory if they are few.
__device__ __forceinline__ TileTargets targets_of(const RankTile &h, const RankSteps &s, unsigned tile, int phase) {
	if (h.lists[phase][WRITE_COUNT] <= RankTile::NEAR) return {h.near[phase], h.lists[phase]};
	return {s.targets[phase] + s.lists[phase][tile * WRITE_COUNT], h.lists[phase]};
}

// The axis of layers.
enum { DEPTH = DIMS - 1 };

// A column of groups of N points of a tile.
template <int N> struct TileColumn {
	int at[3]; // its first point
	int layers;
	Cursor c;

	__device__ __forceinline__ TileColumn(const Arrays &a, const Tile &tile, int x, int y, int first)
	    : at{tile.lo[0] + x * N, tile.lo[1] + (DIMS == 3 ? y : first), tile.lo[2] + (DIMS == 3 ? first : 0)},
	      layers(RANK_LAYERS == 1 ? 1 : min(tile.layers, tile.size[DEPTH] - first)), c(cursor(a, at)) {}

  private:
	static __device__ __forceinline__ Cursor cursor(const Arrays &a, const int (&at)[3]) {
		i64 place[CLASSES];
#pragma unroll
		for (int k = 0; k < CLASSES; k++)
			place[k] = at[0] * along_x(k) + at[1] * a.strides[k].pitch + at[2] * a.strides[k].plane;
		return Cursor(a, place);
	}
};

// forward_column stores the additional destinations of the points of a column, which have been stored in place.
template <int K, int N> __device__ __forceinline__ void forward_column(const TileTargets &to, const TileColumn<N> &o) {
	const typename Written<K>::T *const there = o.c.template of<Written<K>>();
#pragma unroll 1
	for (unsigned n = to.begin(K); n < to.end(K); n++) {
		const Target &t = to.target(n);
		bool meets = true;
#pragma unroll
		for (int a = 0; a < 3; a++) {
			const int size = a == 0 ? N : a == DEPTH ? o.layers : 1;
			meets = meets && t.lo[a] < o.at[a] + size && o.at[a] < t.hi[a];
		}
		if (!meets) continue;
		const int first = max(0, t.lo[DEPTH] - o.at[DEPTH]), end = min(o.layers, t.hi[DEPTH] - o.at[DEPTH]);
#pragma unroll 1
		for (int l = first; l < end; l++)
#pragma unroll
			for (int v = 0; v < N; v++) {
				const int p[3] = {o.at[0] + v, o.at[1] + (DIMS == 3 ? 0 : l), o.at[2] + (DIMS == 3 ? l : 0)};
				if (t.lo[0] > p[0] || p[0] >= t.hi[0]) continue;
				const auto *const from = there + v + l * o.c.template layer<Written<K>>();
				forward_to<K>(t, p, from, *from);
			}
	}
}

// sweep_tile sweeps a tile in columns of groups of N points. begin is the thread's first column.
template <int N>
__device__ __forceinline__ void sweep_tile(const StepFrame &f, const Arrays &a, const TileTargets &to, const Tile &tile,
                                           const int (&begin)[3]) {
	int x = begin[0], y = begin[1], first = begin[2] * tile.layers;
	Totals totals; // not used
	const bool forwards = to.end(WRITE_COUNT - 1) > 0;
#pragma unroll 1
	while (first < tile.size[DEPTH]) {
		{
			const TileColumn<N> o(a, tile, x, y, first);
			Windows<N, RANK_LAYERS> w;
			w.all(o.layers, o.c);
			i64 index[3] = {o.at[0], o.at[1], o.at[2]};
#pragma unroll
			for (int l = 0; l < RANK_LAYERS; l++) {
				if (l >= o.layers) break;
				finish<false>(f, o.c, l, w, l, index, (1u << N) - 1, totals);
				index[DEPTH]++;
			}
		}
		if (forwards) { // recomputed: values held for this would cost all sweeps registers
			const TileColumn<N> o(a, tile, opaque(x), y, first);
#define FORWARD(K) forward_column<K, N>(to, o);
			WRITES(FORWARD)
#undef FORWARD
		}
		x += tile.stride[0], y += tile.stride[1], first += tile.stride[2] * tile.layers;
		if (x >= tile.size[0] / N) x -= tile.size[0] / N, y++;
		if (DIMS == 2) first += y * tile.layers, y = 0;
		else if (y >= tile.size[1]) y -= tile.size[1], first += tile.layers;
	}
}

// rank_steps runs the steps of a launch.
extern "C" __global__ void __launch_bounds__(RANK_THREADS, RANK_BLOCKS)
    rank_steps(const __grid_constant__ ranks::World world) {
	grid_dependency_wait();
	__shared__ ranks::State state;
	__shared__ RankTile held;
	ranks::Rank rank(world, state);
	const RankSpan span = rank.data<RankSpan>();
	const unsigned me = blockIdx.x;
	hold(held, *span.steps, me);
	const Tile &tile = held.tile;
	const int group = tile.grouped ? GROUP : 1, nx = max(1, tile.size[0] / group),
	          ny = DIMS == 3 ? max(1, tile.size[1]) : 1;
	const int begin[3] = {(int)threadIdx.x % nx, (int)threadIdx.x / nx % ny, (int)threadIdx.x / nx / ny};
	const int *const partners =
	    tile.partners <= RankTile::PARTNERS ? held.partners : span.steps->partners + tile.first_partner;
#pragma unroll 1
	for (i64 n = 0; n < span.count; n++) {
		inject_fault((unsigned)n);
		if (n > 0 && !rank.wait_notifications((int)((n - 1) % 2), tile.partners)) break;
		const Moment moment = {span.step + n, span.start, span.length};
		const Frame &its = FRAME_OF(held.given, moment.step);
		const StepFrame f = {moment, its.coordinates, its.parameters};
		const int phase = (int)(moment.step % PHASES);
		const TileTargets to = targets_of(held, *span.steps, me, phase);
		if (tile.size[0] == 0) continue;
		if (tile.grouped) sweep_tile<GROUP>(f, held.arrays[phase], to, tile, begin);
		else sweep_tile<1>(f, held.arrays[phase], to, tile, begin);
		if (n + 1 == span.count) break;
		__syncthreads();
		for (unsigned i = threadIdx.x; i < tile.partners; i += blockDim.x)
			rank.notify<ranks::Thread>(partners[i], ranks::WORLD, (int)(n % 2));
	}
	rank.finish();
}
