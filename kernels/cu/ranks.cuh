// Ranks: thread blocks that put data into each other's memory and notify each other, on one GPU or several,
// while they run. The model is dCUDA's: Gysi, Bär and Hoefler 2016, Kuster 2017.
//
// A kernel has one parameter, a World. All its blocks run together, on every device of the world, and each is
// a rank. Ranks make a window of memory that others may write to, put data there, and wait until they are
// told of data that came:
//
//     #include "ranks.cuh"
//
//     extern "C" __global__ void pass_on(const __grid_constant__ ranks::World world) {
//         __shared__ ranks::State state;
//         ranks::Rank rank(world, state);
//         Data &data = rank.data<Data>();
//         ranks::Window w = rank.create_window(ranks::WORLD, data.memory, data.bytes);
//         rank.put_notify(w, (rank.index() + 1) % rank.size(), 0, bytes, from, tag);
//         rank.wait_notifications(tag, 1);
//         rank.free_window(w);
//         rank.finish();
//     }
//
// All threads of a block call each function together, and get the same result, unless it says otherwise.
// Functions with a Group in angle brackets are for the threads of a block, ranks::Block, if nothing is said;
// with ranks::Warp they are called by all lanes of a warp, with ranks::Thread by one thread.
//
// After a wait in vain, or another failure, all functions return at once, and those that return bool return
// false. The host says what happened.
//
// Options: RANK_CHECKS, for a check of the arguments of every call; RANK_QUEUES, for notifications that keep their
// window and source, and RANK_TAGS, how many tags there are.
#pragma once

#include "flags.cuh"
#include "rank_copy.cuh"
#include "rank_log.cuh"
#include "rank_queue.cuh"
#include "rank_world.cuh"

namespace ranks {

// The shared memory of a rank.
struct State {
	u64 consumed[RANK_TAGS];
	u64 read[MAX_DEVICES];       // of the queues of each device
	u64 barriers[2], windows[2]; // made; those that exist, a bit each
	u64 base[2];                 // of the window that a block puts into, of two puts in turn
	struct {
		u64 key, base;
	} recent[16]; // windows that the first warp has put into
	i64 timer;
	volatile int failed;
};

class Rank {
  public:
	// The first call of every block; returns once all ranks of the world have called it.
	__device__ Rank(const World &w, State &s) : world(w), state(s) {
		const Board b = mine();
		const i64 rank = index(DEVICE);
		for (int tag = (int)threadIdx.x; tag < RANK_TAGS; tag += (int)blockDim.x)
			s.consumed[tag] = *b.near_count(rank, tag) + *b.far_count(rank, tag);
		if (threadIdx.x < 2)
			s.barriers[threadIdx.x] = 0, s.windows[threadIdx.x] = w.windows[threadIdx.x], s.base[threadIdx.x] = 0;
		for (int i = (int)threadIdx.x; i < 16; i += (int)blockDim.x) s.recent[i].key = 0;
		if (threadIdx.x < MAX_DEVICES) s.read[threadIdx.x] = 0;
		if (threadIdx.x == 0) s.timer = 0, s.failed = NONE;
		Block::sync();
		barrier(WORLD);
	}

	// finish is the last call of every block; it returns once all ranks have called it.
	__device__ void finish() { barrier(WORLD); }

	// size and index may be called by any thread.
	__device__ int size(Comm comm = WORLD) const {
		return (int)(comm == WORLD ? world.ranks * world.devices : world.ranks);
	}
	__device__ int index(Comm comm = WORLD) const { return (int)blockIdx.x + (comm == WORLD ? (int)first() : 0); }

	// failed reports, to any thread, whether the run has failed.
	__device__ bool failed() const { return state.failed; }

	// data is the caller's struct on this device, which all its ranks share.
	template <typename T> __device__ T &data() const { return *(T *)world.data; }

	// barrier returns once all ranks of the communicator have called it. What they stored before, also by put,
	// is then seen by all.
	__device__ bool barrier(Comm comm) {
		if (!goes_on<Block>()) return false;
		bool ok = true;
		if (threadIdx.x == 0) {
			const u64 n = ++state.barriers[comm];
			ok = comm == DEVICE || world.devices == 1 ? meet(comm == DEVICE ? DEVICE_ARRIVALS : WORLD_ARRIVALS, n)
			                                          : meet_all(n);
			if (!ok) fail(NO_BARRIER, comm, 0, 0);
		}
		return Block::all(ok);
	}

	// create_window makes a window of the memory that each rank of the communicator gives, which may be of any
	// size, also 0, and overlap those of other ranks. All ranks of the communicator call it. The window does not
	// exist where the communicator has MAX_WINDOWS already.
	__device__ Window create_window(Comm comm, void *base, i64 bytes) {
		const int place = __ffsll((i64)~state.windows[comm]) - 1;
		if (!goes_on<Block>() || place < 0 || place >= MAX_WINDOWS) return {-1, comm};
		const Window w = {comm * MAX_WINDOWS + place, comm};
		if (threadIdx.x == 0) state.windows[comm] |= 1ull << place;
		for (i64 d = threadIdx.x; d < world.devices; d += blockDim.x) {
			if (comm == WORLD || d == world.device) *board(d).window(w.slot, index()) = {(u64)base, bytes};
		}
		barrier(comm);
		return w;
	}

	// free_window ends a window. All ranks of the communicator call it; nobody uses the window any more.
	__device__ void free_window(Window w) {
		barrier(w.comm);
		if (threadIdx.x == 0 && w.exists()) state.windows[w.comm] &= ~(1ull << w.slot % MAX_WINDOWS);
		if (threadIdx.x < 16) state.recent[threadIdx.x].key = 0;
		Block::sync();
	}

	// pointer returns where a rank's window lies, if this device can reach it, else 0; to any thread.
	__device__ char *pointer(Window w, int rank) const { return (char *)entry(w, rank).base; }

	// put puts bytes at an offset into the window of a rank of its communicator. It takes what all threads of the
	// group have stored. The source may be changed after a flush; nobody is told.
	template <typename Group = Block> __device__ void put(Window w, int to, i64 offset, i64 bytes, const void *from) {
		put_and<Group>(w, to, offset, bytes, from, -1);
	}

	// put_notify is put, and then notify. One notification tells of all that the group has put to that rank before.
	template <typename Group = Block>
	__device__ void put_notify(Window w, int to, i64 offset, i64 bytes, const void *from, int tag) {
		put_and<Group>(w, to, offset, bytes, from, tag);
	}

	// notify adds to the notifications that a rank of the communicator has of a tag. Who waits for it sees all that
	// the group has put to that rank before.
	template <typename Group = Block> __device__ void notify(int to, Comm comm, int tag) {
		Group::sync();
		if (Group::thread() != 0 || state.failed || !valid(comm, to, tag)) return;
		raise(comm == WORLD ? to : first() + to, tag, ANY);
	}

	// put_box is put of a box: rows of so many bytes, in planes, as far apart at the target and in the source as
	// the strides say, in bytes.
	struct Rows {
		i64 bytes, rows, planes;
	};
	struct Strides {
		i64 row, plane;
	};
	template <typename Group = Block>
	__device__ void put_box(Window w, int to, i64 offset, Strides there, Rows size, const void *from, Strides here) {
		const i64 last = (size.rows - 1) * there.row + (size.planes - 1) * there.plane + size.bytes;
		if (!goes_on<Group>() || size.bytes <= 0 || size.rows <= 0 || size.planes <= 0 || !valid(w, to, offset, last))
			return;
		char *const t = pointer(w, to) + offset;
		const char *const f = (const char *)from;
		const u64 all = (u64)t | (u64)f | (u64)there.row | (u64)here.row | (u64)size.bytes |
		                (size.planes > 1 ? (u64)there.plane | (u64)here.plane : 0);
		if (all % 16 == 0) copy_box<Group, uint4>(t, there, size, f, here);
		else if (all % 8 == 0) copy_box<Group, u64>(t, there, size, f, here);
		else if (all % 4 == 0) copy_box<Group, unsigned>(t, there, size, f, here);
		else copy_box<Group, char>(t, there, size, f, here);
	}

