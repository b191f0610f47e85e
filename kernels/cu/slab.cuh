// The boundary region of a stage, whose points kernels store into the ghosts of neighbours too.
#pragma once

#include "common.cuh"
#include "flags.cuh"
#include "neighbour.cuh"

// Where the points of a box of one written array go beside their own place: into ghosts, of this GPU
// or another. Boxes are of indices in the whole grid, as the points that are swept have them.
struct Target {
	i64 lo[3], hi[3];
	u64 ghost; // address that the point of index 0, 0, 0 has there, or would have
	Strides strides;
	i64 odd[3]; // offsets from a point to the values that it is reflected about, in turn; 0: none
};
static_assert(sizeof(Target) == 96, "stage_targets.go lays it out");

// A box of the boundary region, and the blocks that sweep it, which follow each other.
struct Slab {
	i64 lo[3], nx, ny, nz;
	i64 first, blocks;
	i64 neighbours; // bits: which of them it waits for, and signals
};

enum { MAX_SLABS = 6, MAX_NEIGHBOURS = 26 };

// Where the points of slabs go: for each slab and written array in turn the targets up to an end.
struct Targets {
	const Target *all;
	const i64 *ends;
};

// The slabs of a stage.
struct Boundary {
	i64 blocks, slabs; // blocks of all slabs, which are the first of the grid
	Slab slab[MAX_SLABS];

	// slab_of returns whose block it is among those of slabs.
	__device__ int slab_of(i64 block) const {
		int i = 0;
		while (i + 1 < slabs && slab[i + 1].first <= block) i++;
		return i;
	}
};

__device__ inline unsigned thread_of_block() { return threadIdx.x + blockDim.x * threadIdx.y; }
__device__ inline unsigned block_of_grid() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }
