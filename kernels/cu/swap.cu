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

enum { FEW = 40, NEIGHBOURS = 8 };

// What a GPU needs of an exchange comes with the launch, where it costs no trip to
// memory; segments beyond a few lie in a table.
struct Swap {
	unsigned long long *rounds;    // exchanges done; this GPU's own
	unsigned long long *finished;  // blocks of this exchange that have stored
	unsigned long long *failed;    // in host memory: 1 + the neighbour waited for in vain
	i64 degree;                    // neighbours
	i64 limit;                     // ns to wait for a neighbour
	const Segment *table;          // one for each blockIdx.y; null if they are few
	Neighbour neighbours[NEIGHBOURS];
	Segment few[FEW];
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

// allowed waits until all neighbours have said that their ghosts may be written.
__device__ void allowed(const Swap &s, unsigned long long round) {
	const i64 me = threadIdx.x;
	if (me < s.degree) await(s, s.neighbours[me].my_ready, round, me);
	__syncthreads();
}

// store copies a segment once that is allowed. Each thread loads several words
// before it stores the first, and the first of them before it may: so the loads,
// of which those of columns are a transaction each, wait neither for each other nor
// for the neighbours.
template <typename Word>
__device__ void store(const Segment &g, const Swap &s, unsigned long long round) {
	const unsigned thread = (unsigned)thread_index(), threads = (unsigned)thread_count();
	const unsigned nx = (unsigned)g.nx, ny = (unsigned)g.ny, words = (unsigned)(g.nx * g.ny * g.nz);
	enum { BATCH = 4 };
	bool waited = false;
	unsigned first = thread;
	do {
		Word word[BATCH];
		Word *to[BATCH];
#pragma unroll
		for (int i = 0; i < BATCH; i++) {
			const unsigned n = first + i * threads;
			if (n >= words) break;
			const unsigned row = n / nx, x = n - row * nx, z = row / ny, y = row - z * ny;
			word[i] = ((const Word *)(g.src + (i64)y * g.src_pitch + (i64)z * g.src_plane))[x];
			to[i] = (Word *)(g.dst + (i64)y * g.dst_pitch + (i64)z * g.dst_plane) + x;
		}
		if (!waited) allowed(s, round);
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
	const unsigned long long round = *(volatile unsigned long long *)s.rounds + 1;
	const i64 me = threadIdx.x;
	if (me < s.degree && blockIdx.x == 0 && blockIdx.y == 0) release(s.neighbours[me].its_ready, round);
	const Segment &g = s.table ? s.table[blockIdx.y] : s.few[blockIdx.y];
	switch (g.word) {
	case 1: store<unsigned char>(g, s, round); break;
	case 2: store<unsigned short>(g, s, round); break;
	case 4: store<unsigned>(g, s, round); break;
	case 8: store<unsigned long long>(g, s, round); break;
	case 16: store<Sixteen>(g, s, round); break;
	}
	// The stores of the block come before its count, and all counts before the
	// flags: barriers and fences at system scope carry that on.
	__syncthreads();
	__shared__ bool last;
	if (me == 0) {
		__threadfence_system();
		last = atomicAdd(s.finished, 1ull) == (unsigned long long)gridDim.x * gridDim.y - 1;
		__threadfence_system();
	}
	__syncthreads();
	if (!last) return;
	if (me < s.degree) {
		release(s.neighbours[me].its_sent, round);
		await(s, s.neighbours[me].my_sent, round, me);
	}
	__syncthreads();
	if (me == 0) {
		*s.finished = 0;
		*s.rounds = round;
	}
}
