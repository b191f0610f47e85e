// One exchange of ghost regions by one kernel on each GPU, without the host, events or buffers. Every GPU stores the
// boundary points that its neighbors need directly into their ghosts. Flags signal when ghosts may be overwritten, and
// when they have arrived.

#include "faults.cuh"
#include "flags.cuh"
#include "neighbor.cuh"
#include "strided_copy.cuh"

// A copy into ghosts of a neighbor, or of this GPU if neighbor is -1.
struct Store {
	BlockRange range;
	i64 neighbor;
};

__device__ inline const BlockRange &range(const Store &s) { return s.range; }

// Counts of exchanges for which ghosts may be overwritten: those of the neighbor in this GPU's memory, and those of
// this GPU in the neighbor's.
struct Ready {
	const u64 *mine;
	u64 *its;
};

enum { FEW = 8, NEIGHBORS = 8 };

// The argument of a launch. A few stores are part of it, which saves a memory access; more are in a table.
struct DirectExchange {
	u64 round;   // the number of the exchange, from 1
	u64 *failed; // see report_timeout
	i64 degree;  // neighbors
	i64 limit;   // per wait, in ns
	i64 stores;
	const Store *table; // null if there are few stores
	Neighbor neighbors[NEIGHBORS];
	Ready ready[NEIGHBORS];
	i64 sent[NEIGHBORS]; // how many blocks of this GPU store into ghosts of each neighbor
	Store few[FEW];
};

// wait_for_neighbor waits until the count of a neighbor has reached a value. After the limit it reports the neighbor,
// and returns false.
__device__ bool wait_for_neighbor(const DirectExchange &s, const u64 *count, u64 value, i64 neighbor) {
	if (wait_for_count(count, value, s.limit, s.failed)) return true;
	report_timeout(s.failed, 1 + neighbor);
	return false;
}

// wait_until_ready waits until the ghosts of all neighbors may be overwritten. It returns false, in all
// threads, after a timeout.
__device__ bool wait_until_ready(const DirectExchange &s) {
	const i64 me = threadIdx.x;
	return __syncthreads_and(me >= s.degree || wait_for_neighbor(s, s.ready[me].mine, s.round, me));
}

// store performs a copy once the neighbors are ready. A thread loads a batch of words before it stores the first, and
// loads the first batch before it waits, so that the loads, which for columns take a transaction each, overlap with
// each other and with the wait. Threads past the last word load that word. It returns false if a neighbor is not ready
// in time; nothing is stored then.
template <typename Word> __device__ bool store(const BlockRange &range, const DirectExchange &s) {
	const StridedCopy &g = range.copy;
	const unsigned thread = range.thread(), threads = range.threads(), words = g.words;
	enum { BATCH = 4 };
	if (words == 0) return wait_until_ready(s); // a GPU that only receives
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
		if (first == thread && !wait_until_ready(s)) return false;
#pragma unroll
		for (int i = 0; i < BATCH; i++)
			if (first + i * threads < words) *to[i] = word[i];
		first += BATCH * threads;
	} while (first < words);
	return true;
}

__device__ bool store(const BlockRange &range, const DirectExchange &s) {
	switch (range.copy.word) {
	case 1: return store<unsigned char>(range, s);
	case 2: return store<unsigned short>(range, s);
	case 4: return store<unsigned>(range, s);
	case 8: return store<u64>(range, s);
	default: return store<Word16>(range, s);
	}
}

// direct_exchange is one exchange. Launches before it in its stream have written the boundary points
// and read the ghosts; launches after it find the new ghosts. After a timeout it reports the neighbor,
// and stores and signals nothing more.
extern "C" __global__ void __launch_bounds__(256) direct_exchange(const __grid_constant__ DirectExchange s) {
	grid_dependency_wait();
	const i64 me = threadIdx.x;
	const bool first = blockIdx.x == 0;
	inject_fault(2 * (unsigned)s.round);
	if (first && me < s.degree) store_release_sys(s.ready[me].its, s.round);
	const Store &mine = range_of(s.table ? s.table : s.few, s.stores);
	if (!store(mine.range, s)) return;
	inject_fault(2 * (unsigned)s.round + 1);
	__syncthreads(); // orders the stores of all threads before the count
	if (me == 0 && mine.neighbor >= 0) signal(s.neighbors[mine.neighbor].its_count);
	if (first && me < s.degree) {
		const Neighbor &other = s.neighbors[me];
		wait_for_neighbor(s, other.my_count, s.round * other.expected, me);
	}
}

// exchange_begin and exchange_end are the two halves of an exchange whose stores are performed by launches between
// them, each in one block. The first ends once the ghosts of all neighbors may be overwritten. The second signals that
// everything is stored, like the blocks of direct_exchange, and ends once the ghosts of this GPU have arrived. After a
// timeout it signals nothing, although launches in between have stored: the run then fails.
extern "C" __global__ void __launch_bounds__(256) exchange_begin(const __grid_constant__ DirectExchange s) {
	grid_dependency_wait();
	const i64 me = threadIdx.x;
	inject_fault(2 * (unsigned)s.round);
	if (me < s.degree) store_release_sys(s.ready[me].its, s.round);
	wait_until_ready(s);
}

extern "C" __global__ void __launch_bounds__(256) exchange_end(const __grid_constant__ DirectExchange s) {
	grid_dependency_wait();
	const i64 me = threadIdx.x;
	inject_fault(2 * (unsigned)s.round + 1);
	if (me >= s.degree || load_relaxed_sys(s.failed) != 0) return;
	const Neighbor &other = s.neighbors[me];
	add_release_sys(other.its_count, s.sent[me]);
	wait_for_neighbor(s, other.my_count, s.round * other.expected, me);
}
