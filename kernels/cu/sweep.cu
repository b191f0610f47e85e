// One application of a stencil to boxes of a subdomain, see window.cuh. Build options: REAL.

#include "window.cuh"

struct Sweep {
	Ends ends;
	Four *norms;
	i64 march; // layers a thread marches through
	Part part[6];
};

// whole sweeps part[0], a large box.
template <int ROWS, bool NORMS> __device__ __forceinline__ Found whole(const Sweep &s) {
	return large<ROWS, NORMS>(s.ends, s.part[0], slab_of_block(), s.march);
}

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
#pragma unroll
			for (int row = 0; row < 2 * SIDE + 1; row++)
#pragma unroll
				for (int part = LEFT; part <= RIGHT; part++)
					if (m >= taps_low[row][part] && m <= taps_high[row][part])
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

// A sweep and the same sweep with norms. Launch bounds, threads and blocks, let the compiler give
// them registers enough and not more than leave room for the threads that hide the latency of
// memory. Those of large boxes are in sweep_form.go.

#ifdef MARCHES

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS) sweep_march(const __grid_constant__ Sweep s) {
	after_predecessor();
	whole<MARCH, false>(s);
}

extern "C" __global__ void __launch_bounds__(LARGE_NORMS_THREADS, LARGE_NORMS_BLOCKS)
    sweep_march_norms(const __grid_constant__ Sweep s) {
	after_predecessor();
	over_block(whole<MARCH, true>(s).four(), s.norms + large_slot(s));
}

#else

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS) sweep_rows2(const __grid_constant__ Sweep s) {
	after_predecessor();
	whole<2, false>(s);
}

extern "C" __global__ void __launch_bounds__(LARGE_NORMS_THREADS, LARGE_NORMS_BLOCKS)
    sweep_rows2_norms(const __grid_constant__ Sweep s) {
	after_predecessor();
	over_block(whole<2, true>(s).four(), s.norms + large_slot(s));
}

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS) sweep_rows4(const __grid_constant__ Sweep s) {
	after_predecessor();
	whole<4, false>(s);
}

extern "C" __global__ void __launch_bounds__(LARGE_NORMS_THREADS, LARGE_NORMS_BLOCKS)
    sweep_rows4_norms(const __grid_constant__ Sweep s) {
	after_predecessor();
	over_block(whole<4, true>(s).four(), s.norms + large_slot(s));
}

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS) sweep_rows8(const __grid_constant__ Sweep s) {
	after_predecessor();
	whole<8, false>(s);
}

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS)
    sweep_rows8_norms(const __grid_constant__ Sweep s) {
	after_predecessor();
	over_block(whole<8, true>(s).four(), s.norms + large_slot(s));
}

#endif

extern "C" __global__ void __launch_bounds__(256, 1) sweep_flat(const __grid_constant__ Sweep s) {
	after_predecessor();
	flat<VEC, false>(s);
}

extern "C" __global__ void __launch_bounds__(256, 1) sweep_flat_norms(const __grid_constant__ Sweep s) {
	after_predecessor();
	over_block(flat<VEC, true>(s).four(), s.norms + flat_slot(s));
}

extern "C" __global__ void __launch_bounds__(256, 1) sweep_points(const __grid_constant__ Sweep s) {
	after_predecessor();
	flat<1, false>(s);
}

extern "C" __global__ void __launch_bounds__(256, 1) sweep_points_norms(const __grid_constant__ Sweep s) {
	after_predecessor();
	over_block(flat<1, true>(s).four(), s.norms + flat_slot(s));
}
