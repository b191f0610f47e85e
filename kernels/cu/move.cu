// Copies boxes of elements from one place to another: from a field to a buffer
// without gaps and back, from layer to layer of a field, or into the memory of
// another GPU. It is the one packing primitive of halox.

// A box to copy, in words of 1, 2, 4, 8 or 16 bytes: nx of them in a row. Rows
// and planes are so many bytes apart on either side.
struct Segment {
	char *dst;
	const char *src;
	i64 dst_pitch, dst_plane;
	i64 src_pitch, src_plane;
	i64 nx, ny, nz;
	i64 word;
};

struct Move {
	const Segment *segments; // one for each blockIdx.y
};

// copy_words copies a segment, a word a thread, x fastest. Divisions of 64 bits
// cost some ten times those of 32, so segments of less than 2^31 words, which
// all but the largest are, use those.
template <typename Word, typename Index>
__device__ void copy_words(const Segment &s) {
	const Index nx = (Index)s.nx, ny = (Index)s.ny, words = (Index)(s.nx * s.ny * s.nz);
	for (Index n = (Index)blockIdx.x * blockDim.x + threadIdx.x; n < words; n += (Index)gridDim.x * blockDim.x) {
		const Index row = n / nx, x = n - row * nx, z = row / ny, y = row - z * ny;
		const i64 from = (i64)y * s.src_pitch + (i64)z * s.src_plane, to = (i64)y * s.dst_pitch + (i64)z * s.dst_plane;
		((Word *)(s.dst + to))[x] = ((const Word *)(s.src + from))[x];
	}
}

template <typename Word>
__device__ void copy(const Segment &s) {
	if (s.nx * s.ny * s.nz <= 0x7fffffff)
		copy_words<Word, unsigned>(s);
	else
		copy_words<Word, unsigned long long>(s);
}

struct alignas(16) Sixteen {
	unsigned long long low, high;
};

// move copies all segments; those of one launch do not overlap.
extern "C" __global__ void __launch_bounds__(256) move(const __grid_constant__ Move m) {
	const Segment &s = m.segments[blockIdx.y];
	switch (s.word) {
	case 1: copy<unsigned char>(s); break;
	case 2: copy<unsigned short>(s); break;
	case 4: copy<unsigned>(s); break;
	case 8: copy<unsigned long long>(s); break;
	case 16: copy<Sixteen>(s); break;
	}
}