	// get gets bytes from an offset of the window of a rank. They are there after a flush.
	template <typename Group = Block> __device__ void get(Window w, int rank, i64 offset, i64 bytes, void *to) {
		if (!goes_on<Group>() || !valid(w, rank, offset, bytes)) return;
		copy<Group>(to, pointer(w, rank) + offset, bytes);
	}

	// get_notify is get, and then a notification of the rank whose window was read: it may write there again.
	template <typename Group = Block>
	__device__ void get_notify(Window w, int rank, i64 offset, i64 bytes, void *to, int tag) {
		get<Group>(w, rank, offset, bytes, to);
		notify<Group>(rank, w.comm, tag);
	}

	// flush returns once the sources of all puts of the group may be changed, and what it got is there.
	template <typename Group = Block> __device__ void flush(Window) { Group::sync(); }

	// test_notifications takes count notifications of a tag and returns true, or takes none and returns false. One
	// group at a time may wait for a tag, or test it.
	template <typename Group = Block> __device__ bool test_notifications(int tag, u64 count) {
#ifdef RANK_QUEUES
		return test_notifications<Group>(Match(ANY, tag), count);
#endif
		bool came = true;
		if (Group::in_first_warp())
			came = goes_on<typename lanes_of<Group>::type>() && valid_tag(tag) && take<Group>(tag, count);
		return Group::all(came);
	}

	// wait_notifications waits until it can take count notifications of a tag.
	template <typename Group = Block> __device__ bool wait_notifications(int tag, u64 count) {
#ifdef RANK_QUEUES
		return wait_notifications<Group>(Match(ANY, tag), count);
#endif
		bool came = true;
		if (Group::in_first_warp()) {
			typedef typename lanes_of<Group>::type Lanes;
			came = goes_on<Lanes>() && valid_tag(tag);
			if (came && !wait_unless_ended<Lanes>([&] { return take<Group>(tag, count); })) {
				if (Group::thread() == 0) fail(NO_NOTIFICATIONS, count, notifications(tag), (u64)tag);
				came = false;
			}
		}
		return Group::all(came);
	}

	// The same for notifications that match, with option RANK_QUEUES: in the order in which they came.
	template <typename Group = Block> __device__ bool test_notifications(const Match &m, u64 count) {
		bool came = true;
		if (Group::thread() == 0) came = !state.failed && match(m, count);
		return Group::all(came);
	}
	template <typename Group = Block> __device__ bool wait_notifications(const Match &m, u64 count) {
		bool came = true;
		if (Group::thread() == 0) {
			came = !state.failed && wait_unless_ended([&] { return match(m, count); });
			if (!came)
				fail(NO_MATCH, count, mine().kept(blockIdx.x)->count, (u64)(i64)m.source << 32 | (unsigned)m.tag);
		}
		return Group::all(came);
	}

	// wait_any waits for one notification of any of some tags, takes it, and returns its tag, or -1 in vain.
	template <typename Group = Block> __device__ int wait_any(int first_tag, int tags) {
		int found = -1;
		if (Group::thread() == 0 && !state.failed && valid_tag(first_tag) && valid_tag(first_tag + tags - 1)) {
			const bool came = wait_unless_ended([&] {
				for (int tag = first_tag; tag < first_tag + tags; tag++) {
#ifdef RANK_QUEUES
					if (match(Match(ANY, tag), 1)) return found = tag, true;
#else
					if ((i64)notifications(tag) > 0 && take<Thread>(tag, 1)) return found = tag, true;
#endif
				}
				return false;
			});
			if (!came) fail(NO_NOTIFICATIONS, 1, 0, (u64)first_tag);
		}
		return share<Group>(found);
	}

