// Collectives among the ranks of a communicator.
//
// Numbers travel between ranks as packets along the edges of a tree (rank_tree.cuh). Each edge has a buffer in the
// memory of both ends. Each thread forwards its number independently: it waits only for that number's inputs, and the
// block synchronizes only before and after a round of BOX_SLOTS / 2 parts of BOX_VALUES numbers.
//
// A slot is reused once its reader has read it. A rank learns how far its peer has read from data that the peer sends
// it in a later round, after completing the earlier round. If a peer sends nothing back, as in a broadcast, it sends a
// credit before more than half of the buffer is unacknowledged. So ranks may be in different collectives, and no rank
// waits for a slot that its reader does not reach.
#pragma once

#include "rank_packet.cuh"
#include "rank_tree.cuh"

namespace ranks {

// The operations of reduce and allreduce. All propagate NaN. For zeros of both signs MIN and MAX return either one.
enum Op { SUM, MIN, MAX };

template <typename T> __device__ __forceinline__ T join(Op op, T a, T b) {
	if (op == SUM) return a + b;
	return a != a || (op == MIN ? a < b : a > b) ? a : b;
}

// Types of numbers, as named by the host.
template <typename T> struct type_of {
	static_assert(!sizeof(T), "collectives take double, float or long long");
};
template <> struct type_of<double> {
	enum { value };
};
template <> struct type_of<float> {
	enum { value = 1 };
};
template <> struct type_of<i64> {
	enum { value = 2 };
};

// All ranks of a communicator call the same collectives in the same order, with the same count, operation and root. The
// type is double, float or i64. Values may be in any memory of the rank, including shared memory. A call includes the
// stores of all threads of the block, and all threads see the result after it. It orders nothing else: it is not a
// barrier, and does not complete puts. Each returns false if a wait timed out or the run has ended, and leaves its
// result undefined. With RANK_CHECKS, ranks whose calls differ fail.
//
// A call takes the time of one packet per level of the tree, for every BOX_SLOTS / 2 * BOX_VALUES numbers: collectives
// are for few numbers, but any count is allowed.
class Collectives : public Packets {
  public:
	// broadcast copies the n values of the rank root of the communicator to all ranks.
	template <typename T> __device__ bool broadcast(T *values, i64 n, int root, Comm comm = WORLD) {
		return collective(BROADCAST, values, (const T *)values, n, SUM, root, comm);
	}

	// reduce combines the n values of each rank in from, element by element, into to of the rank root. to may be from;
	// it is not used on other ranks. The result has the bits of allreduce for any root.
	template <typename T> __device__ bool reduce(T *to, const T *from, i64 n, Op op, int root, Comm comm = WORLD) {
		return collective(REDUCE, to, from, n, op, root, comm);
	}

	// allreduce combines the n values of each rank in from, element by element, into to of all ranks. to may be from.
	//
	// Sums are computed in an order that depends only on the number of ranks, so they have the same bits in every run,
	// at all ranks, and for any number of devices. With whole the largest power of two up to the number of ranks, the
	// value of rank r + whole is first added to that of rank r. Then neighbors 2i and 2i + 1 are added, then those
	// sums, and so on.
	template <typename T> __device__ bool allreduce(T *to, const T *from, i64 n, Op op, Comm comm = WORLD) {
		return collective(ALLREDUCE, to, from, n, op, 0, comm);
	}

  protected:
	__device__ Collectives(const World &w, State &s) : Packets(w, s) {}

	// open_edges initializes all edges from the counts in device memory, which are the same at both ends.
	__device__ void open_edges() {
		const int comms = world.devices > 1 ? 2 : 1;
		for (int c = 0; c < comms; c++) {
			const Comm comm = (Comm)c;
			const CommTree t(ALLREDUCE, size(comm), index(comm), 0);
			for (int level = (int)threadIdx.x; level <= t.levels; level += (int)blockDim.x) {
				const int at = first_edge(comm) + level;
				const u64 begin = *mine().credit(blockIdx.x, at);
				u64 *out = 0;
				int served = -1;
				if (t.sends_at(level)) {
					const i64 peer = in_world(comm, t.peer(level));
					const Place to = place_of(peer);
					out = memory(to.device).box(to.rank, at), served = served_by(peer);
				}
				state.edges[at] = {begin, begin, begin, begin, out, served};
			}
		}
	}

