// Ghosts computed from points before a boundary. By odd reflection, a ghost one step beyond the boundary becomes twice
// the boundary value minus the value one step inside. By an affine rule, it becomes a factor times one value plus a
// weight times a given number of the ghost.
//
// Option: REAL.

#include "common.cuh"
#include "real.cuh"

struct Reflect {
	REAL *field;
	Strides strides;
	Region ghosts;
	i64 step; // offset from a ghost to the boundary, and from there to the point inside
};

extern "C" __global__ void __launch_bounds__(256) reflect(const __grid_constant__ Reflect a) {
	grid_dependency_wait();
	const i64 points = a.ghosts.nx * a.ghosts.ny * a.ghosts.nz;
	for (i64 n = thread_index(); n < points; n += thread_count()) {
		const Point p = point(a.ghosts, n);
		REAL *ghost = a.field + a.ghosts.first + p.x + p.y * a.strides.pitch + p.z * a.strides.plane;
		*ghost = (REAL)2 * ghost[a.step] - ghost[2 * a.step];
	}
}

struct Affine {
	Reflect ghosts; // its step is the offset from a ghost to its value
	double factor, weight;
	const REAL *given; // given number of the first ghost
	i64 factors;       // distance from a given number to the factor of its ghost; 0: factor
	Strides strides;   // strides of given
};

extern "C" __global__ void __launch_bounds__(256) affine(const __grid_constant__ Affine a) {
	grid_dependency_wait();
	const i64 points = a.ghosts.ghosts.nx * a.ghosts.ghosts.ny * a.ghosts.ghosts.nz;
#pragma unroll 1 // avoids register spills around a division
	for (i64 n = thread_index(); n < points; n += thread_count()) {
		const Point p = point(a.ghosts.ghosts, n);
		REAL *ghost =
		    a.ghosts.field + a.ghosts.ghosts.first + p.x + p.y * a.ghosts.strides.pitch + p.z * a.ghosts.strides.plane;
		const REAL *given = a.given + p.x + p.y * a.strides.pitch + p.z * a.strides.plane;
		const REAL factor = a.factors != 0 ? given[a.factors] : (REAL)a.factor;
		*ghost = factor * ghost[a.ghosts.step] + (REAL)a.weight * *given;
	}
}