	// put_packet puts bytes so that the target sees each 4 of them together with a number, which tells it that they
	// have come: for small messages half the time of put_notify. They take twice as many bytes at the target, from a
	// multiple of 16 on; bytes and the source are multiples of 4. The number differs from all that were put there before.
	template <typename Group = Block>
	__device__ void put_packet(Window w, int to, i64 offset, i64 bytes, const void *from, unsigned number) {
		if (Group::WHOLE && bytes > PACKET_OF_A_WARP) {
			u64 &base = state.base[puts++ & 1];
			if (threadIdx.x < 32) {
				const u64 there = goes_on<Warp>() && valid(w, to, offset, 2 * bytes) ? recent(w, to) : 0;
				if (threadIdx.x == 0) base = there;
			}
			Group::sync();
			if (base != 0)
				store_packet<Group>((u64 *)((char *)base + offset), bytes / 4, (const unsigned *)from, number);
			return;
		}
		if (!goes_on<Group>() || !Group::in_first_warp() || !valid(w, to, offset, 2 * bytes)) return;
		u64 *const there = (u64 *)((char *)(Group::WHOLE ? recent(w, to) : entry(w, to).base) + offset);
		store_packet<typename lanes_of<Group>::type>(there, bytes / 4, (const unsigned *)from, number);
	}

	// wait_packet waits for bytes that were put as a packet with a number, at an address of this rank's memory, and
	// copies them. The place may be put to again once the sender knows that they were copied.
	template <typename Group = Block>
	__device__ bool wait_packet(const void *at, i64 bytes, void *to, unsigned number) {
		const u64 *const from = (const u64 *)at;
		unsigned *const there = (unsigned *)to;
		bool came = !state.failed;
		for (i64 i = 2 * Group::thread(); i < bytes / 4 && came; i += 2 * Group::threads()) {
			const bool two = i + 1 < bytes / 4;
			u64 low = 0, high = 0;
			came = wait_unless_ended([&] {
				if (two) load_relaxed_sys(from + i, low, high);
				else low = high = load_relaxed_sys(from + i);
				return (unsigned)(low >> 32) == number && (unsigned)(high >> 32) == number;
			});
			if (!came) {
				fail(NO_PACKET, number, low >> 32, (u64)i * 4);
				break;
			}
			there[i] = (unsigned)low;
			if (two) there[i + 1] = (unsigned)high;
		}
		return Group::all(came);
	}

	// start_timer and stop_timer are called by all ranks of a device, and wait for all of them. The host gets the
	// time from each start to the next stop.
	__device__ void start_timer() {
		barrier(DEVICE);
		if (threadIdx.x == 0) state.timer = nanoseconds();
	}
	__device__ void stop_timer() {
		barrier(DEVICE);
		if (threadIdx.x != 0 || blockIdx.x != 0) return;
		Timings *const t = mine().timings();
		if (t->count < MAX_TIMINGS) t->nanoseconds[t->count] = nanoseconds() - state.timer;
		t->count++;
	}

	// log writes a line of text and numbers to the log of the run, those that the first thread of the block has. It
	// waits where the host has not read LOG_LINES of the device yet.
	template <typename... Items> __device__ void log(const Items &...items) {
		if (threadIdx.x != 0 || state.failed) return;
		LogText text;
		(text.add(items), ...);
		const u64 n = atomicAdd(mine().line(LOG_LINES_CLAIMED), 1);
		const Control *const c = world.control;
		if (!wait_unless_ended([&] { return n < load_acquire_sys(&c->logged) + LOG_LINES; }))
			return fail(LOG_FULL, LOG_LINES, 0, 0);
		LogLine &line = world.log[n % LOG_LINES];
		line.rank = (u64)index(), line.length = (u64)text.used;
		for (int i = 0; i < (int)(sizeof text.words / sizeof(u64)); i++) ((u64 *)line.text)[i] = text.words[i];
		store_release_sys(&line.number, n + 1);
	}

  private:
	enum { SMALL = 512, PACKET_OF_A_WARP = 256 }; // bytes that one warp puts

