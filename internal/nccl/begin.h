// The calls of NCCL that take or return something else than ints, sizes and pointers.

#ifndef HALOX_NCCL_BEGIN_H
#define HALOX_NCCL_BEGIN_H

#include <stdint.h>

// halox_nccl_begin calls ncclCommInitRankConfig, for a communicator that does not block.
int halox_nccl_begin(uintptr_t function, void **comm, int ranks, const void *id, int rank);

// halox_nccl_text calls a function that returns a text, which is empty where the library lacks the function.
const char *halox_nccl_text(uintptr_t function, uintptr_t argument);

#endif
