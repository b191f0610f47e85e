// The sums of points in one plane as Planar in kernels/internal/source writes them.
#pragma once

#include "device.cuh"
#include "real.cuh"

// clang-format off
enum { SUMS = 2, POINT = -1 };

template <typename At> __device__ __forceinline__ void plane_sums(const At &at, REAL (&sum)[SUMS]) {
	sum[0] = at(0, -1) + at(-1, 0) + at(1, 0) + at(0, 1);
	sum[1] = at(-1, -1) + at(1, -1) + at(-1, 1) + at(1, 1);
}

template <typename Sum> __device__ __forceinline__ REAL combine(const Sum &sum) {
	return (REAL)0x1.7777777777778p-01 * sum(POINT, 0)
	    + (REAL)0x1.ddddddddddddep-06 * (sum(POINT, -1) + sum(0, 0) + sum(POINT, 1))
	    + (REAL)0x1.999999999999ap-08 * (sum(0, -1) + sum(1, 0) + sum(0, 1))
	    + (REAL)0x1.1111111111111p-09 * (sum(1, -1) + sum(1, 1));
}
