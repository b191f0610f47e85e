// One exchange of ghost regions by one kernel a GPU, without the host, events or
// buffers: every GPU stores the boundary points that its neighbours need straight
// into their ghosts, and flags tell who may store and who has stored.
//
// Flags are counts of exchanges. They lie with the GPU that waits for them and
// are written over the link, released at system scope after the stores they
// stand for; the GPU that waits acquires them at system scope.

// What two GPUs that exchange tell each other, on the side of one of them.
struct Neighbour {
	unsigned long long *my_ready;   // set by the neighbour: its ghosts may be written
	unsigned long long *my_sent;    // set by the neighbour: my ghosts are written
	unsigned long long *its_ready;  // the same two on its side
	unsigned long long *its_sent;
};

struct Swap {
	const Segment *segments;       // one for each blockIdx.y; an empty one if there are none
	const Neighbour *neighbours;
	unsigned long long *rounds;    // exchanges done; this GPU's own
	unsigned long long *finished;  // blocks of this exchange that have stored
	unsigned long long *failed;    // in host memory: 1 + the neighbour waited for in vain
	i64 degree;                    // neighbours, at most blockDim.x
	i64 limit;                     // ns to wait for a neighbour
};

__device__ inline void release(unsigned long long *flag, unsigned long long value) {
	asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
}

__device__ inline unsigned long long acquire(const unsigned long long *flag) {
	unsigned long long value;
	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
	return value;
}

__device__ inline i64 nanoseconds() {
	i64 t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

// await waits until the flag has reached round. A neighbour that does not come
// within the limit is told to the host, and waited for no more.
__device__ void await(const Swap &s, const unsigned long long *flag, unsigned long long round, i64 neighbour) {
	const i64 start = nanoseconds();
	while (acquire(flag) < round) {
		if (nanoseconds() - start > s.limit) {
			release(s.failed, 1 + neighbour);
			return;
		}
	}
}

// store copies a segment. Each thread loads several words before it stores the
// first, so that the loads of columns, of which each is a transaction of its own,
// do not wait for each other.
template <typename Word>
__device__ void store(const Segment &s, unsigned thread, unsigned threads) {
	const unsigned nx = (unsigned)s.nx, ny = (unsigned)s.ny, words = (unsigned)(s.nx * s.ny * s.nz);
	enum { BATCH = 4 };
	for (unsigned first = thread; first < words; first += BATCH * threads) {
		Word word[BATCH];
		Word *to[BATCH];
#pragma unroll
		for (int i = 0; i < BATCH; i++) {
			const unsigned n = first + i * threads;
			if (n >= words) break;
			const unsigned row = n / nx, x = n - row * nx, z = row / ny, y = row - z * ny;
			word[i] = ((const Word *)(s.src + (i64)y * s.src_pitch + (i64)z * s.src_plane))[x];
			to[i] = (Word *)(s.dst + (i64)y * s.dst_pitch + (i64)z * s.dst_plane) + x;
		}
#pragma unroll
		for (int i = 0; i < BATCH; i++)
			if (first + i * threads < words) *to[i] = word[i];
	}
}

// swap is one exchange. What lies before it in its stream has written the
// boundary points and read the ghosts; what comes after finds the new ghosts.
extern "C" __global__ void __launch_bounds__(256) swap(const __grid_constant__ Swap s) {
	const unsigned long long round = *(volatile unsigned long long *)s.rounds + 1;
	const i64 me = threadIdx.x;
	if (me < s.degree) {
		const Neighbour n = s.neighbours[me];
		if (blockIdx.x == 0 && blockIdx.y == 0) release(n.its_ready, round);
		await(s, n.my_ready, round, me);
	}
	__syncthreads();
	const Segment &g = s.segments[blockIdx.y];
	const unsigned thread = (unsigned)thread_index(), threads = (unsigned)thread_count();
	switch (g.word) {
	case 1: store<unsigned char>(g, thread, threads); break;
	case 2: store<unsigned short>(g, thread, threads); break;
	case 4: store<unsigned>(g, thread, threads); break;
	case 8: store<unsigned long long>(g, thread, threads); break;
	case 16: store<Sixteen>(g, thread, threads); break;
	}
	__threadfence_system();
	__syncthreads();
	__shared__ bool last;
	if (me == 0) {
		last = atomicAdd(s.finished, 1ull) == (unsigned long long)gridDim.x * gridDim.y - 1;
		__threadfence();
	}
	__syncthreads();
	if (!last) return;
	if (me < s.degree) {
		const Neighbour n = s.neighbours[me];
		__threadfence_system();
		release(n.its_sent, round);
		await(s, n.my_sent, round, me);
	}
	__syncthreads();
	if (me == 0) {
		*s.finished = 0;
		*s.rounds = round;
	}
}
