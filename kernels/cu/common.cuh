// Fields in memory, boxes of them, and the number of a thread.
#pragma once

#include "device.cuh"

// A box of a field: the offset of its first point, and the points along each axis.
struct Region {
	i64 first;
	i64 nx, ny, nz;
};

// The strides of rows and planes of a field, in elements, as in domain.Layout.
struct Strides {
	i64 pitch, plane;
};

// A point of a region, relative to the first point.
struct Point {
	i64 x, y, z;
};

// point returns point n of a region, x fastest. Regions of less than 2^31 points use 32-bit divisions, because a 64-bit
// division costs about ten times as much.
__device__ inline Point point(const Region &r, i64 n) {
	if (r.nx * r.ny * r.nz <= 0x7fffffff) {
		const unsigned m = (unsigned)n, nx = (unsigned)r.nx, ny = (unsigned)r.ny, row = m / nx;
		return {m - row * nx, row % ny, row / ny};
	}
	const i64 row = n / r.nx;
	return {n - row * r.nx, row % r.ny, row / r.ny};
}

// The number of a thread in a one-dimensional launch, and the number of its threads.
__device__ inline i64 thread_index() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline i64 thread_count() { return (i64)gridDim.x * blockDim.x; }

// A word of 16 bytes.
struct alignas(16) Word16 {
	u64 low, high;
};
