// Ranks: thread blocks that put data into each other's memory and notify each other, on one or several GPUs, while they
// run. This is the model of dCUDA: Gysi, Bär and Hoefler 2016, Kuster 2017.
//
// A kernel has one parameter, a World. All its blocks run concurrently, on every device of the world, and each is a
// rank. Ranks make a window of memory that others may write to, put data there, and wait for notifications of data:
//
//     #include "ranks.cuh"
//
//     extern "C" __global__ void pass_on(const __grid_constant__ ranks::World world) {
//         __shared__ ranks::State state;
//         ranks::Rank rank(world, state);
//         const Data data = rank.data<Data>();
//         ranks::Window w = rank.create_window(ranks::WORLD, data.memory, data.bytes);
//         rank.put_notify(w, (rank.index() + 1) % rank.size(), 0, bytes, from, tag);
//         rank.wait_notifications(tag, 1);
//         rank.free_window(w);
//         rank.finish();
//     }
//
// All threads of a block must call each function, and get the same result, unless stated otherwise. Functions with a
// Group template argument are called by all threads of a block with ranks::Block, the default; by all lanes of a warp
// with ranks::Warp; and by one thread with ranks::Thread.
//
// After a wait that timed out, or another failure, all functions return immediately, and those that return bool return
// false. The host reports the error.
//
// Options: RANK_CHECKS, to check the arguments of every call; RANK_QUEUES, for notifications that include their window
// and source; RANK_PROXY, if proxies serve devices; RANK_TAGS, the number of tags; RANK_CALLED_COPIES, to make the
// copies of puts a called function instead of inlining them, which may take fewer registers if a kernel puts at several
// places; RANK_WORDS, see rank_copy.cuh.
#pragma once

#include "flags.cuh"
#include "rank_channel.cuh"
#include "rank_copy.cuh"
#include "rank_log.cuh"
#include "rank_packet.cuh"
#include "rank_queue.cuh"
#include "rank_world.cuh"

#ifdef RANK_CALLED_COPIES
#define RANK_COPY __noinline__
#else
#define RANK_COPY __forceinline__
#endif

namespace ranks {

// copy_put copies the data of a put.
template <typename Group> __device__ RANK_COPY void copy_put(char *to, const void *from, i64 bytes) {
	copy<Group>(to, from, bytes);
}

class Rank : public Channels {
  public:
	// The first call of every block; returns once all ranks of the world have called it.
	__device__ Rank(const World &w, State &s) : Channels(w, s) {
		const DeviceMemory b = mine();
		const i64 rank = index(DEVICE);
		for (int tag = (int)threadIdx.x; tag < RANK_TAGS; tag += (int)blockDim.x)
			s.consumed[tag] = *b.near_count(rank, tag) + (world.devices > 1 ? *b.far_count(rank, tag) : 0) +
			                  (any_served() ? *b.served_count(rank, tag) : 0); // as came adds them up
		if (threadIdx.x < 2)
			s.barriers[threadIdx.x] = 0, s.windows[threadIdx.x] = w.windows[threadIdx.x], s.base[threadIdx.x] = 0;
		for (int i = (int)threadIdx.x; i < 16; i += (int)blockDim.x) s.recent[i].key = 0;
		open_edges(), open_ends();
		if (threadIdx.x == 0) s.timer = 0, s.queue_lock = 0, s.failed = NONE, s.finishing = 0;
		Block::sync();
		barrier(WORLD);
	}

	// finish is the last call of every block; it returns once all ranks have called it.
	__device__ void finish() {
#ifdef RANK_QUEUES
		Block::sync(); // no group waits any more for notifications that are dropped now
		if (threadIdx.x == 0) state.finishing = 1;
#endif
		barrier(WORLD);
	}

