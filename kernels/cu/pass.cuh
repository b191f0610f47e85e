// What kernels for passes are given: several steps of a linear stencil in one pass over memory.
#pragma once

#include "device.cuh"
#include "real.cuh"
#include "side.cuh"
#include "stencil.cuh"

struct Pass {
	const REAL *from; // of the first point of the box
	REAL *to;
	i64 pitch, plane; // from row to row and from plane to plane, of both arrays
	int n[3];         // points of the box
	int sides[6];     // x-, x+, y-, y+, z-, z+
	int chunk;        // layers of a block; 0 where blocks share the box by themselves
};
