// The stages of point_steps.cu, as resident_plan.go of kernels/sweep writes them.
#pragma once

#include "access.cuh"
#include "slab.cuh"
#include "totals.cuh"

// clang-format off
#define STAGES(X) X(0)
#define STEPS_THREADS 512
#define MEASURES
enum { STAGE_COUNT = 1 };

#define STAGE 0
namespace stage0 {
#include "swept.cuh"
}
#undef STAGE
#undef TOTALS
#undef SWEEP_BYTES
#undef FRAME_BYTES
#undef FEW_ARRAYS
#undef READS
#undef WRITES
#undef NORMS
#undef REDUCTIONS
#undef OPERATIONS
#undef SLOT_PLACES
#undef STREAMS
#undef SEVERAL_LAYERS
#undef ONE_LAYER
#undef LAYERS_2
#undef LAYERS_4
#undef LAYERS_8
#undef LAYERED
#undef SCARCE
#undef TARGETS
#undef REFLECTS
#undef SCALES
#undef INNER_STORES
