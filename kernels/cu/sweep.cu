// One application of a stencil to boxes of a field.
//
// Options: REAL; READ_ONLY.

#include "large.cuh"

struct Sweep {
	SweptFields fields;
	NormSum *norms;
	i64 layers; // of a thread
	SweepPart part[6];
};

// whole sweeps part[0], a large box.
template <int ROWS, bool NORMS> __device__ __forceinline__ NormPartial whole(const Sweep &s) {
	return large<ROWS, NORMS>(s.fields, s.part[0], grid_layer(), s.layers);
}

// flat sweeps small or thin boxes, a group of N points a thread. Blocks with blockIdx.y = b sweep box b.
template <int N, bool NORMS> __device__ __forceinline__ NormPartial flat(const Sweep &s) {
	const SweepPart &r = s.part[blockIdx.y];
	NormPartial norms = {0, 0, 0, 0};
	const REAL *__restrict__ src = s.fields.src;
	REAL *__restrict__ dst = s.fields.dst;
	const Strides &strides = s.fields.strides;
	const Region groups = {0, r.groups, r.ny, r.nz};
	const i64 count = r.groups * r.ny * r.nz;
	for (i64 n = thread_index(); n < count; n += thread_count()) {
		const Point g = point(groups, n);
		const i64 o = r.first + g.x * N + g.y * strides.pitch + g.z * strides.plane;
		Window<N, 2 * RADIUS + 1> w;
#pragma unroll
		for (int m = -RADIUS; m <= RADIUS; m++)
#pragma unroll
			for (int row = 0; row < 2 * ROW_RADIUS + 1; row++)
#pragma unroll
				for (int part = LEFT; part <= RIGHT; part++)
					if (m >= taps_low[row][part] && m <= taps_high[row][part])
						w.load(m + RADIUS, row, part,
						       src + o + m * s.fields.layer() + (row - ROW_RADIUS) * strides.pitch);
		sweep_group<NORMS>(dst + o, w, RADIUS, inside_of<N>(g.x * N - r.head, r.nx), norms);
	}
	return norms;
}

// The slot of the norms of a block of a large box, and of one of thin boxes.
__device__ inline i64 large_slot(const Sweep &s) {
	return s.part[0].slot + blockIdx.x + (i64)gridDim.x * (blockIdx.y + (i64)gridDim.y * blockIdx.z);
}

__device__ inline i64 flat_slot(const Sweep &s) { return s.part[blockIdx.y].slot + blockIdx.x; }

// Each sweep, and the same with norms. Launch bounds leave enough registers, and enough threads to hide the
// latency of memory. Those of large boxes are in sweep_form.go.

#ifdef STREAMS

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS)
    sweep_stream(const __grid_constant__ Sweep s) {
	grid_dependency_wait();
	whole<STREAM, false>(s);
}

extern "C" __global__ void __launch_bounds__(LARGE_NORMS_THREADS, LARGE_NORMS_BLOCKS)
    sweep_stream_norms(const __grid_constant__ Sweep s) {
	grid_dependency_wait();
	reduce_block(whole<STREAM, true>(s).total(), s.norms + large_slot(s));
}

#else

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS) sweep_rows2(const __grid_constant__ Sweep s) {
	grid_dependency_wait();
	whole<2, false>(s);
}

extern "C" __global__ void __launch_bounds__(LARGE_NORMS_THREADS, LARGE_NORMS_BLOCKS)
    sweep_rows2_norms(const __grid_constant__ Sweep s) {
	grid_dependency_wait();
	reduce_block(whole<2, true>(s).total(), s.norms + large_slot(s));
}

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS) sweep_rows4(const __grid_constant__ Sweep s) {
	grid_dependency_wait();
	whole<4, false>(s);
}

extern "C" __global__ void __launch_bounds__(LARGE_NORMS_THREADS, LARGE_NORMS_BLOCKS)
    sweep_rows4_norms(const __grid_constant__ Sweep s) {
	grid_dependency_wait();
	reduce_block(whole<4, true>(s).total(), s.norms + large_slot(s));
}

extern "C" __global__ void __launch_bounds__(LARGE_THREADS, LARGE_BLOCKS) sweep_rows8(const __grid_constant__ Sweep s) {
	grid_dependency_wait();
	whole<8, false>(s);
}

#endif

extern "C" __global__ void __launch_bounds__(256, 1) sweep_flat(const __grid_constant__ Sweep s) {
	grid_dependency_wait();
	flat<VEC, false>(s);
}

extern "C" __global__ void __launch_bounds__(256, 1) sweep_flat_norms(const __grid_constant__ Sweep s) {
	grid_dependency_wait();
	reduce_block(flat<VEC, true>(s).total(), s.norms + flat_slot(s));
}

extern "C" __global__ void __launch_bounds__(256, 1) sweep_points(const __grid_constant__ Sweep s) {
	grid_dependency_wait();
	flat<1, false>(s);
}

extern "C" __global__ void __launch_bounds__(256, 1) sweep_points_norms(const __grid_constant__ Sweep s) {
	grid_dependency_wait();
	reduce_block(flat<1, true>(s).total(), s.norms + flat_slot(s));
}
