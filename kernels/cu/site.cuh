// A point function's view of a point and its results.
//
// accesses.cuh, which source.go of kernels/sweep generates for each point function, describes the accesses and contains
// the function:
//
//	DIMS                       2 or 3
//	GROUP                      points of a group
//	ARRAYS, CLASSES            how many arrays there are, and different strides
//	READS(X), WRITES(X)        X(0) X(1) ... for the read and written arrays
//	NORMS(X), REDUCTIONS(X)    the same for the norms and the reductions that are taken
//	along_x(c)                 distance of points along x in arrays with the strides c: 0 or 1
//	Read<k>                    see access.cuh
//	Written<k>                 T, ARRAY, CLASS; BEFORE, the read array that holds the field
//	                           before, -1 for none; NORM, which norms it adds to, -1 for none;
//	                           IN_PLACE, whether BEFORE is the array that is written
//	Norm<k>                    T
//	Reduced<k>                 OP
//	Parameters                 the numbers that a launch is given
//	point_function::call(p)    the function
//
// Like accesses.cuh and stream.cuh, this header has no include guard: a program with several stages includes them once
// per stage, each in a separate namespace.

#include "access.cuh"
#include "accesses.cuh"
#include "totals.cuh"

// A time step, counted from 1: steps have equal lengths, and the first begins at start.
struct Moment {
	i64 step;
	double start, length;

	__device__ __forceinline__ double time() const { return start + (double)(step - 1) * length; }
};

// The coordinates of points: index i is at (i + shift) * spacing.
struct Coordinates {
	double shift[3], spacing[3];
};

// The addresses of the arrays: for each array the address of point 0, 0, 0, which may be outside, and the strides of
// each class.
struct Arrays {
	u64 address[ARRAYS];
	Strides strides[CLASSES];
};

// The position of a group in all arrays: an offset for each class of strides, which takes the fewest registers, or for
// few arrays the addresses, which take the fewest instructions.
struct Cursor {
	const Arrays &arrays;
	Strides strides[CLASSES];
	i64 place[CLASSES];
#ifdef FEW_ARRAYS
#define POINTER(K) const typename Read<K>::T *read##K;
	READS(POINTER)
#undef POINTER
#define POINTER(K) typename Written<K>::T *written##K;
	WRITES(POINTER)
#undef POINTER
#endif

