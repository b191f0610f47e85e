// What the host tells the kernels of a lap.
#pragma once

#include "device.cuh"

struct Lap {
	char *memory; // of this device: an area for each rank, see area_of
	i64 bytes, rounds, comm, work;
	i64 first; // packets have greater numbers
	i64 apart; // ranks of a multiprocessor that begin apart: how many share one; 0: all begin together
	i64 span;  // bytes that a rank has for itself

	// The area of a rank of the device has four areas of bytes, where messages come from and where they go, and then
	// what the rank has for itself.
	__device__ char *area_of(i64 rank) const { return memory + (4 * bytes + span) * rank; }
};
