// Arguments of the kernels of a lap.
#pragma once

#include "device.cuh"

struct Lap {
	char *memory; // of this device: an area for each rank, see area_of
	i64 bytes, rounds, comm, work;
	i64 first; // packets use greater numbers
	i64 apart; // number of ranks per multiprocessor that start staggered; 0: all start together
	i64 span;  // private bytes of a rank

	// The area of a rank of the device has four buffers of bytes, for incoming and outgoing messages, followed by the
	// private bytes of the rank.
	__device__ char *area_of(i64 rank) const { return memory + (4 * bytes + span) * rank; }
};
