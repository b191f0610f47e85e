// Copies by groups of threads.
#pragma once

#include "rank_groups.cuh"

#ifdef __CUDACC__
#define NOT_INLINED __noinline__
#else
#define NOT_INLINED __attribute__((noinline))
#endif

namespace ranks {

// copy_words copies words. Each thread has as many under way as hide the time of a load.
template <typename Group, typename W>
__device__ __forceinline__ void copy_words(char *to, const char *from, i64 words) {
	enum { AT_ONCE = 8 };
	W *const t = (W *)to;
	const W *const f = (const W *)from;
	const i64 n = Group::threads();
	for (i64 first = Group::thread(); first < words; first += AT_ONCE * n) {
		W v[AT_ONCE];
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++)
			if (first + k * n < words) v[k] = f[first + k * n];
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++)
			if (first + k * n < words) t[first + k * n] = v[k];
	}
}

// copy_aligned copies whole words, and the bytes before the first whole word and after the last.
template <typename Group, typename W>
__device__ __forceinline__ void copy_aligned(char *to, const char *from, i64 bytes) {
	i64 head = (i64)(-(u64)to % sizeof(W));
	if (head > bytes) head = bytes;
	const i64 words = (bytes - head) / (i64)sizeof(W), tail = head + words * (i64)sizeof(W);
	copy_words<Group, W>(to + head, from + head, words);
	for (i64 i = Group::thread(); i < head; i += Group::threads()) to[i] = from[i];
	for (i64 i = tail + Group::thread(); i < bytes; i += Group::threads()) to[i] = from[i];
}

// copy_any copies bytes, in the widest words that both addresses are equally far from. It is no part of each kernel
// that calls it, whose registers decide how many ranks a multiprocessor holds.
template <typename Group> __device__ NOT_INLINED void copy_any(char *to, const char *from, i64 bytes) {
	const u64 apart = (u64)to ^ (u64)from;
	if (apart % 16 == 0) copy_aligned<Group, uint4>(to, from, bytes);
	else if (apart % 8 == 0) copy_aligned<Group, u64>(to, from, bytes);
	else if (apart % 4 == 0) copy_aligned<Group, unsigned>(to, from, bytes);
	else copy_words<Group, char>(to, from, bytes);
}

// copy copies bytes by a group.
template <typename Group> __device__ __forceinline__ void copy(void *to, const void *from, i64 bytes) {
	char *const t = (char *)to;
	const char *const f = (const char *)from;
	const u64 all = (u64)t | (u64)f | (u64)bytes;
	if (all % 16 == 0 && bytes <= 16 * Group::threads()) { // the quickest, a word a thread
		const int i = Group::thread();
		if (16 * i < bytes) ((uint4 *)t)[i] = ((const uint4 *)f)[i];
		return;
	}
	if (all % 8 == 0 && bytes <= 8 * Group::threads()) {
		const int i = Group::thread();
		if (8 * i < bytes) ((u64 *)t)[i] = ((const u64 *)f)[i];
		return;
	}
	copy_any<Group>(t, f, bytes);
}

} // namespace ranks
