// linkprobe: what a plain CUDA program gets out of the link between two GPUs, to hold
// `halox bench links` against. For messages of 1 KiB to 256 MiB it prints a line each,
//
//   MODE BYTES MICROSECONDS GB/S
//
// of mode device (a copy within the memory of FROM), one-way (a peer copy) and both-ways
// (peer copies in both directions at once, the rate of both together). Times are those from
// one copy to the next of batches of some milliseconds, the median of eleven: by events on
// the stream, and both ways by the host's clock, with a thread for each GPU.
//
// Build: nvcc -O2 -std=c++17 -Xcompiler -pthread -o linkprobe linkprobe.cu    Use: linkprobe FROM TO

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

static void check(cudaError_t code, const char *call) {
	if (code == cudaSuccess) return;
	fprintf(stderr, "linkprobe: %s: %s\n", call, cudaGetErrorString(code));
	exit(1);
}
#define CHECK(call) check(call, #call)

const size_t LARGEST = size_t(256) << 20;
const double LENGTH = 4000; // of a batch, in microseconds
const int LEAST = 2, MOST = 2000, BATCHES = 11;

// One GPU with what it sends from, what it receives into, and a stream.
struct Gpu {
	int id;
	char *source, *target;
	cudaStream_t stream;
	cudaEvent_t start, end;

	Gpu(int id, int peer) : id(id) {
		CHECK(cudaSetDevice(id));
		if (peer != id) {
			int can = 0;
			CHECK(cudaDeviceCanAccessPeer(&can, id, peer));
			if (!can) {
				fprintf(stderr, "linkprobe: GPU %d cannot access GPU %d\n", id, peer);
				exit(1);
			}
			CHECK(cudaDeviceEnablePeerAccess(peer, 0));
		}
		CHECK(cudaMalloc(&source, LARGEST));
		CHECK(cudaMalloc(&target, LARGEST));
		CHECK(cudaMemset(source, 1 + id, LARGEST));
		CHECK(cudaMemset(target, 0, LARGEST));
		CHECK(cudaDeviceSynchronize());
		CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
		CHECK(cudaEventCreate(&start));
		CHECK(cudaEventCreate(&end));
	}

	void send(const Gpu &to, size_t bytes) const {
		if (to.id == id) CHECK(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream));
		else CHECK(cudaMemcpyPeerAsync(to.target, to.id, source, id, bytes, stream));
	}
};

// one_way returns the time of one of n copies on the GPU, in microseconds.
static double one_way(const Gpu &from, const Gpu &to, size_t bytes, int n) {
	CHECK(cudaSetDevice(from.id));
	from.send(to, bytes); // what begins a batch does not count
	CHECK(cudaEventRecord(from.start, from.stream));
	for (int i = 0; i < n; i++) from.send(to, bytes);
	CHECK(cudaEventRecord(from.end, from.stream));
	CHECK(cudaStreamSynchronize(from.stream));
	float ms;
	CHECK(cudaEventElapsedTime(&ms, from.start, from.end));
	return ms * 1e3 / n;
}

// both_ways returns the time of n copies each way, over n, from when the first thread begins
// until the last is done.
static double both_ways(const Gpu &a, const Gpu &b, size_t bytes, int n) {
	typedef std::chrono::steady_clock Clock;
	Clock::time_point begin[2], done[2];
	std::atomic<int> here(0);
	auto work = [&](int me, const Gpu &from, const Gpu &to) {
		CHECK(cudaSetDevice(from.id));
		for (here++; here < 2;) {}
		begin[me] = Clock::now();
		for (int i = 0; i < n; i++) from.send(to, bytes);
		CHECK(cudaEventRecord(from.end, from.stream));
		cudaError_t code;
		while ((code = cudaEventQuery(from.end)) == cudaErrorNotReady) {}
		check(code, "cudaEventQuery");
		done[me] = Clock::now();
	};
	std::thread other(work, 1, std::cref(b), std::cref(a));
	work(0, a, b);
	other.join();
	return std::chrono::duration<double, std::micro>(std::max(done[0], done[1]) - std::min(begin[0], begin[1])).count() / n;
}

// median measures batches that are as long as they should be.
static double median(const std::function<double(int)> &batch) {
	batch(LEAST); // warms up
	int n = LEAST;
	for (;;) {
		const int next = int(std::max<double>(LEAST, std::min<double>(MOST, LENGTH / batch(n))));
		const bool enough = next < 2 * n;
		n = next;
		if (enough) break;
	}
	std::vector<double> all;
	for (int i = 0; i < BATCHES; i++) all.push_back(batch(n));
	std::sort(all.begin(), all.end());
	return all[BATCHES / 2];
}

static void print(const char *mode, size_t bytes, size_t moved, double us) {
	printf("%s %zu %.4f %.4f\n", mode, bytes, us, moved / us / 1e3);
	fflush(stdout);
}

int main(int argc, char **argv) {
	if (argc != 3) {
		fprintf(stderr, "use: linkprobe FROM TO\n");
		return 2;
	}
	const int from = atoi(argv[1]), to = atoi(argv[2]);
	Gpu a(from, to), b(to, from);
	for (size_t bytes = 1024; bytes <= LARGEST; bytes *= 4)
		print("device", bytes, bytes, median([&](int n) { return one_way(a, a, bytes, n); }));
	for (size_t bytes = 1024; bytes <= LARGEST; bytes *= 4)
		print("one-way", bytes, bytes, median([&](int n) { return one_way(a, b, bytes, n); }));
	for (size_t bytes = 1024; bytes <= LARGEST; bytes *= 4)
		print("both-ways", bytes, 2 * bytes, median([&](int n) { return both_ways(a, b, bytes, n); }));
	return 0;
}
