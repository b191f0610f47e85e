// The twins of device.cuh on the CPU, where threads run one after the other and nobody waits.
#pragma once

inline void grid_dependency_wait() {}
inline void store_release_sys(u64 *to, u64 value) { *to = value; }
inline u64 load_relaxed_sys(const u64 *from) { return *from; }
inline u64 load_acquire_sys(const u64 *from) { return *from; }
inline u64 load_acquire_gpu(const u64 *from) { return *from; }
inline void add_release_sys(u64 *to, u64 value) { *to += value; }
inline void add_release_gpu(u64 *to, u64 value) { *to += value; }
inline void store_relaxed_sys(u64 *to, u64 value) { *to = value; }
inline void store_relaxed_sys(u64 *to, u64 low, u64 high) { to[0] = low, to[1] = high; }
inline void load_relaxed_sys(const u64 *from, u64 &low, u64 &high) { low = from[0], high = from[1]; }
inline i64 nanoseconds() { return 0; }
inline unsigned opaque(unsigned v) { return v; }
inline void prefetch_l2(const void *) {}
inline void trap() { throw "a trap"; }
inline void *dynamic_shared() { return 0; }
