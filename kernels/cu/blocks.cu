// Packs and unpacks a plain list of blocks, like the host bypass of HAND (Shi et al., section IV): the kernel itself
// sums the lengths of the blocks to find the position of each in the packed buffer. A thread block processes a chunk, a
// contiguous part of the packed buffer: some blocks, or a part of a long one.

#include "contiguous.cuh"

// A block of the list, `displacement` bytes from the origin.
struct Entry {
	i64 displacement, length;
};

// The start of a chunk: in the packed buffer, and `skip` bytes into block `first` of the list. It ends at the start of
// the next chunk.
struct Chunk {
	i64 offset, first, skip;
};

struct Blocks {
	const i64 *list; // of Entry, or of displacements if all blocks have the same length
	const Chunk *chunks;
	char *strided, *packed; // displacement 0, and the start of the buffer
	i64 count;              // number of chunks
	i64 unpack;             // 0 or 1
	i64 length;             // of all blocks; 0 if they differ
	i64 bytes, chunk;       // in total and per chunk, if all blocks have the same length
	i64 sequential;         // chunks of at most this many blocks are summed sequentially
	i64 lanes;              // threads along a block; 0: lanes_for
};

enum { THREADS = 256, WARP = 32, MAX_BLOCKS = 1024 /* blocks of a chunk */ };
#define ALL 0xffffffffu

// The blocks of a chunk, without their parts in other chunks.
struct Shared {
	i64 place[MAX_BLOCKS];
	unsigned length[MAX_BLOCKS], sum[MAX_BLOCKS];
	unsigned total[THREADS / WARP];
};

// A chunk and the data of its thread block.
struct Part {
	i64 offset, first, skip;
	unsigned bytes, count;
};

__device__ __forceinline__ Part part_of(const Blocks &b, i64 n) {
	Part p;
	if (b.length) {
		p.offset = n * b.chunk;
		p.bytes = (unsigned)(b.bytes - p.offset < b.chunk ? b.bytes - p.offset : b.chunk);
		p.first = p.offset / b.length;
		p.skip = p.offset - p.first * b.length;
		p.count = (unsigned)((p.skip + p.bytes + b.length - 1) / b.length);
		return p;
	}
	const Chunk begin = b.chunks[n], end = b.chunks[n + 1];
	p.offset = begin.offset, p.first = begin.first, p.skip = begin.skip;
	p.bytes = (unsigned)(end.offset - begin.offset);
	p.count = (unsigned)(end.first - begin.first) + (end.skip > 0);
	return p;
}

// load loads the blocks of a chunk into shared memory.
__device__ __forceinline__ void load(const Blocks &b, const Part &p, Shared &s) {
	const Entry *list = (const Entry *)b.list + p.first;
	for (unsigned j = threadIdx.x; j < p.count; j += THREADS) {
		Entry e = list[j];
		if (j == 0) e.displacement += p.skip, e.length -= p.skip;
		s.place[j] = e.displacement;
		s.length[j] = (unsigned)(e.length < p.bytes ? e.length : p.bytes);
	}
	__syncthreads();
}

// sum_sequentially makes each thread sum the lengths before its blocks (HAND, algorithm 2).
__device__ __forceinline__ void sum_sequentially(const Part &p, Shared &s) {
	for (unsigned j = threadIdx.x; j < p.count; j += THREADS) {
		unsigned sum = 0;
		for (unsigned k = 0; k < j; k++) sum += s.length[k];
		s.sum[j] = sum;
	}
	__syncthreads();
}

// sum_in_parallel sums the lengths by a parallel scan (HAND, algorithm 1), in rounds of one length per thread.
__device__ __forceinline__ void sum_in_parallel(const Part &p, Shared &s) {
	const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
	unsigned before = 0; // the sum of earlier rounds
	for (unsigned first = 0; first < p.count; first += THREADS) {
		const unsigned j = first + threadIdx.x, length = j < p.count ? s.length[j] : 0;
		unsigned sum = length;
#pragma unroll
		for (int step = 1; step < WARP; step *= 2) {
			const unsigned other = __shfl_up_sync(ALL, sum, step);
			if (lane >= step) sum += other;
		}
		if (lane == WARP - 1) s.total[warp] = sum;
		__syncthreads();
		unsigned all = before;
		for (unsigned w = 0; w < THREADS / WARP; w++) {
			if (w == warp) before = all;
			all += s.total[w];
		}
		if (j < p.count) s.sum[j] = before + sum - length;
		before = all;
		__syncthreads();
	}
}

