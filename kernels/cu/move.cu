// Copies of strided blocks: from a field to a dense buffer and back, between layers of a field, or into the memory of
// another GPU. It is the only packing primitive for regular layouts. It can also add numbers to those at the
// destination.

#include "contiguous.cuh"
#include "strided_copy.cuh"

enum { FEW = 4, STRETCH = 2048 /* bytes */ };

// The argument of a launch. A few copies are part of it, which saves a memory access; more, which would make launches
// slow, are in a table.
struct Move {
	i64 count;
	const BlockRange *table; // null if there are few copies
	BlockRange few[FEW];
};

struct Put {
	template <typename Word> __device__ static void store(Word &to, const Word &from) { to = from; }
};

struct Plus {
	template <typename Word> __device__ static void store(Word &to, const Word &from) { to += from; }
};

// each performs a copy, one word per thread. A thread loads a batch of words before it stores the first.
template <typename How, typename Word> __device__ void each(const BlockRange &p) {
	enum { BATCH = 2 };
	const StridedCopy &s = p.copy;
	const unsigned words = s.words, threads = p.threads();
	for (unsigned first = p.thread(); first < words; first += BATCH * threads) {
		Word word[BATCH];
		Word *to[BATCH];
#pragma unroll
		for (int i = 0; i < BATCH; i++) {
			const unsigned n = first + i * threads;
			if (n >= words) break;
			const Spot at(s, n);
			word[i] = ((const Word *)(s.src + at.from))[at.x];
			to[i] = (Word *)(s.dst + at.to) + at.x;
		}
#pragma unroll
		for (int i = 0; i < BATCH; i++)
			if (first + i * threads < words) How::store(*to[i], word[i]);
	}
}

// each_stretch copies blocks that are aligned only to narrow words: stretch by stretch, each by a group of threads,
// with single bytes before and after the widest words that fit.
__device__ void each_stretch(const BlockRange &p) {
	const StridedCopy &s = p.copy;
	const unsigned lanes = s.lanes, lane = p.thread() & (lanes - 1), groups = p.threads() / lanes;
	for (unsigned n = p.thread() / lanes; n < s.words; n += groups) {
		const Spot at(s, n);
		const i64 begin = (i64)at.x * STRETCH, rest = s.length - begin;
		copy_contiguous(s.dst + at.to + begin, s.src + at.from + begin, (unsigned)(rest < STRETCH ? rest : STRETCH),
		                lane, lanes);
	}
}

// Inner makes a thread copy a block, word by word: LoopT of HAND (Shi et al., section III.B), in which it is the
// innermost of four dimensions.
struct Inner {
	template <typename Word> static __device__ void copy(const BlockRange &p) {
		const StridedCopy &s = p.copy;
		const unsigned blocks = s.words / s.nx;
		for (unsigned n = p.thread(); n < blocks; n += p.threads()) {
			const Spot at(s, n * s.nx);
			const Word *from = (const Word *)(s.src + at.from);
			Word *to = (Word *)(s.dst + at.to);
			for (unsigned x = 0; x < s.nx; x++) to[x] = from[x];
		}
	}
};

// Outer makes a thread copy the same word of all repetitions of the outermost dimension: LoopX of HAND.
struct Outer {
	template <typename Word> static __device__ void copy(const BlockRange &p) {
		const StridedCopy &s = p.copy;
		const unsigned last = s.rank ? s.rank - 1 : 0, times = s.rank ? s.n[last] : 1, words = s.words / times;
		for (unsigned n = p.thread(); n < words; n += p.threads()) {
			const Spot at(s, n);
			const char *from = s.src + at.from + at.x * sizeof(Word);
			char *to = s.dst + at.to + at.x * sizeof(Word);
			for (unsigned i = 0; i < times; i++) {
				*(Word *)to = *(const Word *)from;
				from += s.src_step[last];
				to += s.dst_step[last];
			}
		}
	}
};

// Flat makes a thread copy words of all dimensions in the same way.
struct Flat {
	template <typename Word> static __device__ void copy(const BlockRange &p) { each<Put, Word>(p); }
};

template <typename Way> __device__ void by_word(const BlockRange &p) {
	switch (p.copy.word) {
	case 1: Way::template copy<unsigned char>(p); break;
	case 2: Way::template copy<unsigned short>(p); break;
	case 4: Way::template copy<unsigned>(p); break;
	case 8: Way::template copy<u64>(p); break;
	case 16: Way::template copy<Word16>(p); break;
	}
}

__device__ const BlockRange &mine(const Move &m) { return range_of(m.table ? m.table : m.few, m.count); }

// move performs all copies. Those of one launch must not overlap.
extern "C" __global__ void __launch_bounds__(256) move(const __grid_constant__ Move m) {
	grid_dependency_wait();
	by_word<Flat>(mine(m));
}

// move_stretches is move where some copies are in stretches.
extern "C" __global__ void __launch_bounds__(256) move_stretches(const __grid_constant__ Move m) {
	grid_dependency_wait();
	const BlockRange &p = mine(m);
	if (p.copy.word) by_word<Flat>(p);
	else each_stretch(p);
}

// move_inner and move_outer are move with the loops of HAND.
extern "C" __global__ void __launch_bounds__(256) move_inner(const __grid_constant__ Move m) {
	grid_dependency_wait();
	by_word<Inner>(mine(m));
}

extern "C" __global__ void __launch_bounds__(256) move_outer(const __grid_constant__ Move m) {
	grid_dependency_wait();
	by_word<Outer>(mine(m));
}

enum Scalar { FLOAT32, FLOAT64, INT32, INT64 };

// add adds to the destination of all copies. Those of one launch must not overlap. Integers wrap; in C++ this requires
// unsigned types.
extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ Move m) {
	grid_dependency_wait();
	const BlockRange &p = mine(m);
	switch (p.copy.word) {
	case FLOAT32: each<Plus, float>(p); break;
	case FLOAT64: each<Plus, double>(p); break;
	case INT32: each<Plus, unsigned>(p); break;
	case INT64: each<Plus, u64>(p); break;
	}
}
