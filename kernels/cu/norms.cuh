// The norms of a field and of its change: the numbers that they are made of, and their reduction over a
// thread block.
#pragma once

#include "folding.cuh"

template <typename T> __device__ __forceinline__ T larger(T a, T b) { return b > a ? b : a; }

// The norms that one thread finds at few points, as many as RunningSum has terms. A NaN does not always show in
// the maxima; it does in the sums. Comparisons, and a magnitude in the type of the field, cost much less than
// fmax does.
template <typename T> struct FieldNorms {
	double max_change = 0;
	T max_value = 0;
	RunningSum change, value; // of squares

	// points adds points that changed from c to u.
	template <int N> __device__ __forceinline__ void points(const T (&u)[N], const T (&c)[N]) {
		changes(u, c);
		values(u);
	}
	__device__ __forceinline__ void point(T u, T c) {
		const T now[1] = {u}, before[1] = {c};
		points(now, before);
	}

	// changes and values each add to one half of the norms.
	__device__ __forceinline__ void changed(T u, T c) {
		const T now[1] = {u}, before[1] = {c};
		changes(now, before);
	}
	__device__ __forceinline__ void is(T u) {
		const T now[1] = {u};
		values(now);
	}
	template <int N> __device__ __forceinline__ void changes(const T (&u)[N], const T (&c)[N]) {
		double by[N];
#pragma unroll
		for (int i = 0; i < N; i++) {
			by[i] = (double)u[i] - (double)c[i];
			max_change = larger(max_change, fabs(by[i]));
		}
		add_squares(change, by);
	}
	template <int N> __device__ __forceinline__ void values(const T (&u)[N]) {
		double by[N];
#pragma unroll
		for (int i = 0; i < N; i++) {
			max_value = larger(max_value, (T)fabs(u[i]));
			by[i] = (double)u[i];
		}
		add_squares(value, by);
	}

  private:
	template <int N> __device__ __forceinline__ static void add_squares(RunningSum &sum, double (&x)[N]) {
#ifdef FAST_SUMS
#pragma unroll
		for (int i = 0; i < N; i++) sum.add_square(x[i]);
#else
#pragma unroll
		for (int i = 0; i < N; i++) x[i] *= x[i];
		sum.template add<false>(x);
#endif
	}
};

// The norms over many points.
struct BinnedNorms {
	double max_change = 0, max_value = 0;
	BinnedSum change, value;

	// take moves the points of others here.
	template <typename T> __device__ __forceinline__ void take(FieldNorms<T> &f) {
		max_change = larger(max_change, f.max_change);
		max_value = larger(max_value, (double)f.max_value);
		::take(change, f.change);
		::take(value, f.value);
		f.max_change = 0, f.max_value = 0;
	}
};

// The norms in memory: rows.Norms of Go.
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

// reduce_block writes the norms over all threads of a block. All of them call it; they are whole warps.
__device__ __forceinline__ void reduce_block(const BinnedNorms &f, NormSum *there) {
	const SumAndLargest mine[2] = {{f.change, bits_of(f.max_change)}, {f.value, bits_of(f.max_value)}};
	const SumAndLargestTo to[2] = {{&there->sum_change2, &there->max_change}, {&there->sum2, &there->max}};
	reduce_block(mine, to);
}
