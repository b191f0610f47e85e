// Litmus tests of device ranks on the available devices. litmus.go has their Go counterparts.
#include "ranks.cuh"

using namespace ranks;

// Data shared by the ranks of a device.
struct Litmus {
	char *windows, *sources; // of this device: one slot per rank
	i64 slot;                // bytes
	i64 rounds, seed;
	i64 near;         // whether ranks put to their own device, or to the next one
	i64 fault, where; // see litmus.go: fault to inject, and in which round
	u64 wrong;        // 1: the following fields describe the first error on this device
	i64 kind, from, to, round, at, expected, came;
};

enum { NO_FAULT, DROPPED, FLIPPED };
enum { POISON = 0xee, CREDIT = 128, SOME_TAGS = 100, COUNTED = 8, WORD = 16, ALIGNMENTS = 17 };
enum Kind { WRONG_BYTE, WRONG_COUNT, EARLY };

__device__ unsigned hash(i64 a, i64 b) {
	unsigned h = (unsigned)a * 0x9e3779b1u ^ ((unsigned)b + 0x7f4a7c15u) * 0x85ebca77u;
	h ^= h >> 15, h *= 0xc2b2ae3du, h ^= h >> 13;
	return h;
}

__device__ unsigned char pattern(const Litmus &l, int rank, i64 round, i64 byte) {
	return (unsigned char)(hash(l.seed + rank * 7919 + round, byte) % 251);
}

// note keeps the first error.
__device__ void note(Litmus &l, Kind kind, int from, int to, i64 round, i64 at, i64 expected, i64 came) {
	if (atomicCAS(&l.wrong, 0, 1) != 0) return;
	l.kind = kind, l.from = from, l.to = to, l.round = round, l.at = at, l.expected = expected, l.came = came;
}

// The rank that a rank puts to, and the rank that puts to it.
struct Partners {
	int to, from;

	__device__ Partners(const Rank &rank, const Litmus &l) {
		const int n = rank.size(), each = rank.size(DEVICE), first = rank.index() - rank.index(DEVICE),
		          me = rank.index();
		if (l.near) {
			to = first + (rank.index(DEVICE) + 1) % each, from = first + (rank.index(DEVICE) + each - 1) % each;
		} else {
			to = (me + each) % n, from = (me + n - each) % n;
		}
	}
};

// In each round a rank puts some bytes in three pieces; the last one notifies. Rounds cover all distances of target and
// source from a multiple of 16. The target checks its whole slot.
extern "C" __global__ void pieces(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Litmus &l = rank.data<Litmus>();
	const int me = rank.index();
	const Partners with(rank, l);
	char *const mine = l.windows + l.slot * rank.index(DEVICE), *const source = l.sources + l.slot * rank.index(DEVICE);
	const Window w = rank.create_window(WORLD, mine, l.slot);
	for (i64 i = threadIdx.x; i < l.slot; i += blockDim.x) mine[i] = (char)POISON;
	rank.barrier(WORLD);
	for (i64 t = 0; t < l.rounds; t++) {
		const i64 offset = t % ALIGNMENTS, odd = t / ALIGNMENTS % ALIGNMENTS, most = l.slot - 2 * ALIGNMENTS;
		const i64 bytes = t % 4 ? hash(l.seed, t) % 64 : hash(l.seed, t) % (unsigned)(most + 1);
		const i64 a = bytes / 3, b = bytes - bytes / 4;
		for (i64 i = threadIdx.x; i < bytes; i += blockDim.x) {
			const bool flip = l.fault == FLIPPED && t >= l.where && me == 0 && i == bytes / 2;
			source[odd + i] = (char)(pattern(l, me, t, i) ^ flip);
		}
		__syncthreads();
		if (t > 0 && !rank.wait_notifications(CREDIT, 1)) break;
		const char *const s = source + odd;
		rank.put(w, with.to, offset, a, s);
		rank.put(w, with.to, offset + a, b - a, s + a);
		const bool drop = l.fault == DROPPED && t == l.where && me == 0;
		if (drop) rank.put(w, with.to, offset + b, bytes - b, s + b);
		else rank.put_notify(w, with.to, offset + b, bytes - b, s + b, (int)(t % SOME_TAGS));
		if (!rank.wait_notifications((int)(t % SOME_TAGS), 1)) break;
		rank.flush(w);
		for (i64 i = threadIdx.x; i < l.slot; i += blockDim.x) {
			const bool put = i >= offset && i < offset + bytes;
			const int want = put ? pattern(l, with.from, t, i - offset) : POISON, came = (unsigned char)mine[i];
			if (came != want) note(l, WRONG_BYTE, with.from, me, t, i, want, came);
			mine[i] = (char)POISON;
		}
		rank.notify(with.from, WORLD, CREDIT);
	}
	rank.free_window(w);
	rank.finish();
}

