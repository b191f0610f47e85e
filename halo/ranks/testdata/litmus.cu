// Kernels of the tests of ranks.

__device__ unsigned char pattern(int rank, int round, i64 byte) { return (unsigned char)(hash((unsigned)(rank * 7919 + round), (unsigned)byte) % 251); }

__device__ void rest(unsigned h, i64 longest) {
	if (longest == 0 || h % 4 != 0) return;
	const i64 until = nanoseconds() + h / 4 % longest;
	while (nanoseconds() < until) __nanosleep(100);
}

struct Puts {
	char *memory, *source; // of this device: two slots per rank, and one slot
	i64 slot, rounds, rest;
	unsigned long long errors, first; // number of wrong bytes; 1 + the round of the first
};

enum { POISON = 0xee, CREDIT = 128, SOME_TAGS = 100 };

// In each round every rank puts some bytes to another rank, and checks the bytes that it receives.
template <typename Group> __device__ void puts(Rank &rank, Puts &data) {
	const int n = rank.size(), me = rank.index();
	char *const slots = data.memory + 2 * data.slot * rank.index(DEVICE), *const source = data.source + data.slot * rank.index(DEVICE);
	const Window w = rank.create_window(WORLD, slots, 2 * data.slot);
	for (i64 i = threadIdx.x; i < 2 * data.slot; i += blockDim.x) slots[i] = (char)POISON;
	rank.barrier(WORLD);
	for (int t = 0; t < data.rounds && !rank.ended(); t++) {
		const unsigned h = hash(77, (unsigned)t);
		const int away = 1 + (int)(h % (unsigned)n);
		const int to = (me + away) % n, from = (me - away % n + n) % n;
		const unsigned kind = h / 8 % 8;
		// A few whole words per thread are copied by separate code
		const i64 step = kind == 3 || kind == 4 ? 16 : 1;
		const i64 offset = h / 64 % 33 / step * step, most = data.slot - 64, odd = h / 4096 % 17 / step * step;
		const i64 bytes = kind == 0 ? most : kind < 5 ? h / 256 % (unsigned)(most + 1) / step * step : h / 256 % 40;
		char *const slot = slots + t % 2 * data.slot;
		__syncthreads();
		for (i64 i = threadIdx.x; i < bytes; i += blockDim.x) source[odd + i] = (char)pattern(me, t, i);
		rest(hash((unsigned)me, (unsigned)t), data.rest);
		__syncthreads();
		if (Group::WHOLE || threadIdx.x < 32) {
			if (t >= 2 && !rank.template wait_notifications<Group>(CREDIT + t % SOME_TAGS, 1)) break;
			rank.template put_notify<Group>(w, to, t % 2 * data.slot + offset, bytes, source + odd, t % SOME_TAGS);
			rank.template wait_notifications<Group>(t % SOME_TAGS, 1);
			rank.template flush<Group>(w);
		}
		__syncthreads();
		if (rank.ended()) break;
		for (i64 i = threadIdx.x; i < data.slot; i += blockDim.x) {
			const bool mine = i >= offset && i < offset + bytes;
			if ((unsigned char)slot[i] != (mine ? pattern(from, t, i - offset) : POISON)) {
				atomicCAS(&data.first, 0, (unsigned long long)t + 1);
				atomicAdd(&data.errors, 1);
			}
			slot[i] = (char)POISON;
		}
		const int next = 1 + (int)(hash(77, (unsigned)t + 2) % (unsigned)n); // the next rank that may fill the slot
		rank.notify((me - next % n + n) % n, WORLD, CREDIT + (t + 2) % SOME_TAGS);
	}
	rank.free_window(w);
	rank.finish();
}

extern "C" __global__ void puts_by_blocks(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	puts<Block>(rank, rank.data<Puts>());
}

extern "C" __global__ void puts_by_warps(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	puts<Warp>(rank, rank.data<Puts>());
}

// The other calls of a rank, each checked by the rank itself.
struct Calls {
	int *memory; // of this device: 64 per rank
	unsigned long long wrong; // the number of the check that failed
};

