// The arguments of kernels for passes: several steps of a linear stencil in one pass over memory.
#pragma once

#include "device.cuh"
#include "real.cuh"
#include "side.cuh"
#include "stencil.cuh"

#ifdef NORMS
#include "norms.cuh"
#endif

// The first layer of ghosts whose values change with time: see temporal.Face.
struct Wall {
	const REAL *values; // level 1 at the first point of the box along both axes of the wall; null: it does not move
	i64 width, level;   // strides between rows and between levels
};

struct NormSum;

// Layers that a pass stores and that are also ghosts of a neighbor.
struct GhostStore {
	i64 shift;       // bytes from a point in this GPU's array to the same point in the neighbor's
	int first, last; // layers of the box along its last axis, last is exclusive
};

struct Pass {
	const REAL *from; // the first point of the box
	REAL *to;
	i64 pitch, plane;                 // strides of rows and planes, of both arrays
	int n[3];                         // points of the box
	int sides[6];                     // x-, x+, y-, y+, z-, z+
	int chunk;                        // layers per block; 0 if blocks divide the box themselves
	int weight;                       // cost of a layer of a tile at a side of the box; that of other tiles is 16
	int start;                        // cost of starting a second tile, in layers
#if defined(NORMS) || defined(MOVING) // see temporal.Options
	int lo[3], hi[3];                 // the points included in the norms
	NormSum *norms[4];                // one per thread block; the last step comes first
	Wall walls[6];
#endif
#ifdef GHOST_STORES
	GhostStore ghosts[2]; // an empty one has first = last
#endif
};

// store_layer calls store with the address of a layer's point on this GPU, and with its address on each neighbor whose
// ghosts include the layer.
template <typename Store> __device__ __forceinline__ void store_layer(const Pass &a, int layer, REAL *to, Store store) {
	store(to);
#ifdef GHOST_STORES
#pragma unroll
	for (int i = 0; i < 2; i++)
		if (layer >= a.ghosts[i].first && layer < a.ghosts[i].last) store((REAL *)((char *)to + a.ghosts[i].shift));
#endif
}
