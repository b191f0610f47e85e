// Sums of float64 whose bits depend only on the terms: not on their order or on which thread adds them.
//
// Binary digits are split at fixed positions into bins of BIN_BITS: bin n holds multiples of 2^(40n - 1074). A sum has
// SUM_BINS bins, starting at its window. The window is the lowest one whose bins hold the largest term, which is below
// 2^(40(window + 3) - 1074); digits below these bins are cut off. So only the largest term determines where terms are
// cut, and the bins sum integers, which is exact. The Go package sums has the same sums and rounds them.
//
// Option: FAST_SUMS, for sums in the order of the terms, which cost less.
#pragma once

#include "device.cuh"

enum { SUM_BINS = 3, BIN_BITS = 40 };
// The window of a sum with non-finite terms, whose bins count NaNs, negative and positive infinities; and the window of
// a FAST_SUMS sum, a double in place of the lowest bin.
enum { NOT_FINITE = 60, PLAIN_SUM = -1 };

// The maximum number of terms of a RunningSum. The BinnedSums of a warp may have 2^23 in total.
enum { RUNNING_TERMS = 1 << 11 };

__device__ __forceinline__ i64 bits_of(double v) {
	return (i64)((u64)(unsigned)__double2hiint(v) << 32 | (unsigned)__double2loint(v));
}

// raise_bins moves the bins of a sum to a higher window.
template <typename T> __device__ __forceinline__ void raise_bins(T (&bin)[SUM_BINS], int by) {
	if (by <= 0) return;
	bin[0] = by == 1 ? bin[1] : by == 2 ? bin[2] : 0;
	bin[1] = by == 1 ? bin[2] : 0;
	bin[2] = 0;
}

#ifndef FAST_SUMS

// The sum of a few terms of one thread. Each bin is a double in which additions round to multiples of the bin; 3 2^51
// of them represent 0.
struct RunningSum {
	double bin[SUM_BINS];
	unsigned limit; // the high word of the smallest magnitude too large for the window; see window

	__device__ __forceinline__ RunningSum() { set_window(0); }

	// add adds terms, which must not be negative unless SIGNED.
	template <bool SIGNED, int N> __device__ __forceinline__ void add(double (&x)[N]) {
		unsigned largest = 0;
#pragma unroll
		for (int v = 0; v < N; v++) {
			const unsigned high = (unsigned)__double2hiint(x[v]);
			largest = max(largest, SIGNED ? high & 0x7fffffff : high);
		}
		if (largest >= limit) make_room(largest, x);
#pragma unroll
		for (int v = 0; v < N; v++) deposit<SIGNED>(x[v]);
	}

	// add_within adds terms whose high words are below the limit. In windows above LARGE only the smallest numbers are.
	template <bool SIGNED, int N> __device__ __forceinline__ void add_within(const double (&x)[N]) {
#pragma unroll
		for (int v = 0; v < N; v++) deposit<SIGNED>(x[v]);
	}

	// In windows above LARGE the limit is the window itself, and only the smallest numbers are below it. Terms in
	// window LARGE + 1 are scaled by 2^-80 and added two windows below, because the bins of that window are not
	// doubles.
	__device__ __forceinline__ int window() const {
		return (int)(limit < 1 << 20 ? limit : ((limit >> 20) - LIMIT) / BIN_BITS);
	}

	// whole returns the integer of a bin.
	__device__ __forceinline__ i64 whole(int n) const { return bits_of(bin[n]) - zero(window(), n); }

	// clear removes all terms.
	__device__ __forceinline__ void clear() { set_window(window()); }

  private:
	enum { LARGE = 49, LIMIT = 69 }; // the exponent of the limit of window 0

	// zero returns the bits of a bin that holds 0.
	__device__ __forceinline__ static i64 zero(int window, int n) {
		return (i64)((1 + BIN_BITS * ((window <= LARGE ? window : LARGE - 1) + n)) << 20 | 0x80000) << 32;
	}

	__device__ __forceinline__ void set_window(int window) {
		limit = window <= LARGE ? (unsigned)(LIMIT + BIN_BITS * window) << 20 : (unsigned)window;
#pragma unroll
		for (int n = 0; n < SUM_BINS; n++) bin[n] = __longlong_as_double(zero(window, n));
	}

	// make_room raises the window for a term with the given high word.
	template <int N> __device__ __forceinline__ void make_room(unsigned high, double (&x)[N]) {
		const int exponent = (int)(high >> 20 & 0x7ff), now = window();
		const int needed = exponent == 0x7ff ? NOT_FINITE : max(exponent - (LIMIT - BIN_BITS), 0) / BIN_BITS;
		if (needed > now) {
			i64 sum[SUM_BINS];
#pragma unroll
			for (int n = 0; n < SUM_BINS; n++) sum[n] = whole(n);
			raise_bins(sum, needed - now);
			set_window(needed);
#pragma unroll
			for (int n = 0; n < SUM_BINS; n++) bin[n] = __longlong_as_double(bits_of(bin[n]) + sum[n]);
		}
		if (window() <= LARGE) return;
#pragma unroll
		for (int v = 0; v < N; v++) x[v] = extreme(x[v]);
	}

	// extreme returns the value to add for a term if the window is above LARGE.
	__device__ __forceinline__ double extreme(double x) {
		if (window() != NOT_FINITE) return x * 0x1p-80;
		const bool counts = (__double2hiint(x) >> 20 & 0x7ff) == 0x7ff;
		const int which = x != x ? 0 : x < 0 ? 1 : 2;
#pragma unroll
		for (int n = 0; n < SUM_BINS; n++)
			bin[n] = __longlong_as_double(bits_of(bin[n]) + (counts && n == which ? 1 : 0));
		return 0;
	}

