// What lies behind the sides of a box that is swept at several levels.
#pragma once

#include "device.cuh"

// See temporal.Side. Kernels for stencils that reach one point meet the first three.
enum Side { OPEN, FIXED, MIRROR, REPEAT, ODD };

// What a place along an axis stands for.
struct Place {
	int at;     // where the value is taken from
	bool fixed; // it lies behind a wall and keeps its value
	bool odd;   // twice the value one place inwards, less that two places inwards
};

__device__ __forceinline__ Place place(int at, int n, int low, int high) {
	const bool below = at < 0 && low != OPEN, above = at >= n && high != OPEN;
	if (!below && !above) return {at, false, false};
	const int side = below ? low : high, layer = below ? -1 - at : at - n;
	if (side == MIRROR) return {below ? layer : n - 1 - layer, false, false};
	if (side == REPEAT) return {below ? 0 : n - 1, false, false};
	return {at, !(side == ODD && layer > 0), side == ODD && layer > 0};
}
