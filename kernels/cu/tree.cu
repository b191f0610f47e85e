// Packs and unpacks by a serialized tree of MPI's constructors: Jenkins, Dinan, Balaji, Peterka, Samatova and Thakur,
// "Processing MPI Derived Datatypes on Noncontiguous GPU-Resident Data", TPDS 2014, section 3. A thread moves one
// primitive. It finds it by walking from the root to a leaf, using integer arithmetic on the number of the primitive.
// Parameters of fixed length are cached in shared memory; those of variable length stay in the look-aside buffer.
// kernels/pack/tree.go documents the fields of the structs.

#include "common.cuh"

// Division by a number known before the launch, as a multiplication and a shift. Dividends are below 2^31 or 2^63.
struct Division {
	u64 magic;
	unsigned narrow, shift;
};

__device__ inline unsigned divide(unsigned n, const Division &by) { return __umulhi(n + n, by.narrow) >> by.shift; }
__device__ inline u64 divide(u64 n, const Division &by) { return __umul64hi(n + n, by.magic) >> by.shift; }

enum Kind { CONTIGUOUS, VECTOR, SUBARRAY, INDEXED, INDEXED_BLOCK, STRUCT };

struct Node {
	i64 primitives, size, extent, stride, block;
	i64 table, entries;
	Division by_primitives, by_block;
	int kind, child;
	unsigned short unit, memory, packed, unused; // unit is 0 unless the node is a leaf
};

// A dimension of a subarray, and a block of a struct, in the look-aside buffer.
struct Dim {
	i64 count, stride;
	Division by;
};

struct Field {
	i64 displacement, offset, child;
};

struct Tree {
	const Node *nodes;
	const i64 *look_aside;
	char *user, *packed;
	i64 words; // of 8 bytes, of all nodes
	i64 primitives;
	i64 word;                             // bytes of all primitives; 0 if they differ, or are not aligned on both sides
	i64 memory_alignment, pack_alignment; // of the two addresses, up to 16
};

// The location of a primitive, and its leaf.
struct Location {
	i64 in, out; // offsets in bytes: in memory, and in the packed buffer
	const Node *leaf;
};

// search returns the block of n: sums[block] <= n < sums[block + 1].
template <typename Index> __device__ inline Index search(const i64 *sums, Index blocks, Index n) {
	Index low = 0, high = blocks;
	while (high - low > 1) {
		const Index middle = (low + high) >> 1;
		if ((Index)__ldg(sums + middle) <= n) low = middle;
		else high = middle;
	}
	return low;
}

// element returns the offset of a child of a subarray. The last dimension uses the remainder.
template <typename Index> __device__ inline i64 element(const Dim *dims, int last, Index child) {
	i64 at = 0;
	for (int d = 0; d < last; d++) {
		const Dim &dim = dims[d];
		const Index rest = divide(child, dim.by);
		at += (i64)(child - rest * (Index)dim.count) * dim.stride;
		child = rest;
	}
	return at + (i64)child * dims[last].stride;
}

// place returns the offset of a child of a node other than a struct: inc_read of the paper.
template <typename Index> __device__ inline i64 place(const Node &n, const i64 *aside, Index child) {
	const i64 *table = aside + n.table;
	switch (n.kind) {
	case VECTOR: {
		const Index block = divide(child, n.by_block);
		return (i64)block * n.stride + (i64)(child - block * (Index)n.block) * n.extent;
	}
	case SUBARRAY: return element((const Dim *)table, (int)n.entries - 1, child);
	case INDEXED_BLOCK: {
		const Index block = divide(child, n.by_block);
		return __ldg(table + block) + (i64)(child - block * (Index)n.block) * n.extent;
	}
	case INDEXED: {
		const Index block = search(table, (Index)n.entries, child);
		return __ldg(table + n.entries + 1 + block) + ((i64)child - __ldg(table + block)) * n.extent;
	}
	}
	return (i64)child * n.extent; // contiguous
}

// find walks from the root to primitive n: algorithm 1 of the paper.
template <typename Index> __device__ inline Location find(const Node *nodes, const i64 *aside, Index n) {
	i64 in = 0, out = 0;
	for (const Node *node = nodes;;) {
		if (node->kind == STRUCT) {
			const i64 *sums = aside + node->table;
			const Index block = search(sums, (Index)node->entries, n);
			const Field &field = ((const Field *)(sums + node->entries + 1))[block];
			n -= (Index)__ldg(sums + block);
			in += __ldg(&field.displacement);
			out += __ldg(&field.offset);
			node = nodes + __ldg(&field.child);
			continue;
		}
		if (node->unit) return {in + place(*node, aside, n), out + (i64)n * node->size, node};
		const Index child = divide(n, node->by_primitives);
		n -= child * (Index)node->primitives;
		in += place(*node, aside, child);
		out += (i64)child * node->size;
		node = nodes + node->child;
	}
}

