// Steps whose length follows from the largest speed on the grid, the first reduction of their last stage, on all GPUs.
// After each step one warp of a GPU joins the speeds that its blocks have stored, sends the largest to all GPUs, waits
// for theirs, and computes the length of the next step. All GPUs find the same.
#pragma once

#include "flags.cuh"
#include "packet.cuh"
#include "totals.cuh"

// The state after a step: how many steps the launch has made, the time, and the length of the last; and the length of
// the next one, which is not positive if there is none, with the start of struct Moment.
struct Paced {
	u64 steps;
	double now, last, length, start;
};

struct Pacing {
	double distance, until; // see Courant of kernels/sweep
	double now;             // time at which the launch begins
	i64 endless;            // not 0: without a next length, the last one is taken
	Paced *state;
	PacketOf<8> *votes;        // two for each GPU
	PacketOf<8> *const *voted; // those of all GPUs
	Paced *report;             // in host memory, set after the last step
	i64 ranks, rank;
};

// next_length is Courant.Next of kernels/sweep, but negative where that returns NaN or an error.
__device__ inline double next_length(const Pacing &p, double now, double speed) {
	double left = p.until - now, length = p.distance / speed;
	if (p.until > 0 && left <= 0) return 0;
	if (speed <= 0) {
		if (p.until <= 0) return -1;
		length = left;
	} else if (!(length > 0) || length > 0x1.fffffffffffffp+1023) {
		return -1;
	}
	if (p.until <= 0 || length * (1 + 1e-9) < left) return length;
	while (now + left < p.until) left = __longlong_as_double(bits_of(left) + 1);
	while (now + left > p.until) left = __longlong_as_double(bits_of(left) - 1);
	return left;
}

// largest_speed returns the largest of the numbers that the blocks of all GPUs have stored, one per block and so far
// apart, in the first lane of a warp. It returns false after a timeout, which it reports.
__device__ inline bool largest_speed(const Pacing &p, const double *there, int apart, unsigned number, i64 limit,
                                     u64 *report, double &speed) {
	const int lane = (int)(threadIdx.x + blockDim.x * threadIdx.y);
	const auto join_warp = [](double v) {
		for (int d = 16; d > 0; d /= 2) v = join(MAX, v, __shfl_xor_sync(~0u, v, d));
		return v;
	};
	double most = identity(MAX);
	for (unsigned block = (unsigned)lane; block < gridDim.x; block += 32)
		most = join(MAX, most, __longlong_as_double((i64)load_relaxed_gpu((const u64 *)there + (i64)block * apart)));
	most = join_warp(most);
	PacketOf<8> *const mine = p.votes + number % 2 * p.ranks;
	for (i64 to = lane; to < p.ranks; to += 32) (p.voted[to] + number % 2 * p.ranks + p.rank)->send(most, number);
	bool came = true;
	for (i64 from = lane; from < p.ranks; from += 32) {
		PacketOf<8> v;
		const bool here = wait(limit, report, [&] { return (v = (mine + from)->load()).of(number); });
		if (!here) report_timeout(report, NORMS_OF + (u64)from);
		came = came && here;
		most = join(MAX, most, v.value());
	}
	speed = join_warp(most);
	return __all_sync(~0u, came);
}