extern "C" __global__ void calls(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Calls &data = rank.data<Calls>();
	const int n = rank.size(), me = rank.index(), local = rank.index(DEVICE), others = rank.size(DEVICE);
	int *const mine = data.memory + 64 * local;
	auto expect = [&](bool right, unsigned long long which) {
		if (!right) atomicCAS(&data.wrong, 0, which);
	};
	if (threadIdx.x < 64) mine[threadIdx.x] = 1000 * me + (int)threadIdx.x;
	const Window none = rank.create_window(DEVICE, 0, 0);
	const Window w = rank.create_window(WORLD, mine, 64 * sizeof(int));
	rank.start_timer();
	expect(w.exists() && none.exists() && me == local + (int)world.device * others, 1);

	// An unused tag has no notifications; a count that has not arrived takes none.
	expect(!rank.test_notifications(9, 1) && rank.test_notifications(9, 0), 2);

	// All notify one, which waits for all.
	rank.notify(0, WORLD, 3);
	if (me == 0) {
		rank.wait_notifications(3, (u64)n);
		expect(!rank.test_notifications(3, 1), 3);
	}
	// Ranks of a device have separate indices.
	rank.notify((local + 1) % others, DEVICE, 4);
	rank.wait_notifications(4, 1);

	// get_notify reads data of others, and notifies them.
	__shared__ int got[16];
	rank.get_notify(w, (me + 1) % n, 8 * sizeof(int), sizeof got, got, 5);
	rank.flush(w);
	if (threadIdx.x < 16) expect(got[threadIdx.x] == 1000 * ((me + 1) % n) + 8 + (int)threadIdx.x, 4);
	rank.wait_notifications(5, 1); // my window was read
	expect(rank.pointer(w, me) == (char *)mine, 5);

	// A box of 3 rows of 2 numbers in 2 planes, from rows of 4 to rows of 8.
	__shared__ int box[32];
	if (threadIdx.x < 32) box[threadIdx.x] = 5000 * me + (int)threadIdx.x;
	rank.barrier(WORLD);
	rank.put_box(w, (me + 1) % n, 4, {8 * 4, 24 * 4}, {2 * 4, 3, 2}, box, {4 * 4, 12 * 4});
	rank.notify((me + 1) % n, WORLD, 6);
	rank.wait_notifications(6, 1);
	const int before = (me + n - 1) % n;
	if (threadIdx.x < 64) {
		const int at = (int)threadIdx.x - 1, x = at % 8, y = at / 8 % 3, z = at / 24;
		const bool in = at >= 0 && x < 2 && z < 2;
		expect(mine[threadIdx.x] == (in ? 5000 * before + x + 4 * y + 12 * z : 1000 * me + (int)threadIdx.x), 6);
	}
	rank.barrier(DEVICE);

	// One of several tags, whichever arrives.
	rank.notify((me + 1) % n, WORLD, 20 + me % 7);
	expect(rank.wait_any(20, 7) == 20 + before % 7, 7);
	expect(!rank.test_notifications(20 + before % 7, 1), 8);

	// Packets of one word and of many, from the block and from a thread of it.
	rank.barrier(WORLD);
	__shared__ int sent[6];
	__shared__ __align__(16) int come[6];
	for (int round = 1; round < 4; round++)
		for (int words = 1; words <= 6; words += 5) {
			if (threadIdx.x < 6) sent[threadIdx.x] = 100 * me + round + (int)threadIdx.x;
			rank.put_packet(w, (me + 1) % n, 64 * (words / 6), words * 4, sent, (unsigned)(7 * round));
			expect(rank.wait_packet(mine + 16 * (words / 6), words * 4, come, (unsigned)(7 * round)), 11);
			if (threadIdx.x < words) expect(come[threadIdx.x] == 100 * before + round + (int)threadIdx.x, 12);
			rank.barrier(WORLD);
		}

	// Freed windows can be replaced; MAX_WINDOWS exist at a time.
	rank.stop_timer();
	rank.stop_timer();
	rank.free_window(w);
	for (int again = 0; again < 2; again++) {
		Window all[MAX_WINDOWS];
		for (int i = 0; i < MAX_WINDOWS; i++) all[i] = rank.create_window(WORLD, mine + i, 4);
		expect(all[MAX_WINDOWS - 1].exists() && !rank.create_window(WORLD, mine, 4).exists(), 9);
		rank.put_notify(all[5], (me + 1) % n, 0, 4, box, 7);
		rank.wait_notifications(7, 1);
		if (threadIdx.x == 0) expect(mine[5] == 5000 * before, 10);
		for (int i = 0; i < MAX_WINDOWS; i++) rank.free_window(all[i]);
	}
#ifndef RANK_CHECKS
	rank.get_notify(Window{-1, WORLD}, (me + 1) % n, 0, 4, box, 9); // reads nothing, and notifies no rank
	rank.barrier(WORLD);
	expect(!rank.test_notifications(9, 1), 13);
#endif
	rank.free_window(none);
	rank.finish();
}

