// Groups of threads that call functions of ranks.cuh together.
#pragma once

#include "device.cuh"

namespace ranks {

// The threads that call a function together.
struct Block {
	static __device__ int thread() { return (int)threadIdx.x; }
	static __device__ int threads() { return (int)blockDim.x; }
	static __device__ void sync() { __syncthreads(); }
	// all returns to all threads whether all of them pass true.
	static __device__ bool all(bool v) { return __syncthreads_and(v); }
	// any returns to all threads whether at least one passes true.
	static __device__ bool any(bool v) { return __syncthreads_or(v); }
	static __device__ bool in_first_warp() { return threadIdx.x < 32; }
	// The warps of the group, and the index of a thread in them, see copy_words.
	static __device__ int warps() { return (int)blockDim.x / 32; }
	static __device__ int warp() { return (int)threadIdx.x / 32; }
	static __device__ int lane() { return (int)threadIdx.x % 32; }
	enum { WHOLE = true, LANES = 32 };
};

struct Warp {
	static __device__ int thread() { return (int)threadIdx.x & 31; }
	static __device__ int threads() { return 32; }
	static __device__ void sync() { __syncwarp(); }
	static __device__ bool all(bool v) {
		__syncwarp();
		return __all_sync(~0u, v);
	}
	static __device__ bool in_first_warp() { return true; }
	static __device__ int warps() { return 1; }
	static __device__ int warp() { return 0; }
	static __device__ int lane() { return thread(); }
	enum { WHOLE = false, LANES = 32 };
};

struct Thread {
	static __device__ int thread() { return 0; }
	static __device__ int threads() { return 1; }
	static __device__ void sync() {}
	static __device__ bool all(bool v) { return v; }
	static __device__ bool in_first_warp() { return true; }
	static __device__ int warps() { return 1; }
	static __device__ int warp() { return 0; }
	static __device__ int lane() { return 0; }
	enum { WHOLE = false, LANES = 1 };
};

template <typename A, typename B> struct same {
	static constexpr bool value = false;
};
template <typename A> struct same<A, A> {
	static constexpr bool value = true;
};

// The lanes of a group that poll memory: those of a warp, or one thread.
template <typename Group> struct lanes_of {
	typedef Warp type;
};
template <> struct lanes_of<Thread> {
	typedef Thread type;
};

} // namespace ranks
