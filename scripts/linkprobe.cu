// linkprobe: the performance of the link between two GPUs in a plain CUDA program, for comparison with `halox bench
// links`. For each message size from 1 KiB to 256 MiB it prints a line
//
//   MODE BYTES MICROSECONDS GB/S
//
// for each mode: device (a copy within the memory of FROM), one-way (a peer copy) and both-ways (peer copies in both
// directions at once, the total rate of both). A time is the median over eleven batches of the time per copy. A batch
// takes some milliseconds, or has as many copies as a stream holds. A kernel blocks the batch until the host has queued
// it, and two events of FROM measure its time. With both ways, TO starts when FROM's clock has started, and the clock
// stops when TO is done as well.
//
// Build: nvcc -O2 -std=c++17 -o linkprobe linkprobe.cu    Use: linkprobe FROM TO

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

static void check(cudaError_t code, const char *call) {
	if (code == cudaSuccess) return;
	fprintf(stderr, "linkprobe: %s: %s\n", call, cudaGetErrorString(code));
	exit(1);
}
#define CHECK(call) check(call, #call)

const size_t LARGEST = size_t(256) << 20;
const double LENGTH = 4000; // per batch, in microseconds
const int LEAST = 2, MOST = 499, BATCHES = 11;

// gate blocks a stream until the host has opened it for the nth time, or for some seconds.
__global__ void gate(const volatile int *opened, int n, volatile int *late) {
	const long long start = clock64();
	while (*opened < n) {
		if (clock64() - start < 10000000000ll) continue;
		*late = 1;
		return;
	}
}

// One GPU with its send buffer, receive buffer and stream.
struct Gpu {
	int id;
	char *source, *target;
	cudaStream_t stream;
	cudaEvent_t start, end;
	volatile int *word; // in host memory: number of times the gate was opened, and whether that was too late

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
		CHECK(cudaHostAlloc((void **)&word, 2 * sizeof(int), cudaHostAllocMapped));
		word[0] = word[1] = 0;
		CHECK(cudaDeviceSynchronize());
		CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
		CHECK(cudaEventCreate(&start));
		CHECK(cudaEventCreate(&end));
	}

	void shut() const {
		CHECK(cudaSetDevice(id));
		gate<<<1, 1, 0, stream>>>(word, word[0] + 1, word + 1);
		CHECK(cudaGetLastError());
	}

	void open() const {
		const bool late = word[1];
		word[0] = word[0] + 1;
		if (!late) return;
		fprintf(stderr, "linkprobe: GPU %d was not held until all was queued\n", id);
		exit(1);
	}

	void send(const Gpu &to, size_t bytes) const {
		CHECK(cudaSetDevice(id));
		if (to.id == id) CHECK(cudaMemcpyAsync(to.target, source, bytes, cudaMemcpyDeviceToDevice, stream));
		else CHECK(cudaMemcpyPeerAsync(to.target, to.id, source, id, bytes, stream));
	}
};

// batch returns the time of n copies from a to b, and of n copies back if both, divided by n, in microseconds.
static double batch(const Gpu &a, const Gpu &b, bool both, size_t bytes, int n) {
	a.shut();
	a.send(b, bytes); // the first copies of a batch are not timed
	CHECK(cudaEventRecord(a.start, a.stream));
	if (both) CHECK(cudaStreamWaitEvent(b.stream, a.start, 0));
	for (int i = 0; i < n; i++) {
		a.send(b, bytes);
		if (both) b.send(a, bytes);
	}
	if (both) {
		CHECK(cudaEventRecord(b.end, b.stream));
		CHECK(cudaStreamWaitEvent(a.stream, b.end, 0));
	}
	CHECK(cudaEventRecord(a.end, a.stream));
	a.open();
	CHECK(cudaStreamSynchronize(a.stream));
	float ms;
	CHECK(cudaEventElapsedTime(&ms, a.start, a.end));
	return ms * 1e3 / n;
}

// median measures batches of suitable length.
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

// measure prints a line per size.
static void measure(const char *mode, const Gpu &a, const Gpu &b, bool both) {
	for (size_t bytes = 1024; bytes <= LARGEST; bytes *= 4) {
		for (const Gpu *from : {&a, &b}) { // the driver's work for the first copy might wait for the gate
			from->send(from == &a ? b : a, bytes);
			CHECK(cudaStreamSynchronize(from->stream));
		}
		const double us = median([&](int n) { return batch(a, b, both, bytes, n); });
		printf("%s %zu %.4f %.4f\n", mode, bytes, us, (both ? 2 : 1) * bytes / us / 1e3);
		fflush(stdout);
	}
}

int main(int argc, char **argv) {
	if (argc != 3) {
		fprintf(stderr, "use: linkprobe FROM TO\n");
		return 2;
	}
	const int from = atoi(argv[1]), to = atoi(argv[2]);
	Gpu a(from, to), b(to, from);
	measure("device", a, a, false);
	measure("one-way", a, b, false);
	measure("both-ways", a, b, true);
	return 0;
}
