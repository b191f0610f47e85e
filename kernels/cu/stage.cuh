// A stage in kernels that make time steps: its slabs, whose points go into ghosts too, and its interior.
//
// Build options, from accesses.cuh: STAGE_SINGLE, whether threads of the interior have one point in
// each layer; STAGE_LAYERS and STAGE_MEASURED_LAYERS, how many layers they take where they do not stream,
// without totals and with; TARGETS, how many a launch's argument has room for; STAGE_PREFETCH, how many layers threads that stream load at once; REFLECTS, whether points are reflected on their way into ghosts.
//
// This header has no guard, see site.cuh.

#include "slab.cuh"
#include "stream.cuh"

// How many arrays are written.
#define ONE_MORE(K) +1
enum { WRITE_COUNT = 0 WRITES(ONE_MORE) };
#undef ONE_MORE

// Where the points of slabs go: for each slab and written array in turn a list, which begins at a place
// among all targets and ends where the next begins. Few targets lie in the argument of a launch, where
// loads take no time.
struct Targets {
#if TARGETS > 0
	Target all[TARGETS];
	unsigned lists[MAX_SLABS * WRITE_COUNT + 2]; // one more than there are, to fill 8 bytes
#else
	const Target *all;
	const unsigned *lists;
#endif
};

// The targets of one slab.
#if TARGETS > 0
struct SlabTargets {
	const Targets &to;
	unsigned first; // of the slab's lists

	__device__ SlabTargets(const Targets &to, unsigned slab) : to(to), first(slab * WRITE_COUNT) {}
	__device__ unsigned begin(int k) const { return to.lists[first + k]; }
	__device__ unsigned end(int k) const { return to.lists[first + k + 1]; }
	__device__ const Target &target(unsigned n) const { return to.all[n]; }
};
#else
// A block copies those of its slab into shared memory, if these are not too many.
struct SlabTargets {
	const Target *all;
	const unsigned *lists;

	// All threads of the block make it.
	__device__ SlabTargets(const Targets &to, unsigned slab) {
		enum { NEAR = 64 };
		__shared__ Target near[NEAR];
		__shared__ unsigned places[WRITE_COUNT + 1];
		const unsigned *from = to.lists + slab * WRITE_COUNT;
		const unsigned first = from[0], count = from[WRITE_COUNT] - first, me = thread_of_block();
		const unsigned threads = blockDim.x * blockDim.y;
		__syncthreads(); // who made it for another stage has read what is overwritten
		for (unsigned i = me; i <= WRITE_COUNT; i += threads) places[i] = from[i] - first;
		all = to.all + first, lists = places;
		if (count <= NEAR) {
			const u64 *words = (const u64 *)all;
			for (unsigned i = me; i < count * (sizeof(Target) / 8); i += threads) ((u64 *)near)[i] = words[i];
			all = near;
		}
		__syncthreads();
	}
	__device__ unsigned begin(int k) const { return lists[k]; }
	__device__ unsigned end(int k) const { return lists[k + 1]; }
	__device__ const Target &target(unsigned n) const { return all[n]; }
};
#endif

// forward stores a value of one written array, which lies there, where else it goes.
template <int K>
__device__ __forceinline__ void forward(const SlabTargets &to, const int *at, const typename Written<K>::T *there,
                                        typename Written<K>::T value) {
	typedef typename Written<K>::T T;
#pragma unroll 1
	for (unsigned n = to.begin(K); n < to.end(K); n++) {
		const Target &t = to.target(n);
		bool in = true;
#pragma unroll
		for (int a = 0; a < 3; a++) in = in && t.lo[a] <= at[a] && at[a] < t.hi[a];
		if (!in) continue;
		T v = value;
#ifdef REFLECTS
		for (int i = 0; i < 3 && t.odd[i] != 0; i++) v = (T)2 * there[t.odd[i]] - v;
#endif
		((T *)t.ghost)[at[0] + at[1] * t.strides.pitch + at[2] * t.strides.plane] = v;
	}
}

// sweep_slab sweeps the part of a slab that is a block's, a point a thread at a time. arrays() says where the
// arrays lie. Its loop looks the slab up again for each point, which saves registers.
template <bool MEASURED, typename F, typename A>
__device__ __forceinline__ void sweep_slab(const F &f, const A &arrays, const Targets &to, const Boundary &b,
                                           unsigned slab, unsigned block, Totals &totals) {
	const SlabTargets targets(to, slab);
#pragma unroll 1
	for (unsigned n = b.slab[slab].number(block); n < b.slab[opaque(slab)].points();
	     n += b.slab[opaque(slab)].threads()) {
		const Arrays &a = arrays();
		const Slab &s = b.slab[opaque(slab)];
		const unsigned nx = (unsigned)s.size[0], ny = (unsigned)s.size[1], row = n / nx, layer = row / ny;
		const int at[3] = {s.lo[0] + (int)(n - row * nx), s.lo[1] + (int)(row - layer * ny), s.lo[2] + (int)layer};
		i64 place[CLASSES];
#pragma unroll
		for (int k = 0; k < CLASSES; k++) place[k] = at[0] + at[1] * a.strides[k].pitch + at[2] * a.strides[k].plane;
		const Cursor c(a, place);
		Windows<1, 1> w;
		w.all(1, c);
		Results<1> r;
		const i64 index[3] = {at[0], at[1], at[2]};
		compute(f, w, 0, index, r);
#define STORE(K) store<MEASURED, K>(c, 0, w, 0, r, 1u, totals);
		WRITES(STORE)
#undef STORE
#define FORWARD(K) forward<K>(targets, at, c.of<Written<K>>(), r.of(Constant<K>()).v[0]);
		WRITES(FORWARD)
#undef FORWARD
		if constexpr (MEASURED) totals.add(r, 0);
	}
}

// sweep_interior sweeps a column of groups as the kernels of point.cu do.
template <bool MEASURED, typename F>
__device__ __forceinline__ Totals sweep_interior(const F &f, const Arrays &a, const Part &interior, const Place &at,
                                                 i64 most) {
	enum { N = STAGE_SINGLE ? 1 : GROUP };
#ifdef STREAMS
	return stream<N, STAGE_PREFETCH, MEASURED>(f, a, interior, at, most);
#else
	return layers<N, MEASURED ? STAGE_MEASURED_LAYERS : STAGE_LAYERS, MEASURED>(f, a, interior, at);
#endif
}
