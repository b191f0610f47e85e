// The prefix of each program. It is compiled once, with everything that it includes.
#define CPU_RUN "cpu/run.h"
#include "cpu/cuda.h"
