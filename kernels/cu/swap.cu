// One exchange of ghost regions by one kernel a GPU, without the host, events or
// buffers: every GPU stores the boundary points that its neighbours need straight
// into their ghosts, and flags tell who may store and who has stored.
//
// Flags (flags.cuh) are counts of exchanges.

#include "flags.cuh"
#include "segment.cuh"

// What two GPUs that exchange tell each other, as one of them sees it.
struct Neighbour {
	const unsigned long long *my_ready; // here: exchanges for which its ghosts may be written
	const unsigned long long *my_sent;  // here: blocks of it that have stored into my ghosts
	unsigned long long *its_ready;      // there: what I tell it
	unsigned long long expected;        // its blocks in each exchange
};

// What to store, and the count of blocks to raise where it went: null on this GPU.
struct Store : Portion {
	unsigned long long *sent;
};

enum { FEW = 8, NEIGHBOURS = 8 };

// What a GPU needs of an exchange comes with the launch, where it costs no trip to
// memory; boxes beyond a few lie in a table.
struct Swap {
	unsigned long long round;   // which exchange this is, from 1
	unsigned long long *failed; // in host memory: 1 + the neighbour waited for in vain
	i64 degree;                 // neighbours
	i64 limit;                  // ns to wait for a neighbour
	i64 stores;
	const Store *table; // null if they are few
	Neighbour neighbours[NEIGHBOURS];
	Store few[FEW];
};

// wait_for waits until a flag of a neighbour has reached a count. One that does not come
// within the limit is told to the host, and waited for no more.
__device__ void wait_for(const Swap &s, const unsigned long long *flag, unsigned long long count, i64 neighbour) {
	if (!await(flag, count, s.limit)) release(s.failed, 1 + neighbour);
}

// allowed waits until all neighbours have said that their ghosts may be written.
__device__ void allowed(const Swap &s) {
	const i64 me = threadIdx.x;
	if (me < s.degree) wait_for(s, s.neighbours[me].my_ready, s.round, me);
	__syncthreads();
}

// store copies a segment once that is allowed. Each thread loads several words
// before it stores the first, and the first of them before it may: so the loads,
// of which those of columns are a transaction each, wait neither for each other nor
// for the neighbours. Threads beyond the last word load that.
template <typename Word> __device__ void store(const Store &all, const Swap &s) {
	const Segment &g = all.box;
	const unsigned thread = all.thread(), threads = all.threads(), words = g.words;
	enum { BATCH = 4 };
	if (words == 0) { // it only receives
		allowed(s);
		return;
	}
	bool waited = false;
	unsigned first = thread;
	do {
		Word word[BATCH];
		Word *to[BATCH];
#pragma unroll
		for (int i = 0; i < BATCH; i++) {
			const Spot at(g, min(first + i * threads, words - 1));
			word[i] = ((const Word *)(g.src + at.from))[at.x];
			to[i] = (Word *)(g.dst + at.to) + at.x;
		}
		if (!waited) allowed(s);
		waited = true;
#pragma unroll
		for (int i = 0; i < BATCH; i++)
			if (first + i * threads < words) *to[i] = word[i];
		first += BATCH * threads;
	} while (first < words);
}

// swap is one exchange. What lies before it in its stream has written the
// boundary points and read the ghosts; what comes after finds the new ghosts.
extern "C" __global__ void __launch_bounds__(256) swap(const __grid_constant__ Swap s) {
	after_predecessor();
	const i64 me = threadIdx.x;
	const bool first = blockIdx.x == 0;
	if (first && me < s.degree) release(s.neighbours[me].its_ready, s.round);
	const Store &mine = portion_of(s.table ? s.table : s.few, s.stores);
	switch (mine.box.word) {
	case 1: store<unsigned char>(mine, s); break;
	case 2: store<unsigned short>(mine, s); break;
	case 4: store<unsigned>(mine, s); break;
	case 8: store<unsigned long long>(mine, s); break;
	case 16: store<Sixteen>(mine, s); break;
	}
	// The stores of all threads come before the count: the barrier and a fence at
	// system scope carry that on.
	__syncthreads();
	if (me == 0 && mine.sent) raise(mine.sent);
	if (first && me < s.degree) wait_for(s, s.neighbours[me].my_sent, s.round * s.neighbours[me].expected, me);
}
