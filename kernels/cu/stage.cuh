// A stage in kernels that run time steps: its slabs, whose points are also stored into ghosts, and its interior.
//
// Build options, from accesses.cuh: STAGE_SINGLE, whether threads of the interior have one point in each layer;
// STAGE_LAYERS and STAGE_MEASURED_LAYERS, layers per thread if threads do not stream, without totals and with them;
// TARGETS, the number of targets in a launch's argument; STAGE_PREFETCH, how many layers threads that stream load at
// once; REFLECTS, whether points change on their way into ghosts; AFFINES, whether some do by an Affine; INNER_STORES,
// whether points of the interior are also stored into ghosts of this GPU.
//
// This header has no guard, see site.cuh.

#include "slab.cuh"
#include "stream.cuh"

// The number of written arrays.
#define ONE_MORE(K) +1
enum { WRITE_COUNT = 0 WRITES(ONE_MORE) };
#undef ONE_MORE

// The destinations of the points of slabs, followed by those of the interior. For each slab and written array there is
// a list; each list starts at an index of the targets and ends at the start of the next. A few targets are in the
// argument of a launch, where loads take no time.
struct Targets {
#if TARGETS > 0
	Target all[TARGETS];
	unsigned lists[MAX_SLABS * WRITE_COUNT + 2]; // one spare element, to fill 8 bytes
#else
	const Target *all;
	const unsigned *lists;
#endif
};

// The targets of one slab.
#if TARGETS > 0
struct SlabTargets {
	const Targets &to;
	unsigned first; // index of the slab's first list

	__device__ SlabTargets(const Targets &to, unsigned slab) : to(to), first(slab * WRITE_COUNT) {}
	__device__ unsigned begin(int k) const { return to.lists[first + k]; }
	__device__ unsigned end(int k) const { return to.lists[first + k + 1]; }
	__device__ const Target &target(unsigned n) const { return to.all[n]; }
};
#else
// A block copies the targets of its slab into shared memory, if there are not too many.
struct SlabTargets {
	const Target *all;
	const unsigned *lists;

