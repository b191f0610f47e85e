// The trees that the ranks of a communicator use for collectives.
//
// For n ranks, whole = 2^levels is the largest power of two up to n. At each level k below levels, the peer of a rank r
// below whole is r with bit k flipped, as in recursive doubling. At the last level rank r and rank r + whole are peers,
// if the latter exists. So a rank has at most one peer per level, and the relation is mutual.
#pragma once

#include "device.cuh"

namespace ranks {

enum Collective { BROADCAST, REDUCE, ALLREDUCE };

// The role of a rank in a collective.
struct CommTree {
	Collective what;
	int me, whole, levels;
	unsigned sends, receives; // the levels of each, as bits

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
		// The other ranks are reached at levels below that of the root or, if the root is an extra rank, of its peer.
		const int seen = me ^ (root & (whole - 1)), level = seen == 0 ? levels : __ffs((unsigned)seen) - 1;
		unsigned leaves = 0, upward = last;
		if (!extra()) {
			leaves = ((1u << level) - 1) | (paired ? last : 0);
			upward = level < levels ? 1u << level : 0;
		}
		if (root >= whole && me == root - whole) { // receives the root's number, and sends it the result
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
