// Packs and unpacks a list of blocks as it is, as the host bypass of HAND (Shi et al.,
// section IV) does: the kernel itself sums up the lengths of the blocks, to know where
// each lies in the packed buffer. A thread block works on a chunk, which is a stretch
// of the packed buffer: some blocks, or a part of a long one.

#include "piece.cuh"

// A block of the list: Displacement bytes from the origin.
struct Entry {
	i64 displacement, length;
};

// Where a chunk begins: in the packed buffer, and in the list, `skip` bytes into a
// block. It ends where the next begins.
struct Chunk {
	i64 offset, first, skip;
};

struct Blocks {
	const i64 *list; // of Entry; if all blocks have one length, their displacements
	const Chunk *chunks;
	char *strided, *packed; // displacement 0, and the start of the buffer
	i64 count;              // chunks
	i64 unpack;             // 0 or 1
	i64 length;             // of all blocks; 0: the list says it
	i64 bytes, chunk;       // in all, and of a chunk, of blocks of one length
	i64 sequential;         // as many lengths at most are summed up by each thread for itself
	i64 lanes;              // along a block; 0: as suits the chunk
	unsigned *sums;         // where a kernel of its own puts them, if it does
};

enum { THREADS = 256, WARP = 32, MOST = 1024 /* blocks of a chunk */ };
#define ALL 0xffffffffu

// Numbers of the blocks of a chunk in shared memory, in one dimension and in two: HAND
// found sums in one faster (figure 10). The rows are one longer than a warp, so that a
// column too lies in all banks.
struct Line {
	unsigned value[MOST];
	__device__ __forceinline__ unsigned &operator[](unsigned j) { return value[j]; }
	__device__ __forceinline__ unsigned operator[](unsigned j) const { return value[j]; }
};

struct Plane {
	unsigned value[MOST / WARP][WARP + 1];
	__device__ __forceinline__ unsigned &operator[](unsigned j) { return value[j / WARP][j % WARP]; }
	__device__ __forceinline__ unsigned operator[](unsigned j) const { return value[j / WARP][j % WARP]; }
};

// The blocks of a chunk, cut to what the chunk has of them.
template <typename Sums> struct Shared {
	i64 place[MOST];
	Sums length, sum;
	unsigned total[THREADS / WARP];
};

// A chunk as the thread block works on it.
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

// load brings the blocks of a chunk into shared memory.
template <typename Sums> __device__ __forceinline__ void load(const Blocks &b, const Part &p, Shared<Sums> &s) {
	const Entry *list = (const Entry *)b.list + p.first;
	for (unsigned j = threadIdx.x; j < p.count; j += THREADS) {
		Entry e = list[j];
		if (j == 0) e.displacement += p.skip, e.length -= p.skip;
		s.place[j] = e.displacement;
		s.length[j] = (unsigned)(e.length < p.bytes ? e.length : p.bytes);
	}
	__syncthreads();
}

// sum_sequentially lets each thread sum up the lengths before its blocks (HAND,
// algorithm 2).
template <typename Sums> __device__ __forceinline__ void sum_sequentially(const Part &p, Shared<Sums> &s) {
	for (unsigned j = threadIdx.x; j < p.count; j += THREADS) {
		unsigned sum = 0;
		for (unsigned k = 0; k < j; k++) sum += s.length[k];
		s.sum[j] = sum;
	}
	__syncthreads();
}

// sum_together sums up the lengths in a logarithmic number of steps (HAND, algorithm
// 1), a block a thread at a time.
template <typename Sums> __device__ __forceinline__ void sum_together(const Part &p, Shared<Sums> &s) {
	const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
	unsigned before = 0; // this round
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

// power_of_two returns the smallest power of two that is not below n > 0.
__device__ __forceinline__ unsigned power_of_two(unsigned n) { return n > 1 ? 1u << (32 - __clz(n - 1)) : 1; }

// lanes_for gives a chunk the shape of its thread block, as HAND's kernel wrapper
// does with bit operations (section IV.B): so many threads along each block, the others
// on other blocks at the same time. Few blocks get all threads between them; of many,
// each gets as many as it has two words of 8 bytes, if it is short as many as words.
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
	copy_piece(b.unpack ? there : packed, b.unpack ? packed : there, bytes, lane, lanes);
}