  private:
	enum { PARTS = BOX_SLOTS / 2, ROUND = PARTS * BOX_VALUES, RENEWED = 1 << 30 };

	template <typename T>
	__device__ bool collective(Collective what, T *to, const T *from, i64 n, Op op, int root, Comm comm) {
		if (!check(root >= 0 && root < size(comm), BAD_RANK, size(comm), root, 0) ||
		    !check(n >= 0 && n < 1ll << 39, BAD_COUNT, 0, n, 0) ||
		    !agree(what, n, what == BROADCAST ? SUM : op, type_of<T>::value, root, comm))
			return false;
		const CommTree t(what, size(comm), index(comm), root);
		const bool gets = what == ALLREDUCE || (what == REDUCE ? t.me == root : t.me != root);
		bool ok = goes_on<Block>();
		for (i64 done = 0; done < n && ok; done += ROUND) {
			ok = round<T>(
			    t, comm, n - done, [&](i64 i) { return from[done + i]; },
			    [&](i64 i, T v) {
				    if (gets) to[done + i] = v;
			    },
			    [&](i64, T a, T b) { return join(op, a, b); });
		}
		return ok;
	}

	// agree returns whether the calls of all ranks match, with option RANK_CHECKS.
	__device__ bool agree(Collective what, i64 n, Op op, int type, int root, Comm comm) {
#ifdef RANK_CHECKS
		const i64 said = (i64)((u64)n << 24 | (u64)(unsigned)root << 6 | (u64)type << 4 |
		                       (u64)min((unsigned)op, 3u) << 2 | (u64)what);
		const CommTree t(ALLREDUCE, size(comm), index(comm), 0);
		const bool ok = round<i64>(
		    t, comm, 2, [&](i64) { return said; }, [&](i64 i, i64 v) { state.agreed[i] = v; },
		    [&](i64 i, i64 a, i64 b) { return join(i == 0 ? MIN : MAX, a, b); });
		if (!ok) return false;
		const i64 low = state.agreed[0], other = low == said ? state.agreed[1] : low;
		return check(other == said && n >= 0 && (unsigned)op <= MAX, BAD_COLLECTIVE, said, other, 0);
#else
		return true;
#endif
	}

	// round passes up to ROUND numbers of the block along the edges of a tree: load(i) returns the i-th, store(i, v)
	// receives it, and combine(i, a, b) combines two.
	template <typename T, typename Load, typename Store, typename Combine>
	__device__ bool round(const CommTree &t, Comm comm, i64 n, Load load, Store store, Combine combine) {
		const int parts = n <= BOX_VALUES ? 1 : (int)min((n + BOX_VALUES - 1) / BOX_VALUES, (i64)PARTS);
		bool ok = !state.failed && find_room(t, comm, parts);
		if (!Block::all(ok)) return false;
		for (int part = (int)threadIdx.x / 32; part < parts && ok; part += (int)blockDim.x / 32) {
			const int lane = (int)threadIdx.x % 32;
			const i64 i = part * BOX_VALUES + lane;
			if (i >= n) break;
			T v = load(i);
			ok = pass(t, comm, part, lane, v, [&](T a, T b) { return combine(i, a, b); });
			if (ok) store(i, v);
		}
		ok = Block::all(ok);
		if (ok) settle(t, comm, parts, n);
		return ok;
	}

