// A neighbor GPU, as seen by this one.
#pragma once

#include "device.cuh"

// Counts of thread blocks that have finished a step, an exchange or a launch: those of the neighbor in this GPU's
// memory, and those of this GPU in the neighbor's.
struct Neighbor {
	const u64 *my_count;
	u64 *its_count;
	u64 expected; // increment of my_count per step, exchange or launch
};
