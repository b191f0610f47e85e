// The norms of a field and of its change: their parts, and their reduction over a thread block.
#pragma once

#include "folding.cuh"

template <typename T> __device__ __forceinline__ T larger(T a, T b) { return b > a ? b : a; }

// high_word is monotonic in the magnitude.
__device__ __forceinline__ unsigned high_word(double v) { return (unsigned)__double2hiint(v); }

// The norms of one thread at a few points, at most as many as RunningSum supports terms. A NaN always propagates to the
// sums, but not to the maxima. Comparisons and a magnitude in the type of the field cost much less than fmax.
template <typename T> struct FieldNorms {
	double max_change = 0;
	T max_value = 0;
	RunningSum change, value; // of squares

#ifdef FAST_SUMS

	// point adds a point that changed from c to u.
	__device__ __forceinline__ void point(T u, T c) {
		const double now = u, by = now - (double)c;
		max_change = larger(max_change, fabs(by));
		change.add_square(by);
		max_value = larger(max_value, (T)fabs(u));
		value.add_square(now);
	}
	template <int N> __device__ __forceinline__ void points(const T (&u)[N], const T (&c)[N]) {
#pragma unroll
		for (int i = 0; i < N; i++) point(u[i], c[i]);
	}
	template <int N> __device__ __forceinline__ void seldom(const T (&u)[N], const T (&c)[N]) { points(u, c); }
	template <int N> __device__ __forceinline__ void many(const T (&u)[N], const T (&c)[N]) { points(u, c); }

#else

	// points adds points that changed from c to u.
	template <int N> __device__ __forceinline__ void points(const T (&u)[N], const T (&c)[N]) {
		double square[N];
#pragma unroll
		for (int i = 0; i < N; i++) {
			const double d = (double)u[i] - (double)c[i];
			max_change = larger(max_change, fabs(d));
			square[i] = d * d;
		}
		change.template add<false>(square);
#pragma unroll
		for (int i = 0; i < N; i++) {
			max_value = larger(max_value, (T)fabs(u[i]));
			square[i] = (double)u[i] * (double)u[i];
		}
		value.template add<false>(square);
	}
	__device__ __forceinline__ void point(T u, T c) {
		const T now[1] = {u}, before[1] = {c};
		points(now, before);
	}

	// seldom is points with less code: one sum at a time.
	template <int N> __device__ __forceinline__ void seldom(const T (&u)[N], const T (&c)[N]) {
#pragma unroll
		for (int i = 0; i < N; i++) {
			max_change = larger(max_change, fabs((double)u[i] - (double)c[i]));
			max_value = larger(max_value, (T)fabs(u[i]));
		}
#pragma unroll 1
		for (int turn = 0; turn < 2; turn++) {
			double square[N];
#pragma unroll
			for (int i = 0; i < N; i++) {
				const double d = (double)u[i] - (turn == 0 ? (double)c[i] : 0);
				square[i] = d * d;
			}
			RunningSum sum = change;
			sum.template add<false>(square);
			change = value, value = sum;
		}
	}

	// many is points for a thread with many points: it updates the maxima and the window of the sums only if a square
	// shows that they may change.
	template <int N> __device__ __forceinline__ void many(const T (&u)[N], const T (&c)[N]) {
		double by2[N], now2[N];
		unsigned by = 0, now = 0; // high words of the largest squares
#pragma unroll
		for (int i = 0; i < N; i++) {
			const double d = (double)u[i] - (double)c[i];
			by2[i] = d * d, by = max(by, high_word(by2[i]));
			now2[i] = (double)u[i] * (double)u[i], now = max(now, high_word(now2[i]));
		}
		bool rare = (by >= high_word(max_change * max_change)) | (by >= change.limit) | (now >= value.limit);
		if (sizeof(T) > 4) rare |= now >= high_word((double)max_value * (double)max_value);
		if (rare) {
			T here[N], before[N]; // squares are recomputed: keeping them would cost other terms a copy
#pragma unroll
			for (int i = 0; i < N; i++) here[i] = opaque_value(u[i]), before[i] = opaque_value(c[i]);
			return seldom(here, before);
		}
		change.template add_within<false>(by2), value.template add_within<false>(now2);
		if (sizeof(T) > 4) return;
#pragma unroll
		for (int i = 0; i < N; i++) max_value = (T)fmaxf((float)max_value, fabsf((float)u[i]));
	}

#endif
};

// The norms of many points.
struct BinnedNorms {
	double max_change = 0, max_value = 0;
	BinnedSum change, value;

	// take moves the points of another FieldNorms here.
	template <typename T> __device__ __forceinline__ void take(FieldNorms<T> &f) {
		max_change = larger(max_change, f.max_change);
		max_value = larger(max_value, (double)f.max_value);
		::take(change, f.change);
		::take(value, f.value);
		f.max_change = 0, f.max_value = 0;
	}
};

// The norms in memory. The Go counterpart is rows.Norms.
struct NormSum {
	double max_change;
	StoredSum sum_change2;
	double max;
	StoredSum sum2;

	__device__ static NormSum none() { return {0, StoredSum::none(), 0, StoredSum::none()}; }
	__device__ static NormSum of(const BinnedNorms &f) {
		return {f.max_change, StoredSum::of(f.change), f.max_value, StoredSum::of(f.value)};
	}

	__device__ void join(const NormSum &o) {
		max_change = larger(max_change, o.max_change);
		sum_change2.join(o.sum_change2);
		max = larger(max, o.max);
		sum2.join(o.sum2);
	}
};

// reduce_block writes the norms over all threads of a block. All threads call it; they must form whole warps.
__device__ __forceinline__ void reduce_block(const BinnedNorms &f, NormSum *there) {
	const SumAndLargest mine[2] = {{f.change, bits_of(f.max_change)}, {f.value, bits_of(f.max_value)}};
	const SumAndLargestTo to[2] = {{&there->sum_change2, &there->max_change}, {&there->sum2, &there->max}};
	reduce_block(mine, to);
}
