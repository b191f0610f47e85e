// One sweep of a point function over boxes of a subdomain, see site.cuh and stream.cuh.

#include "stream.cuh"

enum { MAX_PARTS = 6 };

struct Sweep {
	Arrays arrays;
	double *totals; // of sweeps with measures: TOTALS numbers per block
	i64 layers;     // per thread that streams
	Part part[MAX_PARTS];
	Given given;
};
static_assert(sizeof(Sweep) == SWEEP_BYTES && sizeof(Frame) == FRAME_BYTES, "source.go lays them out");

// small sweeps several small or thin boxes in one launch, with a group of N points per thread. The blocks with
// blockIdx.y = b sweep box b.
template <int N, bool MEASURED> __device__ __forceinline__ Totals small(const Sweep &s) {
	const Part &r = s.part[blockIdx.y];
	const Frame &f = FRAME_OF(s.given, 0);
	Totals totals;
	const Region groups = {0, r.groups, r.ny, r.nz};
	const i64 count = r.groups * r.ny * r.nz;
	for (i64 n = thread_index(); n < count; n += thread_count()) {
		const Point g = point(groups, n);
		const i64 index[3] = {r.lo[0] + g.x * N, r.lo[1] + g.y, r.lo[2] + g.z};
		i64 place[CLASSES];
#pragma unroll
		for (int k = 0; k < CLASSES; k++)
			place[k] =
			    r.first[k] + g.x * N * along_x(k) + g.y * s.arrays.strides[k].pitch + g.z * s.arrays.strides[k].plane;
		const Cursor c(s.arrays, place);
		Windows<N, 1> w;
		w.all(1, c);
		finish<MEASURED>(f, c, 0, w, 0, index, inside_of<N>(g.x * N - r.head, r.nx), totals);
	}
	return totals;
}

// streamed and layered sweep part[0], a large box, with a group of N points per thread in each layer.
template <int N, bool MEASURED> __device__ __forceinline__ Totals streamed(const Sweep &s) {
	return stream<N, 1, MEASURED>(FRAME_OF(s.given, 0), s.arrays, s.part[0], place_of_thread(grid_layer(), s.layers),
	                              s.layers);
}

template <int N, int COUNT, bool MEASURED> __device__ __forceinline__ Totals layered(const Sweep &s) {
	return layers<N, COUNT, MEASURED>(FRAME_OF(s.given, 0), s.arrays, s.part[0], place_of_thread(grid_layer(), COUNT));
}

// put_large and put_small write the results of the blocks of a large box and of small boxes.
__device__ __forceinline__ void put_large(const Sweep &s, Totals t) {
	BinnedTotals all;
	all.take(t);
	reduce_block(all, s.totals + TOTALS * (s.part[0].slot + blockIdx.x +
	                                       (i64)gridDim.x * (blockIdx.y + (i64)gridDim.y * blockIdx.z)));
}

__device__ __forceinline__ void put_small(const Sweep &s, Totals t) {
	BinnedTotals all;
	all.take(t);
	reduce_block(all, s.totals + TOTALS * (s.part[blockIdx.y].slot + blockIdx.x));
}

// Launch bounds let the compiler use enough registers per thread, but leave enough threads to hide the latency of
// memory. Those of large boxes, LARGE_THREADS, LARGE_BLOCKS and so on, are in form.go. If registers are scarce, small
// boxes are also swept by single points.
enum {
	SMALL_THREADS = 256,
	SMALL_BLOCKS = 1,
	POINTS_THREADS = 256,
#ifdef SCARCE
	POINTS_BLOCKS = 2
#else
	POINTS_BLOCKS = 1
#endif
};

