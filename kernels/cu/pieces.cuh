// The points of a box, divided into pieces of rows, each processed by a warp.
#pragma once

#include "common.cuh"
#include "sums.cuh"

// each_piece calls visit(i) in one lane for each point, where i is its offset in elements, and settle() after at most
// RUNNING_TERMS points of a lane, and at the end.
template <typename Visit, typename Settle>
__device__ __forceinline__ void each_piece(const Region &r, const Strides &strides, Visit visit, Settle settle) {
	enum { POINTS = RUNNING_TERMS / 2 }; // per lane and piece
	const i64 each = (r.nx + 32 * POINTS - 1) / (32 * POINTS), pieces = each * r.ny * r.nz;
	const int lane = threadIdx.x & 31;
	int points = 0;
	for (i64 n = thread_index() >> 5; n < pieces; n += thread_count() >> 5) {
		const i64 row = each == 1 ? n : n / each, begin = (n - row * each) * 32 * POINTS;
		const i64 end = min(r.nx, begin + 32 * POINTS);
		const i64 first = r.first + row % r.ny * strides.pitch + row / r.ny * strides.plane;
		for (i64 i = begin + lane; i < end; i += 32) visit(first + i);
		points += (int)((end - begin + 31) / 32);
		if (points <= POINTS) continue;
		settle();
		points = 0;
	}
	settle();
}
