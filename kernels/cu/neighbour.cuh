// Another GPU, as this one sees it.
#pragma once

#include "device.cuh"

// Counts of thread blocks that have finished a step, an exchange or a launch: those of the neighbour
// in this GPU's memory, and those of this GPU in the neighbour's.
struct Neighbour {
	const u64 *my_count;
	u64 *its_count;
	u64 expected; // how much my_count grows with each step, exchange or launch
};