// power_of_two returns the smallest power of two that is at least n > 0.
__device__ __forceinline__ unsigned power_of_two(unsigned n) { return n > 1 ? 1u << (32 - __clz(n - 1)) : 1; }

// lanes_for returns how many threads copy each block of a chunk, like the bit operations in HAND's kernel wrapper
// (section IV.B). A few blocks share all threads. Each of many blocks gets a thread per 16 bytes, or per 8 bytes if it
// is short.
__device__ __forceinline__ unsigned lanes_for(const Part &p) {
	const unsigned mean = p.bytes / p.count, rows = power_of_two(p.count);
	const unsigned share = rows < THREADS ? THREADS / rows : 1;
	const unsigned whole = min(power_of_two((mean + 7) / 8), 8), half = min(power_of_two((mean + 15) / 16), WARP);
	return max(share, max(whole, half));
}

__device__ __forceinline__ unsigned lanes_of(const Blocks &b, const Part &p) {
	return b.lanes ? (unsigned)b.lanes : lanes_for(p);
}

// copy_row copies bytes of a block to the packed buffer, or back.
__device__ __forceinline__ void copy_row(const Blocks &b, i64 place, i64 offset, unsigned bytes, unsigned lane,
                                         unsigned lanes) {
	char *const there = b.strided + place, *const packed = b.packed + offset;
	copy_contiguous(b.unpack ? there : packed, b.unpack ? packed : there, bytes, lane, lanes);
}

// copy_equal copies a chunk of blocks of the same length, which needs no sums.
__device__ __forceinline__ void copy_equal(const Blocks &b, const Part &p, unsigned lanes) {
	const unsigned row = threadIdx.x / lanes, rows = THREADS / lanes;
#pragma unroll 1
	for (unsigned j = row; j < p.count; j += rows) {
		const i64 begin = j * b.length - p.skip; // of the whole block, relative to the chunk
		const i64 cut = begin < 0 ? -begin : 0, end = begin + b.length < p.bytes ? begin + b.length : p.bytes;
		copy_row(b, b.list[p.first + j] + cut, p.offset + begin + cut, (unsigned)(end - begin - cut),
		         threadIdx.x % lanes, lanes);
	}
}

// copy_listed copies a chunk of blocks of any lengths.
__device__ __forceinline__ void copy_listed(const Blocks &b, const Part &p, const Shared &s, unsigned lanes) {
	const unsigned row = threadIdx.x / lanes, rows = THREADS / lanes;
#pragma unroll 1
	for (unsigned j = row; j < p.count; j += rows)
		copy_row(b, s.place[j], p.offset + s.sum[j], min(s.length[j], p.bytes - s.sum[j]), threadIdx.x % lanes, lanes);
}

// equal_blocks copies blocks of the same length from a list of displacements: HAND's kernel for indexed_block (section
// III.C).
extern "C" __global__ void __launch_bounds__(THREADS, 5) equal_blocks(const __grid_constant__ Blocks b) {
	grid_dependency_wait();
#pragma unroll 1
	for (i64 n = blockIdx.x; n < b.count; n += gridDim.x) {
		const Part p = part_of(b, n);
		copy_equal(b, p, lanes_of(b, p));
	}
}

// listed copies the blocks of a list.
__device__ __forceinline__ void listed(const Blocks &b, Shared &s) {
#pragma unroll 1
	for (i64 n = blockIdx.x; n < b.count; n += gridDim.x) {
		const Part p = part_of(b, n);
		load(b, p, s);
		if (p.count <= b.sequential) sum_sequentially(p, s);
		else sum_in_parallel(p, s);
		copy_listed(b, p, s, lanes_of(b, p));
		__syncthreads(); // before the next chunk overwrites shared memory
	}
}

extern "C" __global__ void __launch_bounds__(THREADS, 5) listed_blocks(const __grid_constant__ Blocks b) {
	grid_dependency_wait();
	__shared__ Shared s;
	listed(b, s);
}
