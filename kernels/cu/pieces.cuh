// The points of a box, in pieces of rows, each of which a warp goes over.
#pragma once

#include "common.cuh"
#include "sums.cuh"

// each_piece calls visit(i) in one lane for each point, which lies i elements into the field, and settle() after
// at most RUNNING_TERMS points of a lane, and in the end.
template <typename Visit, typename Settle>
__device__ __forceinline__ void each_piece(const Region &r, const Strides &strides, Visit visit, Settle settle) {
	enum { POINTS = RUNNING_TERMS / 2 }; // of a lane, in a piece
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
