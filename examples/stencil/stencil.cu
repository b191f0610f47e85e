// A sweep of a stencil over the points of a box: the weighted sum of a point and its neighbors.

struct Sweep {
	double *to;
	const double *from;
	i64 size[3], pitch, plane, first; // the box, and the index of its first point
	i64 count, offset[9];             // of neighbors, in points
	double weight[9];
};

extern "C" __global__ void sweep(const __grid_constant__ Sweep s) {
	const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x, x = i % s.size[0], rest = i / s.size[0];
	const i64 y = rest % s.size[1], z = rest / s.size[1];
	if (z >= s.size[2]) return;
	const i64 at = s.first + x + y * s.pitch + z * s.plane;
	double sum = s.weight[0] * s.from[at + s.offset[0]];
	for (i64 k = 1; k < s.count; k++) sum += s.weight[k] * s.from[at + s.offset[k]];
	s.to[at] = sum;
}
