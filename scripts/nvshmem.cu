// Times of NVSHMEM for the messages that `halox bench ranks` measures: two processes with one GPU each. gpu-check.sh
// compiles it if NVSHMEM is installed, and runs it after that benchmark.
//
// It prints lines of: what, bytes, ranks, value, unit.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <sys/wait.h>

#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#define CHECK(call) \
	do { \
		cudaError_t e = (call); \
		if (e != cudaSuccess) { \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)); \
			exit(1); \
		} \
	} while (0)

enum { THREADS = 128, BLOCKS = 132, LINE = 16 /* words between signals */ };

// A message back and forth; block 0 of each process.
__global__ void ping_pong(char *data, uint64_t *signal, size_t bytes, int me, uint64_t from, uint64_t to) {
	for (uint64_t n = from; n < to; n++)
		for (int turn = 0; turn < 2; turn++) {
			if (turn == me) {
				nvshmemx_putmem_signal_block(data, data + bytes, bytes, signal, n, NVSHMEM_SIGNAL_SET, 1 - me);
			} else {
				if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, n);
				__syncthreads();
			}
		}
}

// Messages from each block of process 0 to its partner in process 1, which waits for the last message.
__global__ void one_way(char *data, uint64_t *signal, size_t bytes, int me, uint64_t from, uint64_t to) {
	char *const there = data + blockIdx.x * bytes, *const here = data + (BLOCKS + blockIdx.x) * bytes;
	uint64_t *const mine = signal + LINE * blockIdx.x;
	if (me == 0) {
		for (uint64_t n = from; n < to; n++)
			nvshmemx_putmem_signal_block(there, here, bytes, mine, 1, NVSHMEM_SIGNAL_ADD, 1);
	} else if (threadIdx.x == 0) {
		nvshmem_signal_wait_until(mine, NVSHMEM_CMP_GE, to - 1);
	}
}

__global__ void barriers(int rounds) {
	for (int i = 0; i < rounds; i++) nvshmemx_barrier_all_block();
}

// median_of returns the median of seven times of a launch, in ns; all processes perform the same launches.
template <typename Launch> static double median_of(Launch launch) {
	enum { LAPS = 7 };
	double times[LAPS];
	cudaEvent_t begin, end;
	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreate(&end));
	for (int lap = -1; lap < LAPS; lap++) {
		nvshmem_barrier_all();
		CHECK(cudaEventRecord(begin));
		launch();
		CHECK(cudaEventRecord(end));
		CHECK(cudaEventSynchronize(end));
		float ms;
		CHECK(cudaEventElapsedTime(&ms, begin, end));
		if (lap >= 0) times[lap] = 1e6 * ms;
	}
	qsort(times, LAPS, sizeof *times, [](const void *a, const void *b) {
		const double x = *(const double *)a, y = *(const double *)b;
		return x < y ? -1 : x > y;
	});
	return times[LAPS / 2];
}

static int measure(int me, nvshmemx_uniqueid_t *id) {
	CHECK(cudaSetDevice(me));
	nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
	nvshmemx_set_attr_uniqueid_args(me, 2, id, &attr);
	if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr) != 0) return 1;
	const size_t sizes[] = {8, 1 << 10, 16 << 10, 64 << 10, 1 << 20}, most = 2 * (size_t)BLOCKS * (64 << 10);
	char *const data = (char *)nvshmem_calloc(most, 1);
	uint64_t *const signals = (uint64_t *)nvshmem_calloc(LINE * (BLOCKS + 1), sizeof(uint64_t));
	if (!data || !signals) return 1;
	if (me == 0) {
		int major, minor, patch;
		nvshmemx_vendor_get_version_info(&major, &minor, &patch);
		printf("# NVSHMEM %d.%d.%d, two processes; what, bytes, ranks, median, unit\n", major, minor, patch);
	}
	const auto say = [&](const char *what, size_t bytes, int ranks, double value, const char *unit) {
		if (me == 0) printf("%-8s %8zu %5d %10.3f %s\n", what, bytes, ranks, value, unit);
	};
	uint64_t first = 1;
	for (size_t bytes : sizes) {
		const int rounds = bytes < 1 << 20 ? 2000 : 200;
		const double ns = median_of([&] {
			ping_pong<<<1, THREADS>>>(data, signals + LINE * BLOCKS, bytes, me, first, first + rounds);
			first += rounds;
		});
		say("latency", bytes, 1, ns / rounds / 2e3, "us");
	}
	first = 1;
	for (size_t bytes : {(size_t)8, (size_t)4 << 10, (size_t)16 << 10, (size_t)64 << 10}) {
		const int rounds = bytes < 4 << 10 ? 2000 : 500;
		const double ns = median_of([&] {
			one_way<<<BLOCKS, THREADS>>>(data, signals, bytes, me, first, first + rounds);
			first += rounds;
		});
		const double each = ns / rounds / BLOCKS; // ns per message
		if (bytes == 8) say("rate", bytes, BLOCKS, 1e3 / each, "million/s");
		else say("one-way", bytes, BLOCKS, (double)bytes / each, "GB/s");
	}
	const double ns = median_of([&] { barriers<<<1, THREADS>>>(2000); });
	say("barrier", 0, 1, ns / 2000 / 1e3, "us");
	CHECK(cudaGetLastError());
	nvshmem_free(signals);
	nvshmem_free(data);
	nvshmem_finalize();
	return 0;
}

int main() {
	int ends[2];
	if (pipe(ends) != 0) return 1;
	const pid_t child = fork(); // before anything opens a device
	if (child < 0) return 1;
	nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
	if (child == 0) {
		if (read(ends[0], &id, sizeof id) != sizeof id) return 1;
		return measure(1, &id);
	}
	if (nvshmemx_get_uniqueid(&id) != 0 || write(ends[1], &id, sizeof id) != sizeof id) return 1;
	int failed = measure(0, &id), status;
	if (waitpid(child, &status, 0) != child || status != 0) failed = 1;
	return failed;
}