	// create_window makes a window of the memory that each rank of the communicator passes, which may be of any size,
	// including 0, and overlap that of other ranks. All ranks of the communicator call it. The window does not exist if
	// the communicator already has MAX_WINDOWS, or the run has failed.
	__device__ Window create_window(Comm comm, void *base, i64 bytes) {
		const int place = __ffsll((i64)~state.windows[comm]) - 1;
		if (threadIdx.x == 0) check(bytes >= 0, BAD_COUNT, 0, bytes, 0);
		if (!goes_on<Block>() || place < 0 || place >= MAX_WINDOWS) return {-1, comm};
		const Window w = {comm * MAX_WINDOWS + place, comm};
		if (threadIdx.x == 0) state.windows[comm] |= 1ull << place;
		for (i64 d = threadIdx.x; d < world.devices; d += blockDim.x) {
			if (comm != WORLD && d != world.device) continue;
			WindowEntry *const there = memory(d).window(w.slot, index());
			if (is_served(d)) post_words(d, (u64 *)there, (u64)base, (u64)bytes, 2);
			else *there = {(u64)base, bytes};
		}
		return {barrier(comm) ? w.slot : -1, comm};
	}

	// free_window frees a window. All ranks of the communicator call it, in the same order for several windows; no rank
	// may use the window afterwards. It has no effect on a window made by the host.
	__device__ void free_window(Window w) {
		if (threadIdx.x == 0) check(is_open(w), BAD_WINDOW, 0, w.slot, 0);
		barrier(w.comm);
		if (threadIdx.x == 0 && w.exists())
			state.windows[w.comm] &= ~(1ull << w.slot % MAX_WINDOWS) | world.windows[w.comm];
		if (threadIdx.x < 16) state.recent[threadIdx.x].key = 0;
		Block::sync();
	}

	// pointer returns the address of a rank's window if this device can access it, else 0, as for a window that does
	// not exist. Any thread may call it. With RANK_CHECKS an invalid window or rank ends the run.
	__device__ char *pointer(Window w, int rank) {
		return !valid(w, rank, 0, 0) || served_by(in_world(w.comm, rank)) >= 0 ? 0 : (char *)entry(w, rank).base;
	}

	// put puts bytes at an offset into the window of a rank of its communicator. It includes the stores of all threads
	// of the group. The source may be changed after a flush. It sends no notification.
	template <typename Group = Block> __device__ void put(Window w, int to, i64 offset, i64 bytes, const void *from) {
		put_and<Group, false>(w, to, offset, bytes, from, 0);
	}

	// put_notify is put followed by notify. One notification covers all earlier puts of the group to that rank.
	template <typename Group = Block>
	__device__ void put_notify(Window w, int to, i64 offset, i64 bytes, const void *from, int tag) {
		put_and<Group, true>(w, to, offset, bytes, from, tag);
	}

	// notify sends a notification with a tag to a rank of the communicator. A rank that has received it sees all
	// earlier puts of the group to that rank.
	template <typename Group = Block> __device__ void notify(int to, Comm comm, int tag) {
		const bool right = Group::thread() == 0 && !state.failed && valid(comm, to, tag);
		const u64 count = right ? count_of(in_world(comm, to)) : 0;
		Group::sync();
		if (right) raise(comm, to, count, tag, NO_WINDOW);
	}

