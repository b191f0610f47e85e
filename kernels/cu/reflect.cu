// Odd reflection about a wall: ghosts one step behind it become twice the wall's value less
// that of the point one step before it.
//
// Build options: REAL.

#include "common.cuh"
#include "real.cuh"

struct Reflect {
	REAL *field;
	Strides strides;
	Region ghosts;
	i64 step; // from a ghost to the wall, and from there to the point
};

extern "C" __global__ void __launch_bounds__(256) reflect(const __grid_constant__ Reflect a) {
	after_predecessor();
	const i64 points = a.ghosts.nx * a.ghosts.ny * a.ghosts.nz;
	for (i64 n = thread_index(); n < points; n += thread_count()) {
		const Point p = point(a.ghosts, n);
		REAL *ghost = a.field + a.ghosts.first + p.x + p.y * a.strides.pitch + p.z * a.strides.plane;
		*ghost = (REAL)2 * ghost[a.step] - ghost[2 * a.step];
	}
}
