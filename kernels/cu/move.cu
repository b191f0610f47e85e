// Copies blocks of bytes from one place to another: from a field to a buffer without
// gaps and back, from layer to layer of a field, or into the memory of another GPU.
// It is the one packing primitive for what is regular. Numbers may be added to what is
// there instead.

enum { FEW = 4 };

// What to copy comes with the launch, where it costs no trip to memory; what is more
// than a few segments, and would make launches slow, lies in a table.
struct Move {
	i64 count;
	const Portion *table; // null if they are few
	Portion few[FEW];
};

struct Put {
	template <typename Word>
	__device__ static void store(Word &to, const Word &from) { to = from; }
};

struct Plus {
	template <typename Word>
	__device__ static void store(Word &to, const Word &from) { to += from; }
};

// each stores a segment. A thread loads several words before it stores the first.
template <typename How, typename Word>
__device__ void each(const Portion &p) {
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

// move copies all segments; those of one launch do not overlap.
extern "C" __global__ void __launch_bounds__(256) move(const __grid_constant__ Move m) {
	const Portion &p = portion_of(m.table ? m.table : m.few, m.count);
	switch (p.box.word) {
	case 1: each<Put, unsigned char>(p); break;
	case 2: each<Put, unsigned short>(p); break;
	case 4: each<Put, unsigned>(p); break;
	case 8: each<Put, unsigned long long>(p); break;
	case 16: each<Put, Sixteen>(p); break;
	}
}

enum Scalar { FLOAT32, FLOAT64, INT32, INT64 };

// add adds all segments to what is there; those of one launch do not overlap.
// Whole numbers wrap, which only those without a sign may in C.
extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ Move m) {
	const Portion &p = portion_of(m.table ? m.table : m.few, m.count);
	switch (p.box.word) {
	case FLOAT32: each<Plus, float>(p); break;
	case FLOAT64: each<Plus, double>(p); break;
	case INT32: each<Plus, unsigned>(p); break;
	case INT64: each<Plus, unsigned long long>(p); break;
	}
}
