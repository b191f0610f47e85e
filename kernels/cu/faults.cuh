// Faults that tests inject into kernels that run steps and exchanges.
#pragma once

#include "device.cuh"

// inject_fault does nothing unless an option requests a fault. With PAUSES, warps sleep for up to 32 us at pseudorandom
// points of some steps. With DIES_AT, the kernel traps in that step.
__device__ inline void inject_fault(unsigned step) {
#ifdef PAUSES
	const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
	unsigned chance = step * 0x9e3779b9u ^ blockIdx.x * 0x85ebca6bu ^ thread / 32 * 0xc2b2ae35u;
	chance = (chance ^ chance >> 15) * 0x2c1b3c6du;
	chance ^= chance >> 13;
	if (step / 64 % 3 && chance % 512 == 0) __nanosleep(chance >> 17);
#endif
#ifdef DIES_AT
	if (step == DIES_AT && blockIdx.x == 0) trap();
#endif
}

// inject_delay does nothing unless an option requests a delay: with LATE_AT, LATE_BLOCK and LATE_FOR, that block waits
// for that many ns when it calls this in that step.
__device__ inline void inject_delay(unsigned step) {
#ifdef LATE_AT
	if (step != LATE_AT || blockIdx.x != LATE_BLOCK) return;
	for (const i64 begun = nanoseconds(); nanoseconds() - begun < LATE_FOR;) __nanosleep(1000);
#endif
}
