// Shared by the kernels of the tests: this precedes each of their sources.
#include "ranks.cuh"

using namespace ranks;

__device__ unsigned hash(unsigned a, unsigned b) {
	unsigned h = a * 0x9e3779b1u ^ (b + 0x7f4a7c15u) * 0x85ebca77u;
	h ^= h >> 15, h *= 0xc2b2ae3du, h ^= h >> 13;
	return h;
}

// named returns the number of a name, like callNamed in Go: FNV-1a.
__device__ constexpr u64 named(const char *name) {
	u64 h = 14695981039346656037ull;
	for (; *name; name++) h = (h ^ (u64)(unsigned char)*name) * 1099511628211ull;
	return h;
}

// Which wrong call a rank makes.
struct Wrong {
	char *memory; // of this device: 256 bytes per rank
	i64 what, rank;

	__device__ bool is(const char *name) const { return (u64)what == named(name); }
};

