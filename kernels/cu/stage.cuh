// A stage in kernels that make time steps: its slabs, whose points go into ghosts too, and its interior.
//
// Build options, from accesses.cuh: STAGE_SINGLE, whether threads of the interior have one point in
// each layer; STAGE_LAYERS, how many layers they take where they do not stream; REFLECTS, whether points
// are reflected on their way into ghosts.
//
// This header has no guard, see site.cuh.

#include "slab.cuh"
#include "stream.cuh"

// How many arrays are written.
#define ONE_MORE(K) +1
enum { WRITE_COUNT = 0 WRITES(ONE_MORE) };
#undef ONE_MORE

// forward stores a value of one written array, which lies there, where else it goes.
template <int K>
__device__ __forceinline__ void forward(const Targets &to, int slab, const i64 *index,
                                        const typename Written<K>::T *there, typename Written<K>::T value) {
	typedef typename Written<K>::T T;
	const i64 at = (i64)slab * WRITE_COUNT + K, end = to.ends[at];
#pragma unroll 1
	for (i64 n = at == 0 ? 0 : to.ends[at - 1]; n < end; n++) {
		const Target &t = to.all[n];
		bool in = true;
#pragma unroll
		for (int a = 0; a < 3; a++) in = in && t.lo[a] <= index[a] && index[a] < t.hi[a];
		if (!in) continue;
		T v = value;
#ifdef REFLECTS
		for (int i = 0; i < 3 && t.odd[i] != 0; i++) v = (T)2 * there[t.odd[i]] - v;
#endif
		((T *)t.ghost)[index[0] + index[1] * t.strides.pitch + index[2] * t.strides.plane] = v;
	}
}

// sweep_slab sweeps the part of a slab that is a block's, a point a thread at a time.
template <bool MEASURED, typename F>
__device__ __forceinline__ void sweep_slab(const F &f, const Arrays &a, const Targets &to, const Slab &b, int slab,
                                           i64 block, Totals &totals) {
	const unsigned threads = blockDim.x * blockDim.y, nx = (unsigned)b.nx, ny = (unsigned)b.ny;
	const i64 points = b.nx * b.ny * b.nz, step = b.blocks * threads;
#pragma unroll 1
	for (i64 n = (block - b.first) * threads + thread_of_block(); n < points; n += step) {
		const i64 row = n / nx;
		const i64 index[3] = {b.lo[0] + (n - row * nx), b.lo[1] + row % ny, b.lo[2] + row / ny};
		i64 place[CLASSES];
#pragma unroll
		for (int k = 0; k < CLASSES; k++)
			place[k] = index[0] + index[1] * a.strides[k].pitch + index[2] * a.strides[k].plane;
		const Cursor c(a, place);
		Windows<1, 1> w;
		w.all(1, c);
		Results<1> r;
		compute(f, w, 0, index, r);
#define STORE(K) store<MEASURED, K>(c, 0, w, 0, r, 1u, totals);
		WRITES(STORE)
#undef STORE
#define FORWARD(K) forward<K>(to, slab, index, c.of<Written<K>>(), r.of(Constant<K>()).v[0]);
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
	return stream<N, 1, MEASURED>(f, a, interior, at, most);
#else
	return layers<N, STAGE_LAYERS, MEASURED>(f, a, interior, at);
#endif
}
