// contexts: the time that a plain CUDA program takes to open a context on every GPU and to release it, for comparison
// with the start of `halox run`. It prints one line, milliseconds of
//
//   CUINIT CONTEXTS RELEASE
//
// one GPU at a time, with the flags that halox uses.
//
// Build: nvcc -O2 -std=c++17 -o contexts contexts.cu -lcuda    Use: contexts

#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

static void check(CUresult code, const char *call) {
	if (code == CUDA_SUCCESS) return;
	const char *text = "an unknown error";
	cuGetErrorString(code, &text);
	fprintf(stderr, "contexts: %s: %s\n", call, text);
	exit(1);
}
#define CHECK(call) check(call, #call)

// lap returns the milliseconds since the previous call.
static double lap() {
	static auto last = std::chrono::steady_clock::now();
	const auto now = std::chrono::steady_clock::now();
	const double ms = std::chrono::duration<double, std::milli>(now - last).count();
	last = now;
	return ms;
}

int main() {
	lap();
	CHECK(cuInit(0));
	const double init = lap();
	int count = 0;
	CHECK(cuDeviceGetCount(&count));
	for (int i = 0; i < count; i++) {
		CUdevice device;
		CUcontext context;
		CHECK(cuDeviceGet(&device, i));
		CHECK(cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_BLOCKING_SYNC));
		CHECK(cuDevicePrimaryCtxRetain(&context, device));
	}
	const double contexts = lap();
	for (int i = 0; i < count; i++) {
		CUdevice device;
		CHECK(cuDeviceGet(&device, i));
		CHECK(cuDevicePrimaryCtxRelease(device));
	}
	printf("%.0f %.0f %.0f\n", init, contexts, lap());
	return 0;
}
