// Copies of contiguous bytes by groups of threads, in the widest words that both ends allow.
#pragma once

#include "common.cuh"

// batch_of is the number of words that a thread loads before it stores the first, so that loads do not wait for each
// other. Words that are not loaded are set to 0: uninitialized words would occupy registers from the start of the
// kernel.
template <typename Word> __device__ constexpr unsigned batch_of() { return sizeof(Word) < 16 ? 4 : 2; }

// copy_words copies words by a group of threads, of which this is number `lane` of `lanes`.
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

// copy_shifted copies words of 8 bytes to an aligned address from one that is not. It combines each word from the two
// aligned words that contain it, and reads to the end of the last of these.
__device__ __forceinline__ void copy_shifted(char *dst, const char *src, unsigned words, unsigned lane,
                                             unsigned lanes) {
	typedef u64 Word;
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

// How bytes are copied: single bytes up to an alignment, then words, then the remaining single bytes.
struct Cut {
	unsigned word; // bytes of a word; 0: 8 bytes, combined from two words
	unsigned head, words;

	// If one batch of words of the common alignment of both ends and the length copies all bytes, these words are used;
	// otherwise, the words to which both ends can be aligned after some bytes, or combined words.
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
		if (head < past) head += 8; // so that no byte before src is read
		words = (bytes - head - (8 - past)) / 8;
	}
	__device__ __forceinline__ unsigned middle() const { return words * (word ? word : 8); }
};

// copy_contiguous copies bytes by a group of threads, of which this is number `lane` of `lanes`. All
// threads of a group call it with the same arguments; groups of one warp may differ.
__device__ void copy_contiguous(char *dst, const char *src, unsigned bytes, unsigned lane, unsigned lanes) {
	const Cut cut(dst, src, bytes, lanes);
	const unsigned edges = bytes - cut.middle();
#pragma unroll 1
	for (unsigned i = lane + lanes; i < edges; i += lanes) {
		const unsigned at = i < cut.head ? i : i + cut.middle();
		dst[at] = src[at];
	}
	// Each thread loads its first single byte before all words, and stores it after them.
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
	case 8: copy_words<u64>(to, from, cut.words, lane, lanes); break;
	case 16: copy_words<Word16>(to, from, cut.words, lane, lanes); break;
	}
	if (lane < edges) dst[at] = edge;
}
