// The boundary region of a stage, whose points kernels store into the ghosts of neighbours too.
#pragma once

#include "common.cuh"
#include "flags.cuh"
#include "neighbour.cuh"

// Where the points of a box of one written array go beside their own place: into ghosts, of this GPU
// or another. Boxes are of indices in the whole grid, as the points that are swept have them.
struct Target {
	int lo[3], hi[3];
	u64 ghost; // address that the point of index 0, 0, 0 has there, or would have
	Strides strides;
	i64 odd[3]; // offsets from a point to the values that it is reflected about, or FIRST_SCALE + its scale, in turn;
	            // 0: none
};

// Numbers from here on stand for those of SCALES, see stage.cuh.
const i64 FIRST_SCALE = (i64)1 << 62;

// A box of the boundary region, of fewer than 2^31 points, and the blocks that sweep it, which follow
// each other.
struct Slab {
	int lo[3], size[3];
	unsigned first, blocks;
	u64 neighbours; // bits: which of them it waits for, and signals

	__device__ unsigned points() const { return (unsigned)size[0] * (unsigned)size[1] * (unsigned)size[2]; }

	// The number of a thread among those of the slab, and how many these are.
	__device__ unsigned number(unsigned block) const {
		return (block - first) * (blockDim.x * blockDim.y) + threadIdx.x + blockDim.x * threadIdx.y;
	}
	__device__ unsigned threads() const { return blocks * blockDim.x * blockDim.y; }
};

enum { MAX_SLABS = 6, MAX_NEIGHBOURS = 26 };

// The slabs of a stage.
struct Boundary {
	i64 blocks, slabs;          // blocks of all slabs, which are the first of the grid
	int core_lo[3], core_hi[3]; // the points of the interior that lie here go nowhere else
	Slab slab[MAX_SLABS];

	// in_core reports whether a point lies in the core.
	__device__ bool in_core(const int (&p)[3]) const {
		bool in = true;
#pragma unroll
		for (int a = 0; a < 3; a++) in = in && core_lo[a] <= p[a] && p[a] < core_hi[a];
		return in;
	}

	// slab_of returns whose block it is among those of slabs.
	__device__ unsigned slab_of(unsigned block) const {
		unsigned i = 0;
		while (i + 1 < slabs && slab[i + 1].first <= block) i++;
		return i;
	}
};

__device__ inline unsigned thread_of_block() { return threadIdx.x + blockDim.x * threadIdx.y; }
__device__ inline unsigned block_of_grid() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }
