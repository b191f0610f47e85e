// What sweep.cu and step.cu need to be compiled as C++ for the CPU, its threads one after the other:
// the bits of the kernels can then be checked where there is no GPU.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__
#define __shared__ static

struct Index {
	unsigned x, y, z;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

struct alignas(8) uint2 {
	unsigned x, y;
};
struct alignas(16) uint4 {
	unsigned x, y, z, w;
};
// __ldg stops where a word is not aligned to its size.
template <typename W> W __ldg(const W *p) {
	if ((size_t)p % sizeof(W)) throw "a word that is not aligned";
	return *p;
}
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
template <typename T> T min(T a, T b) { return a < b ? a : b; }
static void __syncthreads() {}
template <typename T> T __shfl_xor_sync(unsigned, T v, int) { return v; }
