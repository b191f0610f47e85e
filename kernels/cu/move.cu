// Copies boxes of elements from one place to another: from a field to a buffer
// without gaps and back, from layer to layer of a field, or into the memory of
// another GPU. It is the one packing primitive of halox. Numbers may be added to
// what is there instead.

struct Move {
	const Segment *segments; // one for each blockIdx.y
};

struct Put {
	template <typename Word>
	__device__ static void store(Word &to, const Word &from) { to = from; }
};

struct Plus {
	template <typename Word>
	__device__ static void store(Word &to, const Word &from) { to += from; }
};

// each_word stores a segment, a word a thread.
template <typename How, typename Word, typename Index>
__device__ void each_word(const Segment &s) {
	const Index words = (Index)words_of(s);
	for (Index n = (Index)blockIdx.x * blockDim.x + threadIdx.x; n < words; n += (Index)gridDim.x * blockDim.x) {
		const Spot<Index> at(s, n);
		How::store(((Word *)(s.dst + at.to))[at.x], ((const Word *)(s.src + at.from))[at.x]);
	}
}

template <typename How, typename Word>
__device__ void each(const Segment &s) {
	if (words_of(s) <= 0x7fffffff)
		each_word<How, Word, unsigned>(s);
	else
		each_word<How, Word, unsigned long long>(s);
}

// move copies all segments; those of one launch do not overlap.
extern "C" __global__ void __launch_bounds__(256) move(const __grid_constant__ Move m) {
	const Segment &s = m.segments[blockIdx.y];
	switch (s.word) {
	case 1: each<Put, unsigned char>(s); break;
	case 2: each<Put, unsigned short>(s); break;
	case 4: each<Put, unsigned>(s); break;
	case 8: each<Put, unsigned long long>(s); break;
	case 16: each<Put, Sixteen>(s); break;
	}
}

enum Scalar { FLOAT32, FLOAT64, INT32, INT64 };

// add adds all segments to what is there; those of one launch do not overlap.
// Whole numbers wrap, which only those without a sign may in C.
extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ Move m) {
	const Segment &s = m.segments[blockIdx.y];
	switch (s.word) {
	case FLOAT32: each<Plus, float>(s); break;
	case FLOAT64: each<Plus, double>(s); break;
	case INT32: each<Plus, unsigned>(s); break;
	case INT64: each<Plus, unsigned long long>(s); break;
	}
}
