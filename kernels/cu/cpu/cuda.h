// What the sources need of CUDA to be compiled as C++ for the CPU, where threads run one after the
// other: the bits of kernels can then be checked where there is no GPU, and clangd reads the sources.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstring>
#include <type_traits>
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
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
	return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static unsigned __ffs(unsigned v) { return __builtin_ffs(v); }
static int __clz(unsigned v) { return v ? __builtin_clz(v) : 32; }
template <typename To, typename From> To same_bits(From from) {
	static_assert(sizeof(To) == sizeof(From));
	To to;
	memcpy(&to, &from, sizeof to);
	return to;
}
static float __uint_as_float(unsigned v) { return same_bits<float>(v); }
static unsigned __float_as_uint(float v) { return same_bits<unsigned>(v); }
static double __longlong_as_double(long long v) { return same_bits<double>(v); }
static int __double2loint(double v) { return (int)same_bits<unsigned long long>(v); }
static int __double2hiint(double v) { return (int)(same_bits<unsigned long long>(v) >> 32); }
static double __hiloint2double(int high, int low) {
	return same_bits<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}
template <typename A, typename B> constexpr std::common_type_t<A, B> min(A a, B b) { return a < b ? a : b; }
template <typename A, typename B> constexpr std::common_type_t<A, B> max(A a, B b) { return a < b ? b : a; }

static void __syncthreads() {}
static bool __syncthreads_and(bool v) { return v; }
static void __threadfence() {}
static void __threadfence_system() {}
static void __nanosleep(unsigned) {}
static unsigned long long atomicOr(unsigned long long *to, unsigned long long bits) {
	const unsigned long long before = *to;
	*to |= bits;
	return before;
}
static unsigned long long atomicCAS(unsigned long long *to, unsigned long long expected, unsigned long long value) {
	const unsigned long long before = *to;
	if (before == expected) *to = value;
	return before;
}
template <typename T> T __shfl_sync(unsigned, T v, int) { return v; }
template <typename T> T __shfl_xor_sync(unsigned, T v, int) { return v; }
template <typename T> T __shfl_up_sync(unsigned, T v, int) { return v; }
template <typename T> T __shfl_down_sync(unsigned, T v, int) { return v; }