extern "C" __global__ void wrong(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	const Wrong &data = rank.data<Wrong>();
	Window w = rank.create_window(WORLD, data.memory + 256 * rank.index(DEVICE), 256);
	const Window freed = rank.create_window(WORLD, data.memory, 256), odd = rank.create_window(WORLD, data.memory + 8, 64);
	double value = 0;
	rank.free_window(freed);
	if (rank.index() == data.rank) {
		if (data.is("missing notification")) rank.wait_notifications(3, 2);
		if (data.is("tag too large")) rank.notify(0, WORLD, RANK_TAGS);
		if (data.is("rank too large")) rank.notify(rank.size(), WORLD, 1);
		if (data.is("beyond a window")) rank.put(w, 0, 250, 10, data.memory);
		if (data.is("freed window")) rank.put(freed, 0, 0, 8, data.memory);
		if (data.is("barrier by one rank")) rank.barrier(DEVICE);
		if (data.is("before a window")) rank.put(w, 5, -8, 8, data.memory);
		if (data.is("negative rank")) rank.put_notify(w, -1, 0, 8, data.memory, 0);
		if (data.is("box beyond a window")) rank.put_box(w, 0, 0, {1ll << 61, 1ll << 61}, {8, 9, 1}, data.memory, {0, 0});
		if (data.is("box before a window")) rank.put_box(w, 5, 8, {-8, 64}, {8, 3, 2}, data.memory, {0, 0});
		if (data.is("negative count")) rank.wait_notifications(3, ~0ull);
		if (data.is("no tags")) rank.wait_any(10, 0);
		if (data.is("packet at an unaligned offset")) rank.put_packet(w, 0, 4, 8, data.memory, 1);
		if (data.is("missing tags")) rank.wait_any(10, 20);
		if (data.is("unknown window")) rank.put(Window{1 << 30, WORLD}, 0, 0, 8, data.memory);
		if (data.is("window not made by a warp")) rank.put<ranks::Warp>(Window{-1, WORLD}, 0, 0, 8, data.memory);
		if (data.is("window not made")) rank.put(Window{-1, WORLD}, 0, 0, 8, data.memory);
		if (data.is("window freed twice")) rank.free_window(freed);
		if (data.is("packet for an unaligned window")) rank.put_packet(odd, 0, 0, 8, data.memory, 1);
		if (data.is("packet from an unaligned address")) rank.wait_packet(data.memory + 8, 8, data.memory + 64, 1);
		if (data.is("value from an unaligned address")) rank.wait_value(data.memory + 8, value, 1);
		if (data.is("box of -1 rows")) rank.put_box(w, 0, 0, {8, 0}, {8, -1, 1}, data.memory, {8, 0});
		if (data.is("empty box for no rank")) rank.put_box(w, 6, 0, {8, 0}, {8, 0, 1}, data.memory, {8, 0});
		if (data.is("memory of a freed window")) rank.pointer(freed, 0);
		if (data.is("negative tag")) rank.put_notify(w, 0, 0, 8, data.memory, -1);
		if (data.is("negative tag by a warp")) rank.put_notify<ranks::Warp>(w, 0, 0, 8, data.memory, -7);
		if (data.is("too many tags")) rank.wait_any(5, 0x7fffffff);
		if (data.is("half of a packet")) {
			char *const mine = data.memory + 256 * rank.index(DEVICE);
			rank.put_packet(w, rank.index(), 32, 8, mine + 64, 98);
			rank.wait_packet(mine + 32, 8, mine + 64, 98);
			rank.put_packet(w, rank.index(), 32, 4, mine + 64, 99);
			rank.wait_packet(mine + 32, 8, mine + 64, 99);
		}
		if (data.is("box with overlapping rows")) rank.put_box(w, 0, 0, {0, 0}, {8, 1ll << 40, 1}, data.memory, {0, 0});
		if (data.is("wait during a barrier")) rank.wait_notifications(3, 1);
		const i64 least = -9223372036854775807ll - 1;
		double sum = 0;
		if (data.is("window of negative size")) rank.create_window(WORLD, data.memory, least);
		if (data.is("put of negative size")) rank.put_packet(w, 0, 0, least + 8, data.memory, 1);
		if (data.is("packet of negative size")) rank.wait_packet(data.memory, -8, data.memory + 64, 1);
		if (data.is("collective of too many")) rank.allreduce(&sum, &sum, (1ll << 40) + 1, SUM, WORLD);
		if (data.is("unknown channel")) rank.send(Channel{0x7fffffff}, 8, data.memory);
	} else if (data.is("missing notification") && rank.index() == 0) {
		rank.notify((int)data.rank, WORLD, 3);
	}
	if (!data.is("wait during a barrier")) rank.wait_notifications(200, 1); // all end with the failed rank
	rank.finish();
}

