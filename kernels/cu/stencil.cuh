// A stencil as Stencil in kernels/internal/source writes it.
#pragma once

#include "device.cuh"
#include "real.cuh"

// clang-format off
#define DIMS 3

template <typename At> __device__ __forceinline__ REAL apply(const At &at) {
	return (REAL)0x1p-02 * at(0, 0, 0)
	    + (REAL)0x1p-03 * ((at(1, 0, 0) + at(0, 1, 0) + at(0, 0, 1) + at(-1, 0, 0) + at(0, -1, 0) + at(0, 0, -1)));
}

