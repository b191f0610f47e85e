// What stands for flags.cuh where the devices of a step make it one after the other, and
// the threads of each too: nobody waits, and counts are kept.
#include "four.cuh"

static void raise(unsigned long long *count) { ++*count; }
static void arrive(unsigned long long *count) { ++*count; }
#define peek_here(count) (~0ull >> 1) // all others have arrived
enum { ITSELF = 1 };
static void complain(unsigned long long *, unsigned long long) {}
template <typename Come> static bool wait(i64, Come come) { return come(); }
static bool await(const unsigned long long *, unsigned long long, i64) { return true; }
static void disturb(unsigned) {}