	// put_box is put for a box: rows of bytes in planes, with strides in bytes at the target and in the source. Strides
	// at the target may be negative; those of the source, which starts with the first row, must not. A box of two
	// dimensions has one plane; a box of no bytes, rows or planes puts nothing, at an offset up to the end of the
	// window.
	struct Rows {
		i64 bytes, rows, planes;
	};
	struct Strides {
		i64 row, plane;
	};
	template <typename Group = Block>
	__device__ void put_box(Window w, int to, i64 offset, Strides there, Rows size, const void *from, Strides here) {
		const i64 least = min(size.bytes, min(size.rows, size.planes));
		if (!goes_on<Group>() || !valid(w, to, offset, least > 0 ? size.bytes : 0) ||
		    !check(least >= 0, BAD_COUNT, 0, least, 0) || least <= 0 ||
		    !valid_box(w, to, offset, size.bytes, size.rows, there.row, size.planes, there.plane))
			return;
		char *const t = (char *)entry(w, to).base + offset;
		const char *const f = (const char *)from;
		if (const int served = served_by(in_world(w.comm, to)); served >= 0) {
			for (i64 z = 0; z < size.planes; z++)
				for (i64 y = 0; y < size.rows; y++)
					post<Group>(served, t + y * there.row + z * there.plane, f + y * here.row + z * here.plane,
					            size.bytes);
			return;
		}
		const u64 all = (u64)t | (u64)f | (u64)there.row | (u64)here.row | (u64)size.bytes |
		                (size.planes > 1 ? (u64)there.plane | (u64)here.plane : 0);
		if (all % 16 == 0) copy_box<Group, uint4>(t, there, size, f, here);
		else if (all % 8 == 0) copy_box<Group, u64>(t, there, size, f, here);
		else if (all % 4 == 0) copy_box<Group, unsigned>(t, there, size, f, here);
		else copy_box<Group, char>(t, there, size, f, here);
	}

	// get gets bytes from an offset of the window of a rank. They are available after a flush. It sees the data ordered
	// by earlier notifications and barriers.
	template <typename Group = Block> __device__ void get(Window w, int rank, i64 offset, i64 bytes, void *to) {
		if (!goes_on<Group>() || !valid(w, rank, offset, bytes)) return;
		const char *const from = (const char *)entry(w, rank).base + offset;
		if (const int served = served_by(in_world(w.comm, rank)); served >= 0)
			fetch<Group>(served, (char *)to, from, bytes);
		else copy<Group>(to, from, bytes);
	}

	// get_notify is get, and then notifies the rank whose window was read that it may overwrite the data.
	template <typename Group = Block>
	__device__ void get_notify(Window w, int rank, i64 offset, i64 bytes, void *to, int tag) {
		get<Group>(w, rank, offset, bytes, to);
		if (w.exists()) notify<Group>(rank, w.comm, tag);
	}

	// flush is local completion: it returns once the sources of all puts of the group may be changed and the data of
	// its gets is available. It does not wait for the targets of puts.
	template <typename Group = Block> __device__ void flush(Window) { Group::sync(); }

	// test_notifications consumes count notifications of a tag and returns true, or consumes none and returns false.
	// Only one group at a time may wait for a tag or test it.
	template <typename Group = Block> __device__ bool test_notifications(int tag, u64 count) {
#ifdef RANK_QUEUES
		return test_notifications<Group>(match_of<Group>(tag), count);
#endif
		typedef typename lanes_of<Group>::type Lanes;
		bool came = true;
		if (Group::in_first_warp())
			came = goes_on<Lanes>() && valid_tag(tag) && valid_count(count) && take<Lanes>(tag, count, false);
		return Group::all(came);
	}

	// wait_notifications waits until it can consume count notifications of a tag.
	template <typename Group = Block> __device__ bool wait_notifications(int tag, u64 count) {
#ifdef RANK_QUEUES
		return wait_notifications<Group>(match_of<Group>(tag), count);
#endif
		bool came = true;
		if (Group::in_first_warp()) {
			typedef typename lanes_of<Group>::type Lanes;
			came = goes_on<Lanes>() && valid_tag(tag) && valid_count(count);
			if (came && !take<Lanes>(tag, count, true)) {
				if (Group::thread() == 0) fail(NO_NOTIFICATIONS, count, notifications(tag), (u64)tag);
				came = false;
			}
		}
		return Group::all(came);
	}

#ifdef RANK_QUEUES
	// The same for notifications that match, in order of arrival.
	template <typename Group = Block> __device__ bool test_notifications(const Match &m, u64 count) {
		Envelope first;
		return test_match<Group>(m, count, first);
	}
	template <typename Group = Block> __device__ bool wait_notifications(const Match &m, u64 count) {
		Envelope first;
		return wait_match<Group>(m, count, first);
	}

