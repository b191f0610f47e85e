// What each program begins with. It is compiled once, with all that it includes.
#define CPU_RUN "cpu/run.h"
#include "cpu/cuda.h"
