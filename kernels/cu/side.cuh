// The ghosts behind the sides of a box that is swept at several levels.
#pragma once

#include "device.cuh"

// See temporal.Side. Kernels for stencils of radius 1 use only the first three.
enum Side { OPEN, FIXED, MIRROR, REPEAT, ODD };

// The source of the value at a place along an axis.
struct Place {
	int at;     // the place whose value is used
	bool fixed; // the place is behind a wall and keeps its value
	bool odd;   // twice the value one place inward, minus that two places inward
};

__device__ __forceinline__ Place place(int at, int n, int low, int high) {
	const bool below = at < 0 && low != OPEN, above = at >= n && high != OPEN;
	if (!below && !above) return {at, false, false};
	const int side = below ? low : high, layer = below ? -1 - at : at - n;
	if (side == MIRROR) return {below ? layer : n - 1 - layer, false, false};
	if (side == REPEAT) return {below ? 0 : n - 1, false, false};
	return {at, !(side == ODD && layer > 0), side == ODD && layer > 0};
}
