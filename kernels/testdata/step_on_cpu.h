// What stands for flags.cuh and faults.cuh where the devices of a step make it one after the other, and
// the threads of each too: nobody waits, and counts are kept.
#pragma once

#include "norms.cuh"

static void signal(u64 *count) { ++*count; }
enum { THIS_DEVICE = 1000 };
static void report_timeout(u64 *, u64) {}
template <typename Done> static bool wait(i64, Done done) { return done(); }
static bool wait_for_count(const u64 *, u64, i64) { return true; }
#define load_acquire_gpu(count) (~0ull >> 1) // all other blocks have finished
