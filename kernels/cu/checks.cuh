// Checks: norms of steps within a launch of tiles.cu and wide_tiles.cu, which may end the launch before its last step.
//
// At a check each tile stores its norms on its GPU, as packets, and continues. FOLD_AFTER steps later one thread block,
// a different one for each check, combines those of the GPU's tiles, stores them for the host, and sends each GPU a
// vote: the change, because the limit of a check applies to the change. END_AFTER steps after the check all blocks of
// all GPUs read all votes and reach the same decision. Both delays are long enough that packets have usually arrived.
// Only after the last step whose norms may end the launch, all open checks are combined and read at once.
//
// A launch that ends at a check has stored nothing: the fields are as they were before it. So the vote may have
// rounding errors: the host checks the norms themselves, after it has run the steps up to the check.
#pragma once

#include "faults.cuh"
#ifdef STEPS
#include "wide_tile.cuh"
#else
#include "tile.cuh"
#endif

#ifdef CHECKS

enum { FOLD_AFTER = 3, END_AFTER = 8 };

// A slot is reused after CHECK_SLOTS checks. Let E be END_AFTER, and assume a check at each step, as otherwise fewer
// are open. A tile stores norms after a barrier that follows reading the votes of the check E + 1 before. A GPU votes
// once all its tiles have stored theirs. So when it votes at check n, all GPUs have voted at n - E - 1, and all tiles
// have read the votes of n - 2 E - 2. If a launch ends at check c, a tile may lag there: it has stored its norms at c,
// and read the votes of c - E - 1. Other GPUs continue at c + E + 1 in the next launch, and send the votes of E + 1
// checks before they read any: those up to c + 2 E + 1 must not overwrite votes that the tile still reads.
static_assert(CHECK_SLOTS > 3 * END_AFTER + 1, "");

// The vote of a GPU whose non-finite values end the launch.
constexpr double not_finite_vote = -1.0;

// check_at returns the check of a step; -1 if it has none, or if it is before the launch.
__device__ __forceinline__ int check_at(const Tiles &s, unsigned step) {
	const int since = (int)(step - (unsigned)s.first) - (int)s.watch.until, every = (int)s.watch.every;
	if (every == 0 || since < 0) return -1;
	if (every == 1) return since; // avoids the division, which costs most with a check at each step
	return since % every ? -1 : since / every;
}

// The slot of a check, and its number across launches.
__device__ __forceinline__ i64 number_of(const Tiles &s, int check) { return s.watch.before + check; }
__device__ __forceinline__ int slot_of(const Tiles &s, int check) { return (int)(number_of(s, check) % CHECK_SLOTS); }

// The number of a check in its packets; 0 is none.
__device__ __forceinline__ unsigned packet_number(const Tiles &s, int check) {
	return (unsigned)number_of(s, check) + 1;
}

// wait_for_packet waits for a packet with the given number and returns its value. After a timeout it reports the wait,
// see report_timeout, and clears came. If came is already false it polls only about 500 times. There is no branch
// around the wait: with one, steps with norms took a fifth longer.
__device__ __forceinline__ double wait_for_packet(const Tiles &s, const CheckPacket *at, unsigned number, u64 whom,
                                                  bool &came) {
	CheckPacket v;
	const bool here = wait(came ? s.limit : 0, s.failed, [&] {
		v = at->load();
		return v.of(number);
	});
	if (!here && came) report_timeout(s.failed, whom);
	came = here && came;
	return v.value();
}

// The norms that all tiles of a GPU have stored at a check: 0, of the change, and 1, of the values. Each read waits for
// the packet.
struct SentNorms {
	const Tiles &s;
	const CheckPacket *sent;
	unsigned number;

	__device__ __forceinline__ i64 largest(int tile, int of, bool &came) const { return word(tile, of, 0, came); }
	__device__ __forceinline__ i64 low(int tile, int of, int bin, bool &came) const {
		return word(tile, of, 1 + bin, came);
	}
	__device__ __forceinline__ int window(int tile, int of, bool &came) const {
		return (int)(word(tile, of, 1 + SUM_BINS, came) >> 48); // the last of four numbers of 16 bits
	}

  private:
	__device__ __forceinline__ i64 word(int tile, int of, int n, bool &came) const {
		const CheckPacket *const at = sent + (tile * NORM_WORDS + of * (NORM_WORDS / 2) + n);
		return bits_of(wait_for_packet(s, at, number, THIS_DEVICE, came));
	}
};

// A NormSum is stored as twice the largest, the bins of a sum, and their high parts with the window.
static_assert(NORM_WORDS == 2 * (1 + SUM_BINS + 1) && SUM_BINS == 3, "as in NormSum and StoredSum");

enum { REST = THREADS % 32 };
static_assert(THREADS >= 32, "a whole warp reads votes");

