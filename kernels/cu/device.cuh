// GPU features beyond C++, in PTX. clangd, and tests that run kernels on the CPU, use the counterparts in cpu/device.h.
#pragma once

typedef long long i64;
typedef unsigned long long u64;

#ifdef __CUDA_ARCH__
enum { ARCH = __CUDA_ARCH__ }; // 900 is compute capability 9.0
#else
enum { ARCH = 900 };
#endif

#ifndef __CUDACC__
#include "cpu/device.h"
#else

// grid_dependency_wait waits until all previously queued launches have ended and their stores are visible: a launch may
// start before its predecessor ends. Every kernel calls it first, in all threads. A kernel that ended without this call
// would let its successor start too early.
__device__ __forceinline__ void grid_dependency_wait() {
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// A release orders all earlier reads and writes of the thread and, after a barrier, of its block. An acquire that reads
// the released value orders it before all later accesses of the thread and, after a barrier, of its block. The scope of
// each must include the other thread: sys is all GPUs and the host, gpu is this GPU.
__device__ inline u64 load_acquire_sys(const u64 *from) {
	u64 value;
	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
	return value;
}

__device__ inline u64 load_acquire_gpu(const u64 *from) {
	u64 value;
	asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
	return value;
}

// acquire_sys turns earlier relaxed loads of words by this thread into acquire loads, for all its later accesses. A
// wait polls with relaxed loads and acquires once: each acquire invalidates the L1 cache of the multiprocessor, which
// delays the next poll. Where there is no acquire-only fence, it loads the words again. They still have the values that
// were read, or are counts that have grown.
template <typename... Words> __device__ __forceinline__ void acquire_sys(const Words *...from) {
#if __CUDA_ARCH__ >= 900 && 100 * __CUDACC_VER_MAJOR__ + __CUDACC_VER_MINOR__ >= 1208
	if (sizeof...(from) > 0) asm volatile("fence.acquire.sys;" ::: "memory");
#else // fence.acq_rel waits for stores too, which takes longer than another load
	(load_acquire_sys(from), ...);
#endif
}

__device__ inline void add_release_sys(u64 *to, u64 value) {
	asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

__device__ inline void add_release_gpu(u64 *to, u64 value) {
	asm volatile("red.release.gpu.global.add.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

__device__ inline void store_release_sys(u64 *to, u64 value) {
	asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

__device__ inline void store_release_gpu(u64 *to, u64 value) {
	asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

// Relaxed accesses order nothing, but are coherent with other GPUs and the host.
__device__ inline void store_relaxed_sys(u64 *to, u64 value) {
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

__device__ inline u64 load_relaxed_sys(const u64 *from) {
	u64 value;
	asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
	return value;
}

__device__ inline u64 load_relaxed_gpu(const u64 *from) {
	u64 value;
	asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
	return value;
}

// add_ordered_gpu adds with acquire and release order, and returns the old value.
__device__ inline u64 add_ordered_gpu(u64 *to, u64 value) {
	u64 was;
	asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;" : "=l"(was) : "l"(to), "l"(value) : "memory");
	return was;
}

// Two words in one access of 16 bytes. Each word is atomic, but the pair need not be.
__device__ inline void store_relaxed_sys(u64 *to, u64 low, u64 high) {
	asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(low), "l"(high) : "memory");
}

__device__ inline void load_relaxed_sys(const u64 *from, u64 &low, u64 &high) {
	asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(from) : "memory");
}

// Number of clock reads of a wait per read of host memory: see wait of flags.cuh.
enum { HOST_READS_APART = 16 };

// A lock for the threads of a block, in shared memory, 0 while it is free. try_lock acquires and unlock releases, at
// block scope.
__device__ inline bool try_lock(u64 *lock) {
	u64 was;
	asm volatile("atom.acquire.cta.cas.b64 %0, [%1], 0, 1;" : "=l"(was) : "l"(lock) : "memory");
	return was == 0;
}
__device__ inline void unlock(u64 *lock) { asm volatile("st.release.cta.u64 [%0], 0;" ::"l"(lock) : "memory"); }

__device__ inline i64 nanoseconds() {
	i64 t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

// spin waits for the given number of cycles of the multiprocessor, or a few more. A sleep of less than a microsecond is
// less accurate.
__device__ __forceinline__ void spin(unsigned cycles) {
	unsigned start, now;
	asm volatile("mov.u32 %0, %%clock;" : "=r"(start));
	do asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
	while (now - start < cycles);
}

// prefetch_l2 prefetches a line into the L2 cache.
__device__ __forceinline__ void prefetch_l2(const void *line) { asm volatile("prefetch.global.L2 [%0];" ::"l"(line)); }

// wait_async waits for the copies that this thread committed, except for those of the newest COUNT commits.
__device__ __forceinline__ void commit_async() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int COUNT> __device__ __forceinline__ void wait_async() {
	asm volatile("cp.async.wait_group %0;" ::"n"(COUNT) : "memory");
}

// SharedAddress is an address in the shared window, in bytes.
typedef unsigned SharedAddress;
__device__ __forceinline__ SharedAddress shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// copy_async starts a copy of 4, 8 or 16 bytes to shared memory; both addresses are aligned to the size.
template <int BYTES> __device__ __forceinline__ void copy_async(SharedAddress to, const void *from) {
	if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
	else
		asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES == 16 ? 8 : BYTES)
		             : "memory");
}

// load_shared and store_shared access 16 bytes exactly where they are called: a compiler that moves all loads of a loop
// to its start runs out of registers. store_vector stores 16 bytes to global memory.
__device__ __forceinline__ void load_shared(double (&v)[2], SharedAddress from) {
	asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(v[0]), "=d"(v[1]) : "r"(from) : "memory");
}
__device__ __forceinline__ void load_shared(float (&v)[4], SharedAddress from) {
	asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
	             : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
	             : "r"(from)
	             : "memory");
}
__device__ __forceinline__ void store_shared(SharedAddress to, const double (&v)[2]) {
	asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(to), "d"(v[0]), "d"(v[1]) : "memory");
}
__device__ __forceinline__ void store_shared(SharedAddress to, const float (&v)[4]) {
	asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3])
	             : "memory");
}
__device__ __forceinline__ void store_vector(double *to, const double (&v)[2]) { *(double2 *)to = {v[0], v[1]}; }
__device__ __forceinline__ void store_vector(float *to, const float (&v)[4]) {
	*(float4 *)to = {v[0], v[1], v[2], v[3]};
}