	// test_one and wait_one are the same for one notification, the first that matches, and return its origin to all
	// threads. If they return false, from is unchanged.
	template <typename Group = Block> __device__ bool test_one(const Match &m, Notification &from) {
		Envelope first{};
		return test_match<Group>(m, 1, first) && share_envelope<Group>(first, from);
	}
	template <typename Group = Block> __device__ bool wait_one(const Match &m, Notification &from) {
		Envelope first{};
		return wait_match<Group>(m, 1, first) && share_envelope<Group>(first, from);
	}
#else
	template <typename Group = Block> __device__ bool test_notifications(const Match &, u64) {
		return no_queues<Group>();
	}
	template <typename Group = Block> __device__ bool wait_notifications(const Match &, u64) {
		return no_queues<Group>();
	}
	template <typename Group = Block> __device__ bool test_one(const Match &, Notification &) {
		return no_queues<Group>();
	}
	template <typename Group = Block> __device__ bool wait_one(const Match &, Notification &) {
		return no_queues<Group>();
	}
	template <typename Group> static __device__ bool no_queues() {
		static_assert(!sizeof(Group *), "notifications are matched with Options.Queues, which define RANK_QUEUES");
		return false;
	}
#endif

	// wait_any waits for one notification with a tag from first_tag to first_tag + tags - 1, consumes it, and returns
	// its tag. It returns -1 if the wait timed out or the run has ended.
	template <typename Group = Block> __device__ int wait_any(int first_tag, int tags) {
		int found = -1;
		if (Group::thread() == 0 && !state.failed && check(tags > 0, BAD_COUNT, 0, tags, 0) && valid_tag(first_tag) &&
		    valid_tag((i64)first_tag + tags - 1)) {
			const bool came = wait_unless_ended([&] {
				for (int tag = first_tag; tag - first_tag < tags; tag++) {
#ifdef RANK_QUEUES
					if (Envelope first; match(Match(ANY, tag), 1, first)) return found = tag, true;
#else
					if ((i64)notifications(tag) > 0 && take<Thread>(tag, 1, false)) return found = tag, true;
#endif
				}
				return false;
			});
			if (!came) fail(NO_NOTIFICATIONS, 1, 0, (u64)tags << 32 | (unsigned)first_tag);
		}
		return share<Group>(found);
	}

	// start_timer and stop_timer are called by all ranks of a device, and wait for all of them. The host receives the
	// time from each start to the next stop.
	__device__ void start_timer() {
		barrier(DEVICE);
		if (threadIdx.x == 0) state.timer = nanoseconds();
	}
	__device__ void stop_timer() {
		barrier(DEVICE);
		if (threadIdx.x != 0) return;
		const i64 begun = state.timer;
		state.timer = 0;
		if (blockIdx.x != 0 || begun == 0) return;
		Timings *const t = mine().timings();
		if (t->count < MAX_TIMINGS) t->nanoseconds[t->count] = nanoseconds() - begun;
		t->count++;
	}

	// log writes a line of text and numbers to the log of the run, using the values of the block's first thread. A char
	// counts as a number. It waits while the host has LOG_LINES of the device still to read.
	template <typename... Items> __device__ void log(const Items &...items) {
		if (threadIdx.x != 0 || state.failed) return;
		LogText text;
		(text.add(items), ...);
		const u64 n = atomicAdd(mine().line(LOG_LINES_CLAIMED), 1);
		const Control *const c = world.control;
		if (!wait_unless_ended([&] { return n < load_relaxed_sys(&c->logged) + LOG_LINES; }, &c->logged))
			return fail(LOG_FULL, LOG_LINES, 0, 0);
		LogLine &line = world.log[n % LOG_LINES];
		line.rank = (u64)index(), line.length = (u64)text.used;
		for (int i = 0; i < (int)(sizeof text.words / sizeof(u64)); i++) ((u64 *)line.text)[i] = text.words[i];
		store_release_sys(&line.number, n + 1);
	}