// The norms of a tile, or of all tiles, in shared memory.
struct TileNorms {
	SumRows<THREADS / 32 + REST, 2> rows; // of the change, and of the values
	NormSum total;                        // see fold
	int high[2][32];                      // windows of warps

	// keep stores the norms of a tile from all threads of the block, to be combined after a barrier.
	__device__ __forceinline__ void keep(const TileThread &w, const FieldNorms<REAL> &n) {
		const SumAndLargest mine[2] = {{BinnedSum(n.change), bits_of(n.max_change)},
		                               {BinnedSum(n.value), bits_of(n.max_value)}};
		rows.template put<REST, false>(mine, (int)opaque((unsigned)w.thread), THREADS);
	}

	// join combines them, in the first warp.
	__device__ __forceinline__ void join(const TileThread &w, NormSum *there) const {
		join(THREADS / 32 + REST, w.thread, there);
	}

	// send sends the norms of a tile, in the first warp.
	__device__ __forceinline__ void send(const TileThread &w, CheckPacket *to, unsigned number) {
		join(w, &total);
		__syncwarp();
		if (w.thread < NORM_WORDS) to[w.thread].send(((const double *)&total)[w.thread], number);
	}

	// fold combines the norms of all tiles into total, using all threads of whole warps. The threads of the first warp
	// may read it afterwards, unless it returns false in a thread of the block, after a timeout.
	__device__ __forceinline__ bool fold(const SentNorms &tiles, int count, int thread) {
		enum { WARPS = THREADS / 32, NUMBERS = 2 * FOLDED };
		const int lane = thread % 32, warp = thread / 32;
		const bool folds = warp < WARPS;
		bool came = true;
#ifndef FAST_SUMS
		if (folds) {
			int change = 0, value = 0;
			for (int i = thread; i < count; i += 32 * WARPS) {
				change = max(change, tiles.window(i, 0, came));
				value = max(value, tiles.window(i, 1, came));
			}
			change = warp_max(change), value = warp_max(value);
			if (lane < 2) high[lane][warp] = lane ? value : change;
		}
		if (!__syncthreads_and(came)) return false; // an invalid window would index outside of the packets
#endif
		if (folds) {
			const i64 mine = fold_number(tiles, count, thread, came);
			if (lane < NUMBERS) rows.number[warp][lane] = mine;
		}
		__syncthreads();
		if (warp > 0) return came;
		join(WARPS, thread, &total);
		__syncwarp();
		return came;
	}

  private:
	__device__ __forceinline__ void join(int count, int thread, NormSum *there) const {
		const SumAndLargestTo to[2] = {{&there->sum_change2, &there->max_change}, {&there->sum2, &there->max}};
		rows.join(count, thread, to);
	}

	// fold_number combines one number of the norms over the tiles that the warp handles, and stores the windows of its
	// row.
	__device__ __forceinline__ i64 fold_number(const SentNorms &tiles, int count, int thread, bool &came) {
		enum { WARPS = THREADS / 32, NUMBERS = 2 * FOLDED };
		const int lane = thread % 32, n = lane % FOLDED, half = lane / FOLDED % 2;
		i64 mine = 0;
#ifndef FAST_SUMS
		const int change = warp_max(lane < WARPS ? high[0][lane] : 0),
		          value = warp_max(lane < WARPS ? high[1][lane] : 0);
		const int window = half ? value : change;
		if (lane < 2) rows.window[thread / 32][lane] = lane ? value : change;
#endif
		for (int i = thread / NUMBERS; i < count; i += WARPS * 32 / NUMBERS) {
			if (n == SUM_WORDS) {
				mine = max(mine, tiles.largest(i, half, came));
			} else {
#ifndef FAST_SUMS
				const int from = n + window - tiles.window(i, half, came);
				if (from < SUM_BINS) mine += tiles.low(i, half, from, came);
#else
				mine = ::fold(n, mine, tiles.low(i, half, 0, came));
#endif
			}
		}
		for (int d = 16; d >= NUMBERS; d /= 2) mine = ::fold(n, mine, __shfl_xor_sync(~0u, mine, d));
		return mine;
	}
};

// leave stores the norms of a tile at a check. No fence is needed, because each packet contains the number of its
// check.
__device__ __forceinline__ void leave(const TileThread &w, TileNorms &norms, int check) {
	if (w.thread >= 32) return;
	const i64 slot = slot_of(w.s, check);
	norms.send(w, w.s.checks.tiles + (slot * gridDim.x + blockIdx.x) * NORM_WORDS, packet_number(w.s, check));
}

// vote_of returns the vote of a GPU.
__device__ __forceinline__ double vote_of(const Watch &o, const NormSum &norms) {
	const double most = __longlong_as_double(0x7fefffffffffffff); // largest finite number
	const BinnedSum change = norms.sum_change2.binned();
	if (o.finite && (change.has_nan() || norms.sum2.binned().has_nan() || norms.max_change > most || norms.max > most))
		return not_finite_vote;
	return o.squares ? change.about() : norms.max_change;
}

