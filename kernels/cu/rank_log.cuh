// Lines that a rank logs while it runs. The host formats the numbers.
#pragma once

#include "rank_world.cuh"

namespace ranks {

// A line being written: text, and numbers of 8 bytes, each after a byte below 32 that gives its type. Content that does
// not fit is cut off.
struct LogText {
	u64 words[sizeof(LogLine::text) / sizeof(u64)];
	int used = 0, room = sizeof words;

	__device__ void put(char c) {
		if (used < room) ((char *)words)[used++] = c;
	}
	__device__ void put(LogItem type, u64 bits) {
		if (used + 9 > room) room = used;
		if (used == room) return;
		put((char)type);
		for (int i = 0; i < 8; i++) put((char)(bits >> 8 * i));
	}

	__device__ void add(const char *text) {
		for (; *text; text++) put(*text < 32 && *text > 0 ? ' ' : *text);
	}
	__device__ void add(double v) { put(LOG_DOUBLE, (u64)bits_of_double(v)); }
	__device__ void add(float v) { add((double)v); }
	__device__ void add(int v) { put(LOG_SIGNED, (u64)(i64)v); }
	__device__ void add(long v) { put(LOG_SIGNED, (u64)v); }
	__device__ void add(long long v) { put(LOG_SIGNED, (u64)v); }
	__device__ void add(unsigned v) { put(LOG_UNSIGNED, v); }
	__device__ void add(unsigned long v) { put(LOG_UNSIGNED, v); }
	__device__ void add(unsigned long long v) { put(LOG_UNSIGNED, v); }

  private:
	static __device__ i64 bits_of_double(double v) {
		return (i64)((u64)(unsigned)__double2hiint(v) << 32 | (unsigned)__double2loint(v));
	}
};

} // namespace ranks
