// The part of CUDA with which the sources compile as C++ for the CPU, and for clangd. CPU_RUN is the header that runs
// the threads of a launch; without it they run one at a time.
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <type_traits>

#define __device__
#define __constant__ static
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __restrict__
#define __align__(n) __attribute__((aligned(n)))

struct alignas(8) uint2 {
	unsigned x, y;
};
struct alignas(16) uint4 {
	unsigned x, y, z, w;
};

#ifdef CPU_RUN
#include CPU_RUN
#else
#include "sequential.h"
#endif

// __ldg traps if a word is not aligned to its size.
template <typename W> W __ldg(const W *p) {
	if ((size_t)p % sizeof(W)) cpu::trap("a load of a word that is not aligned");
	return *p;
}

inline unsigned long long atomicOr(unsigned long long *to, unsigned long long bits) {
	return __atomic_fetch_or(to, bits, __ATOMIC_RELAXED);
}
inline unsigned long long atomicCAS(unsigned long long *to, unsigned long long expected, unsigned long long value) {
	__atomic_compare_exchange_n(to, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return expected;
}

inline unsigned long long atomicAdd(unsigned long long *to, unsigned long long v) {
	return __atomic_fetch_add(to, v, __ATOMIC_RELAXED);
}

inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
	return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline int __ffs(unsigned v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline int __clz(unsigned v) { return v ? __builtin_clz(v) : 32; }

template <typename To, typename From> To same_bits(From from) {
	static_assert(sizeof(To) == sizeof(From), "bits of one size");
	To to;
	memcpy(&to, &from, sizeof to);
	return to;
}
inline float __uint_as_float(unsigned v) { return same_bits<float>(v); }
inline unsigned __float_as_uint(float v) { return same_bits<unsigned>(v); }
inline double __longlong_as_double(long long v) { return same_bits<double>(v); }
inline int __double2loint(double v) { return (int)same_bits<unsigned long long>(v); }
inline int __double2hiint(double v) { return (int)(same_bits<unsigned long long>(v) >> 32); }
inline double __hiloint2double(int high, int low) {
	return same_bits<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}

// Sums rounded down and up, of numbers whose sum is far from overflow. The rounding error of a sum is exactly
// representable, and its sign shows on which side the rounded sum is.
inline double rounding_error(double a, double b) {
	const double sum = a + b, part = sum - a;
	return (a - (sum - part)) + (b - part);
}
inline double __dadd_rd(double a, double b) { return rounding_error(a, b) < 0 ? nextafter(a + b, -INFINITY) : a + b; }
inline double __dadd_ru(double a, double b) { return -__dadd_rd(-a, -b); }

template <typename A, typename B> constexpr std::common_type_t<A, B> min(A a, B b) { return a < b ? a : b; }
template <typename A, typename B> constexpr std::common_type_t<A, B> max(A a, B b) { return a < b ? b : a; }
