// Kernels of the tests of messages between ranks: values, collectives and channels.

// Data of the kernels: memory of this device, and the number of the first failed check.
struct Messages {
	char *memory;
	i64 rounds, bytes; // bytes per rank
	unsigned long long wrong;
};

// Values of each type go to both neighbors. The value of a round signals that those of the previous round were read.
template <typename Group, typename T>
__device__ bool swap_values(Rank &rank, const Window &w, const char *mine, int t, i64 scale) {
	const int n = rank.size(), me = rank.index(), next = (me + 1) % n, before = (me + n - 1) % n;
	const i64 place = 16 * (t % 2);
	const unsigned number = (unsigned)(t - 3); // it wraps around
	rank.template put_value<Group>(w, next, place, (T)((me + 2) * scale + t), number);
	rank.template put_value<Group>(w, before, 32 + place, (T)((me + 5) * scale - t), number);
	T low = 0, high = 0;
	const bool came = rank.template wait_value<Group>(mine + place, low, number) && rank.template wait_value<Group>(mine + 32 + place, high, number);
	return came && low == (T)((before + 2) * scale + t) && high == (T)((next + 5) * scale - t);
}

template <typename Group> __device__ void swap_all(Rank &rank, Messages &data, const Window &w, const char *mine) {
	for (int t = 0; t < data.rounds; t++) {
		bool right = true;
		if (t % 4 == 0) right = swap_values<Group, double>(rank, w, mine, t, 1000003);
		if (t % 4 == 1) right = swap_values<Group, int>(rank, w, mine, t, 1009);
		if (t % 4 == 2) right = swap_values<Group, i64>(rank, w, mine, t, 1000000000039ll);
		if (t % 4 == 3) right = swap_values<Group, float>(rank, w, mine, t, 17);
		if (!right) atomicCAS(&data.wrong, 0, (unsigned long long)t + 1);
		if (!right) return;
	}
}

extern "C" __global__ void values(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Messages &data = rank.data<Messages>();
	char *const mine = data.memory + data.bytes * rank.index(DEVICE);
	for (int i = (int)threadIdx.x; i < 192; i += (int)blockDim.x) mine[i] = (char)0xee;
	const Window by_block = rank.create_window(WORLD, mine, 64), by_warp = rank.create_window(WORLD, mine + 64, 64),
	             by_thread = rank.create_window(WORLD, mine + 128, 64);
	swap_all<Block>(rank, data, by_block, mine);
	if (threadIdx.x >= 32 && threadIdx.x < 64) swap_all<Warp>(rank, data, by_warp, mine + 64);
	if (threadIdx.x == 0) swap_all<Thread>(rank, data, by_thread, mine + 128);
	rank.finish();
}

// A stream of messages of all lengths over one channel, while another is received. buffer holds two.
template <typename Group>
__device__ bool stream(Rank &rank, i64 rounds, int channel, int other, int before, int slots, int most, unsigned *buffer) {
	const int me = rank.index();
	auto length = [&](int from, int t) { return (int)(hash((unsigned)from, (unsigned)t) % (unsigned)(most + 1)); };
	auto word = [&](int from, int t, int i) { return hash(hash((unsigned)(channel % 3 + 3 * from), (unsigned)t), (unsigned)i); };
	for (int t = 0; t < rounds; t++) {
		for (int i = Group::thread(); i < length(me, t); i += Group::threads()) buffer[i] = word(me, t, i);
		const unsigned pause = hash((unsigned)(me + 77), (unsigned)t);
		const i64 until = nanoseconds() + (pause % 4 == 0 ? pause / 4 % 20000 : 0);
		while (nanoseconds() < until) __nanosleep(100);
		if (!rank.template send<Group>({channel}, 4 * length(me, t), buffer)) return false;
		for (int k = t - slots + 1; k <= t && t % slots == slots - 1; k++) {
			unsigned *const got = buffer + most;
			if (rank.template receive<Group>({other}, got) != 4 * length(before, k)) return false;
			for (int i = Group::thread(); i < length(before, k); i += Group::threads())
				if (got[i] != word(before, k, i)) return false;
		}
	}
	return true;
}

extern "C" __global__ void channels(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Messages &data = rank.data<Messages>();
	__shared__ unsigned wide[2 * 100], narrow[2 * 16], odd[2 * 3];
	const int n = rank.size(), me = rank.index(), next = (me + 1) % n, before = (me + n - 1) % n;
	auto expect = [&](bool right, unsigned long long which) {
		if (!right) atomicCAS(&data.wrong, 0, which);
	};
	expect(stream<Block>(rank, data.rounds, 3 * me, 3 * before, before, 4, 100, wide), 1);
	if (threadIdx.x < 32) expect(stream<Warp>(rank, data.rounds, 3 * me + 1, 3 * next + 1, next, 1, 16, narrow), 2);
	if (threadIdx.x == 32) expect(stream<Thread>(rank, data.rounds, 3 * me + 2, 3 * me + 2, me, 2, 3, odd), 3);
	rank.finish();
}

// Failing calls, by one rank: rounds is the number of the call's name.
extern "C" __global__ void odd_channel(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Messages &data = rank.data<Messages>();
	__shared__ unsigned message[16];
	if (threadIdx.x < 16) message[threadIdx.x] = 5;
	if (rank.index() == 2) {
		const auto is = [&](const char *name) { return (u64)data.rounds == named(name); };
		bool ok = true;
		for (int i = 0; i < 9 && is("full"); i++) {
			ok = rank.send({0}, 12, message);
			if (ok != i < 8) atomicCAS(&data.wrong, 0, (unsigned long long)i + 1);
		}
		if (is("empty")) ok = rank.receive({1}, message) >= 0;
		if (is("wrong end")) ok = rank.send({1}, 4, message);
		if (is("unknown channel")) ok = rank.receive({7}, message) >= 0;
		if (is("too long")) ok = rank.send({0}, 68, message);
		if (is("half a word")) ok = rank.send({0}, 6, message);
		if (ok) atomicCAS(&data.wrong, 0, 100);
	} else {
		// The others do not wait, since their limit might end first.
		while (!rank.ended<Thread>()) __nanosleep(1000);
	}
	rank.finish();
}
