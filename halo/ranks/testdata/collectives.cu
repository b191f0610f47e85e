// Kernels of the tests of collectives.

// Values of a rank, whose sums are rounded.
__device__ void give(double &v, unsigned h) { v = (double)(int)h / (1 + h % 7); }
__device__ void give(float &v, unsigned h) { v = (float)(int)h / (float)(1 + h % 7); }
__device__ void give(i64 &v, unsigned h) { v = (i64)(h * 0x9e3779b97f4a7c15ull); }

struct Calls {
	char *results, *scratch; // of this device: MOST numbers per round and rank, and MOST per rank
	i64 rounds, rest;
};

enum { MOST = 200 };

template <typename T> __device__ bool call(Rank &rank, const Calls &data, int t, unsigned h, int n, Comm comm) {
	const int me = rank.index(), root = (int)(h / 16 % (unsigned)rank.size(comm));
	T *const to = (T *)(data.results + 8 * MOST * (rank.index(DEVICE) * data.rounds + t));
	T *const apart = (T *)(data.scratch + 8 * MOST * rank.index(DEVICE)), *const from = h / 4 % 2 ? to : apart;
	for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) give(from[i], hash(hash((unsigned)me, (unsigned)t), (unsigned)i));
	const Op op = (Op)(h / 8192 % 3);
	if (h % 4 == 0) return rank.reduce(to, from, n, op, root, comm);
	if (h % 4 != 1) return rank.allreduce(to, from, n, op, comm);
	if (from != to)
		for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) to[i] = from[i];
	return rank.broadcast(to, n, root, comm);
}

// A sequence of calls of all kinds; the host checks the results.
extern "C" __global__ void collectives(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	const Calls &data = rank.data<Calls>();
	const int counts[] = {1, 0, 2, 31, 32, 33, 64, 65, 1, MOST};
	for (int t = 0; t < data.rounds; t++) {
		const unsigned h = hash(99, (unsigned)t), pause = hash((unsigned)rank.index(), (unsigned)t);
		const i64 until = nanoseconds() + (data.rest > 0 && pause % 4 == 0 ? pause / 4 % data.rest : 0);
		while (nanoseconds() < until) __nanosleep(100);
		const int n = counts[h / 32 % 10];
		const Comm comm = h / 1024 % 4 == 0 ? DEVICE : WORLD;
		bool ok = true;
		if (t % 3 == 0) ok = call<double>(rank, data, t, h, n, comm);
		if (t % 3 == 1) ok = call<float>(rank, data, t, h, n, comm);
		if (t % 3 == 2) ok = call<i64>(rank, data, t, h, n, comm);
		if (!ok) break;
	}
	rank.finish();
}

// A rank whose call differs from the others.
extern "C" __global__ void odd_one(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	const Wrong &data = rank.data<Wrong>();
	const bool odd = rank.index() == data.rank;
	__shared__ double v[8];
	if (threadIdx.x < 8) v[threadIdx.x] = 1;
	bool ok = rank.allreduce(v, v, 8, SUM);
	if (ok && threadIdx.x < 8 && v[threadIdx.x] != rank.size()) trap();
	if (odd && data.is("another count")) ok = rank.allreduce(v, v, 7, SUM);
	else if (odd && data.is("another operation")) ok = rank.allreduce(v, v, 8, MAX);
	else if (odd && data.is("root too large")) ok = rank.broadcast(v, 8, rank.size());
	else if (odd && data.is("another collective")) ok = rank.broadcast(v, 8, 1);
	else if (odd && data.is("unknown operation")) ok = rank.allreduce(v, v, 8, (Op)9);
	else if (!odd || !data.is("no call")) ok = rank.allreduce(v, v, 8, SUM);
	if (ok) rank.wait_notifications(200, 1);
	rank.finish();
}
