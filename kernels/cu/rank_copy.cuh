// Copies by groups of threads.
#pragma once

#include "rank_groups.cuh"

// RANK_WORDS is how many words of 16 bytes a thread loads before it stores the first. More words hide more of the
// memory latency in long copies by few threads, and take four registers each.
#ifndef RANK_WORDS
#define RANK_WORDS 4
#endif

namespace ranks {

// copy_words copies words in rounds: each thread loads several, then stores them. Words of a warp are consecutive, so a
// thread's words are at constant distances and need no separate addresses.
template <typename Group, typename W>
__device__ __forceinline__ void copy_words(char *to, const char *from, i64 words) {
	enum { AT_ONCE = sizeof(W) == 16 ? RANK_WORDS : 1, OF_WARP = AT_ONCE * Group::LANES };
	const int first = Group::warp() * OF_WARP + Group::lane(), round = Group::warps() * OF_WARP;
	W *t = (W *)to + first;
	const W *f = (const W *)from + first;
	i64 left = words - first; // 0 or less: the thread has copied its words
#pragma unroll 1
	for (; left > 0; left -= round, t += round, f += round) {
		const int here = (int)min(left, (i64)OF_WARP);
		W v[AT_ONCE] = {}; // otherwise, the compiler keeps registers for it from the start of the kernel
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++)
			if (k * Group::LANES < here) v[k] = f[k * Group::LANES];
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++)
			if (k * Group::LANES < here) t[k * Group::LANES] = v[k];
	}
}

// copy_aligned copies whole words, and the bytes before the first and after the last whole word.
template <typename Group, typename W>
__device__ __forceinline__ void copy_aligned(char *to, const char *from, i64 bytes) {
	i64 head = (i64)(-(u64)to % sizeof(W));
	if (head > bytes) head = bytes;
	const i64 words = (bytes - head) / (i64)sizeof(W), tail = head + words * (i64)sizeof(W);
	copy_words<Group, W>(to + head, from + head, words);
#pragma unroll 1
	for (i64 i = Group::thread(); i < head; i += Group::threads()) to[i] = from[i];
#pragma unroll 1
	for (i64 i = tail + Group::thread(); i < bytes; i += Group::threads()) to[i] = from[i];
}

// copy_one_each copies at most one word per thread.
template <typename Group, typename W>
__device__ __forceinline__ void copy_one_each(char *to, const char *from, int words) {
	const int i = Group::thread();
	if (i < words) ((W *)to)[i] = ((const W *)from)[i];
}

// copy_few copies words: more than EACH - 1 and up to EACH per thread of the group. All loads come before the first
// store. The form of the code determines whether two ranks of a multiprocessor that put 4 KiB keep releasing at the
// same time, which takes a sixth longer: see docs/results/ranks.md. After an edit compare `halox bench ranks --what
// bandwidth --per-multiprocessor 2 --messages 4KiB`.
template <typename Group, int EACH, typename W>
__device__ __forceinline__ void copy_few(char *to, const char *from, int words) {
	W v[EACH] = {};
#pragma unroll
	for (int k = 0; k < EACH; k++) {
		const int i = Group::thread() + k * Group::threads();
		if (k < EACH - 1 || i < words) v[k] = ((const W *)from)[i];
	}
#pragma unroll
	for (int k = 0; k < EACH; k++) {
		const int i = Group::thread() + k * Group::threads();
		if (k < EACH - 1 || i < words) ((W *)to)[i] = v[k];
	}
}

// copy copies bytes by a group, in the widest words for which both addresses have the same alignment.
template <typename Group> __device__ __forceinline__ void copy(void *to, const void *from, i64 bytes) {
	char *const t = (char *)to;
	const char *const f = (const char *)from;
	const u64 all = (u64)t | (u64)f | (u64)bytes, apart = (u64)t ^ (u64)f;
	// Short copies of whole words avoid the rounds of copy_words, which would give all their words to a few warps.
	if (all % 16 == 0 && bytes <= 16 * Group::threads()) return copy_few<Group, 1, uint4>(t, f, (int)bytes / 16);
	if (all % 16 == 0 && bytes <= 32 * Group::threads()) return copy_few<Group, 2, uint4>(t, f, (int)bytes / 16);
	if (all % 8 == 0 && bytes <= 8 * Group::threads()) return copy_one_each<Group, u64>(t, f, (int)bytes / 8);
	if (apart % 16 == 0) copy_aligned<Group, uint4>(t, f, bytes);
	else if (apart % 8 == 0) copy_aligned<Group, u64>(t, f, bytes);
	else if (apart % 4 == 0) copy_aligned<Group, unsigned>(t, f, bytes);
	else copy_words<Group, char>(t, f, bytes);
}

} // namespace ranks
