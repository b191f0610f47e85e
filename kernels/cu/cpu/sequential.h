// The threads of a launch run one at a time, without waits: for kernels whose threads are independent, except in
// reductions.
#pragma once

#include <cstdio>
#include <cstring>
#include <vector>

#define __global__
#define __grid_constant__
#define __shared__ static

struct Index {
	unsigned x, y, z;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

inline void __syncthreads() {}
inline bool __syncthreads_and(bool v) { return v; }
inline bool __syncthreads_or(bool v) { return v; }
inline void __nanosleep(unsigned) {}
inline void __syncwarp() {}
inline int __all_sync(unsigned, int v) { return v; }
template <typename T> T __shfl_sync(unsigned, T v, int) { return v; }
template <typename T> T __shfl_xor_sync(unsigned, T v, int) { return v; }
template <typename T> T __shfl_up_sync(unsigned, T v, int) { return v; }
template <typename T> T __shfl_down_sync(unsigned, T v, int) { return v; }

namespace cpu {

inline void yield() {}
inline long long nanoseconds() { return 0; }
inline void trap(const char *why) { throw why; }
inline void *shared() { return 0; }
inline unsigned shared_bytes() { return 0; }

} // namespace cpu
