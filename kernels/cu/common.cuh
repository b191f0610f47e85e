// What all kernels share: fields as they lie in memory, and boxes in them.
#pragma once

#include "device.cuh"

// A box of points of a field: the place of its first point and its size.
// Rows are `pitch` and planes `plane` elements apart, as domain.Layout says.
struct Region {
	i64 first;
	i64 nx, ny, nz;
};

struct Strides {
	i64 pitch, plane;
};

// A point of a region, counted from its first.
struct Point {
	i64 x, y, z;
};

// point gives the n-th point of a region, x fastest. Divisions of 64 bits cost some ten
// times those of 32, so small regions avoid them.
__device__ inline Point point(const Region &r, i64 n) {
	if (r.nx * r.ny * r.nz <= 0x7fffffff) {
		const unsigned m = (unsigned)n, nx = (unsigned)r.nx, ny = (unsigned)r.ny, row = m / nx;
		return {m - row * nx, row % ny, row / ny};
	}
	const i64 row = n / r.nx;
	return {n - row * r.nx, row % r.ny, row / r.ny};
}

__device__ inline i64 thread_index() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline i64 thread_count() { return (i64)gridDim.x * blockDim.x; }

// A word of 16 bytes.
struct alignas(16) Sixteen {
	unsigned long long low, high;
};