// load_shared_if and store_shared_if access shared memory in some lanes, without a branch and without a select.
__device__ __forceinline__ void load_shared_if(bool here, double &v, SharedAddress from) {
	asm volatile("{\n.reg .pred here;\nsetp.ne.u32 here, %2, 0;\n@here ld.shared.f64 %0, [%1];\n}"
	             : "+d"(v)
	             : "r"(from), "r"((unsigned)here)
	             : "memory");
}
__device__ __forceinline__ void load_shared_if(bool here, float &v, SharedAddress from) {
	asm volatile("{\n.reg .pred here;\nsetp.ne.u32 here, %2, 0;\n@here ld.shared.f32 %0, [%1];\n}"
	             : "+f"(v)
	             : "r"(from), "r"((unsigned)here)
	             : "memory");
}
__device__ __forceinline__ void store_shared_if(bool here, double v, SharedAddress to) {
	asm volatile("{\n.reg .pred here;\nsetp.ne.u32 here, %2, 0;\n@here st.shared.f64 [%0], %1;\n}" ::"r"(to), "d"(v),
	             "r"((unsigned)here)
	             : "memory");
}
__device__ __forceinline__ void store_shared_if(bool here, float v, SharedAddress to) {
	asm volatile("{\n.reg .pred here;\nsetp.ne.u32 here, %2, 0;\n@here st.shared.f32 [%0], %1;\n}" ::"r"(to), "f"(v),
	             "r"((unsigned)here)
	             : "memory");
}

// store_vector_if stores 16 bytes to global memory in some lanes, in one access even if the values are not in adjacent
// registers.
__device__ __forceinline__ void store_vector_if(bool here, double *to, const double (&v)[2]) {
	asm volatile("{\n.reg .pred here;\nsetp.ne.u32 here, %3, 0;\n@here st.global.v2.f64 [%0], {%1, %2};\n}" ::"l"(to),
	             "d"(v[0]), "d"(v[1]), "r"((unsigned)here)
	             : "memory");
}
__device__ __forceinline__ void store_vector_if(bool here, float *to, const float (&v)[4]) {
	asm volatile(
	    "{\n.reg .pred here;\nsetp.ne.u32 here, %5, 0;\n@here st.global.v4.f32 [%0], {%1, %2, %3, %4};\n}" ::"l"(to),
	    "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]), "r"((unsigned)here)
	    : "memory");
}

// Barriers in shared memory (mbarrier), of 8 bytes. A phase ends after the number of arrivals given to mbarrier_init;
// phases are numbered from 0. mbarrier_wait waits for the end of the newest phase of a parity: before any arrival, the
// odd phase counts as ended. All lanes of a warp call mbarrier_wait.
__device__ __forceinline__ void mbarrier_init(SharedAddress barrier, int arrivals) {
	asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive(SharedAddress barrier) {
	asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void mbarrier_wait(SharedAddress barrier, int parity) {
	unsigned done;
	do {
#if __CUDA_ARCH__ >= 900
		asm volatile(
		    "{\n.reg .pred done;\nmbarrier.try_wait.parity.shared.b64 done, [%1], %2;\nselp.u32 %0, 1, 0, done;\n}"
		    : "=r"(done)
		    : "r"(barrier), "r"(parity)
		    : "memory");
#else
		asm volatile(
		    "{\n.reg .pred done;\nmbarrier.test_wait.parity.shared.b64 done, [%1], %2;\nselp.u32 %0, 1, 0, done;\n}"
		    : "=r"(done)
		    : "r"(barrier), "r"(parity)
		    : "memory");
#endif
	} while (!__all_sync(~0u, done)); // so that the compiler knows that all lanes leave the loop together
}

// lane_id returns the lane of this thread in its warp, as a number that the compiler cannot derive from threadIdx.
__device__ __forceinline__ unsigned lane_id() {
	unsigned lane;
	asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
	return lane;
}

// opaque hides the origin of a number from the compiler. In a loop the compiler then keeps only the number, not
// everything computed from it, which would take more registers.
__device__ __forceinline__ unsigned opaque(unsigned v) {
	asm volatile("" : "+r"(v));
	return v;
}
__device__ __forceinline__ float opaque_value(float v) {
	asm volatile("" : "+f"(v));
	return v;
}
__device__ __forceinline__ double opaque_value(double v) {
	asm volatile("" : "+d"(v));
	return v;
}

// warp_max returns the largest number of the lanes of a warp, all of which call it.
__device__ __forceinline__ int warp_max(int v) {
#if __CUDA_ARCH__ >= 800
	return __reduce_max_sync(~0u, v);
#else
	for (int d = 16; d > 0; d /= 2) v = max(v, __shfl_xor_sync(~0u, v, d));
	return v;
#endif
}

__device__ inline void trap() { asm volatile("trap;"); }

// dynamic_shared returns the dynamic shared memory of the launch.
__device__ __forceinline__ void *dynamic_shared() {
	extern __shared__ double2 memory[];
	return memory;
}

#endif
