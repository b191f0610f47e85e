// The boundary region of a stage, whose points kernels also store into the ghosts of neighbors.
#pragma once

#include "common.cuh"
#include "flags.cuh"
#include "neighbor.cuh"

// The additional destination of the points of a box of one written array: ghosts of this GPU or another. Boxes use
// global indices, like the swept points.
struct Target {
	int lo[3], hi[3];
	u64 ghost; // address there of point 0, 0, 0, which may be outside
	Strides strides;
	i64 odd[3]; // offsets from a point to the values it is reflected about, or FIRST_AFFINE + the address of an
	            // Affine, applied in order; 0: none
};

const i64 FIRST_AFFINE = (i64)1 << 62;

// A value v becomes factor * v + weight * g, where g is an array's value for the point of v.
struct Affine {
	double factor, weight;
	u64 given;   // address of the value for point 0, 0, 0, which may be outside
	i64 factors; // distance from a value to the factor of its point; 0: factor
	Strides strides;
};

// A box of the boundary region, of fewer than 2^31 points, and the consecutive blocks that sweep it.
struct Slab {
	int lo[3], size[3];
	unsigned first, blocks;
	u64 neighbors; // bits of the neighbors that it waits for and signals

	__device__ unsigned points() const { return (unsigned)size[0] * (unsigned)size[1] * (unsigned)size[2]; }

	// The number of a thread within the slab, and the number of threads.
	__device__ unsigned number(unsigned block) const {
		return (block - first) * (blockDim.x * blockDim.y) + threadIdx.x + blockDim.x * threadIdx.y;
	}
	__device__ unsigned threads() const { return blocks * blockDim.x * blockDim.y; }
};

enum { MAX_SLABS = 6, MAX_NEIGHBORS = 26 };

// The slabs of a stage.
struct Boundary {
	i64 blocks, slabs;          // number of blocks of all slabs, which are the first of the grid
	int core_lo[3], core_hi[3]; // points of the interior in this box have no other destination
	Slab slab[MAX_SLABS];

	// in_core reports whether a point lies in the core.
	__device__ bool in_core(const int (&p)[3]) const {
		bool in = true;
#pragma unroll
		for (int a = 0; a < 3; a++) in = in && core_lo[a] <= p[a] && p[a] < core_hi[a];
		return in;
	}

	// slab_of returns the slab of a block, given its index among those of slabs.
	__device__ unsigned slab_of(unsigned block) const {
		unsigned i = 0;
		while (i + 1 < slabs && slab[i + 1].first <= block) i++;
		return i;
	}
};

__device__ inline unsigned thread_of_block() { return threadIdx.x + blockDim.x * threadIdx.y; }
__device__ inline unsigned block_of_grid() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }
