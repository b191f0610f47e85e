// The base of all functions of a rank: its position in the world, waits with a time limit, and failures.
#pragma once

#include "flags.cuh"
#include "rank_copy.cuh"
#include "rank_groups.cuh"
#include "rank_queue.cuh"
#include "rank_world.cuh"

// With proxies, waits are not inlined: NVRTC 13.0 fails on that amount of code.
#ifdef RANK_PROXY
#define RANK_CALLED __noinline__
#else
#define RANK_CALLED __forceinline__
#endif

namespace ranks {

// The state of an edge of a tree: the parts sent and received, how many of those sent are known to be read, and how
// many of those read the peer knows about.
struct Edge {
	u64 sent, known, received, told;
	u64 *out;   // the peer's receive buffer
	int served; // the peer's device if a proxy serves it, else -1
};

// The address of a rank's window, and of that rank's count of notifications of tag 0.
struct Route {
	u64 base;
	u64 count; // an address; its lowest bit is set for a rank of another device, whose count is raised at system scope
};

// The device of a rank of the world, and its index there.
struct Place {
	i64 device, rank;
};

// The shared memory of a rank.
struct State {
	u64 consumed[RANK_TAGS];
	u64 queue_lock;              // protects the queues and the stored notifications
	u64 barriers[2], windows[2]; // barriers called; existing windows, one bit each
	u64 base[2];                 // address of the window that a block puts into, for alternate puts
	struct {
		u64 key;
		Route route;
	} recent[16]; // windows that the first warp recently put into
	struct {
		ChannelEnd is;
		u64 position, known; // messages so far; how many the other end knows of, or is known to have read
	} ends[MAX_ENDS];
	int keys[MAX_ENDS]; // of the ends
	Edge edges[2 * MAX_LEVELS];
	i64 agreed[2]; // the smallest and largest of the ranks' values for a collective
	i64 timer;
	int finishing; // 1 once all threads have called finish: arriving notifications are dropped
	volatile int failed;
};

// The part of a Rank that its other parts are based on.
class Core {
  public:
	Core(const Core &) = delete; // a copy would count `puts` separately from the rank's other threads

	// size and index may be called by any thread.
	__device__ int size(Comm comm = WORLD) const {
		return (int)(comm == WORLD ? world.ranks * world.devices : world.ranks);
	}
	__device__ int index(Comm comm = WORLD) const { return (int)blockIdx.x + (comm == WORLD ? (int)first() : 0); }

	// failed reports whether the run has failed. Any thread may call it.
	__device__ bool failed() const { return state.failed; }

	// data is the caller's struct on this device, shared by all its ranks. It is in device memory, and each wait
	// invalidates the L1 cache: copy the values that a loop reads.
	template <typename T> __device__ T &data() const { return *(T *)world.data; }

	// barrier returns once all ranks of the communicator have called it. All ranks then see all stores made before the
	// barrier, including those by put.
	__device__ bool barrier(Comm comm) {
		if (!goes_on<Block>()) return false;
		const bool everywhere = comm == WORLD && world.devices > 1;
		u64 *const here = mine().line(comm == WORLD ? WORLD_ARRIVALS : DEVICE_ARRIVALS);
		u64 n = 0, missing = (u64)world.ranks - 1; // upper limit of the ranks of this device yet to arrive
		if (threadIdx.x == 0) {
			// lane_id() is 0. Without it ptxas, which does not detect that only one lane adds, generates a vote and a
			// count of lanes.
			u64 *const count = here + lane_id();
			u64 came = 0;
			if (everywhere) came = add_ordered_gpu(count, 1) + 1;
			else add_release_gpu(count, 1);
			n = ++state.barriers[comm];
			if (everywhere) missing = n * (u64)world.ranks - came;
		}
		if (everywhere && Block::any(threadIdx.x == 0 && missing == 0)) tell_devices(state.barriers[WORLD]);
		bool ok = true;
		if (threadIdx.x == 0) {
			// Polls delay the atomic additions of ranks that arrive later. On H100 a barrier of 1056 ranks takes 1.8 us
			// with this pause and 3.3 us without. The last rank of one device pauses needlessly if the others arrived
			// long before.
			spin((unsigned)missing + 64);
			ok = wait_for_count(here, n * (u64)world.ranks) && (!everywhere || wait_for_devices(n));
		}
		if (!ok) fail(NO_BARRIER, comm, 0, 0);
		return Block::all(ok);
	}

  protected:
	const World &world;
	State &state;
	unsigned puts = 0; // of the block

	static constexpr u64 NONE_FREE = ~0ull;

	__device__ Core(const World &w, State &s) : world(w), state(s) {}

	// goes_on returns to all threads of a group whether none of them knows of a failure. One thread may have found it
	// after the others checked, so only this result determines whether a group does work that needs all its threads.
	template <typename Group> __device__ __forceinline__ bool goes_on() { return Group::all(!state.failed); }

	__device__ i64 first() const { return world.device * world.ranks; }
	__device__ i64 in_world(Comm comm, int rank) const { return comm == WORLD ? rank : first() + rank; }
	__device__ Place place_of(i64 rank) const {
		const i64 device = (i64)((u64)rank * world.reciprocal >> 32);
		return {device, rank - device * world.ranks};
	}
	// is_near returns whether a rank of the world is on this device.
	__device__ bool is_near(i64 rank) const { return rank >= first() && rank < first() + world.ranks; }
	__device__ DeviceMemory memory(i64 device) const {
		return {world.memories[device], world.ranks, world.devices, world.edges};
	}
	__device__ DeviceMemory mine() const { return memory(world.device); }

	__device__ WindowEntry entry(Window w, int rank) const {
		return *mine().window(w.slot, w.comm == WORLD ? rank : first() + rank);
	}

	// served_by returns the device of a rank of the world if this device reaches it only by its proxy, else -1.
	__device__ int served_by(i64 rank) const {
#ifdef RANK_PROXY
		const int device = (int)place_of(rank).device;
		if (is_served(device)) return device;
#endif
		return -1;
	}
	__device__ bool is_served(i64 device) const {
#ifdef RANK_PROXY
		return world.served >> device & 1;
#else
		return false;
#endif
	}

	// any_served returns whether proxies serve any pair of devices.
	__device__ static constexpr bool any_served() {
#ifdef RANK_PROXY
		return true;
#else
		return false;
#endif
	}

	// try_claim claims a slot for a command, in one thread, if one is free, and returns its number from 0 or NONE_FREE.
	// A rank must not wait between claiming a slot and publishing it, since commands are executed in order. While all
	// slots are taken, one rank at a time reads host memory on behalf of the device: see wait_unless_ended.
	__device__ u64 try_claim() {
		u64 *const claimed = mine().line(COMMANDS_CLAIMED), *const done = mine().line(COMMANDS_DONE),
		           *const reading = done + 1;
		const u64 n = load_relaxed_sys(claimed);
		if (n < load_acquire_gpu(done) + COMMANDS) return atomicCAS(claimed, n, n + 1) == n ? n : NONE_FREE;
		if (atomicCAS(reading, 0, 1) == 0) {
			store_release_gpu(done, load_acquire_sys(&world.control->done));
			store_release_gpu(reading, 0);
		}
		return NONE_FREE;
	}
	// publish passes a command to the proxy, in one thread. The proxy sees the group's stores in the payload.
	__device__ void publish(u64 n, CommandKind what, i64 device, const void *at, i64 bytes) {
		Command &c = world.commands[n % COMMANDS];
		c.what = what, c.device = (u64)device, c.at = (u64)at, c.bytes = (u64)bytes;
		store_release_sys(&c.number, n + 1);
	}
	// try_post_words requests a store of one or two words at a device, in one thread, if a command slot is free.
	__device__ bool try_post_words(i64 device, u64 *at, u64 low, u64 high, int words) {
		const u64 n = try_claim();
		if (n == NONE_FREE) return false;
		u64 *const payload = (u64 *)world.commands[n % COMMANDS].payload;
		payload[0] = low, payload[1] = high;
		publish(n, STORE, device, at, 8 * words);
		return true;
	}

	// route_to returns the route to a window of a rank.
	__device__ Route route_to(Window w, int rank) const {
		return {entry(w, rank).base, count_of(in_world(w.comm, rank))};
	}
	__device__ u64 count_of(i64 rank) const {
		const Place to = place_of(rank);
		const DeviceMemory b = memory(to.device);
		return to.device == world.device ? (u64)b.near_count(to.rank, 0) : (u64)b.far_count(to.rank, 0) + 1;
	}
	// recent is route_to for all lanes of the first warp of a block. A table in shared memory avoids most accesses to
	// device memory, which each wait's acquire evicts from the L1 cache.
	__device__ __forceinline__ Route recent(Window w, int rank) {
		const u64 key = (u64)(w.slot + 1) << 32 | (unsigned)rank;
		auto &e = state.recent[((unsigned)rank + (unsigned)w.slot) % 16];
		Route route = e.route;
		const bool known = e.key == key;
		__syncwarp();
		if (known) return route;
		route = route_to(w, rank);
		if (threadIdx.x == 0) e.key = key, e.route = route;
		__syncwarp();
		return route;
	}
	// keep_all reads all queues, and keep the queue of a device, while there is space. In finish they drop what they
	// read. The caller must hold queue_lock.
	RANK_CALLED __device__ void keep_all() {
		for (i64 d = 0; d < world.devices; d++) keep(*mine().kept(blockIdx.x), d);
	}
	__device__ void keep(Kept &kept, i64 device) {
		const u64 *const queue = mine().queue(blockIdx.x, device);
		const u64 before = kept.read[device];
		u64 n = before;
		for (; kept.count < KEPT || state.finishing; n++) {
			const Envelope next = {load_relaxed_sys(queue + n % QUEUED)};
			if (!next.is_of(n / QUEUED + 1)) break;
			acquire_sys(queue + n % QUEUED);
			if (!state.finishing) kept.envelopes[kept.count++] = next.word;
		}
		kept.read[device] = n;
		if (n == kept.told[device]) return;
		u64 *const told = memory(device).read(index());
		if (!is_served(device)) store_release_sys(told, n);
		else if (!try_post_words(device, told, n, 0, 1)) return; // retried later
		kept.told[device] = n;
	}

	__device__ __forceinline__ bool wait_for_count(const u64 *count, u64 all) {
		return wait_unless_ended<Thread, true>([&] { return load_relaxed_gpu(count) >= all; }, count);
	}

	// In a barrier of the world, the last rank to arrive on each device signals the other devices. Odd and even
	// barriers have separate counts: a device may reach the next barrier before this one has received the signal and
	// the earlier stores of another device. It cannot reach the barrier after that before this one has.
	//
	// tell_devices signals barrier n to the other devices; all threads of a block call it. Each device has its own
	// thread, since successive releases of one thread wait for each other. If a proxy serves this device and any other,
	// the proxy signals all devices after it has stored this device's puts. Otherwise, a device that is signaled
	// directly could read data on a third device before it has arrived.
	__device__ void tell_devices(u64 n) {
		const bool directly = !any_served() || world.served == 0;
		for (i64 d = threadIdx.x; d < world.devices && directly; d += blockDim.x)
			if (d != world.device) add_release_sys(memory(d).line(OTHER_DEVICES) + n % 2, 1);
		if (threadIdx.x != 0 || directly) return;
		for (i64 d = 0; d < world.devices; d++)
			if (d != world.device) post_raise(RAISE_BARRIER, d, memory(d).line(SERVED_DEVICES) + n % 2);
	}
	// wait_for_devices waits for all other devices to reach barrier n, in one thread.
	__device__ bool wait_for_devices(u64 n) {
		const u64 *const others = mine().line(OTHER_DEVICES) + n % 2, *const served =
		                                                                  mine().line(SERVED_DEVICES) + n % 2;
		const u64 devices = (n + 1) / 2 * (u64)(world.devices - 1);
		return wait_unless_ended<Thread, true>(
		    [&] { return load_relaxed_sys(others) + (any_served() ? load_relaxed_sys(served) : 0) >= devices; }, others,
		    served);
	}

	// has_ended reads whether the host has ended the run.
	__device__ bool has_ended() const { return load_relaxed_sys(world.ended) != 0; }

	// wait_unless_ended polls came() until it returns true, and then acquires the words that came() reads with relaxed
	// loads. It returns false if the run ends or the time limit passes, up to about a millisecond late. It is for one
	// thread, or for all lanes of a warp; came() must return the same in all of them. After the first polls it pauses
	// for increasing times. came() should not acquire, which invalidates the L1 cache shared by ranks of a
	// multiprocessor. It should read memory of this device: hundreds of ranks that poll host memory slow down all
	// memory accesses of the GPU, by a factor of five even if each rank reads it at one poll in 512. A barrier waits up
	// to a second longer, so that the error names the rank that waits for something else.
	template <typename Lanes = Thread, bool LONGER = false, typename Came, typename... Words>
	RANK_CALLED __device__ bool wait_unless_ended(Came came, const Words *...words) {
		enum { AT_ONCE = 16, GROWTH = 16, LONGEST = 1000 }; // polls before the first pause; limits of pauses, in ns
		enum { QUEUES = 64, CLOCK = 16 };                   // polls between reads of its queues, and of the clock
		enum { TICK = 19 };                                 // log2 of the ns of a tick
		unsigned start = 0;                                 // the tick of the first reading of the clock
#pragma unroll 1
		for (int polls = 0; polls < AT_ONCE; polls++)
			if (came()) return acquire_sys(words...), true;
#pragma unroll 1
		for (unsigned polls = 0;; polls++) {
			if (came()) return acquire_sys(words...), true;
			__nanosleep(min(polls, (unsigned)LONGEST / GROWTH) * GROWTH);
#ifdef RANK_QUEUES
			if (polls % QUEUES == QUEUES - 1 && try_lock(&state.queue_lock)) { // others may wait for space in them
				keep_all();
				unlock(&state.queue_lock);
			}
#endif
			if (polls % CLOCK != CLOCK - 1) continue;
			const unsigned now = (unsigned)(nanoseconds() >> TICK);
			if (start == 0) start = now;
			if (has_ended()) state.failed = ENDED;
			unsigned late = now - start; // in ticks; the maximum excess over the limit
			if (LONGER) late -= min(late / 8, 1u << 11);
			if (!Lanes::all(!state.failed && (i64)late <= (world.limit >> TICK) + 1)) return false;
		}
	}

	// post_words requests a store of one or two words at a device, in one thread.
	__device__ void post_words(i64 device, u64 *at, u64 low, u64 high, int words) {
		if (!wait_unless_ended([&] { return try_post_words(device, at, low, high, words); })) no_proxy(device);
	}
	// post_raise requests an increment of a count of a device, in one thread.
	__device__ void post_raise(CommandKind what, i64 device, const u64 *count) {
		const bool posted = wait_unless_ended([&] {
			const u64 n = try_claim();
			if (n != NONE_FREE) publish(n, what, device, count, 8);
			return n != NONE_FREE;
		});
		if (!posted) no_proxy(device);
	}
	// claim waits for a command slot for a group, and returns it to all its threads, or a negative number. number is
	// its number in the first thread.
	template <typename Group> __device__ int claim(i64 device, u64 &number) {
		int place = -1;
		if (Group::thread() == 0) {
			if (wait_unless_ended([&] { return (number = try_claim()) != NONE_FREE; }))
				place = (int)(number % COMMANDS);
			else no_proxy(device);
		}
		return share<Group>(place);
	}
	// post requests a store of bytes at a device. The source may be changed afterwards.
	template <typename Group> __device__ void post(i64 device, char *to, const char *from, i64 bytes) {
		u64 n = 0;
		for (i64 at = 0; at < bytes; at += PAYLOAD) {
			const i64 some = min(bytes - at, (i64)PAYLOAD);
			const int place = claim<Group>(device, n);
			if (place < 0) return;
			copy<Group>(world.commands[place].payload, from + at, some);
			Group::sync();
			if (Group::thread() == 0) publish(n, STORE, device, to + at, some);
		}
	}
	// fetch waits for bytes of a device.
	template <typename Group> __device__ void fetch(i64 device, char *to, const char *from, i64 bytes) {
		u64 n = 0;
		for (i64 at = 0; at < bytes; at += PAYLOAD) {
			const i64 some = min(bytes - at, (i64)PAYLOAD);
			const int place = claim<Group>(device, n);
			if (place < 0) return;
			Command &c = world.commands[place];
			bool came = true;
			if (Group::thread() == 0) {
				publish(n, FETCH, device, from + at, some);
				came = wait_unless_ended([&] { return load_relaxed_sys(&c.reply) == n + 1; }, &c.reply);
				if (!came) no_proxy(device);
			}
			if (!Group::all(came)) return;
			copy<Group>(to + at, c.payload, some);
			Group::sync();
			if (Group::thread() == 0) store_release_sys(&c.taken, n + 1);
		}
	}
	__device__ void no_proxy(i64 device) { fail(NO_PROXY, COMMANDS, (u64)device, 0); }

	// share returns the value of a group's first thread to all its threads.
	template <typename Group> __device__ int share(int v) {
		if (same<Group, Thread>::value) return v;
		if (!Group::WHOLE) {
			__syncwarp(); // orders memory; a shuffle does not
			return __shfl_sync(~0u, v, 0);
		}
		Group::sync(); // all have read the previously shared value
		if (threadIdx.x == 0) state.base[puts & 1] = (u64)(i64)v;
		Group::sync();
		v = (int)state.base[puts & 1];
		puts++;
		return v;
	}

	// fail ends the run, in one thread: the first failure of a device is reported to the host.
	__device__ void fail(Failure why, u64 expected, u64 came, u64 detail, u64 where = 0) {
		Control *const c = world.control;
		const bool was = state.failed;
		state.failed = why;
		if (was || atomicCAS(&c->claimed, 0, 1) != 0) return;
		c->failure = why, c->rank = (u64)index(), c->expected = expected, c->came = came, c->detail = detail;
		if (where != 0) c->where = where; // initially cleared by the host
		store_release_sys(&c->written, 1);
	}

#ifdef RANK_CHECKS
	__device__ bool check(bool right, Failure why, i64 expected, i64 came, i64 detail, u64 where = 0) {
		if (!right) fail(why, (u64)expected, (u64)came, (u64)detail, where);
		return right;
	}
#else
	__device__ bool check(bool, Failure, i64, i64, i64, u64 = 0) { return true; }
#endif

	// valid_count: a negative count would be satisfied immediately. With queues a rank never has more than KEPT at
	// once.
	__device__ bool valid_count(u64 count) {
#ifdef RANK_QUEUES
		if (count > KEPT) fail(BAD_COUNT, KEPT, count, 0);
		return count <= KEPT;
#else
		return check((i64)count >= 0, BAD_COUNT, 0, (i64)count, 0);
#endif
	}
	__device__ bool valid_tag(i64 tag) { return check(tag >= 0 && tag < RANK_TAGS, BAD_TAG, RANK_TAGS, tag, 0); }
	__device__ bool valid(Comm comm, int to, int tag) {
		return check(to >= 0 && to < size(comm), BAD_RANK, size(comm), to, 0) && valid_tag(tag);
	}
	// is_open reports whether a window has been made and not freed.
	__device__ bool is_open(Window w) const {
		return w.slot >= 0 && w.slot < 2 * MAX_WINDOWS && w.comm == w.slot / MAX_WINDOWS &&
		       state.windows[w.comm] >> w.slot % MAX_WINDOWS & 1;
	}
	// place identifies the memory of a rank in a window, for an error.
	__device__ u64 place(Window w, int rank) const { return (u64)in_world(w.comm, rank) << 32 | (u64)w.slot; }
	__device__ bool valid(Window w, int rank, i64 offset, i64 bytes) {
#ifdef RANK_CHECKS
		if (!check(is_open(w), BAD_WINDOW, 0, w.slot, 0) ||
		    !check(rank >= 0 && rank < size(w.comm), BAD_RANK, size(w.comm), rank, 0))
			return false;
		const i64 all = entry(w, rank).bytes;
		return check(offset >= 0 && bytes >= 0 && offset <= all - bytes, BAD_RANGE, all, offset, bytes, place(w, rank));
#else
		return w.exists();
#endif
	}
	// valid_box is valid for a box whose first row is valid, given the bytes of rows, and the strides of rows and of
	// planes.
	__device__ bool valid_box(Window w, int rank, i64 offset, i64 bytes, i64 rows, i64 row, i64 planes, i64 plane) {
#ifdef RANK_CHECKS
		const i64 all = entry(w, rank).bytes;
		i64 low = offset, high = offset + bytes;
		if (!check((rows == 1 || row != 0) && (planes == 1 || plane != 0), BAD_BOX, 0, 0, 0)) return false;
		stretch(low, high, rows, row, all), stretch(low, high, planes, plane, all);
		return check(low >= 0 && high <= all, BAD_RANGE, all, low, high - low, place(w, rank));
#else
		return true;
#endif
	}
	// stretch extends a range to count copies at a stride, but by no more than most + 1.
	static __device__ void stretch(i64 &low, i64 &high, i64 count, i64 stride, i64 most) {
		const u64 apart = stride < 0 ? 0 - (u64)stride : (u64)stride, more = (u64)(count - 1);
		const i64 by = apart == 0 || more <= (u64)most / apart ? (i64)(more * apart) : most + 1;
		if (stride < 0) low -= by;
		else high += by;
	}
};

} // namespace ranks