// fold_check combines the norms of a check if this block is responsible. All its threads call it, after leave. It
// returns false after a timeout.
__device__ __forceinline__ bool fold_check(const TileThread &w, TileNorms &room, int check) {
	const Checks &c = w.s.checks;
	if ((unsigned)number_of(w.s, check) * 61 % gridDim.x != blockIdx.x) return true;
	const int slot = slot_of(w.s, check);
	const SentNorms tiles = {w.s, c.tiles + slot * (i64)gridDim.x * NORM_WORDS, packet_number(w.s, check)};
	__syncthreads(); // the norms of this tile have been read from shared memory
	if (!__syncthreads_and(room.fold(tiles, (int)gridDim.x, w.thread))) return false;
	if (w.thread >= 32) return true;
	if (w.thread == 0) c.host[check] = room.total;
	const double vote = vote_of(w.s.watch, room.total);
	for (int to = w.thread; to < (int)c.ranks; to += 32)
		c.voted[to][slot * c.ranks + c.rank].send(vote, packet_number(w.s, check));
	return true;
}

// The result of the votes of a check.
enum Verdict { GOES_ON, ENDS, TIMED_OUT };

// read_votes waits for the votes of a check, in one warp of each block. All blocks of all GPUs combine them
// identically.
__device__ __forceinline__ Verdict read_votes(const TileThread &w, int check) {
	const Checks &c = w.s.checks;
	const int slot = slot_of(w.s, check), lane = w.thread % 32;
	double change = 0;
	bool came = true, finite = true;
	for (int from = lane; from < c.ranks; from += 32) {
		const u64 whom = from == c.rank ? THIS_DEVICE : NORMS_OF + from;
		const double vote =
		    wait_for_packet(w.s, c.votes + slot * c.ranks + from, packet_number(w.s, check), whom, came);
		finite = finite && vote != not_finite_vote;
		change = w.s.watch.squares ? change + vote : larger(change, vote);
	}
	for (int d = 16; d > 0; d /= 2) {
		const double other = __shfl_xor_sync(~0u, change, d);
		change = w.s.watch.squares ? change + other : larger(change, other);
	}
	if (!__all_sync(~0u, came)) return TIMED_OUT;
	return !__all_sync(~0u, finite) || change <= w.s.watch.limit ? ENDS : GOES_ON;
}

// follow does the work of checks between a step and the next one. After the last step whose norms may end the launch,
// it decides all checks. All threads of the block call it, after a barrier that follows keep.
__device__ __forceinline__ void follow(TileThread w, Tile &t, TileNorms &norms, unsigned step, bool last) {
	w.thread = (int)opaque((unsigned)w.thread); // as in keep
	const int now = check_at(w.s, step);
	if (now >= 0) leave(w, norms, now);
	int over = 0;
#pragma unroll 1
	for (int ago = last ? 0 : FOLD_AFTER; ago <= FOLD_AFTER; ago++) {
		const int check = check_at(w.s, step - (unsigned)ago);
		if (check >= 0 && over == 0 && !fold_check(w, norms, check)) over = -1;
	}
	if (w.thread / 32 != THREADS / 32 - 1) return; // the last whole warp reads votes: the first sends norms
	inject_delay(step);
#pragma unroll 1
	for (int ago = END_AFTER; ago >= (last ? 0 : END_AFTER) && over == 0; ago--) {
		const int check = check_at(w.s, step - (unsigned)ago);
		if (check < 0) continue;
		const Verdict verdict = read_votes(w, check);
		if (verdict != GOES_ON) over = verdict == ENDS ? check + 1 : -1;
	}
	if (w.thread % 32 == 0 && over != 0) t.over = over;
}

// plan_step stores the checks that follow a step in the tile, in one thread.
__device__ __forceinline__ void plan_step(const Tiles &s, Tile &t, unsigned step) {
	const bool due = check_at(s, step) >= 0;
	t.plan[step % 2].due = due;
	t.plan[step % 2].follows = due || check_at(s, step - FOLD_AFTER) >= 0 || check_at(s, step - END_AFTER) >= 0;
}

// tell reports to the host how a launch ended: the check that ended it, counted from 1, or 0; and how many checks were
// started before the given step, or including it unless it follows the launch.
__device__ __forceinline__ void tell(const TileThread &w, const Tile &t, unsigned step) {
	if (blockIdx.x != 0 || w.thread != 0) return;
	const unsigned behind = (unsigned)(w.s.first + w.s.count);
	const int since = (int)((step == behind ? step - 2 : step) - (unsigned)w.s.first) - (int)w.s.watch.until;
	w.s.checks.report[0] = max(t.over, 0);
	w.s.checks.report[1] = w.s.watch.every == 0 || since < 0 ? 0 : since / (int)w.s.watch.every + 1;
}

#endif
