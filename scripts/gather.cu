// gather: what a plain CUDA kernel loads from a vector at random, and from memory in order, to hold the model of the
// examples spmv and power against. It prints one line
//
//   GATHERS MEMORY
//
// in 10^9 elements of 8 bytes a second, from a vector of so many elements, and in 10^9 bytes a second.
//
// Build: nvcc -O2 -std=c++17 -arch=native -o gather gather.cu    Use: gather ELEMENTS

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t code, const char *call) {
	if (code == cudaSuccess) return;
	fprintf(stderr, "gather: %s: %s\n", call, cudaGetErrorString(code));
	exit(1);
}
#define CHECK(call) check(call, #call)

// Loads of a thread that are under way at once.
enum { AT_ONCE = 8 };

// Each thread sums elements whose places are a sequence of its own.
__global__ void at_random(const double *from, unsigned elements, int rounds, double *sums) {
	unsigned state = (blockIdx.x * blockDim.x + threadIdx.x) * 2654435769u + 1;
	double sum = 0;
	for (int r = 0; r < rounds; r++) {
		double v[AT_ONCE];
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++) {
			state = state * 1664525u + 1013904223u;
			v[k] = from[__umulhi(state, elements)];
		}
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++) sum += v[k];
	}
	sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void in_order(const double2 *from, long long count, double *sums) {
	const long long threads = (long long)gridDim.x * blockDim.x, me = (long long)blockIdx.x * blockDim.x + threadIdx.x;
	double sum = 0;
	for (long long i = me; i < count; i += threads) {
		const double2 v = from[i];
		sum += v.x + v.y;
	}
	sums[me] = sum;
}

// median returns that of the milliseconds of some launches, after one that is not timed.
template <typename Launch> static double median(Launch launch) {
	cudaEvent_t begin, end;
	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreate(&end));
	std::vector<float> all;
	for (int i = 0; i < 12; i++) {
		CHECK(cudaEventRecord(begin));
		launch();
		CHECK(cudaGetLastError());
		CHECK(cudaEventRecord(end));
		CHECK(cudaEventSynchronize(end));
		float ms;
		CHECK(cudaEventElapsedTime(&ms, begin, end));
		if (i > 0) all.push_back(ms);
	}
	std::sort(all.begin(), all.end());
	return all[all.size() / 2];
}

int main(int argc, char **argv) {
	const long long elements = argc > 1 ? atoll(argv[1]) : 0;
	if (elements < 1 || elements >= 1ll << 32) {
		fprintf(stderr, "usage: gather ELEMENTS\n");
		return 2;
	}
	int sms;
	CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	const int blocks = 8 * sms, threads = 256, rounds = 256;
	const long long bytes = std::max(8 * elements, 2ll << 30);
	double *memory, *sums;
	CHECK(cudaMalloc(&memory, bytes));
	CHECK(cudaMemset(memory, 0, bytes));
	CHECK(cudaMalloc(&sums, 8ll * blocks * threads));
	const double random = median([&] { at_random<<<blocks, threads>>>(memory, (unsigned)elements, rounds, sums); });
	const double order = median([&] { in_order<<<blocks, threads>>>((const double2 *)memory, bytes / 16, sums); });
	printf("%.1f %.0f\n", (double)blocks * threads * rounds * AT_ONCE / random / 1e6, bytes / order / 1e6);
}