// A ring over a window made by the host.
struct Ring {
	int *memory; // of this device: 4 per rank
	i64 window;
	unsigned long long wrong;
};

extern "C" __global__ void ring(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Ring &data = rank.data<Ring>();
	const Window w = {(int)data.window, WORLD};
	const int n = rank.size(), me = rank.index();
	int *const mine = data.memory + 4 * rank.index(DEVICE);
	if (threadIdx.x == 0) mine[0] = 3 * me + 1;
	rank.put_notify(w, (me + 1) % n, 8, 4, mine, 11);
	rank.wait_notifications(11, 1);
	if (threadIdx.x == 0 && mine[2] != 3 * ((me + n - 1) % n) + 1) atomicCAS(&data.wrong, 0, (unsigned long long)me + 1);
	rank.free_window(w); // has no effect, also in later runs
	const Window other = rank.create_window(WORLD, 0, 0), none = {-1, WORLD};
	if (threadIdx.x == 0 && other.slot == w.slot) atomicCAS(&data.wrong, 0, (unsigned long long)me + 1);

	// Puts to and gets from a window that does not exist do nothing.
	if (threadIdx.x == 0) mine[3] = me;
	rank.get(none, 0, 0, 4, mine + 3);
	rank.put_box(none, 0, 0, {4, 1}, {4, 2, 1}, mine, {4, 1});
	rank.put_packet(none, 0, 0, 4, mine, 1);
	rank.put_value(none, 0, 0, me, 1);
	if (threadIdx.x == 0 && mine[3] != me) atomicCAS(&data.wrong, 0, (unsigned long long)me + 1);
	rank.finish();
}

// More lines than the buffer holds.
extern "C" __global__ void logs(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	for (int i = 0; i < 300; i++) rank.log("line ", i, " of ", 300u, " is ", 0.5 * i, " and ", 1.5f, " at ", -7ll);
	if (rank.index() == 0) rank.log("this is longer than a line may be, which is truncated at its end, and to avoid counting letters it goes on, and so "
	                                "it goes on for a while, and for a while, and for a while, and for a while, and for a while, and for a while, and for");
	const char *const long_text = "cut: 230 letters and digits of a line of 232 leave no room for a number, and nothing may come behind it "
	                              "either: 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 01234567";
	if (rank.index() == 0) rank.log(long_text, 5, ";");
	if (rank.index() == 0) rank.log("odd:\n", true, " ", 0.1f);
	rank.finish();
}

// One rank fails with a code, in one thread. The others wait, if there is a tag, or poll for the end of the run: all
// threads of each see it in the same round. After that calls do nothing, for old and new windows.
struct Fails {
	unsigned long long *apart; // of this device: threads that saw the end in another round than the first thread of their rank
	i64 rank, code, detail, tag;
};

extern "C" __global__ void fails(const __grid_constant__ World world) {
	__shared__ State state;
	__shared__ i64 rounds[1024];
	Rank rank(world, state);
	Fails &data = rank.data<Fails>();
	const Window early = rank.create_window(WORLD, 0, 0);
	if (rank.index() == data.rank && threadIdx.x == blockDim.x / 2) rank.fail(data.code, data.detail);
	i64 n = 0;
	while (!(data.tag >= 0 ? !rank.wait_notifications((int)data.tag, 1) : rank.ended())) n++;
	rounds[threadIdx.x] = n;
	__syncthreads();
	if (rounds[0] != n) atomicAdd(data.apart, 1);
	if (rank.ended<Warp>() != rank.ended<Thread>()) atomicAdd(data.apart, 1);
	const Window late = rank.create_window(WORLD, data.apart, 8);
	if (late.exists() || rank.pointer(late, 0)) atomicAdd(data.apart, 1);
	for (int i = 0; i < 2; i++)
		for (int to = 0; to < rank.size(); to++)
			for (i64 bytes = 8; bytes <= 1024; bytes *= 8) { // by a warp, and by the block
				const Window w = i == 0 ? early : late;
				rank.put_notify(w, to, 0, bytes, rounds, 1);
				rank.put(w, to, 0, bytes, rounds);
				rank.put<Warp>(w, to, 0, bytes, rounds);
				rank.put<Thread>(w, to, 0, bytes, rounds);
				rank.put_box(w, to, 0, {bytes, bytes}, {bytes, 1, 1}, rounds, {bytes, bytes});
				rank.put_packet(w, to, 0, bytes, rounds, 1);
				rank.put_value(w, to, 0, 1.0, 1);
				rank.get_notify(w, to, 0, bytes, rounds, 1);
			}
	if (rank.allreduce(rounds, rounds, 8, SUM) || rank.broadcast(rounds, 8, 0) || rank.barrier(WORLD)) atomicAdd(data.apart, 1);
	rank.free_window(late);
	rank.finish();
}