	// deposit adds the digits of a term to each bin, the highest first, and passes on the remainder.
	template <bool SIGNED> __device__ __forceinline__ void deposit(double x) {
#pragma unroll
		for (int n = SUM_BINS - 1; n >= 0; n--) {
			const double sum = SIGNED && x < 0 ? __dadd_ru(bin[n], x) : __dadd_rd(bin[n], x);
			if (n > 0) x -= sum - bin[n];
			bin[n] = sum;
		}
	}
};

// The sum of many terms.
struct BinnedSum {
	i64 bin[SUM_BINS];
	int window;

	__device__ __forceinline__ BinnedSum() : bin{0, 0, 0}, window(0) {}
	__device__ __forceinline__ explicit BinnedSum(const RunningSum &s) : window(s.window()) {
#pragma unroll
		for (int n = 0; n < SUM_BINS; n++) bin[n] = s.whole(n);
	}

	__device__ __forceinline__ void raise(int to) {
		raise_bins(bin, to - window);
		window = max(window, to);
	}

	__device__ __forceinline__ void join(BinnedSum other) {
		raise(other.window);
		other.raise(window);
#pragma unroll
		for (int n = 0; n < SUM_BINS; n++) bin[n] += other.bin[n];
	}

	// has_nan reports whether a term was NaN, for nonnegative terms.
	__device__ __forceinline__ bool has_nan() const { return window == NOT_FINITE && bin[0] != 0; }

	// about returns the sum of nonnegative terms within a few units in the last place, or infinity if they are not
	// finite.
	__device__ __forceinline__ double about() const {
		if (window == NOT_FINITE) return power_of_two(1024);
		const double digits = ((double)bin[2] * 0x1p40 + (double)bin[1]) * 0x1p40 + (double)bin[0];
		const int exponent = BIN_BITS * window - 1074;
		return digits * power_of_two(exponent / 2) * power_of_two(exponent - exponent / 2);
	}

  private:
	__device__ __forceinline__ static double power_of_two(int n) { return __longlong_as_double((i64)(n + 1023) << 52); }
};

#else

struct RunningSum {
	double value = 0;

	template <bool, int N> __device__ __forceinline__ void add(double (&x)[N]) {
#pragma unroll
		for (int v = 0; v < N; v++) value += x[v];
	}
	__device__ __forceinline__ void add_square(double x) { value = fma(x, x, value); }
	__device__ __forceinline__ void clear() { value = 0; }
};

struct BinnedSum {
	double value = 0;

	__device__ __forceinline__ BinnedSum() {}
	__device__ __forceinline__ explicit BinnedSum(const RunningSum &s) : value(s.value) {}
	__device__ __forceinline__ void join(const BinnedSum &other) { value += other.value; }
	__device__ __forceinline__ bool has_nan() const { return value != value; }
	__device__ __forceinline__ double about() const { return value; }
};

#endif

// take moves the terms of a RunningSum into a BinnedSum.
__device__ __forceinline__ void take(BinnedSum &all, RunningSum &some) {
	all.join(BinnedSum(some));
	some.clear();
}

// A sum in memory, of up to 2^39 terms. The Go counterpart is sums.Sum. The integer of a bin has 80 bits.
struct StoredSum {
	u64 low[SUM_BINS];
	short high[SUM_BINS], window;

#ifndef FAST_SUMS

	__device__ static StoredSum none() { return {{0, 0, 0}, {0, 0, 0}, 0}; }

	__device__ static StoredSum of(const BinnedSum &s) {
		StoredSum r = none();
#pragma unroll
		for (int n = 0; n < SUM_BINS; n++) r.add(n, s.bin[n], (int)(s.bin[n] >> 63));
		r.window = (short)s.window;
		return r;
	}

	__device__ void add(int n, u64 more, int more_high) {
		const u64 sum = low[n] + more;
		high[n] = (short)(high[n] + more_high + (sum < more));
		low[n] = sum;
	}

	// binned returns a sum with few enough terms for a BinnedSum.
	__device__ BinnedSum binned() const {
		BinnedSum s;
#pragma unroll
		for (int n = 0; n < SUM_BINS; n++) s.bin[n] = (i64)low[n];
		s.window = window;
		return s;
	}

	__device__ void raise(int to) {
		raise_bins(low, to - window), raise_bins(high, to - window);
		window = (short)max((int)window, to);
	}

	__device__ void join(StoredSum other) {
		raise(other.window);
		other.raise(window);
#pragma unroll
		for (int n = 0; n < SUM_BINS; n++) add(n, other.low[n], other.high[n]);
	}

#else

	__device__ static StoredSum of(const BinnedSum &s) { return {{(u64)bits_of(s.value), 0, 0}, {0, 0, 0}, PLAIN_SUM}; }
	__device__ static StoredSum none() { return of(BinnedSum()); }
	__device__ double value() const { return __longlong_as_double((i64)low[0]); }
	__device__ BinnedSum binned() const {
		BinnedSum s;
		s.value = value();
		return s;
	}
	__device__ void join(const StoredSum &other) { low[0] = (u64)bits_of(value() + other.value()); }

#endif
};
static_assert(sizeof(StoredSum) == 32, "sums.Sum of Go");

// reduce_block combines the sums of all threads of a block in steps, using shared memory with space for all of them.
// Thread 0 writes the result.
template <typename T> __device__ void reduce_block(const T &mine, T *all, int thread, int threads, T *there) {
	__syncthreads(); // a previous call has been read by all threads
	all[thread] = mine;
	for (int n = threads; n > 1; n = (n + 1) / 2) {
		__syncthreads();
		if (thread < n / 2) all[thread].join(all[thread + (n + 1) / 2]);
	}
	if (thread == 0) *there = all[0];
}
