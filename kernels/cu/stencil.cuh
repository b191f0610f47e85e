// A stencil as stencilSource in taps.go writes it.
#pragma once

#include "device.cuh"
#include "real.cuh"

// clang-format off
#define DIMS 3
#define POINTS 7
enum { RADIUS_X = 1, RADIUS_Y = 1, RADIUS_Z = 1 };

template <typename At> __device__ __forceinline__ REAL apply(const At &at) {
	return (REAL)0x1p-02 * at(0, 0, 0)
	    + (REAL)0x1p-03 * ((at(1, 0, 0) + at(0, 1, 0) + at(0, 0, 1) + at(-1, 0, 0) + at(0, -1, 0) + at(0, 0, -1)));
}

__device__ constexpr int taps_high[][3] = {{-99, 0, -99}, {0, 1, 0}, {-99, 0, -99}};
__device__ constexpr int taps_low[][3] = {{99, 0, 99}, {0, -1, 0}, {99, 0, 99}};

enum { ROWS_PER_THREAD = 1, L2_PREFETCH = 0 };
enum { LARGE_THREADS = 512, LARGE_BLOCKS = ARCH == 900 ? 4 : 3 };
enum { LARGE_NORMS_THREADS = 256, LARGE_NORMS_BLOCKS = ARCH == 900 ? 5 : 4 };
enum { FUSED_NORMS_THREADS = 512, FUSED_NORMS_BLOCKS = ARCH == 900 ? 2 : 1 };
#define STREAMS