	// fail ends the run with a user-defined code, like a wait that timed out: Run returns an error with the rank, the
	// code, the detail, and the program's description of the code. One or more threads call it; the first call counts.
	// The caller continues, and all functions return immediately.
	__device__ void fail(i64 code, i64 detail = 0) { Channels::fail(BY_PROGRAM, (u64)code, 0, (u64)detail); }

	// ended returns to all threads of a group whether the run has ended, by a failure anywhere or by the host. It reads
	// memory of the device; a loop with waits should use their results instead.
	template <typename Group = Block> __device__ bool ended() {
		bool on = true;
		if (Group::thread() == 0) {
			if (!state.failed && has_ended()) state.failed = ENDED;
			on = !state.failed;
		}
		return !Group::all(on);
	}

  private:
	using Channels::fail;
	enum { SMALL = 512 }; // bytes that one warp puts

	// put_and puts, and optionally notifies.
	template <typename Group, bool NOTIFIES>
	__device__ __forceinline__ void put_and(Window w, int to, i64 offset, i64 bytes, const void *from, int tag) {
		const bool on = !state.failed;
		Route route{};
		bool right = false;
		if (Group::WHOLE) { // the first warp finds the route while the others arrive
			if (Group::in_first_warp()) {
				right = valid(w, to, offset, bytes) && (!NOTIFIES || valid_tag(tag));
				if (right) route = recent(w, to);
			}
			if (bytes <= SMALL) { // and puts without the others
				Group::sync();
				if (!Group::in_first_warp() || !Warp::all(on && right)) return;
				deliver<Warp>(w, to, (char *)route.base + offset, from, bytes);
				__syncwarp();
			} else {
				u64 &base = state.base[puts++ & 1];
				if (threadIdx.x == 0) base = route.base;
				if (!Group::all(on) || base == 0) return;
				deliver<Group>(w, to, (char *)base + offset, from, bytes);
				if (NOTIFIES) Group::sync();
			}
		} else {
			if (!Group::all(on) || !valid(w, to, offset, bytes) || NOTIFIES && !valid_tag(tag)) return;
			route = route_to(w, to);
			deliver<Group>(w, to, (char *)route.base + offset, from, bytes);
			Group::sync();
		}
		if (NOTIFIES && Group::thread() == 0) raise(w.comm, to, route.count, tag, w.slot);
	}

	// deliver copies bytes to a rank, or has a proxy do so.
	template <typename Group>
	__device__ __forceinline__ void deliver(Window w, int to, char *there, const void *from, i64 bytes) {
		if (const int served = served_by(in_world(w.comm, to)); served >= 0)
			post<Group>(served, there, (const char *)from, bytes);
		else copy_put<Group>(there, from, bytes);
	}

	template <typename Group, typename W>
	__device__ __forceinline__ void copy_box(char *to, Strides there, Rows size, const char *from, Strides here) {
		const u64 words = (u64)size.bytes / sizeof(W), all = words * (u64)size.rows * (u64)size.planes;
		for (u64 n = (u64)Group::thread(); n < all; n += (u64)Group::threads()) {
			const u64 row = n / words, plane = row / (u64)size.rows;
			const i64 x = (i64)((n - row * words) * sizeof(W)), y = (i64)(row - plane * (u64)size.rows), z = (i64)plane;
			*(W *)(to + x + y * there.row + z * there.plane) = *(const W *)(from + x + y * here.row + z * here.plane);
		}
	}

	// raise notifies a rank of data put into a window, in one thread. count is that of the route to the rank.
	__device__ __forceinline__ void raise(Comm comm, int to, u64 count, int tag, int slot) {
#ifdef RANK_QUEUES
		const Place place = place_of(in_world(comm, to));
		queue(place.device, place.rank, slot, tag);
		return;
#endif
		if (const int served = served_by(in_world(comm, to)); served >= 0)
			post_raise(RAISE, served, memory(served).served_count(place_of(in_world(comm, to)).rank, tag));
		else if (count & 1) add_release_sys((u64 *)(count - 1) + tag, 1);
		else add_release_gpu((u64 *)count + tag, 1);
	}

