// Copies of contiguous pieces of memory, each by a group of threads, in the widest
// words that its two ends allow.
#pragma once

#include "common.cuh"

// A thread loads a batch of words before it stores the first of them: the loads do not
// wait for each other. (What is not loaded is 0, or its registers would be in use from
// the start of the kernel on.)
template <typename Word> __device__ constexpr unsigned batch_of() { return sizeof(Word) < 16 ? 4 : 2; }

// copy_words copies words by a group of threads, of which this is number `lane` of
// `lanes`.
template <typename Word>
__device__ __forceinline__ void copy_words(char *dst, const char *src, unsigned words, unsigned lane, unsigned lanes) {
	constexpr unsigned BATCH = batch_of<Word>();
	Word *to = (Word *)dst;
	const Word *from = (const Word *)src;
#pragma unroll 1
	for (unsigned first = lane; first < words; first += BATCH * lanes) {
		Word word[BATCH] = {};
#pragma unroll
		for (int i = 0; i < BATCH; i++)
			if (first + i * lanes < words) word[i] = from[first + i * lanes];
#pragma unroll
		for (int i = 0; i < BATCH; i++)
			if (first + i * lanes < words) to[first + i * lanes] = word[i];
	}
}

// copy_shifted copies words of 8 bytes to a place aligned to them from one that is
// not: each is put together of the two aligned words that it lies in. It reads to
// the end of the last of these.
__device__ __forceinline__ void copy_shifted(char *dst, const char *src, unsigned words, unsigned lane,
                                             unsigned lanes) {
	typedef unsigned long long Word;
	const unsigned past = (unsigned)(size_t)src & 7; // 1 to 7
	Word *to = (Word *)dst;
	const Word *from = (const Word *)(src - past);
	enum { BATCH = 2 };
#pragma unroll 1
	for (unsigned first = lane; first < words; first += BATCH * lanes) {
		Word low[BATCH] = {}, high[BATCH] = {};
#pragma unroll
		for (int i = 0; i < BATCH; i++) {
			if (first + i * lanes >= words) continue;
			low[i] = from[first + i * lanes];
			high[i] = from[first + i * lanes + 1];
		}
#pragma unroll
		for (int i = 0; i < BATCH; i++)
			if (first + i * lanes < words) to[first + i * lanes] = low[i] >> (8 * past) | high[i] << (64 - 8 * past);
	}
}

// How a piece is copied: its first bytes one by one, then words, then its last bytes.
struct Cut {
	unsigned word; // bytes of a word; 0: of 8, put together of two
	unsigned head, words;

	// The words are those that both ends and the length are aligned to if a batch of
	// them does it all, else those that the ends share, or that can be put together.
	__device__ __forceinline__ Cut(const char *dst, const char *src, unsigned bytes, unsigned lanes) {
		const unsigned to = (unsigned)(size_t)dst, from = (unsigned)(size_t)src;
		const unsigned mixed = to | from | bytes | 16, apart = (to ^ from) | 16;
		const unsigned exact = mixed & (0u - mixed), shared = apart & (0u - apart);
		word = exact, head = 0, words = bytes / exact;
		if (exact == 16 || words <= 4 * lanes || bytes < 64) return;
		if (shared >= 8) {
			word = shared;
			head = (0u - to) & (shared - 1);
			words = (bytes - head) / shared;
			return;
		}
		word = 0;
		head = (0u - to) & 7;
		const unsigned past = (from + head) & 7;
		if (head < past) head += 8; // what is read begins in the piece, and ends in it
		words = (bytes - head - (8 - past)) / 8;
	}
	__device__ __forceinline__ unsigned middle() const { return words * (word ? word : 8); }
};

// copy_piece copies bytes by a group of threads, of which this is number `lane` of
// `lanes`. All the group calls it alike; groups of one warp need not.
__device__ void copy_piece(char *dst, const char *src, unsigned bytes, unsigned lane, unsigned lanes) {
	const Cut cut(dst, src, bytes, lanes);
	const unsigned edges = bytes - cut.middle();
#pragma unroll 1
	for (unsigned i = lane + lanes; i < edges; i += lanes) {
		const unsigned at = i < cut.head ? i : i + cut.middle();
		dst[at] = src[at];
	}
	// The first byte of each thread is loaded before all words, and stored after them.
	const unsigned at = lane < cut.head ? lane : lane + cut.middle();
	char edge = 0;
	if (lane < edges) edge = src[at];
	char *const to = dst + cut.head;
	const char *const from = src + cut.head;
	switch (cut.word) {
	case 0: copy_shifted(to, from, cut.words, lane, lanes); break;
	case 1: copy_words<unsigned char>(to, from, cut.words, lane, lanes); break;
	case 2: copy_words<unsigned short>(to, from, cut.words, lane, lanes); break;
	case 4: copy_words<unsigned>(to, from, cut.words, lane, lanes); break;
	case 8: copy_words<unsigned long long>(to, from, cut.words, lane, lanes); break;
	case 16: copy_words<Sixteen>(to, from, cut.words, lane, lanes); break;
	}
	if (lane < edges) dst[at] = edge;
}