template <typename Word> __device__ inline void move_word(char *to, const char *from) {
	*(Word *)to = *(const Word *)from;
}

__device__ inline void move_whole(char *to, const char *from, int word) {
	switch (word) {
	case 1: move_word<unsigned char>(to, from); break;
	case 2: move_word<unsigned short>(to, from); break;
	case 4: move_word<unsigned>(to, from); break;
	case 8: move_word<u64>(to, from); break;
	default: move_word<Word16>(to, from);
	}
}

// gather loads up to 8 bytes in pieces, scatter stores them.
template <typename Piece> __device__ inline u64 gather(const char *from, int bytes) {
	u64 value = 0;
#pragma unroll
	for (int k = 0; k < 8; k += sizeof(Piece))
		if (k < bytes) value |= (u64) * (const Piece *)(from + k) << 8 * k;
	return value;
}

template <typename Piece> __device__ inline void scatter(char *to, u64 value, int bytes) {
#pragma unroll
	for (int k = 0; k < 8; k += sizeof(Piece))
		if (k < bytes) *(Piece *)(to + k) = (Piece)(value >> 8 * k);
}

__device__ inline u64 load(const char *from, int bytes, int piece) {
	switch (piece) {
	case 1: return gather<unsigned char>(from, bytes);
	case 2: return gather<unsigned short>(from, bytes);
	case 4: return gather<unsigned>(from, bytes);
	}
	return *(const u64 *)from;
}

__device__ inline void store(char *to, u64 value, int bytes, int piece) {
	switch (piece) {
	case 1: scatter<unsigned char>(to, value, bytes); break;
	case 2: scatter<unsigned short>(to, value, bytes); break;
	case 4: scatter<unsigned>(to, value, bytes); break;
	default: *(u64 *)to = value;
	}
}

// move_pieces moves a primitive in pieces to which both addresses are aligned.
__device__ inline void move_pieces(char *to, const char *from, int bytes, int to_piece, int from_piece) {
	const int half = min(bytes, 8);
	const u64 low = load(from, half, from_piece);
	if (bytes > 8) {
		const u64 high = load(from + 8, 8, from_piece);
		store(to + 8, high, 8, to_piece);
	}
	store(to, low, half, to_piece);
}

enum Way { PACK, UNPACK };

// whole moves primitives that are all words of one size: word n is at n words in the packed buffer.
template <Way way, typename Index> __device__ void whole(const Tree &t, const Node *nodes) {
	const Index step = (Index)gridDim.x * blockDim.x;
	for (Index n = (Index)blockIdx.x * blockDim.x + threadIdx.x; n < (Index)t.primitives; n += step) {
		char *user = t.user + find<Index>(nodes, t.look_aside, n).in, *packed = t.packed + (i64)n * t.word;
		if (way == PACK) move_whole(packed, user, (int)t.word);
		else move_whole(user, packed, (int)t.word);
	}
}

// mixed moves primitives of any sizes, at any addresses.
template <Way way, typename Index> __device__ void mixed(const Tree &t, const Node *nodes) {
	const Index step = (Index)gridDim.x * blockDim.x;
	for (Index n = (Index)blockIdx.x * blockDim.x + threadIdx.x; n < (Index)t.primitives; n += step) {
		const Location at = find<Index>(nodes, t.look_aside, n);
		char *user = t.user + at.in, *packed = t.packed + at.out;
		const int memory = min((int)at.leaf->memory, (int)t.memory_alignment),
		          pack = min((int)at.leaf->packed, (int)t.pack_alignment);
		if (way == PACK) move_pieces(packed, user, at.leaf->unit, pack, memory);
		else move_pieces(user, packed, at.leaf->unit, memory, pack);
	}
}

// run caches the nodes and moves all primitives.
template <Way way, typename Index> __device__ void run(const Tree &t) {
	u64 *const cache = (u64 *)dynamic_shared();
	const u64 *nodes = (const u64 *)t.nodes;
	for (int i = threadIdx.x; i < (int)t.words; i += blockDim.x) cache[i] = nodes[i];
	__syncthreads();
	if (t.word) whole<way, Index>(t, (const Node *)cache);
	else mixed<way, Index>(t, (const Node *)cache);
}

// The narrow kernels are for less than 2^31 primitives.
extern "C" __global__ void __launch_bounds__(256) pack_narrow(const __grid_constant__ Tree t) {
	grid_dependency_wait();
	run<PACK, unsigned>(t);
}
extern "C" __global__ void __launch_bounds__(256) pack_wide(const __grid_constant__ Tree t) {
	grid_dependency_wait();
	run<PACK, u64>(t);
}
extern "C" __global__ void __launch_bounds__(256) unpack_narrow(const __grid_constant__ Tree t) {
	grid_dependency_wait();
	run<UNPACK, unsigned>(t);
}
extern "C" __global__ void __launch_bounds__(256) unpack_wide(const __grid_constant__ Tree t) {
	grid_dependency_wait();
	run<UNPACK, u64>(t);
}
