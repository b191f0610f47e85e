// Copies of words that lie at regular distances, and the thread blocks that make them.
#pragma once

#include "common.cuh"

// A block of nx words to copy, repeated over up to four dimensions, innermost first:
// n[i] times, so many bytes apart on either side. Words have 1, 2, 4, 8 or 16 bytes.
enum { MAX_DIMS = 4 };

struct Segment {
	char *dst;
	const char *src;
	i64 dst_step[MAX_DIMS], src_step[MAX_DIMS];
	i64 length; // of a block that is copied by stretches, in bytes
	unsigned nx, n[MAX_DIMS];
	unsigned factor[MAX_DIMS], shift[MAX_DIMS]; // to divide by nx, n[0], ... with a product
	unsigned words;                             // in all, less than 2^31
	unsigned word;                              // its bytes; 0: a stretch of any bytes; for add, a Scalar
	unsigned rank;                              // dimensions in use
	unsigned lanes;                             // threads to a stretch, a power of two
};

// Where the n-th word of a segment comes from and goes to.
struct Spot {
	unsigned x;
	i64 from, to; // bytes; x words come on top

	__device__ Spot(const Segment &s, unsigned n) : x(n), from(0), to(0) {
		if (s.rank == 0) return;
		unsigned rest = quotient(s, 0, n, s.nx);
		x = n - rest * s.nx;
#pragma unroll
		for (int i = 0; i + 1 < MAX_DIMS; i++) {
			if (i + 1 >= s.rank) break;
			const unsigned outer = quotient(s, i + 1, rest, s.n[i]);
			step(s, i, rest - outer * s.n[i]);
			rest = outer;
		}
		step(s, s.rank - 1, rest);
	}

	__device__ static unsigned quotient(const Segment &s, int i, unsigned n, unsigned by) {
		return by == 1 ? n : __umulhi(n, s.factor[i]) >> s.shift[i];
	}

	__device__ void step(const Segment &s, int i, unsigned index) {
		from += index * s.src_step[i];
		to += index * s.dst_step[i];
	}
};

// A segment, and the thread blocks that work on it, which follow each other.
struct Portion {
	Segment box;
	i64 first, blocks;

	__device__ unsigned thread() const { return (unsigned)(blockIdx.x - first) * blockDim.x + threadIdx.x; }
	__device__ unsigned threads() const { return (unsigned)blocks * blockDim.x; }
};

// portion_of returns which of several portions the block works on: the last that
// begins at or before it.
template <typename Part> __device__ const Part &portion_of(const Part *all, i64 count) {
	i64 low = 0;
	while (count > 1) {
		const i64 half = count / 2;
		if (all[low + half].first <= blockIdx.x) low += half, count -= half;
		else count = half;
	}
	return all[low];
}