// copy_equal copies a chunk of blocks of one length: there is nothing to sum up.
__device__ __forceinline__ void copy_equal(const Blocks &b, const Part &p, unsigned lanes) {
	const unsigned row = threadIdx.x / lanes, rows = THREADS / lanes;
#pragma unroll 1
	for (unsigned j = row; j < p.count; j += rows) {
		const i64 begin = j * b.length - p.skip; // in the chunk, of the whole block
		const i64 cut = begin < 0 ? -begin : 0, end = begin + b.length < p.bytes ? begin + b.length : p.bytes;
		copy_row(b, b.list[p.first + j] + cut, p.offset + begin + cut, (unsigned)(end - begin - cut),
		         threadIdx.x % lanes, lanes);
	}
}

// copy_listed copies a chunk of blocks of any lengths.
template <typename Sums>
__device__ __forceinline__ void copy_listed(const Blocks &b, const Part &p, const Shared<Sums> &s, unsigned lanes) {
	const unsigned row = threadIdx.x / lanes, rows = THREADS / lanes;
#pragma unroll 1
	for (unsigned j = row; j < p.count; j += rows)
		copy_row(b, s.place[j], p.offset + s.sum[j], min(s.length[j], p.bytes - s.sum[j]), threadIdx.x % lanes, lanes);
}

// equal_blocks copies the blocks of a list of displacements, which have one length:
// HAND's kernel for indexed_block (section III.C).
extern "C" __global__ void __launch_bounds__(THREADS, 5) equal_blocks(const __grid_constant__ Blocks b) {
	after_predecessor();
#pragma unroll 1
	for (i64 n = blockIdx.x; n < b.count; n += gridDim.x) {
		const Part p = part_of(b, n);
		copy_equal(b, p, lanes_of(b, p));
	}
}

// listed copies the blocks of a list.
template <typename Sums> __device__ __forceinline__ void listed(const Blocks &b, Shared<Sums> &s) {
#pragma unroll 1
	for (i64 n = blockIdx.x; n < b.count; n += gridDim.x) {
		const Part p = part_of(b, n);
		load(b, p, s);
		if (p.count <= b.sequential) sum_sequentially(p, s);
		else sum_together(p, s);
		copy_listed(b, p, s, lanes_of(b, p));
		__syncthreads(); // before the next chunk comes into shared memory
	}
}

extern "C" __global__ void __launch_bounds__(THREADS, 5) listed_blocks(const __grid_constant__ Blocks b) {
	after_predecessor();
	__shared__ Shared<Line> s;
	listed(b, s);
}

extern "C" __global__ void __launch_bounds__(THREADS, 5) listed_blocks_2d(const __grid_constant__ Blocks b) {
	after_predecessor();
	__shared__ Shared<Plane> s;
	listed(b, s);
}

// sums_of returns where the sums of a chunk lie that have a kernel of their own. A
// block that is cut has one in either chunk.
__device__ __forceinline__ unsigned *sums_of(const Blocks &b, const Part &p, i64 n) { return b.sums + p.first + n; }

// scan_blocks is the first of HAND's two steps (figure 9): it only sums up.
extern "C" __global__ void __launch_bounds__(THREADS, 5) scan_blocks(const __grid_constant__ Blocks b) {
	after_predecessor();
	__shared__ Shared<Line> s;
#pragma unroll 1
	for (i64 n = blockIdx.x; n < b.count; n += gridDim.x) {
		const Part p = part_of(b, n);
		load(b, p, s);
		sum_together(p, s);
		for (unsigned j = threadIdx.x; j < p.count; j += THREADS) sums_of(b, p, n)[j] = s.sum[j];
		__syncthreads();
	}
}

// scanned_blocks is the second: it copies the blocks.
extern "C" __global__ void __launch_bounds__(THREADS, 5) scanned_blocks(const __grid_constant__ Blocks b) {
	after_predecessor();
	__shared__ Shared<Line> s;
#pragma unroll 1
	for (i64 n = blockIdx.x; n < b.count; n += gridDim.x) {
		const Part p = part_of(b, n);
		for (unsigned j = threadIdx.x; j < p.count; j += THREADS) s.sum[j] = sums_of(b, p, n)[j];
		load(b, p, s);
		copy_listed(b, p, s, lanes_of(b, p));
		__syncthreads();
	}
}
