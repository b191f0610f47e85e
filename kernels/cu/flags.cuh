// Flags by which GPUs, and the thread blocks of one, wait for each other. A flag is a
// count that only grows. It lies with who waits for it, is raised over the link, released
// after the stores that it stands for, and acquired by who waits.

__device__ inline void release(unsigned long long *flag, unsigned long long value) {
	asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
}

// raise adds one to a count, after all that the block has stored.
__device__ inline void raise(unsigned long long *count) {
	asm volatile("red.release.sys.global.add.u64 [%0], 1;" ::"l"(count) : "memory");
}

__device__ inline unsigned long long acquire(const unsigned long long *flag) {
	unsigned long long value;
	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
	return value;
}

__device__ inline i64 nanoseconds() {
	i64 t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

// await waits until the flag has reached a count, and returns false if it has not
// within so many nanoseconds.
__device__ inline bool await(const unsigned long long *flag, unsigned long long count, i64 limit) {
	const i64 start = nanoseconds();
	while (acquire(flag) < count)
		if (nanoseconds() - start > limit) return false;
	return true;
}
