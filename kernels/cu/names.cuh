// The names of a point function's accesses and reductions, as its source uses them.
#pragma once

#include "common.cuh"

// Whether nothing writes the arrays that a point function only reads while the kernel runs.
#ifndef ALL_READ_ONLY
#define ALL_READ_ONLY true
#endif

template <int K> struct Constant {};

// Names of accesses and reductions, in the source of a point function.
template <int READ, int WRITE, int COMPONENTS> struct Component {
	int q;
};

template <int READ, int WRITE, int COMPONENTS> struct Access {
	__device__ constexpr Component<READ, WRITE, COMPONENTS> operator[](int q) const { return {q}; }
};

template <int K> struct Reduction {};

enum Operation { SUM, MAX, MIN };

// NEVER_LINKED declares a function without a definition: a program that calls it does not link. On the CPU it traps.
#ifdef __CUDACC__
#define NEVER_LINKED(NAME) extern "C" __device__ void NAME();
#else
#define NEVER_LINKED(NAME) \
	inline void NAME() { cpu::trap(#NAME); }
#endif

// Called for components that an access does not have.
NEVER_LINKED(component_outside_of_an_access)
