// The twins of device.cuh on the CPU, where threads run one after the other and nobody waits.
#pragma once

inline void after_predecessor() {}
inline void release(unsigned long long *flag, unsigned long long value) { *flag = value; }
inline unsigned long long peek(const unsigned long long *flag) { return *flag; }
inline unsigned long long peek_here(const unsigned long long *count) { return *count; }
inline void add_relaxed_sys(unsigned long long *count) { ++*count; }
inline void add_relaxed_gpu(unsigned long long *count) { ++*count; }
inline void store_word(unsigned long long *to, unsigned long long word) { *to = word; }
inline void store_words(unsigned long long *to, unsigned long long low, unsigned long long high) {
	to[0] = low, to[1] = high;
}
inline void load_words(const unsigned long long *from, unsigned long long (&words)[2]) {
	words[0] = from[0], words[1] = from[1];
}
inline i64 nanoseconds() { return 0; }
inline unsigned opaque(unsigned v) { return v; }
inline void prefetch_l2(const void *) {}
inline void trap() { throw "a trap"; }
inline void *dynamic_shared() { return 0; }