// KERNEL defines the kernel NAME with the launch bounds BOUNDS_THREADS and BOUNDS_BLOCKS, which runs a statement on s.
// MEASURED_KERNEL does the same for NAME_measured, if there is something to measure.
#define KERNEL(NAME, BOUNDS, RUN) \
	extern "C" __global__ void __launch_bounds__(BOUNDS##_THREADS, BOUNDS##_BLOCKS) \
	    NAME(const __grid_constant__ Sweep s) { \
		grid_dependency_wait(); \
		RUN; \
	}
#if TOTALS > 0
#define MEASURED_KERNEL(NAME, BOUNDS, RUN) KERNEL(NAME##_measured, BOUNDS, RUN)
#else
#define MEASURED_KERNEL(NAME, BOUNDS, RUN)
#endif

// Kernels named single have one point per thread in each layer: for groups that are not aligned, or if registers are
// scarce.
#ifdef STREAMS
KERNEL(sweep_stream, LARGE, (streamed<GROUP, false>(s)))
MEASURED_KERNEL(sweep_stream, MEASURED, (put_large(s, streamed<GROUP, true>(s))))
#ifndef LAYERED
KERNEL(sweep_single_stream, SINGLE, (streamed<1, false>(s)))
MEASURED_KERNEL(sweep_single_stream, SINGLE_MEASURED, (put_large(s, streamed<1, true>(s))))
#endif
#endif

#ifdef LAYERS_2
KERNEL(sweep_layers2, LARGE, (layered<GROUP, 2, false>(s)))
MEASURED_KERNEL(sweep_layers2, MEASURED, (put_large(s, layered<GROUP, 2, true>(s))))
#endif

#ifdef LAYERS_4
KERNEL(sweep_layers4, LARGE, (layered<GROUP, 4, false>(s)))
KERNEL(sweep_single_layers4, SINGLE, (layered<1, 4, false>(s)))
MEASURED_KERNEL(sweep_layers4, MEASURED, (put_large(s, layered<GROUP, 4, true>(s))))
MEASURED_KERNEL(sweep_single_layers4, SINGLE, (put_large(s, layered<1, 4, true>(s))))
#endif

#ifdef LAYERS_8
KERNEL(sweep_layers8, LARGE, (layered<GROUP, 8, false>(s)))
#endif

#ifdef ONE_LAYER
KERNEL(sweep_layers1, LARGE, (layered<GROUP, 1, false>(s)))
KERNEL(sweep_single_layers1, SINGLE, (layered<1, 1, false>(s)))
MEASURED_KERNEL(sweep_layers1, MEASURED, (put_large(s, layered<GROUP, 1, true>(s))))
MEASURED_KERNEL(sweep_single_layers1, SINGLE_MEASURED, (put_large(s, layered<1, 1, true>(s))))
#endif

KERNEL(sweep_small, SMALL, (small<GROUP, false>(s)))
KERNEL(sweep_points, POINTS, (small<1, false>(s)))
MEASURED_KERNEL(sweep_small, SMALL, (put_small(s, small<GROUP, true>(s))))
MEASURED_KERNEL(sweep_points, POINTS, (put_small(s, small<1, true>(s))))

#if TOTALS > 0

// Totals over the blocks' results: combined in some blocks if there are many, and then in one.
struct Joined {
	const double *from;
	double *to;
	i64 slots; // number of values of each kind in from
};

// For each norm and reduction: the operation, and its position among the numbers of a slot.
__device__ constexpr Operation operations[] = {OPERATIONS};
__device__ constexpr int places[] = {SLOT_PLACES};

// totals combines operation blockIdx.y of all slots; each block combines a part of them.
extern "C" __global__ void __launch_bounds__(256, 4) totals(const __grid_constant__ Joined a) {
	grid_dependency_wait();
	const Operation op = operations[blockIdx.y];
	const int place = places[blockIdx.y];
	double *to = a.to + blockIdx.x * TOTALS + place;
	if (op == SUM) {
		__shared__ StoredSum sums[256];
		StoredSum sum = StoredSum::none();
		for (i64 n = thread_index(); n < a.slots; n += thread_count())
			sum.join(*(const StoredSum *)(a.from + n * TOTALS + place));
		reduce_block(sum, sums, threadIdx.x, blockDim.x, (StoredSum *)to);
		return;
	}
	double value = identity(op);
	for (i64 n = thread_index(); n < a.slots; n += thread_count()) value = join(op, value, a.from[n * TOTALS + place]);
	reduce_block(op, value, to);
}

#endif
