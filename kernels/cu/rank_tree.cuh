// The trees by which the ranks of a communicator work on one number together.
//
// Of n ranks, whole is the largest power of two up to n, and 2^levels of it. Rank r below whole has, at each level k
// below levels, the peer with bit k of r changed, as in recursive doubling. At the last level rank r and rank r + whole
// are peers, if there is such a rank. So a rank has at most one peer at a level, which has it as its peer.
#pragma once

#include "device.cuh"

namespace ranks {

enum Collective { BROADCAST, REDUCE, ALLREDUCE };

// The part of a rank in a collective.
struct CommTree {
	Collective what;
	int me, whole, levels;
	unsigned sends, receives; // at which levels, a bit each

	// root is 0 if there is none.
	__device__ CommTree(Collective what, int ranks, int me, int root)
	    : what(what), me(me), levels(31 - __clz((unsigned)ranks)) {
		whole = 1 << levels;
		const unsigned last = (unsigned)whole;
		const bool paired = extra() || me + whole < ranks;
		if (what == ALLREDUCE) {
			sends = receives = (extra() ? 0 : last - 1) | (paired ? last : 0);
			return;
		}
		// The other ranks are reached at levels below the one at which the root is, or the peer of a root that is
		// extra.
		const int seen = me ^ (root & (whole - 1)), level = seen == 0 ? levels : __ffs((unsigned)seen) - 1;
		unsigned leaves = 0, upward = last;
		if (!extra()) {
			leaves = ((1u << level) - 1) | (paired ? last : 0);
			upward = level < levels ? 1u << level : 0;
		}
		if (root >= whole && me == root - whole) { // gets the root's number from it, and gives it the result
			upward = last;
			if (what == BROADCAST) leaves &= ~last;
		}
		if (extra() && me == root) {
			leaves = last;
			if (what == BROADCAST) upward = 0;
		}
		sends = what == BROADCAST ? leaves : upward;
		receives = what == BROADCAST ? upward : leaves;
	}

	__device__ bool extra() const { return me >= whole; }
	__device__ bool sends_at(int level) const { return sends >> level & 1; }
	__device__ bool receives_at(int level) const { return receives >> level & 1; }
	__device__ int peer(int level) const {
		return level < levels ? me ^ 1 << level : me < whole ? me + whole : me - whole;
	}
};

} // namespace ranks
