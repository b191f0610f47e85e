// One application of a stencil to boxes of a subdomain, see window.cuh. Build options: REAL.

#include "window.cuh"

struct Sweep {
	Ends ends;
	Four *norms;
	i64 march; // layers a thread marches through
	Part part[6];
};

// whole sweeps part[0], a large box.
#ifdef MARCHES

template <bool NORMS> __device__ __forceinline__ Found whole(const Sweep &s) {
	return large<NORMS>(s.ends, s.part[0], slab_of_block(), s.march);
}

#else

template <int ROWS, bool NORMS> __device__ __forceinline__ Found whole(const Sweep &s) {
	return large<ROWS, NORMS>(s.ends, s.part[0], slab_of_block());
}

#endif

// flat sweeps several small or thin boxes in one launch, a group of N points a thread:
// box b is the work of the blocks with blockIdx.y = b.
template <int N, bool NORMS> __device__ __forceinline__ Found flat(const Sweep &s) {
	const Part &r = s.part[blockIdx.y];
	Found norms = {0, 0, 0, 0};
	const REAL *__restrict__ src = s.ends.src;
	REAL *__restrict__ dst = s.ends.dst;
	const Strides &strides = s.ends.strides;
	const Region groups = {0, r.groups, r.ny, r.nz};
	const i64 count = r.groups * r.ny * r.nz;
	for (i64 n = thread_index(); n < count; n += thread_count()) {
		const Point g = point(groups, n);
		const i64 o = r.first + g.x * N + g.y * strides.pitch + g.z * strides.plane;
		Window<N, 2 * REACH + 1> w;
#pragma unroll
		for (int m = -REACH; m <= REACH; m++)
			EACH_PART if (m >= taps_low[row][part] && m <= taps_high[row][part])
			    w.load(m + REACH, row, part, src + o + m * s.ends.layer() + (row - SIDE) * strides.pitch);
		finish<NORMS>(dst + o, w, REACH, inside_of<N>(g.x * N - r.head, r.nx), norms);
	}
	return norms;
}

// large_slot is the slot of a block of a large box, flat_slot of one of thin boxes.
__device__ inline i64 large_slot(const Sweep &s) {
	return s.part[0].slot + blockIdx.x + (i64)gridDim.x * (blockIdx.y + (i64)gridDim.y * blockIdx.z);
}

__device__ inline i64 flat_slot(const Sweep &s) { return s.part[blockIdx.y].slot + blockIdx.x; }

// KERNELS are a sweep and the same sweep with norms. PLAIN and WITH are their launch
// bounds, threads and blocks, that let the compiler give them registers enough and not
// more than leave room for the threads that hide the latency of memory. Those of large
// boxes are in sweep_form.go.
#define KERNELS(NAME, PLAIN, WITH, SLOT, ...) \
	extern "C" __global__ void __launch_bounds__ PLAIN NAME(const __grid_constant__ Sweep s) { \
		after_predecessor(); \
		__VA_ARGS__ false > (s); \
	} \
	extern "C" __global__ void __launch_bounds__ WITH NAME##_norms(const __grid_constant__ Sweep s) { \
		after_predecessor(); \
		over_block(__VA_ARGS__ true > (s).four(), s.norms + SLOT(s)); \
	}

#ifdef MARCHES
KERNELS(sweep_march, LARGE_BOUNDS, LARGE_NORMS_BOUNDS, large_slot, whole <)
#else
KERNELS(sweep_rows2, LARGE_BOUNDS, LARGE_NORMS_BOUNDS, large_slot, whole < 2, )
KERNELS(sweep_rows4, LARGE_BOUNDS, LARGE_NORMS_BOUNDS, large_slot, whole < 4, )
KERNELS(sweep_rows8, LARGE_BOUNDS, LARGE_BOUNDS, large_slot, whole < 8, )
#endif
KERNELS(sweep_flat, (256, 1), (256, 1), flat_slot, flat < VEC, )
KERNELS(sweep_points, (256, 1), (256, 1), flat_slot, flat < 1, )