	const World &world;
	State &state;
	unsigned puts = 0; // of the block

	// goes_on returns to all threads of a group whether none of them knows of a failure. One thread may have learnt
	// of it since the others looked; so nothing else decides whether a group does what needs all its threads.
	template <typename Group> __device__ __forceinline__ bool goes_on() { return Group::all(!state.failed); }

	__device__ i64 first() const { return world.device * world.ranks; }
	__device__ Board board(i64 device) const { return {world.boards[device], world.ranks, world.devices}; }
	__device__ Board mine() const { return board(world.device); }

	__device__ WindowEntry entry(Window w, int rank) const {
		return *mine().window(w.slot, w.comm == WORLD ? rank : first() + rank);
	}

	// recent returns where the window of a rank lies, to all lanes of the first warp of a block. A table in shared
	// memory spares it most accesses to the board, which the acquire of each wait sends back to the L2 cache.
	__device__ u64 recent(Window w, int rank) {
		const u64 key = (u64)(w.slot + 1) << 32 | (unsigned)rank;
		auto &e = state.recent[((unsigned)rank + (unsigned)w.slot) % 16];
		u64 base = e.base;
		const bool known = e.key == key;
		__syncwarp();
		if (known) return base;
		base = entry(w, rank).base;
		if (threadIdx.x == 0) e.key = key, e.base = base;
		__syncwarp();
		return base;
	}

	// put_and puts, and notifies if there is a tag. What a block puts that is small its first warp puts alone.
	template <typename Group>
	__device__ __forceinline__ void put_and(Window w, int to, i64 offset, i64 bytes, const void *from, int tag) {
		if (!Group::WHOLE || bytes <= SMALL) {
			if (!goes_on<Group>() || !Group::in_first_warp() || !valid(w, to, offset, bytes) ||
			    tag >= 0 && !valid_tag(tag))
				return;
			const u64 base = Group::WHOLE ? recent(w, to) : entry(w, to).base;
			if (Group::WHOLE) {
				copy<Warp>((char *)base + offset, from, bytes);
				__syncwarp();
			} else {
				copy<Group>((char *)base + offset, from, bytes);
				Group::sync();
			}
		} else {
			u64 &base = state.base[puts++ & 1];
			if (threadIdx.x < 32) {
				const u64 there =
				    goes_on<Warp>() && valid(w, to, offset, bytes) && (tag < 0 || valid_tag(tag)) ? recent(w, to) : 0;
				if (threadIdx.x == 0) base = there;
			}
			Group::sync();
			if (base == 0) return;
			copy<Group>((char *)base + offset, from, bytes);
			if (tag >= 0) Group::sync();
		}
		if (tag >= 0 && Group::thread() == 0) raise(w.comm == WORLD ? to : first() + to, tag, w.slot);
	}