	__device__ __forceinline__ Cursor(const Arrays &arrays, const i64 (&place)[CLASSES]) : arrays(arrays) {
#pragma unroll
		for (int c = 0; c < CLASSES; c++) strides[c] = arrays.strides[c];
#pragma unroll
		for (int c = 0; c < CLASSES; c++) this->place[c] = place[c];
#ifdef FEW_ARRAYS
#define POINTER(K) read##K = at<Read<K>>();
		READS(POINTER)
#undef POINTER
#define POINTER(K) written##K = at<Written<K>>();
		WRITES(POINTER)
#undef POINTER
#endif
	}

#ifdef FEW_ARRAYS
#define POINTER(K) \
	__device__ __forceinline__ const typename Read<K>::T *of(const Read<K> *) const { return read##K; }
	READS(POINTER)
#undef POINTER
#define POINTER(K) \
	__device__ __forceinline__ typename Written<K>::T *of(const Written<K> *) const { return written##K; }
	WRITES(POINTER)
#undef POINTER
	template <typename A> __device__ __forceinline__ auto of() const { return of((const A *)0); }
#else
	template <typename A> __device__ __forceinline__ auto of() const { return at<A>(); }
#endif
	template <typename A> __device__ __forceinline__ i64 pitch() const { return strides[A::CLASS].pitch; }
	template <typename A> __device__ __forceinline__ i64 layer() const {
		return DIMS == 3 ? strides[A::CLASS].plane : strides[A::CLASS].pitch;
	}
	__device__ __forceinline__ void step(i64 layers) {
#ifdef FEW_ARRAYS
#define POINTER(K) read##K += layers * layer<Read<K>>();
		READS(POINTER)
#undef POINTER
#define POINTER(K) written##K += layers * layer<Written<K>>();
		WRITES(POINTER)
#undef POINTER
#else
#pragma unroll
		for (int c = 0; c < CLASSES; c++)
			place[c] += layers * (DIMS == 3 ? arrays.strides[c].plane : arrays.strides[c].pitch);
#endif
	}

  private:
	template <typename A> __device__ __forceinline__ typename A::T *at() const {
		return (typename A::T *)arrays.address[A::ARRAY] + place[A::CLASS];
	}
};

// The windows of all read arrays.
template <int N, int LAYERS> struct Windows {
#define MEMBER(K) \
	Window<Read<K>, N, LAYERS> read##K; \
	__device__ __forceinline__ const Window<Read<K>, N, LAYERS> &of(Constant<K>) const { return read##K; }
	READS(MEMBER)
#undef MEMBER

#define ARGUMENTS(K) c.of<Read<K>>(), c.pitch<Read<K>>(), c.layer<Read<K>>()
	__device__ __forceinline__ void fill(const Cursor &c) {
#define FILL(K) read##K.fill(ARGUMENTS(K));
		READS(FILL)
#undef FILL
	}
	__device__ __forceinline__ void next(int d, const Cursor &c) {
#define NEXT(K) read##K.next(d, ARGUMENTS(K));
		READS(NEXT)
#undef NEXT
	}
	__device__ __forceinline__ void all(int layers, const Cursor &c) {
#define ALL(K) read##K.all(layers, ARGUMENTS(K));
		READS(ALL)
#undef ALL
	}
#undef ARGUMENTS
	__device__ __forceinline__ void step() {
#define STEP(K) read##K.step();
		READS(STEP)
#undef STEP
	}
	// prefetch loads the group m layers behind the last one needed into the L2 cache.
	__device__ __forceinline__ void prefetch(int m, const Cursor &c) const {
#define PREFETCH(K) \
	if (Read<K>::low(-Read<K>::ROW_LOW, GROUP_PART) <= Read<K>::high(-Read<K>::ROW_LOW, GROUP_PART)) \
		prefetch_l2(c.of<Read<K>>() + (Read<K>::HIGH + m) * c.layer<Read<K>>());
		READS(PREFETCH)
#undef PREFETCH
	}
};

// The results of a point function at a group of points.
template <int N> struct Results {
#define WRITTEN(K) \
	Group<typename Written<K>::T, N> written##K; \
	__device__ __forceinline__ Group<typename Written<K>::T, N> &of(Constant<K>) { return written##K; }
	WRITES(WRITTEN)
#undef WRITTEN
#define REDUCED(K) \
	double reduced##K[N]; \
	__device__ __forceinline__ double &reduction(Constant<K>, int v) { return reduced##K[v]; }
	REDUCTIONS(REDUCED)
#undef REDUCED
};

// The norms and reductions of one thread at a few points, at most as many as RunningSum supports terms.
struct Totals {
#define NORM(K) \
	FieldNorms<typename Norm<K>::T> norm##K; \
	__device__ __forceinline__ FieldNorms<typename Norm<K>::T> &of(Constant<K>) { return norm##K; }
	NORMS(NORM)
#undef NORM
	void of(); // declares of even if there are no norms
	template <int K> __device__ __forceinline__ auto &norm() { return of(Constant<K>()); }
#define REDUCED(K) RunningReduction<Reduced<K>::OP> reduced##K;
	REDUCTIONS(REDUCED)
#undef REDUCED

	// add adds the values reduced at the points of a group that are inside.
	template <int N> __device__ __forceinline__ void add(const Results<N> &r, unsigned inside) {
#define ADD(K) \
	{ \
		double x[N]; \
		_Pragma("unroll") for (int v = 0; v < N; v++) x[v] = \
		    inside >> v & 1 ? r.reduced##K[v] : identity(Reduced<K>::OP); \
		reduced##K.add(x); \
	}
		REDUCTIONS(ADD)
#undef ADD
	}
};

// The same for many points.
struct BinnedTotals {
#define NORM(K) BinnedNorms norm##K;
	NORMS(NORM)
#undef NORM
#define REDUCED(K) BinnedReduction<Reduced<K>::OP> reduced##K;
	REDUCTIONS(REDUCED)
#undef REDUCED

	// take moves the values of another one here.
	__device__ __forceinline__ void take(Totals &t) {
#define NORM(K) norm##K.take(t.norm##K);
		NORMS(NORM)
#undef NORM
#define REDUCED(K) reduced##K.take(t.reduced##K);
		REDUCTIONS(REDUCED)
#undef REDUCED
	}
};

// reduce_block stores the results over all threads of a block.
__device__ __forceinline__ void reduce_block(const BinnedTotals &t, double *there) {
#define NORM(K) ::reduce_block(t.norm##K, (NormSum *)there), there += sizeof(NormSum) / 8;
	NORMS(NORM)
#undef NORM
#define REDUCED(K) ::reduce_block(t.reduced##K, there), there += words(Reduced<K>::OP);
	REDUCTIONS(REDUCED)
#undef REDUCED
}

// A point of a group's Windows, as passed to a point function.
template <int N, int LAYERS> struct Site {
	const Windows<N, LAYERS> &windows;
	Results<N> &results;
	const Coordinates &coordinates;
	const Moment &moment;
	const Parameters &parameters;
	int layer, v;
	i64 index[3]; // of the first point of the group

	// at returns the value of an access, or of one of its components, at an offset from the point. Offsets must be
	// constants of the footprint.
	template <int R, int W, int C>
	__device__ __forceinline__ auto at(Access<R, W, C>, int dx = 0, int dy = 0, int dz = 0) const {
		static_assert(R >= 0, "at() of an access that is only written");
		static_assert(C == 1, "at() of an access with several components: name one, as in at(f[2])");
		return windows.of(Constant<R>()).at(layer, v, dx, dy, dz);
	}
	template <int R, int W, int C>
	__device__ __forceinline__ auto at(Component<R, W, C> c, int dx = 0, int dy = 0, int dz = 0) const {
		static_assert(R >= 0, "at() of an access that is only written");
		return component<R, C>(c.q, dx, dy, dz);
	}

	// set sets the value of a written access, or of one of its components, at the point.
	template <int R, int W, int C, typename V> __device__ __forceinline__ void set(Access<R, W, C>, V value) {
		static_assert(W >= 0, "set() of an access that is only read");
		static_assert(C == 1, "set() of an access with several components: name one, as in set(f[2], value)");
		results.of(Constant<W>()).v[v] = value;
	}
	template <int R, int W, int C, typename V> __device__ __forceinline__ void set(Component<R, W, C> c, V value) {
		static_assert(W >= 0, "set() of an access that is only read");
		put<W, C>(c.q, value);
	}

	// reduce sets the value of a reduction at the point.
	template <int K> __device__ __forceinline__ void reduce(Reduction<K>, double value) {
		results.reduction(Constant<K>(), v) = value;
	}

	// The indices of the point in the global grid, from 0, and its coordinates.
	__device__ __forceinline__ i64 i() const { return index[0] + v; }
	__device__ __forceinline__ i64 j() const { return index[1]; }
	__device__ __forceinline__ i64 k() const { return index[2]; }
	__device__ __forceinline__ double x() const {
		return ((double)i() + coordinates.shift[0]) * coordinates.spacing[0];
	}
	__device__ __forceinline__ double y() const {
		return ((double)j() + coordinates.shift[1]) * coordinates.spacing[1];
	}
	__device__ __forceinline__ double z() const {
		return ((double)k() + coordinates.shift[2]) * coordinates.spacing[2];
	}

	// The number of the time step, its start time and its length.
	__device__ __forceinline__ i64 step() const { return moment.step; }
	__device__ __forceinline__ double time() const { return moment.time(); }
	__device__ __forceinline__ double length() const { return moment.length; }

  private:
	template <int R, int C> __device__ __forceinline__ auto component(int q, int dx, int dy, int dz) const {
		if constexpr (C == 1) {
			if (q != 0) component_outside_of_an_access();
			return windows.of(Constant<R>()).at(layer, v, dx, dy, dz);
		} else {
			// A window accepts only offsets of its footprint.
			if (q == 0) return windows.of(Constant<R>()).at(layer, v, dx, dy, dz);
			return component<R + 1, C - 1>(q - 1, dx, dy, dz);
		}
	}
	template <int W, int C, typename V> __device__ __forceinline__ void put(int q, V value) {
		if constexpr (C == 1) {
			if (q != 0) component_outside_of_an_access();
			results.of(Constant<W>()).v[v] = value;
		} else {
			if (q == 0) results.of(Constant<W>()).v[v] = value;
			else put<W + 1, C - 1>(q - 1, value);
		}
	}
};

// The input of sweeps other than the boxes. Kernels that run several steps use a different frame type with the same
// members.
struct Frame {
	Moment moment;
	Coordinates coordinates;
	Parameters parameters;
};

// The argument of launches: their frame or, with option FED, the address of the frames of several steps. Kernels that
// run one step use that of step 0.
#ifdef FED
struct Given {
	const char *first;
	i64 stride, mask;
};
static_assert(sizeof(Frame) == FRAME_BYTES && sizeof(Given) == 24, "frames.go lays them out");

__device__ __forceinline__ const Frame &frame_of(const Given &g, i64 step) {
	return *(const Frame *)(g.first + (step & g.mask) * g.stride);
}
#define FRAME_OF(GIVEN, STEP) frame_of(GIVEN, STEP)
#else
typedef Frame Given;
#define FRAME_OF(GIVEN, STEP) (GIVEN)
#endif

// put stores the points of a group that are inside, usually all of them as one word, and updates the norms of one
// array.
template <bool MEASURED, int N, typename T, typename Before, typename Found>
__device__ __forceinline__ void put(T *to, const Group<T, N> &out, unsigned all, Before before, Found *norms) {
	const unsigned inside = N == 1 ? all : opaque(all);
	const bool whole = inside == (1u << N) - 1;
	if (whole) *(Group<T, N> *)to = out;
	else
#pragma unroll
		for (int v = 0; v < N; v++)
			if (inside >> v & 1) to[v] = out.v[v];
	if constexpr (MEASURED) {
#ifdef FAST_SUMS
		// Selecting points takes as many instructions as summing them.
		if (whole)
#pragma unroll
			for (int v = 0; v < N; v++) norms->point(out.v[v], before(v));
		else
#pragma unroll
			for (int v = 0; v < N; v++)
				if (inside >> v & 1) norms->point(out.v[v], before(v));
#else
		T now[N], then[N];
#pragma unroll
		for (int v = 0; v < N; v++) {
			const bool in = inside >> v & 1;
			now[v] = in ? out.v[v] : T(), then[v] = in ? before(v) : T();
		}
		norms->points(now, then);
#endif
	}
}

// store stores the results for one array.
template <bool MEASURED, int K, int N, int LAYERS>
__device__ __forceinline__ void store(const Cursor &c, i64 d, const Windows<N, LAYERS> &w, int layer,
                                      const Results<N> &r, unsigned inside, Totals &totals) {
	typedef Written<K> W;
	typename W::T *to = c.of<W>() + d * c.layer<W>();
	const auto &out = const_cast<Results<N> &>(r).of(Constant<K>());
	if constexpr (MEASURED && W::NORM >= 0)
		put<true, N>(
		    to, out, inside, [&](int v) { return w.of(Constant<W::BEFORE>()).at(layer, v, 0, 0, 0); },
		    &totals.template norm<W::NORM>());
	else put<false, N>(to, out, inside, 0, (int *)0);
}

// initial returns the initial results of a group for an array: the current values if the array is read in place, else
// 0.
template <int K, int N, int LAYERS>
__device__ __forceinline__ void initial(const Windows<N, LAYERS> &w, int layer, int v, Results<N> &r) {
	typedef Written<K> W;
	if constexpr (W::IN_PLACE) r.of(Constant<K>()).v[v] = w.of(Constant<W::BEFORE>()).at(layer, v, 0, 0, 0);
	else r.of(Constant<K>()).v[v] = typename W::T();
}

// compute calls the point function for the group in a layer.
template <int N, int LAYERS, typename F>
__device__ __forceinline__ void compute(const F &f, const Windows<N, LAYERS> &w, int layer, const i64 *index,
                                        Results<N> &r) {
#pragma unroll
	for (int v = 0; v < N; v++) {
#define INITIAL(K) initial<K>(w, layer, v, r);
		WRITES(INITIAL)
#undef INITIAL
#define IDENTITY(K) r.reduced##K[v] = identity(Reduced<K>::OP);
		REDUCTIONS(IDENTITY)
#undef IDENTITY
		Site<N, LAYERS> p = {w, r, f.coordinates, f.moment, f.parameters, layer, v, {index[0], index[1], index[2]}};
		point_function::call(p);
	}
}

// finish computes the group in a layer, d layers behind the cursor, and stores it.
template <bool MEASURED, int N, int LAYERS, typename F>
__device__ __forceinline__ void finish(const F &f, const Cursor &c, i64 d, const Windows<N, LAYERS> &w, int layer,
                                       const i64 *index, unsigned inside, Totals &totals) {
	Results<N> r;
	compute(f, w, layer, index, r);
#define STORE(K) store<MEASURED, K>(c, d, w, layer, r, inside, totals);
	WRITES(STORE)
#undef STORE
	if constexpr (MEASURED) totals.add(r, inside);
}