	// All threads of the block must call it.
	__device__ SlabTargets(const Targets &to, unsigned slab) {
		enum { NEAR = 64 };
		__shared__ Target near[NEAR];
		__shared__ unsigned places[WRITE_COUNT + 1];
		const unsigned *from = to.lists + slab * WRITE_COUNT;
		const unsigned first = from[0], count = from[WRITE_COUNT] - first, me = thread_of_block();
		const unsigned threads = blockDim.x * blockDim.y;
		__syncthreads(); // threads that created it for another stage have read the data to be overwritten
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

// reflected returns a target's value for the point at, given the address of its value.
template <typename T> __device__ __forceinline__ T reflected(const Target &t, const int *at, const T *there, T v) {
	for (int i = 0; i < 3 && t.odd[i] != 0; i++) {
#ifdef AFFINES
		if (t.odd[i] >= FIRST_AFFINE) {
			const Affine &a = *(const Affine *)(t.odd[i] - FIRST_AFFINE);
			const T *g = (const T *)a.given + at[0] + at[1] * a.strides.pitch + at[2] * a.strides.plane;
			const T factor = a.factors != 0 ? g[a.factors] : (T)a.factor;
			v = factor * v + (T)a.weight * *g;
			continue;
		}
#endif
		v = (T)2 * there[t.odd[i]] - v;
	}
	return v;
}

// forward_to stores a value of one written array, given its address, at a point of a target.
template <int K>
__device__ __forceinline__ void forward_to(const Target &t, const int *at, const typename Written<K>::T *there,
                                           typename Written<K>::T v) {
	typedef typename Written<K>::T T;
#ifdef REFLECTS
	v = reflected(t, at, there, v);
#endif
	((T *)t.ghost)[at[0] + at[1] * t.strides.pitch + at[2] * t.strides.plane] = v;
}

// forward stores a value of one written array, given its address, to its additional destinations.
template <int K, typename To>
__device__ __forceinline__ void forward(const To &to, const int *at, const typename Written<K>::T *there,
                                        typename Written<K>::T value) {
#pragma unroll 1
	for (unsigned n = to.begin(K); n < to.end(K); n++) {
		const Target &t = to.target(n);
		bool in = true;
#pragma unroll
		for (int a = 0; a < 3; a++) in = in && t.lo[a] <= at[a] && at[a] < t.hi[a];
		if (in) forward_to<K>(t, at, there, value);
	}
}

// sweep_slab sweeps a block's part of a slab, with one point per thread at a time, and adds the results to all.
// arrays() returns the addresses of the arrays. Its loop looks up the slab again for each point, which saves registers.
template <bool MEASURED, typename F, typename A>
__device__ __forceinline__ void sweep_slab(const F &f, const A &arrays, const Targets &to, const Boundary &b,
                                           unsigned slab, unsigned block, BinnedTotals &all) {
	const SlabTargets targets(to, slab);
	Totals totals;
	unsigned points = 0;
#pragma unroll 1
	for (unsigned n = b.slab[slab].number(block); n < b.slab[opaque(slab)].points();
	     n += b.slab[opaque(slab)].threads()) {
		const Arrays &a = arrays();
		const Slab &s = b.slab[opaque(slab)];
		const unsigned nx = (unsigned)s.size[0], ny = (unsigned)s.size[1], row = n / nx, layer = row / ny;
		const int at[3] = {s.lo[0] + (int)(n - row * nx), s.lo[1] + (int)(row - layer * ny), s.lo[2] + (int)layer};
		i64 place[CLASSES];
#pragma unroll
		for (int k = 0; k < CLASSES; k++)
			place[k] = at[0] * along_x(k) + at[1] * a.strides[k].pitch + at[2] * a.strides[k].plane;
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
		if constexpr (MEASURED) {
			totals.add(r, 1u);
			if (++points % RUNNING_TERMS == 0) all.take(totals);
		}
	}
	if constexpr (MEASURED) all.take(totals);
}

#ifdef INNER_STORES

// For each written array: its index, its class, and the bytes per element.
#define ARRAY_OF(K) Written<K>::ARRAY,
#define CLASS_OF(K) Written<K>::CLASS,
#define BYTES_OF(K) (int)sizeof(typename Written<K>::T),
__constant__ const int written_array[] = {WRITES(ARRAY_OF)}, written_class[] = {WRITES(CLASS_OF)},
                       written_bytes[] = {WRITES(BYTES_OF)};
#undef ARRAY_OF
#undef CLASS_OF
#undef BYTES_OF

// forward_element stores the value of an element to a target.
__device__ __forceinline__ void forward_element(u64 to, u64 from, int bytes, const Target &t, const int *at) {
#ifdef REFLECTS
	if (t.odd[0] != 0) {
		if (bytes == 8) *(double *)to = reflected(t, at, (const double *)from, *(const double *)from);
		else *(float *)to = reflected(t, at, (const float *)from, *(const float *)from);
		return;
	}
#endif
	switch (bytes) {
	case 8: *(u64 *)to = *(const u64 *)from; break;
	case 4: *(unsigned *)to = *(const unsigned *)from; break;
	case 2: *(unsigned short *)to = *(const unsigned short *)from; break;
	default: *(unsigned char *)to = *(const unsigned char *)from;
	}
}

// forward_point stores all written values of a point of the interior to their additional destinations: ghosts of the
// same arrays.
__device__ __forceinline__ void forward_point(const Arrays &a, const Targets &to, const unsigned *lists,
                                              const int (&p)[3]) {
	int written = 0;
#pragma unroll 1
	for (unsigned n = lists[0]; n < lists[WRITE_COUNT]; n++) {
		const Target &t = to.all[n];
		bool in = true;
#pragma unroll
		for (int k = 0; k < 3; k++) in = in && t.lo[k] <= p[k] && p[k] < t.hi[k];
		if (!in) continue;
		while (n >= lists[written + 1]) written++;
		const Strides &s = a.strides[CLASSES == 1 ? 0 : written_class[written]];
		const i64 offset = written_bytes[written] * (p[0] + p[1] * s.pitch + p[2] * s.plane);
		forward_element(t.ghost + offset, a.address[written_array[written]] + offset, written_bytes[written], t, p);
	}
}

// forward_inner stores the points of a column that are also ghosts of this GPU, those outside of the core, after the
// column has been swept. Few columns have such points, and values held for them would cost all columns registers. For
// the same reason where() recomputes the position of the column.
template <int N, typename Where>
__device__ __forceinline__ void forward_inner(const Arrays &a, const Targets &to, const Boundary &b,
                                              const Part &interior, const Where &where, i64 most) {
	const Column<N> c(interior, where(), most);
	if (c.layers == 0) return;
	const int first[3] = {(int)c.index[0], (int)c.index[1], (int)c.index[2]};
	const int last[3] = {first[0] + N - 1, first[1] + (DIMS == 3 ? c.rows : c.layers) - 1,
	                     first[2] + (DIMS == 3 ? c.layers - 1 : 0)};
	if (b.in_core(first) && b.in_core(last)) return;
	const unsigned *lists = to.lists + (unsigned)b.slabs * WRITE_COUNT;
#pragma unroll 1
	for (int layer = 0; layer < c.layers; layer++)
#pragma unroll 1
		for (int n = 0; n < c.rows * N; n++) {
			const int p[3] = {first[0] + n % N, first[1] + (DIMS == 3 ? n / N : layer),
			                  first[2] + (DIMS == 3 ? layer : 0)};
			if (c.inside >> n % N & 1 && !b.in_core(p)) forward_point(a, to, lists, p);
		}
}

#endif

// sweep_interior sweeps a column of groups like the kernels of point.cu.
template <bool MEASURED, typename F, typename Where>
__device__ __forceinline__ Totals sweep_interior(const F &f, const Arrays &a, const Targets &to, const Boundary &b,
                                                 const Part &interior, const Where &where, i64 most) {
	enum { N = STAGE_SINGLE ? 1 : GROUP };
#ifdef STREAMS
	const Totals totals = stream<N, STAGE_PREFETCH, MEASURED>(f, a, interior, where(), most);
#else
	enum { LAYERS = MEASURED ? STAGE_MEASURED_LAYERS : STAGE_LAYERS };
	const Totals totals = layers<N, LAYERS, MEASURED>(f, a, interior, where());
#endif
#ifdef INNER_STORES
#ifdef STREAMS
	forward_inner<N>(a, to, b, interior, where, most);
#else
	forward_inner<N>(a, to, b, interior, where, LAYERS);
#endif
#endif
	return totals;
}