	// notifications returns how many of a tag have arrived and were not consumed, in one thread; it orders nothing.
	__device__ u64 notifications(int tag) const {
		const DeviceMemory b = mine();
		u64 came = load_relaxed_sys(b.near_count(blockIdx.x, tag));
		if (world.devices > 1) came += load_relaxed_sys(b.far_count(blockIdx.x, tag));
		if (any_served()) came += load_relaxed_sys(b.served_count(blockIdx.x, tag));
		return came - state.consumed[tag];
	}

	// The counts of notifications of a tag that a group polls: one thread polls all of them, each lane of a warp polls
	// one. With several devices, pairs of lanes add the counts of near and far ranks; with proxies, groups of four
	// lanes add all three kinds, so that a poll has no branch.
	template <typename Group> struct Sources {
		static constexpr bool ONE = same<Group, Thread>::value;
		const u64 *count; // for this lane; for one thread: the count of its device
		bool adds;        // with proxies: whether no other of the four lanes has this lane's count
		bool alone;       // whether the world has one device

		// came returns whether the given total has arrived, and orders nothing. acquire acquires the data put before
		// those notifications.
		__device__ __forceinline__ bool came(const Rank &rank, int tag, u64 enough) const {
			u64 all = load_relaxed_sys(count);
			if (ONE) {
				const DeviceMemory b = rank.mine();
				if (!alone) all += load_relaxed_sys(b.far_count(blockIdx.x, tag));
				if (any_served()) all += load_relaxed_sys(b.served_count(blockIdx.x, tag));
				return (i64)(all - enough) >= 0;
			}
			if (any_served()) all = adds ? all : 0;
			if (any_served() || !alone) all += __shfl_xor_sync(~0u, all, 1);
			if (any_served()) all += __shfl_xor_sync(~0u, all, 2);
			return __all_sync(~0u, (i64)(all - enough) >= 0);
		}
		__device__ __forceinline__ void acquire(const Rank &rank, int tag) const {
			const DeviceMemory b = rank.mine();
			if (!ONE) acquire_sys(count);
			else if (any_served()) acquire_sys(count, b.far_count(blockIdx.x, tag), b.served_count(blockIdx.x, tag));
			else acquire_sys(count, b.far_count(blockIdx.x, tag));
		}
	};
	template <typename Group> __device__ __forceinline__ Sources<Group> sources(int tag) const {
		const DeviceMemory b = mine();
		Sources<Group> s = {b.near_count(blockIdx.x, tag), true, world.devices == 1};
		if (Sources<Group>::ONE) return s;
		const int source = (int)threadIdx.x & (any_served() ? 3 : 1);
		if (source == 1 && !s.alone) s.count = b.far_count(blockIdx.x, tag);
		if (source == 2) s.count = b.served_count(blockIdx.x, tag);
		s.adds = source == 0 || source == 1 && !s.alone || source == 2;
		return s;
	}

	// take consumes count notifications and returns true, or returns false if there are fewer. If it waits, it does so
	// until there are enough, and returns false if the wait timed out or the run has ended.
	template <typename Group> __device__ __forceinline__ bool take(int tag, u64 count, bool waits) {
		const u64 enough = state.consumed[tag] + count;
		const Sources<Group> s = sources<Group>(tag);
		const auto came = [&] { return s.came(*this, tag, enough); };
		if (waits ? !wait_unless_ended<Group>(came) : !came()) return false;
		s.acquire(*this, tag);
		if (!same<Group, Thread>::value) __syncwarp();
		if (same<Group, Thread>::value || (threadIdx.x & 31) == 0) state.consumed[tag] = enough;
		return true;
	}

#ifdef RANK_QUEUES
	// queue puts a notification into the queue that a rank has for this device, in one thread.
	__device__ void queue(i64 device, i64 rank, int slot, int tag) {
		const i64 to = device * world.ranks + rank;
		const u64 n = atomicAdd(mine().claimed(to), 1), *const read = mine().read(to);
		const bool room = wait_unless_ended([&] { return n < load_relaxed_sys(read) + QUEUED; }, read);
		if (!room) return fail(QUEUE_FULL, QUEUED, (u64)to, (u64)tag);
		u64 *const there = memory(device).queue(rank, world.device) + n % QUEUED;
		const u64 word = Envelope::of(n / QUEUED + 1, slot, index(), tag).word;
		if (is_served(device)) post_words(device, there, word, 0, 1);
		else store_release_sys(there, word);
	}