	// pass sends a number through the tree: v is this rank's number, and then the result if this rank receives it.
	template <typename T, typename Combine>
	__device__ __forceinline__ bool pass(const CommTree &t, Comm comm, int part, int lane, T &v, Combine combine) {
		const int edges = first_edge(comm), last = t.levels;
		auto send = [&](int level) {
			const Edge &e = state.edges[edges + level];
			const u64 n = e.sent + (u64)part;
			send_value(e.served, e.out + 2 * (n % BOX_SLOTS * BOX_VALUES + (u64)lane), v, (unsigned)n + 1);
		};
		auto receive = [&](int level, T &came) {
			const u64 n = state.edges[edges + level].received + (u64)part;
			const u64 *const from =
			    mine().box(blockIdx.x, edges + level) + 2 * (n % BOX_SLOTS * BOX_VALUES + (u64)lane);
			unsigned instead;
			if (wait_unless_ended([&] { return load_value(from, came, (unsigned)n + 1, instead); })) return true;
			return fail(NO_COLLECTIVE, (u64)in_world(comm, t.peer(level)), 0, t.what), false;
		};
		T other;
		// An extra rank sends first and receives last, except as the root of a broadcast.
		if (t.extra() && t.sends_at(last)) send(last);
		if (t.what == BROADCAST) {
			for (int level = last; level >= 0; level--)
				if (t.receives_at(level) && !receive(level, v)) return false; // one at most
			for (int level = last - 1; level >= 0; level--)
				if (t.sends_at(level)) send(level);
			if (!t.extra() && t.sends_at(last)) send(last);
			return true;
		}
		if (!t.extra() && t.receives_at(last)) {
			if (!receive(last, other)) return false;
			v = combine(v, other);
		}
		for (int level = 0; level < last; level++) {
			if (t.sends_at(level)) send(level);
			if (!t.receives_at(level)) continue;
			if (!receive(level, other)) return false;
			v = t.me >> level & 1 ? combine(other, v) : combine(v, other);
		}
		if (!t.extra() && t.sends_at(last)) send(last);
		return !t.extra() || !t.receives_at(last) || receive(last, v);
	}

	// find_room waits until there is space for some more parts where this rank will send, with one thread per edge.
	__device__ bool find_room(const CommTree &t, Comm comm, int parts) {
		for (int level = (int)threadIdx.x; level <= t.levels; level += (int)blockDim.x) {
			if (!t.sends_at(level)) continue;
			Edge &e = state.edges[first_edge(comm) + level];
			if (e.sent + (u64)parts - e.known <= BOX_SLOTS) continue;
			const i64 to = in_world(comm, t.peer(level));
			const u64 *const credit = mine().credit(blockIdx.x, first_edge(comm) + level);
			const bool room = wait_unless_ended(
			    [&] {
				    const u64 read = load_relaxed_sys(credit);
				    if ((i64)(read - e.known) > 0) e.known = read;
				    return e.sent + (u64)parts - e.known <= BOX_SLOTS;
			    },
			    credit);
			if (!room) return fail(NO_COLLECTIVE, (u64)to, 1, t.what), false;
		}
		return true;
	}

	// settle counts the parts sent and received in a round, with one thread per edge, and gives credit where needed.
	__device__ void settle(const CommTree &t, Comm comm, int parts, i64 values) {
		for (int level = (int)threadIdx.x; level <= t.levels; level += (int)blockDim.x) {
			const int at = first_edge(comm) + level;
			Edge &e = state.edges[at];
			if (t.sends_at(level)) e.told = e.received;
			if (t.receives_at(level) && (i64)(e.sent - e.known) > 0) e.known = e.sent;
			for (int part = 0; part < parts && t.sends_at(level); part++, e.sent++)
				renew(e, values - part * BOX_VALUES);
			if (!t.receives_at(level)) continue;
			e.received += (u64)parts;
			if (e.received - e.told <= BOX_SLOTS / 2) continue;
			const Place to = place_of(in_world(comm, t.peer(level)));
			u64 *const credit = memory(to.device).credit(to.rank, at);
			if (e.served >= 0) post_words(e.served, credit, e.received, 0, 1);
			else if (to.device == world.device) store_release_gpu(credit, e.received);
			else store_release_sys(credit, e.received);
			e.told = e.received;
		}
	}

	// renew stores the unused values of a part, once in RENEWED parts: otherwise, a slot unused for 2^32 parts would
	// appear to have arrived.
	__device__ void renew(const Edge &e, i64 used) {
		if ((e.sent + 2 * BOX_SLOTS) % RENEWED >= BOX_SLOTS) return;
		for (i64 lane = used; lane < BOX_VALUES; lane++)
			send_value(e.served, e.out + 2 * (e.sent % BOX_SLOTS * BOX_VALUES + (u64)lane), (u64)0,
			           (unsigned)e.sent + 1);
	}

	// first_edge returns the number of edges of the preceding communicators. With one device, the communicators are
	// identical.
	__device__ int first_edge(Comm comm) const {
		return comm == WORLD || world.devices == 1 ? 0 : 32 - __clz((unsigned)(world.ranks * world.devices));
	}
};

} // namespace ranks
