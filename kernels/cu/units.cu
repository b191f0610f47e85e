// Packs and unpacks a list of work units, one unit per warp, like Wu et al. (HPDC 2016, section 3.2): the host divides
// the blocks of a layout into units of a few KiB, and computes the position of each on both sides. Blocks too short to
// occupy a warp are combined into bundles of up to one block per lane, which are copied as one piece of the packed
// buffer.

#include "contiguous.cuh"

// A unit of work, in 16 bytes. A unit of one block begins `place` bytes from the origin. The blocks of a bundle start
// at index `place` of `shorts`.
struct alignas(16) Unit {
	i64 place;
	u64 rest; // offset in the packed buffer << 19 | blocks << 13 | bytes

	__device__ unsigned bytes() const { return (unsigned)rest & 0x1fff; }
	__device__ unsigned blocks() const { return (unsigned)rest >> 13 & 63; }
	__device__ u64 offset() const { return rest >> 19; }
};

// A block of a bundle: displacement << 13 | length.
typedef long long Short;

struct Units {
	const Unit *units;
	const Short *shorts;
	char *strided, *packed; // displacement 0, and the start of the buffer
	i64 first, count;       // units to copy
	i64 unpack;             // 0 or 1
};

enum { WARP = 32 };
#define ALL 0xffffffffu

// owner_of returns the lane that holds the last of ascending numbers that do not exceed n.
__device__ __forceinline__ unsigned owner_of(unsigned number, unsigned n) {
	unsigned low = 0;
#pragma unroll
	for (int step = WARP / 2; step > 0; step /= 2)
		if (__shfl_sync(ALL, number, low + step) <= n) low += step;
	return low;
}

// any_bits returns the bits that are set in any lane.
__device__ __forceinline__ unsigned any_bits(unsigned bits) {
#pragma unroll
	for (int step = WARP / 2; step > 0; step /= 2) bits |= __shfl_xor_sync(ALL, bits, step);
	return bits;
}

// sum_before returns the sum of the numbers of the lanes before this one.
__device__ __forceinline__ unsigned sum_before(unsigned number, unsigned lane) {
	unsigned sum = number;
#pragma unroll
	for (int step = 1; step < WARP; step *= 2) {
		const unsigned other = __shfl_up_sync(ALL, sum, step);
		if (lane >= step) sum += other;
	}
	return sum - number;
}

// copy_bundle copies a bundle in words of the packed side, none of which crosses a block. This lane's block begins
// `begin` bytes into the bundle. `home` is the address of the bundle in memory if it were contiguous with that block.
template <typename Word>
__device__ __forceinline__ void copy_bundle(const Units &u, char *packed, i64 home, unsigned begin, unsigned words,
                                            unsigned lane) {
	constexpr unsigned BATCH = batch_of<Word>();
#pragma unroll 1
	for (unsigned first = 0; first < words; first += BATCH * WARP) {
		Word word[BATCH] = {};
		Word *to[BATCH] = {};
#pragma unroll
		for (int i = 0; i < BATCH; i++) {
			if (first + i * WARP >= words) break; // in all lanes
			const unsigned n = first + i * WARP + lane, byte = n * sizeof(Word);
			char *const there = u.strided + __shfl_sync(ALL, home, owner_of(begin, byte)) + byte;
			to[i] = (Word *)(u.unpack ? there : packed + byte);
			const Word *from = (const Word *)(u.unpack ? packed + byte : there);
			if (n < words) word[i] = *from;
		}
#pragma unroll
		for (int i = 0; i < BATCH; i++)
			if (first + i * WARP + lane < words) *to[i] = word[i];
	}
}

// The block of a unit that a lane holds. It is `home` + `begin` bytes from the origin, and `begin` bytes into the unit.
struct Lane {
	i64 home;
	unsigned begin, length;

	__device__ __forceinline__ Lane(const Units &u, const Unit &unit, unsigned lane)
	    : home(unit.place), begin(0), length(unit.bytes()) {
		if (unit.blocks() == 1) return;
		const Short block = lane < unit.blocks() ? u.shorts[unit.place + lane] : 0;
		length = (unsigned)block & 0x1fff;
		begin = sum_before(length, lane);
		home = (block >> 13) - begin;
	}
};

// word_of returns the bytes of the widest word to which all blocks of a bundle are aligned.
__device__ __forceinline__ unsigned word_of(const Units &u, const Unit &unit, const Lane &block, const char *packed) {
	const unsigned start = (unsigned)(size_t)u.strided + (unsigned)block.home + block.begin;
	const unsigned mixed = any_bits(block.length ? start | block.length : 0) | (unsigned)(size_t)packed | 16;
	return mixed & (0u - mixed);
}

// copy_unit copies a bundle as one piece of the packed buffer, unless its blocks are aligned only to narrow words and
// are long enough to be copied one at a time, each by some lanes.
__device__ __forceinline__ void copy_unit(const Units &u, const Unit &unit, unsigned lane) {
	const Lane block(u, unit, lane);
	char *const packed = u.packed + unit.offset();
	const unsigned bytes = unit.bytes(), blocks = unit.blocks(), lanes = blocks > 1 ? 8 : WARP;
	if (blocks > 1) {
		const unsigned word = word_of(u, unit, block, packed);
		switch (word >= 4 || bytes < 64 * blocks ? word : 0) {
		case 1: return copy_bundle<unsigned char>(u, packed, block.home, block.begin, bytes, lane);
		case 2: return copy_bundle<unsigned short>(u, packed, block.home, block.begin, bytes / 2, lane);
		case 4: return copy_bundle<unsigned>(u, packed, block.home, block.begin, bytes / 4, lane);
		case 8: return copy_bundle<u64>(u, packed, block.home, block.begin, bytes / 8, lane);
		case 16: return copy_bundle<Word16>(u, packed, block.home, block.begin, bytes / 16, lane);
		}
	}
#pragma unroll 1
	for (unsigned first = 0; first < blocks; first += WARP / lanes) { // in all lanes
		const unsigned n = first + lane / lanes;
		const i64 home = __shfl_sync(ALL, block.home, n);
		const unsigned begin = __shfl_sync(ALL, block.begin, n), length = __shfl_sync(ALL, block.length, n);
		char *const there = u.strided + home + begin, *const here = packed + begin;
		if (n < blocks) copy_contiguous(u.unpack ? there : here, u.unpack ? here : there, length, lane % lanes, lanes);
	}
}

// units copies the units, one at a time per warp. A warp loads the next unit before it copies the current one.
extern "C" __global__ void __launch_bounds__(256, 5) units(const __grid_constant__ Units u) {
	grid_dependency_wait();
	const unsigned lane = threadIdx.x % WARP;
	const unsigned warps = (unsigned)thread_count() / WARP, count = (unsigned)u.count; // less than 2^31
	const Unit *const units = u.units + u.first;
	unsigned n = (unsigned)thread_index() / WARP;
	Unit next = {};
	if (n < count) next = units[n];
#pragma unroll 1
	for (; n < count; n += warps) {
		const Unit unit = next;
		if (n + warps < count) next = units[n + warps];
		copy_unit(u, unit, lane);
	}
}
