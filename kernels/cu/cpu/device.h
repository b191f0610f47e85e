// The counterparts of device.cuh on the CPU. Loads in polling loops let other threads run.
#pragma once

inline void grid_dependency_wait() {}

inline u64 load_acquire_sys(const u64 *from) { return cpu::yield(), __atomic_load_n(from, __ATOMIC_ACQUIRE); }
inline u64 load_acquire_gpu(const u64 *from) { return load_acquire_sys(from); }
template <typename... Words> inline void acquire_sys(const Words *...from) { (load_acquire_sys(from), ...); }
inline void add_release_sys(u64 *to, u64 value) { __atomic_fetch_add(to, value, __ATOMIC_RELEASE); }
inline void add_release_gpu(u64 *to, u64 value) { add_release_sys(to, value); }
inline void store_release_sys(u64 *to, u64 value) { __atomic_store_n(to, value, __ATOMIC_RELEASE); }
inline void store_release_gpu(u64 *to, u64 value) { store_release_sys(to, value); }

inline void store_relaxed_sys(u64 *to, u64 value) { __atomic_store_n(to, value, __ATOMIC_RELAXED); }
inline u64 load_relaxed_sys(const u64 *from) { return cpu::yield(), __atomic_load_n(from, __ATOMIC_RELAXED); }
inline u64 load_relaxed_gpu(const u64 *from) { return load_relaxed_sys(from); }
inline u64 add_ordered_gpu(u64 *to, u64 value) { return __atomic_fetch_add(to, value, __ATOMIC_ACQ_REL); }

// As the memory model of a GPU allows, the two words are stored and loaded separately, in a varying order.
inline void store_relaxed_sys(u64 *to, u64 low, u64 high) {
	const bool first = threadIdx.x & 1;
	store_relaxed_sys(to + first, first ? high : low);
	cpu::yield();
	store_relaxed_sys(to + !first, first ? low : high);
}
inline void load_relaxed_sys(const u64 *from, u64 &low, u64 &high) {
	low = load_relaxed_sys(from), high = load_relaxed_sys(from + 1);
}

inline bool try_lock(u64 *lock) {
	u64 free = 0;
	return cpu::yield(), __atomic_compare_exchange_n(lock, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
inline void unlock(u64 *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }

enum { HOST_READS_APART = 1 }; // polls are slow
inline void spin(unsigned) { cpu::yield(); }
#ifdef PROCESSOR_TIME // time limits do not depend on other load of the machine
inline i64 nanoseconds() { return cpu::processor_nanoseconds(); }
#else
inline i64 nanoseconds() { return cpu::nanoseconds(); }
#endif
inline unsigned lane_id() { return threadIdx.x % 32; }
inline unsigned opaque(unsigned v) { return v; }
template <typename T> inline T opaque_value(T v) { return v; }
inline void prefetch_l2(const void *) {}
inline void commit_async() {}
template <int> inline void wait_async() {}

// As on a GPU, shared memory has 32-bit addresses that start at a small one, and an access must be aligned and in
// bounds.
typedef unsigned SharedAddress;
enum { SHARED_BEGIN = 1024 };
inline SharedAddress shared_address(const void *p) {
	return (unsigned)((const char *)p - (char *)cpu::shared()) + SHARED_BEGIN;
}
template <int BYTES> inline char *in_shared(SharedAddress at) {
	const u64 offset = (u64)at - SHARED_BEGIN;
	const bool right = at >= SHARED_BEGIN && offset + BYTES <= cpu::shared_bytes() && at % BYTES == 0;
	if (!right) cpu::trap("an access outside of shared memory, or not aligned");
	return (char *)cpu::shared() + (right ? offset : 0);
}
template <int BYTES> inline void copy_async(SharedAddress to, const void *from) {
	char *const there = in_shared<BYTES>(to);
	for (int i = 0; i < BYTES; i++) there[i] = ((const char *)from)[i];
}
template <typename T, int N> inline void load_shared(T (&v)[N], SharedAddress from) {
	const T *const there = (const T *)in_shared<(int)sizeof v>(from);
	for (int i = 0; i < N; i++) v[i] = there[i];
}
template <typename T, int N> inline void store_shared(SharedAddress to, const T (&v)[N]) {
	T *const there = (T *)in_shared<(int)sizeof v>(to);
	for (int i = 0; i < N; i++) there[i] = v[i];
}
template <typename T, int N> inline void store_vector(T *to, const T (&v)[N]) {
	for (int i = 0; i < N; i++) to[i] = v[i];
}
template <typename T, int N> inline void store_vector_if(bool here, T *to, const T (&v)[N]) {
	if (here) store_vector(to, v);
}
template <typename T> inline void load_shared_if(bool here, T &v, SharedAddress from) {
	if (here) v = *(const T *)in_shared<(int)sizeof v>(from);
}
template <typename T> inline void store_shared_if(bool here, T v, SharedAddress to) {
	if (here) *(T *)in_shared<(int)sizeof v>(to) = v;
}

// Threads of a block do not run at the same time.
struct Barrier {
	unsigned short arrivals, missing;
	unsigned phase;
};
inline Barrier &barrier_at(SharedAddress at) { return *(Barrier *)in_shared<(int)sizeof(Barrier)>(at); }
inline void mbarrier_init(SharedAddress barrier, int arrivals) {
	barrier_at(barrier) = {(unsigned short)arrivals, (unsigned short)arrivals, 0};
}
inline void mbarrier_arrive(SharedAddress barrier) {
	Barrier &b = barrier_at(barrier);
	if (--b.missing == 0) b.missing = b.arrivals, b.phase++;
}
inline void mbarrier_wait(SharedAddress barrier, int parity) {
	while ((int)(barrier_at(barrier).phase & 1) == parity) cpu::yield();
	__syncwarp();
}

inline int warp_max(int v) {
	for (int d = 16; d > 0; d /= 2) v = max(v, __shfl_xor_sync(~0u, v, d));
	return v;
}
inline void trap() { cpu::trap("a trap"); }
inline void *dynamic_shared() { return cpu::shared(); }