	// store_packet stores words of 4 bytes beside a number, two in 16 bytes.
	template <typename Group>
	static __device__ __forceinline__ void store_packet(u64 *to, i64 words, const unsigned *from, unsigned number) {
		const u64 high = (u64)number << 32;
		for (i64 i = 2 * Group::thread(); i < words; i += 2 * Group::threads()) {
			if (i + 1 < words) store_relaxed_sys(to + i, high | from[i], high | from[i + 1]);
			else store_relaxed_sys(to + i, high | from[i]);
		}
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

	// raise notifies a rank of the world of what was put into a window, in one thread.
	__device__ void raise(i64 to, int tag, int slot) {
		const i64 device = world.devices == 1 ? 0 : (unsigned)to / (unsigned)world.ranks,
		          rank = to - device * world.ranks;
#ifdef RANK_QUEUES
		queue(device, rank, slot, tag);
		return;
#endif
		if (device == world.device) add_release_gpu(mine().near_count(rank, tag), 1);
		else add_release_sys(board(device).far_count(rank, tag), 1);
	}

	// notifications returns how many of a tag have come and were not taken, in one thread; it orders nothing.
	__device__ u64 notifications(int tag) const {
		const Board b = mine();
		u64 came = load_relaxed_sys(b.near_count(blockIdx.x, tag));
		if (world.devices > 1) came += load_relaxed_sys(b.far_count(blockIdx.x, tag));
		return came - state.consumed[tag];
	}

	// take takes notifications if there are as many. The lanes of a warp look at both counts at once.
	template <typename Group> __device__ __forceinline__ bool take(int tag, u64 count) {
		const Board b = mine();
		const u64 *const near = b.near_count(blockIdx.x, tag), *const far = b.far_count(blockIdx.x, tag);
		const bool lanes = !same<Group, Thread>::value, two = world.devices > 1;
		const int lane = lanes ? (int)threadIdx.x & 31 : 0;
		u64 came = 0;
		if (!two && lane == 0) came = load_acquire_gpu(near);
		if (two && lane < 1 + lanes) came = load_acquire_sys(lane == 0 ? near : far);
		if (two && !lanes) came += load_acquire_sys(far);
		if (lanes) came = __shfl_sync(~0u, came, 0) + (two ? __shfl_sync(~0u, came, 1) : 0);
		if ((i64)(came - state.consumed[tag] - count) < 0) return false;
		if (lanes) __syncwarp();
		if (lane == 0) state.consumed[tag] += count;
		return true;
	}

	// queue puts a notification into the queue that a rank has for this device, in one thread.
	__device__ void queue(i64 device, i64 rank, int slot, int tag) {
		const i64 to = device * world.ranks + rank;
		const u64 n = atomicAdd(mine().claimed(to), 1), *const read = mine().read(to);
		const bool room = wait_unless_ended([&] { return n < load_acquire_sys(read) + QUEUED; });
		if (!room) return fail(QUEUE_FULL, QUEUED, (u64)to, (u64)tag);
		store_release_sys(board(device).queue(rank, world.device) + n % QUEUED,
		                  Notice::of(n / QUEUED + 1, slot, index(), tag).word);
	}

	// match takes count notifications that match, those that came first, if there are as many, in one thread.
	__device__ bool match(const Match &m, u64 count) {
		Kept &kept = *mine().kept(blockIdx.x);
		keep_all();
		u64 found = 0;
		for (u64 i = 0; i < kept.count && found < count; i++) found += Notice{kept.notices[i]}.matches(m);
		if (found < count) return false;
		u64 left = 0;
		for (u64 i = 0, taken = 0; i < kept.count; i++) {
			const Notice n = {kept.notices[i]};
			if (taken < count && n.matches(m)) taken++;
			else kept.notices[left++] = n.word;
		}
		kept.count = left;
		return true;
	}

	// keep_all reads all queues, and keep that of a device, as far as there is room.
	__device__ void keep_all() {
		for (i64 d = 0; d < world.devices; d++) keep(*mine().kept(blockIdx.x), d);
	}
	__device__ void keep(Kept &kept, i64 device) {
		const u64 *const queue = mine().queue(blockIdx.x, device);
		const u64 before = state.read[device];
		u64 n = before;
		for (; kept.count < KEPT; n++) {
			const Notice next = {load_acquire_sys(queue + n % QUEUED)};
			if (!next.is_of(n / QUEUED + 1)) break;
			kept.notices[kept.count++] = next.word;
		}
		if (n == before) return;
		state.read[device] = n;
		store_release_sys(board(device).read(index()), n);
	}

	// meet has the ranks of the device wait for each other for the n-th time at a line, one thread each.
	__device__ bool meet(Line line, u64 n) {
		u64 *const count = mine().line(line);
		add_release_gpu(count, 1);
		return wait_unless_ended([&] { return load_acquire_gpu(count) >= n * (u64)world.ranks; });
	}

	// meet_all has all ranks of the world wait for each other for the n-th time. The first rank of each device
	// waits for the others of its device, then for those of other devices, and releases its own.
	__device__ bool meet_all(u64 n) {
		const Board b = mine();
		u64 *const released = b.line(WORLD_RELEASED);
		if (blockIdx.x != 0) {
			add_release_gpu(b.line(WORLD_ARRIVALS), 1);
			return wait_unless_ended([&] { return load_acquire_gpu(released) >= n; });
		}
		if (!meet(WORLD_ARRIVALS, n)) return false;
		for (i64 d = 0; d < world.devices; d++)
			if (d != world.device) add_release_sys(board(d).line(OTHER_DEVICES), 1);
		u64 *const others = b.line(OTHER_DEVICES);
		if (!wait_unless_ended([&] { return load_acquire_sys(others) >= n * (u64)(world.devices - 1); })) return false;
		add_release_gpu(released, 1);
		return true;
	}

	// wait_unless_ended polls until done() returns true. It returns false after the limit, and where the run ends.
	// It is for one thread, or for all lanes of a warp, to all of which done() returns the same.
	template <typename Lanes = Thread, typename Done> __device__ __forceinline__ bool wait_unless_ended(Done done) {
		enum {
			POLLS = 256,
			LONG_WAIT = 500
		}; // polls between two looks at the clock and the host; ns between later polls
		for (i64 start = 0;;) {
#pragma unroll 1
			for (int polls = 0; polls < POLLS; polls++) {
				if (done()) return true;
				if (start != 0) __nanosleep(LONG_WAIT); // the counts of many that wait are where others store
			}
#ifdef RANK_QUEUES
			if (threadIdx.x == 0) keep_all(); // others may wait for room in the queues of this rank
#endif
			const i64 now = nanoseconds();
			if (start == 0) start = now;
			const bool ended = load_relaxed_sys(&world.control->ended) != 0;
			if (ended) state.failed = ENDED;
			if (!Lanes::all(!ended && now - start <= world.limit)) return false;
		}
	}

	// share returns to all threads of a group what its first one has.
	template <typename Group> __device__ int share(int v) {
		if (same<Group, Thread>::value) return v;
		if (!Group::WHOLE) return __shfl_sync(~0u, v, 0);
		Group::sync(); // all have read what was shared before
		if (threadIdx.x == 0) state.base[puts & 1] = (u64)(i64)v;
		Group::sync();
		v = (int)state.base[puts & 1];
		puts++;
		return v;
	}

	// fail ends the run, in one thread: the host is told of the first failure of a device.
	__device__ void fail(Failure why, u64 expected, u64 came, u64 detail) {
		Control *const c = world.control;
		const bool was = state.failed;
		state.failed = why;
		if (was || atomicCAS(&c->claimed, 0, 1) != 0) return;
		c->failure = why, c->rank = (u64)index(), c->expected = expected, c->came = came, c->detail = detail;
		store_release_sys(&c->written, 1);
	}

#ifdef RANK_CHECKS
	__device__ bool check(bool right, Failure why, i64 expected, i64 came, i64 detail) {
		if (!right) fail(why, (u64)expected, (u64)came, (u64)detail);
		return right;
	}
#else
	__device__ bool check(bool, Failure, i64, i64, i64) { return true; }
#endif

	__device__ bool valid_tag(int tag) { return check(tag >= 0 && tag < RANK_TAGS, BAD_TAG, RANK_TAGS, tag, 0); }
	__device__ bool valid(Comm comm, int to, int tag) {
		return check(to >= 0 && to < size(comm), BAD_RANK, size(comm), to, 0) && valid_tag(tag);
	}
	__device__ bool valid(Window w, int rank, i64 offset, i64 bytes) {
#ifdef RANK_CHECKS
		if (!check(w.exists() && state.windows[w.comm] >> w.slot % MAX_WINDOWS & 1, BAD_WINDOW, 0, w.slot, 0) ||
		    !check(rank >= 0 && rank < size(w.comm), BAD_RANK, size(w.comm), rank, 0))
			return false;
		const i64 all = entry(w, rank).bytes;
		return check(offset >= 0 && bytes >= 0 && offset <= all - bytes, BAD_RANGE, all, offset, bytes);
#endif
		return true;
	}
};

} // namespace ranks
