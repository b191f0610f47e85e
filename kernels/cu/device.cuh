// What of a GPU has no C++: PTX. clangd and tests, which run the sources on the CPU, have its
// twins in cpu/device.h.
#pragma once

typedef long long i64;

#ifdef __CUDA_ARCH__
enum { ARCH = __CUDA_ARCH__ }; // 900 for compute capability 9.0
#else
enum { ARCH = 900 };
#endif

#ifndef __CUDACC__
#include "cpu/device.h"
#else

// after_predecessor waits until all that was queued before the kernel has ended and what
// it wrote can be seen: a kernel may be started while that still ends. Every kernel calls
// it first, in all threads: one that ended without would let its own successor begin too
// early.
__device__ __forceinline__ void after_predecessor() {
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ inline void release(unsigned long long *flag, unsigned long long value) {
	asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
}

// peek looks at a flag. What was stored before it was raised can be seen after a fence.
__device__ inline unsigned long long peek(const unsigned long long *flag) {
	unsigned long long value;
	asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
	return value;
}

// peek_here looks at a count that only this GPU adds to.
__device__ inline unsigned long long peek_here(const unsigned long long *count) {
	unsigned long long value;
	asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(count) : "memory");
	return value;
}

__device__ inline void add_relaxed_sys(unsigned long long *count) {
	asm volatile("red.relaxed.sys.global.add.u64 [%0], 1;" ::"l"(count) : "memory");
}

__device__ inline void add_relaxed_gpu(unsigned long long *count) {
	asm volatile("red.relaxed.gpu.global.add.u64 [%0], 1;" ::"l"(count) : "memory");
}

__device__ inline void store_word(unsigned long long *to, unsigned long long word) {
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}

// store_words and load_words are of two words, each of which is whole.
__device__ inline void store_words(unsigned long long *to, unsigned long long low, unsigned long long high) {
	asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(low), "l"(high) : "memory");
}

__device__ inline void load_words(const unsigned long long *from, unsigned long long (&words)[2]) {
	asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
	             : "=l"(words[0]), "=l"(words[1])
	             : "l"(from)
	             : "memory");
}

__device__ inline i64 nanoseconds() {
	i64 t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

// opaque returns a number that the compiler takes for a new one: in a loop it then keeps the
// number, and not all that follows from it, which would take more registers.
__device__ __forceinline__ unsigned opaque(unsigned v) {
	asm volatile("" : "+r"(v));
	return v;
}

// prefetch_l2 has a line brought into the second-level cache.
__device__ __forceinline__ void prefetch_l2(const void *line) { asm volatile("prefetch.global.L2 [%0];" ::"l"(line)); }

__device__ inline void trap() { asm volatile("trap;"); }

// dynamic_shared returns the shared memory that a launch asked for.
__device__ __forceinline__ void *dynamic_shared() {
	extern __shared__ double2 memory[];
	return memory;
}

#endif
