// Ghosts that are made from points before a boundary. By odd reflection a ghost one step beyond it becomes twice the
// boundary value, less the value one step inside; by a scale it becomes a factor times one value, plus a shift.
//
// Option: REAL.

#include "common.cuh"
#include "real.cuh"

struct Reflect {
	REAL *field;
	Strides strides;
	Region ghosts;
	i64 step; // from a ghost to the boundary, and from there to the point inside
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

struct Scale {
	Reflect ghosts; // its step is from a ghost to its value
	struct {
		double factor, shift;
	} scale;
};

extern "C" __global__ void __launch_bounds__(256) scale(const __grid_constant__ Scale a) {
	grid_dependency_wait();
	const i64 points = a.ghosts.ghosts.nx * a.ghosts.ghosts.ny * a.ghosts.ghosts.nz;
	for (i64 n = thread_index(); n < points; n += thread_count()) {
		const Point p = point(a.ghosts.ghosts, n);
		REAL *ghost =
		    a.ghosts.field + a.ghosts.ghosts.first + p.x + p.y * a.ghosts.strides.pitch + p.z * a.ghosts.strides.plane;
		*ghost = (REAL)a.scale.factor * ghost[a.ghosts.step] + (REAL)a.scale.shift;
	}
}