// In each round a rank sends another several notifications with each of some tags. The other consumes them in reverse
// order, and then has none left.
extern "C" __global__ void counts(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Litmus &l = rank.data<Litmus>();
	const int me = rank.index();
	const Partners with(rank, l);
	for (i64 t = 0; t < l.rounds; t++) {
		bool on = true;
		for (int tag = 0; tag < COUNTED; tag++) {
			unsigned n = hash(l.seed + me, t * COUNTED + tag) % 4;
			if (l.fault == DROPPED && t == l.where && me == 0 && tag == 5) n = n ? n - 1 : 1;
			for (unsigned i = 0; i < n; i++) rank.notify(with.to, WORLD, tag);
		}
		for (int tag = COUNTED - 1; tag >= 0 && on; tag--)
			on = rank.wait_notifications(tag, hash(l.seed + with.from, t * COUNTED + tag) % 4);
		if (!on || !rank.barrier(WORLD)) break;
		for (int tag = 0; tag < COUNTED; tag++) {
			const bool more = rank.test_notifications(tag, 1);
			if (more && threadIdx.x == 0) note(l, WRONG_COUNT, with.from, me, t, tag, 0, 1);
		}
		if (!rank.barrier(WORLD)) break;
	}
	rank.finish();
}

// In each round every rank stores its round, and after a barrier checks that all others are in the same round.
extern "C" __global__ void barriers(const __grid_constant__ World world) {
	__shared__ State state;
	__shared__ i64 theirs;
	Rank rank(world, state);
	Litmus &l = rank.data<Litmus>();
	const int me = rank.index(), each = rank.size(DEVICE), first = me - rank.index(DEVICE);
	i64 *const mine = (i64 *)(l.windows + l.slot * rank.index(DEVICE));
	if (threadIdx.x == 0) *mine = 0;
	const Window w = rank.create_window(WORLD, mine, l.slot);
	for (i64 t = 0; t < l.rounds; t++) {
		const bool late = l.fault == FLIPPED && t == l.where && me == 0;
		if (threadIdx.x == 0) *mine = t + !late;
		const Comm comm = t % 2 ? DEVICE : WORLD;
		if (!rank.barrier(comm)) break;
		for (int i = 0; i < rank.size(comm); i++) {
			const int other = comm == WORLD ? i : first + (me - first + i) % each;
			rank.get(w, other, 0, sizeof(i64), &theirs);
			rank.flush(w);
			if (threadIdx.x == 0 && theirs != t + 1) note(l, EARLY, other, me, t, 0, t + 1, theirs);
			__syncthreads();
		}
		if (!rank.barrier(WORLD)) break;
	}
	rank.free_window(w);
	rank.finish();
}

// In each round all ranks put a word to one of them and notify it with one tag.
extern "C" __global__ void all_to_one(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Litmus &l = rank.data<Litmus>();
	const int me = rank.index(), n = rank.size();
	char *const mine = l.windows + l.slot * rank.index(DEVICE), *const source = l.sources + l.slot * rank.index(DEVICE);
	const Window w = rank.create_window(WORLD, mine, l.slot);
	for (i64 i = threadIdx.x; i < l.slot; i += blockDim.x) mine[i] = (char)POISON;
	rank.barrier(WORLD);
	for (i64 t = 0; t < l.rounds; t++) {
		const int one = (int)(t % n), tag = (int)(t % SOME_TAGS);
		if (threadIdx.x < WORD) {
			const bool flip = l.fault == FLIPPED && t >= l.where && me == 0 && threadIdx.x == 3;
			source[threadIdx.x] = (char)(pattern(l, me, t, threadIdx.x) ^ flip);
		}
		__syncthreads();
		if (l.fault != DROPPED || t != l.where || me != 0) rank.put_notify(w, one, (i64)me * WORD, WORD, source, tag);
		if (me == one) {
			if (!rank.wait_notifications(tag, (u64)n)) break;
			for (i64 i = threadIdx.x; i < (i64)n * WORD; i += blockDim.x) {
				const int from = (int)(i / WORD), want = pattern(l, from, t, i % WORD), came = (unsigned char)mine[i];
				if (came != want) note(l, WRONG_BYTE, from, me, t, i, want, came);
				mine[i] = (char)POISON;
			}
		}
		if (!rank.barrier(WORLD)) break;
	}
	rank.free_window(w);
	rank.finish();
}
