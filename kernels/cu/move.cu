// Copies blocks of bytes from one place to another: from a field to a buffer without
// gaps and back, from layer to layer of a field, or into the memory of another GPU.
// It is the one packing primitive for what is regular. Numbers may be added to what is
// there instead.

#include "piece.cuh"
#include "segment.cuh"

enum { FEW = 4 };

// What to copy comes with the launch, where it costs no trip to memory; what is more
// than a few segments, and would make launches slow, lies in a table.
struct Move {
	i64 count;
	const Portion *table; // null if they are few
	Portion few[FEW];
};

struct Put {
	template <typename Word> __device__ static void store(Word &to, const Word &from) { to = from; }
};

struct Plus {
	template <typename Word> __device__ static void store(Word &to, const Word &from) { to += from; }
};

// each stores a segment. A thread loads several words before it stores the first.
template <typename How, typename Word> __device__ void each(const Portion &p) {
	enum { BATCH = 2 };
	const Segment &s = p.box;
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

// each_stretch copies blocks that narrow words only would fit: stretch by stretch, by
// some threads each, with a prologue and an epilogue about the words that fit the
// stretch.
__device__ void each_stretch(const Portion &p) {
	enum { STRETCH = 2048 };
	const Segment &s = p.box;
	const unsigned lanes = s.lanes, lane = p.thread() & (lanes - 1), groups = p.threads() / lanes;
	for (unsigned n = p.thread() / lanes; n < s.words; n += groups) {
		const Spot at(s, n);
		const i64 begin = (i64)at.x * STRETCH, rest = s.length - begin;
		copy_piece(s.dst + at.to + begin, s.src + at.from + begin, (unsigned)(rest < STRETCH ? rest : STRETCH), lane,
		           lanes);
	}
}

// Inner copies a block a thread, word by word: LoopT of HAND (Shi et al., section
// III.B), where it is the innermost of four dimensions.
struct Inner {
	template <typename Word> static __device__ void copy(const Portion &p) {
		const Segment &s = p.box;
		const unsigned blocks = s.words / s.nx;
		for (unsigned n = p.thread(); n < blocks; n += p.threads()) {
			const Spot at(s, n * s.nx);
			const Word *from = (const Word *)(s.src + at.from);
			Word *to = (Word *)(s.dst + at.to);
			for (unsigned x = 0; x < s.nx; x++) to[x] = from[x];
		}
	}
};

// Outer copies a word of all repetitions of the outermost dimension a thread: LoopX of
// HAND.
struct Outer {
	template <typename Word> static __device__ void copy(const Portion &p) {
		const Segment &s = p.box;
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

// Flat copies a word a thread, of all dimensions alike.
struct Flat {
	template <typename Word> static __device__ void copy(const Portion &p) { each<Put, Word>(p); }
};

template <typename Way> __device__ void by_word(const Portion &p) {
	switch (p.box.word) {
	case 1: Way::template copy<unsigned char>(p); break;
	case 2: Way::template copy<unsigned short>(p); break;
	case 4: Way::template copy<unsigned>(p); break;
	case 8: Way::template copy<unsigned long long>(p); break;
	case 16: Way::template copy<Sixteen>(p); break;
	}
}

__device__ const Portion &mine(const Move &m) { return portion_of(m.table ? m.table : m.few, m.count); }

// move copies all segments; those of one launch do not overlap.
extern "C" __global__ void __launch_bounds__(256) move(const __grid_constant__ Move m) {
	after_predecessor();
	by_word<Flat>(mine(m));
}

// move_stretches is move where some segments are of stretches.
extern "C" __global__ void __launch_bounds__(256) move_stretches(const __grid_constant__ Move m) {
	after_predecessor();
	const Portion &p = mine(m);
	if (p.box.word) by_word<Flat>(p);
	else each_stretch(p);
}

// move_inner and move_outer are move with the loops of HAND.
extern "C" __global__ void __launch_bounds__(256) move_inner(const __grid_constant__ Move m) {
	after_predecessor();
	by_word<Inner>(mine(m));
}

extern "C" __global__ void __launch_bounds__(256) move_outer(const __grid_constant__ Move m) {
	after_predecessor();
	by_word<Outer>(mine(m));
}

enum Scalar { FLOAT32, FLOAT64, INT32, INT64 };

// add adds all segments to what is there; those of one launch do not overlap.
// Whole numbers wrap, which only those without a sign may in C.
extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ Move m) {
	after_predecessor();
	const Portion &p = mine(m);
	switch (p.box.word) {
	case FLOAT32: each<Plus, float>(p); break;
	case FLOAT64: each<Plus, double>(p); break;
	case INT32: each<Plus, unsigned>(p); break;
	case INT64: each<Plus, unsigned long long>(p); break;
	}
}
