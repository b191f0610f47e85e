// Copies of regularly spaced blocks, and their thread blocks.
#pragma once

#include "common.cuh"

enum { MAX_DIMS = 4 };

// A block of nx words, repeated over up to four dimensions, the innermost first: n[i] times, with a step on each side.
struct StridedCopy {
	char *dst;
	const char *src;
	i64 dst_step[MAX_DIMS], src_step[MAX_DIMS]; // bytes
	i64 length;                                 // bytes of a block, if it is copied in stretches
	unsigned nx, n[MAX_DIMS];
	unsigned factor[MAX_DIMS], shift[MAX_DIMS]; // for divisions by nx, n[0], ... as multiplications
	unsigned words;                             // total number, less than 2^31
	unsigned word;                              // bytes of a word; 0: in stretches; for add, a Scalar
	unsigned rank;                              // dimensions in use
	unsigned lanes;                             // threads of a stretch, a power of two
};

// The source and destination of word n of a copy: the word x of a block, and the offset of the block in bytes.
struct Spot {
	unsigned x;
	i64 from, to;

	__device__ Spot(const StridedCopy &s, unsigned n) : x(n), from(0), to(0) {
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

	__device__ static unsigned quotient(const StridedCopy &s, int i, unsigned n, unsigned by) {
		return by == 1 ? n : __umulhi(n, s.factor[i]) >> s.shift[i];
	}

	__device__ void step(const StridedCopy &s, int i, unsigned index) {
		from += index * s.src_step[i];
		to += index * s.dst_step[i];
	}
};

// A copy, and the consecutive thread blocks that perform it.
struct BlockRange {
	StridedCopy copy;
	i64 first, blocks;

	__device__ unsigned thread() const { return (unsigned)(blockIdx.x - first) * blockDim.x + threadIdx.x; }
	__device__ unsigned threads() const { return (unsigned)blocks * blockDim.x; }
};

// range_of returns the range of this thread block: the last that begins at or before it.
__device__ inline const BlockRange &range(const BlockRange &r) { return r; }

template <typename Range> __device__ const Range &range_of(const Range *all, i64 count) {
	i64 low = 0;
	while (count > 1) {
		const i64 half = count / 2;
		if (range(all[low + half]).first <= blockIdx.x) low += half, count -= half;
		else count = half;
	}
	return all[low];
}