// Waits for notifications of a window, a source and a tag, in their order of arrival; with option RANK_QUEUES.
struct Matches {
	int *memory; // of this device: 4 per rank
	unsigned long long wrong;
};

#ifdef RANK_QUEUES
extern "C" __global__ void matches(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Matches &data = rank.data<Matches>();
	const int n = rank.size(), me = rank.index(), next = (me + 1) % n, before = (me + n - 1) % n;
	int *const mine = data.memory + 4 * rank.index(DEVICE);
	auto expect = [&](bool right, unsigned long long which) {
		if (!right) atomicCAS(&data.wrong, 0, which);
	};
	const Window a = rank.create_window(WORLD, mine, 8), b = rank.create_window(WORLD, mine + 2, 8);
	if (threadIdx.x == 0) mine[0] = 11 * me + 3;
	rank.put_notify(a, next, 4, 4, mine, 1);
	rank.put_notify(b, next, 4, 4, mine, 1);
	rank.notify(next, WORLD, 2);
	rank.notify(before, WORLD, 5);
	expect(rank.wait_notifications(Match(b, before, 1), 1), 1); // the second; the first is kept
	if (threadIdx.x == 0) expect(mine[3] == 11 * before + 3 && mine[1] == 11 * before + 3, 2);
	expect(!rank.test_notifications(Match(b, ANY, ANY), 1), 3);
	expect(rank.wait_notifications(Match(before, 2), 1), 4);
	expect(rank.test_notifications(Match(a, before, ANY), 1), 5);
	expect(rank.wait_notifications(Match(next, ANY), 1) && !rank.test_notifications(Match(ANY, ANY), 1), 6);

	// All to one, more than a queue holds, and by tag.
	rank.barrier(WORLD);
	const int each = min(33, 300 / n); // rank 0 keeps up to 1024 notifications
	for (int i = 0; i <= 3 * each; i++) rank.notify(0, WORLD, 10 + i % 3);
	if (me == 0) {
		for (int from = n - 1; from >= 0; from--) expect(rank.wait_notifications(Match(from, 11), each), 7);
		expect(rank.wait_notifications(10, (each + 1) * (u64)n), 8);
		expect(rank.wait_any(10, 3) == 12 && rank.wait_notifications(12, each * (u64)n - 1), 9);
		expect(!rank.test_notifications(Match(ANY, ANY), 1), 10);
	}
	rank.free_window(b);
	rank.free_window(a);
	rank.finish();
}

// A rank gets the source, the tag and the window of a notification.
extern "C" __global__ void who(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Matches &data = rank.data<Matches>();
	const int n = rank.size(), me = rank.index();
	auto expect = [&](bool right, unsigned long long which) {
		if (!right) atomicCAS(&data.wrong, 0, which);
	};
	const Window first = rank.create_window(WORLD, 0, 0), w = rank.create_window(WORLD, data.memory, 8);
	const Window none = rank.create_window(DEVICE, 0, 0);
	if (me != 0) {
		rank.put_notify(w, 0, 0, 0, data.memory, 10 + me % 3);
		rank.notify(0, WORLD, 20);
	} else {
		rank.put_notify(none, 0, 0, 0, data.memory, 30); // to itself
		Notification from{};
		expect(rank.wait_one(Match(none, ANY, ANY), from) && from.window.slot == none.slot && from.window.comm == DEVICE && from.source == 0 && from.tag == 30, 1);
		u64 put = 0, told = 0; // by which rank, one bit each
		for (int i = 0; i < 2 * (n - 1); i++) {
			if (!rank.wait_one(Match(ANY, ANY), from)) break;
			const u64 bit = 1ull << from.source;
			const bool by_put = from.window.exists();
			expect(by_put ? from.window.slot == w.slot && from.window.comm == WORLD && from.tag == 10 + from.source % 3
			              : from.tag == 20 && (put & bit),
			       2);
			expect(from.source > 0 && from.source < n && !((by_put ? put : told) & bit), 3);
			(by_put ? put : told) |= bit;
		}
		expect(put == told && put == (1ull << n) - 2, 4);
		expect(!rank.test_one(Match(ANY, ANY), from), 5);
	}
	rank.free_window(none);
	rank.free_window(w);
	rank.free_window(first);
	rank.finish();
}

