// What kernels for passes are given: several steps of a linear stencil in one pass over memory.
#pragma once

#include "device.cuh"
#include "real.cuh"
#include "side.cuh"
#include "stencil.cuh"

#ifdef NORMS
#include "norms.cuh"
#endif

// The first layer of ghosts behind a wall that moves: see temporal.Wall.
struct Wall {
	const REAL
	    *values; // of level 1, that of the first point of the box along both axes of the wall; null: it does not move
	i64 width, level; // from row to row and from level to level
};

struct NormSum;

// Layers that a pass stores and that are also ghosts of a neighbour.
struct GhostStore {
	i64 shift;       // bytes from a point in this GPU's array to the same point in the neighbour's
	int first, last; // the first layer of the box along its last axis, and the one behind the last
};

struct Pass {
	const REAL *from; // of the first point of the box
	REAL *to;
	i64 pitch, plane; // from row to row and from plane to plane, of both arrays
	int n[3];         // points of the box
	int sides[6];     // x-, x+, y-, y+, z-, z+
	int chunk;        // layers of a block; 0 where blocks share the box by themselves
	int weight;       // cost of a layer of a tile at a side of the box, where that of any other tile is 16
	int start;        // cost of beginning in a second tile, in layers
#if defined(NORMS) || defined(MOVING) // see temporal.Options
	int lo[3], hi[3];                 // of which points norms are taken
	NormSum *norms[4];                // of the last step first: one a thread block
	Wall walls[6];
#endif
#ifdef GHOST_STORES
	GhostStore ghosts[2]; // an empty one has first = last
#endif
};

// store_layer calls store with the address of this GPU's point in a layer, and with that of each neighbour whose
// ghosts have the layer.
template <typename Store> __device__ __forceinline__ void store_layer(const Pass &a, int layer, REAL *to, Store store) {
	store(to);
#ifdef GHOST_STORES
#pragma unroll
	for (int i = 0; i < 2; i++)
		if (layer >= a.ghosts[i].first && layer < a.ghosts[i].last) store((REAL *)((char *)to + a.ghosts[i].shift));
#endif
}
