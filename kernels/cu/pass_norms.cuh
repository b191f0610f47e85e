// The norms of the last steps of a pass, over a box of points within the stored box. Tiles overlap: for each level, a
// thread block counts only the points that it stores at the last level.
//
// Option: NORMS, the number of steps with norms.
#pragma once

#include "pass.cuh"

#ifdef NORMS

// The norms of a thread since it last settled them, of at most RUNNING_TERMS points. The last step comes first.
struct PassNorms {
	FieldNorms<REAL> of[NORMS];
	bool settled = false;

	// add adds a point of the step that is BEFORE steps before the last.
	template <int BEFORE> __device__ __forceinline__ void add(REAL now, REAL before) {
		if constexpr (BEFORE < NORMS) of[BEFORE].point(now, before);
	}

	// points adds points of the last step.
	template <int N> __device__ __forceinline__ void points(const REAL (&now)[N], const REAL (&before)[N]) {
		of[0].points(now, before);
	}

	// settle adds the norms of all threads of the block to those of the block in memory.
	__device__ __forceinline__ void settle(const Pass &a) {
		__shared__ NormSum found;
		const i64 block = blockIdx.x + (i64)gridDim.x * (blockIdx.y + (i64)gridDim.y * blockIdx.z);
#pragma unroll
		for (int n = 0; n < NORMS; n++) {
			BinnedNorms all;
			all.take(of[n]);
			reduce_block(all, &found);
			__syncthreads();
			if (threadIdx.x == 0) {
				NormSum *const to = a.norms[n] + block;
				if (settled) found.join(*to);
				*to = found;
			}
			__syncthreads();
		}
		settled = true;
	}
};

#else

struct PassNorms {
	template <int> __device__ __forceinline__ void add(REAL, REAL) {}
};

#endif