	// match_of returns the match of a tag, and checks it: ANY is not a tag.
	template <typename Group> __device__ Match match_of(int tag) {
		if (Group::thread() == 0 && !state.failed) valid_tag(tag);
		return Match(ANY, tag);
	}
	__device__ bool valid_match(const Match &m, u64 count) {
		// Always checked: a wait for an invalid window would run until the limit.
		if (m.window.slot != ANY_WINDOW && !m.window.exists()) return fail(BAD_WINDOW, 0, m.window.slot, 0), false;
		return valid_count(count) && (m.tag == ANY || valid_tag(m.tag)) &&
		       check(m.source >= ANY && m.source < size(), BAD_RANK, size(), m.source, 0);
	}

	// test_match and wait_match return in the first thread the first of the consumed notifications.
	template <typename Group> __device__ bool test_match(const Match &m, u64 count, Envelope &first) {
		bool came = true;
		if (Group::thread() == 0) came = !state.failed && valid_match(m, count) && match(m, count, first);
		return Group::all(came);
	}
	template <typename Group> __device__ bool wait_match(const Match &m, u64 count, Envelope &first) {
		bool came = true;
		if (Group::thread() == 0) {
			const bool valid = !state.failed && valid_match(m, count);
			came = valid && wait_unless_ended([&] { return match(m, count, first); });
			if (valid && !came)
				fail(NO_MATCH, count, mine().kept(blockIdx.x)->count,
				     (u64)(i64)m.source << 32 | (u64)(unsigned short)m.window.slot << 16 | (unsigned short)m.tag);
		}
		return Group::all(came);
	}
	// share_envelope gives all threads of a group the origin of the first thread's notification.
	template <typename Group> __device__ bool share_envelope(Envelope first, Notification &from) {
		const int slot = share<Group>(first.slot());
		from.window = slot == NO_WINDOW ? Window{NO_WINDOW, WORLD} : Window{slot, (Comm)(slot / MAX_WINDOWS)};
		from.source = share<Group>(first.source());
		from.tag = share<Group>(first.tag());
		return true;
	}

	// match consumes the first count notifications that match, if there are enough, in one thread, and returns the
	// first of them. Several threads may call it at once. They spin: the holder of the lock never waits.
	__device__ bool match(const Match &m, u64 count, Envelope &first) {
		while (!try_lock(&state.queue_lock)) {
		}
		const bool found = take_kept(*mine().kept(blockIdx.x), m, count, first);
		unlock(&state.queue_lock);
		return found;
	}
	__device__ bool take_kept(Kept &kept, const Match &m, u64 count, Envelope &first) {
		keep_all();
		u64 found = 0;
		for (u64 i = 0; i < kept.count && found < count; i++) found += Envelope{kept.envelopes[i]}.matches(m);
		if (found < count) return false;
		u64 left = 0;
		for (u64 i = 0, taken = 0; i < kept.count; i++) {
			const Envelope n = {kept.envelopes[i]};
			if (taken == count || !n.matches(m)) kept.envelopes[left++] = n.word;
			else if (taken++ == 0) first = n;
		}
		kept.count = left;
		return true;
	}
#endif
};

} // namespace ranks