// Two warps of each rank wait at once, each for its own tag in a ring. Then a thread notifies more often than a queue
// holds, while the others of its rank are at a barrier.
extern "C" __global__ void groups(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Matches &data = rank.data<Matches>();
	const int n = rank.size(), next = (rank.index() + 1) % n, warp = (int)threadIdx.x / 32;
	int *const mine = data.memory + 4 * rank.index(DEVICE);
	auto expect = [&](bool right, unsigned long long which) {
		if (!right) atomicCAS(&data.wrong, 0, which);
	};
	const Window w = rank.create_window(WORLD, mine, 16);
	int *const value = mine + 2 * warp; // the value put, and the value received
	for (int i = 1; i <= 100; i++) {
		if (threadIdx.x % 32 == 0) value[0] = i;
		rank.put_notify<Warp>(w, next, 8 * warp + 4, 4, value, 40 + warp);
		expect(rank.wait_notifications<Warp>(40 + warp, 1) && value[1] >= i, 1 + warp);
	}
	rank.barrier(WORLD);
	if (threadIdx.x == 32)
		for (int i = 0; i < 100; i++) rank.notify<Thread>(next, WORLD, 50);
	__syncthreads();
	expect(rank.wait_notifications(50, 100) && !rank.test_notifications(Match(ANY, ANY), 1), 3);
	rank.free_window(w);
	rank.finish();
}

// Invalid matches.
extern "C" __global__ void no_match(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	const Wrong &data = rank.data<Wrong>();
	if (rank.index() == data.rank) {
		if (data.is("tag too large")) rank.wait_notifications(Match(ANY, RANK_TAGS), 1);
		if (data.is("source too large")) rank.test_notifications(Match(rank.size(), ANY), 1);
		if (data.is("negative tag")) rank.wait_notifications(ANY, 1);
		if (data.is("negative source")) rank.wait_notifications(Match(-2, ANY), 1);
		Notification from;
		if (data.is("no window")) rank.wait_notifications(Match(Window{-1, WORLD}, ANY, ANY), 1);
		if (data.is("one of no window")) rank.test_one(Match(Window{-1, DEVICE}, ANY, ANY), from);
	}
	rank.finish();
}

// Matches that time out, with some notifications of another tag.
extern "C" __global__ void match_times_out(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	const Wrong &data = rank.data<Wrong>();
	if (rank.index() == data.rank) {
		for (int i = 0; i < (data.is("full") ? 1080 : 2); i++) {
			rank.notify(rank.index(), WORLD, 6);
			if (i % 32 == 31) rank.test_notifications(Match(1, 255), 1); // reads, so that no notification waits for a slot
		}
		Notification from;
		if (data.is("window, source and tag")) rank.wait_notifications(Match(Window{17, DEVICE}, 2, 5), 3);
		if (data.is("any")) rank.wait_notifications(Match(ANY, ANY), 3);
		if (data.is("full")) rank.wait_one(Match(1, 255), from);
	}
	while (!rank.ended()) __nanosleep(1000);
	rank.finish();
}

// More notifications than the queue of an idle rank holds, also if it reads once.
extern "C" __global__ void flood(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	for (int i = 0; i < 1200 && rank.index() == 0; i++) rank.notify(1, WORLD, 7);
	while (rank.index() != 0 && !rank.ended()) __nanosleep(1000);
	rank.finish();
}

// More notifications than a rank keeps: all dropped at its end, or waited for at once, which fails.
extern "C" __global__ void many(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	const i64 waits = rank.data<Wrong>().what;
	for (int i = 0; i < 1100 && rank.index() != 0 && waits == 0; i++) rank.notify(0, WORLD, 3);
	if (rank.index() == 0 && waits != 0) rank.wait_notifications(3, (u64)waits);
	rank.finish();
}
#endif
