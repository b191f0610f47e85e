// What a thread holds of one array that a point function reads: a window of points around
// a group of N points that lie beside each other along x.
//
// A layer is what lies in one place of the slowest axis: a plane in three dimensions, a row
// in two. A read access, as accesses.cuh describes it, is a struct with
//
//	T                     the type of the elements
//	READ_ONLY             nothing writes the array while the kernel runs
//	SPARSE                values are loaded where the point function asks for them
//	FLAT                  layers are rows: there are two dimensions
//	ARRAY, CLASS          its place among the arrays, and among the strides
//	LEFT, RIGHT           points left and right of a group
//	ROW_LOW, ROW_HIGH     rows within a layer, from that of the point; 0 in two dimensions
//	LOW, HIGH             layers, from that of the point
//	low(row, part), high(row, part)
//	                      which layers are read of a part of a row, the first row being
//	                      ROW_LOW; low > high: none
//	reads(dx, dy, dz)     whether the footprint holds the offset
//	outside()             is declared and never defined: reads of other offsets do not link
#pragma once

#include "names.cuh"

// The parts of a row: what is read left of a group, the group, and what is read right of it.
enum { LEFT_PART, GROUP_PART, RIGHT_PART };

template <typename T, int N> struct alignas(N * sizeof(T)) Group {
	T v[N];
};

// Words of 1 to 16 bytes.
template <int BYTES> struct Word;
template <> struct Word<1> {
	typedef unsigned char Type;
};
template <> struct Word<2> {
	typedef unsigned short Type;
};
template <> struct Word<4> {
	typedef unsigned Type;
};
template <> struct Word<8> {
	typedef uint2 Type;
};
template <> struct Word<16> {
	typedef uint4 Type;
};

// read_word reads a word, by the read-only path where that may serve: it need not see what
// others write meanwhile.
template <bool READ_ONLY, typename W> __device__ __forceinline__ W read_word(const W *from) {
	if constexpr (READ_ONLY) return __ldg(from);
	else return *from;
}

// word_points returns how many points a word holds: all COUNT where they are aligned to their
// size, up to 16 bytes.
template <typename T, int COUNT, bool ALIGNED> __device__ constexpr int word_points() {
	if (!ALIGNED || (COUNT & (COUNT - 1)) != 0) return 1;
	return COUNT * (int)sizeof(T) > 16 ? 16 / (int)sizeof(T) : COUNT;
}

// read_points reads COUNT points that lie beside each other.
template <int COUNT, bool ALIGNED, bool READ_ONLY, typename T>
__device__ __forceinline__ void read_points(T *to, const T *from) {
	constexpr int EACH = word_points<T, COUNT, ALIGNED>();
	typedef typename Word<EACH * sizeof(T)>::Type W;
#pragma unroll
	for (int first = 0; first < COUNT; first += EACH) {
		union {
			W word;
			T v[EACH];
		} u = {read_word<READ_ONLY>((const W *)(from + first))};
#pragma unroll
		for (int i = 0; i < EACH; i++) to[first + i] = u.v[i];
	}
}

#define EACH_PART(R) \
	_Pragma("unroll") for (int row = 0; row <= R::ROW_HIGH - R::ROW_LOW; row++) \
	    _Pragma("unroll") for (int part = LEFT_PART; part <= RIGHT_PART; part++)

// The window of a read access around groups of N points in LAYERS layers, all of which are
// held at once. Groups of more than one point are aligned.
template <typename R, int N, int LAYERS, bool SPARSE = R::SPARSE> struct Window {
	typedef typename R::T T;
	enum { ALIGNED = N > 1, WIDTH = R::LEFT + N + R::RIGHT };

	T held[R::HIGH - R::LOW + LAYERS][R::ROW_HIGH - R::ROW_LOW + 1][WIDTH];

	// load reads one part of a row of a layer, counted from the first that is held; group is
	// where the group of that row begins.
	__device__ __forceinline__ void load(int layer, int row, int part, const T *group) {
		T *to = held[layer][row];
		if constexpr (R::LEFT > 0)
			if (part == LEFT_PART) read_points<R::LEFT, ALIGNED && R::LEFT <= N, R::READ_ONLY>(to, group - R::LEFT);
		if (part == GROUP_PART) read_points<N, ALIGNED, R::READ_ONLY>(to + R::LEFT, group);
		if constexpr (R::RIGHT > 0)
			if (part == RIGHT_PART)
				read_points<R::RIGHT, ALIGNED && R::RIGHT <= N, R::READ_ONLY>(to + R::LEFT + N, group + N);
	}

	// fill reads what a first layer needs of those before the last that it needs; group is the
	// group in that layer.
	__device__ __forceinline__ void fill(const T *group, i64 pitch, i64 layer) {
#pragma unroll
		for (int m = R::LOW; m < R::HIGH; m++) EACH_PART(R)
		if (m >= R::low(row, part) && m < R::high(row, part))
			load(m - R::LOW, row, part, group + m * layer + (row + R::ROW_LOW) * pitch);
	}

	// next reads what the d-th layer needs and those before it did not; group is the group in
	// the first layer.
	__device__ __forceinline__ void next(int d, const T *group, i64 pitch, i64 layer) {
#pragma unroll
		for (int m = R::HIGH; m >= R::LOW; m--) EACH_PART(R)
		if (m == R::high(row, part) && m >= R::low(row, part))
			load(d + m - R::LOW, row, part, group + (d + m) * layer + (row + R::ROW_LOW) * pitch);
	}

	// all reads what the first `layers` layers need.
	__device__ __forceinline__ void all(int layers, const T *group, i64 pitch, i64 layer) {
#pragma unroll
		for (int l = R::LOW; l < R::HIGH + LAYERS; l++)
			if (l < layers + R::HIGH) EACH_PART(R)
		if (l >= R::low(row, part) && l < LAYERS + R::high(row, part))
			load(l - R::LOW, row, part, group + l * layer + (row + R::ROW_LOW) * pitch);
	}

	// step goes on by LAYERS layers.
	__device__ __forceinline__ void step() {
#pragma unroll
		for (int m = R::LOW; m < R::HIGH; m++) EACH_PART(R) if (m >= R::low(row, part) && m < R::high(row, part)) {
				const int from = part == LEFT_PART ? 0 : part == GROUP_PART ? R::LEFT : R::LEFT + N;
				const int to = part == LEFT_PART ? R::LEFT : part == GROUP_PART ? R::LEFT + N : WIDTH;
#pragma unroll
				for (int i = 0; i < WIDTH; i++)
					if (i >= from && i < to) held[m - R::LOW][row][i] = held[m - R::LOW + LAYERS][row][i];
			}
	}

	// at is the value at an offset from point v of the group in a layer.
	__device__ __forceinline__ T at(int layer, int v, int dx, int dy, int dz) const {
		if (!R::reads(dx, dy, dz)) R::outside();
		const int m = R::FLAT ? dy : dz, row = R::FLAT ? 0 : dy;
		return held[layer + m - R::LOW][row - R::ROW_LOW][R::LEFT + v + dx];
	}
};

// The window of a sparse access holds nothing but where the group lies in the first layer.
template <typename R, int N, int LAYERS> struct Window<R, N, LAYERS, true> {
	typedef typename R::T T;

	const T *first;
	i64 pitch, layer;

	__device__ __forceinline__ void fill(const T *group, i64 pitch, i64 layer) { all(1, group, pitch, layer); }
	__device__ __forceinline__ void next(int, const T *group, i64 pitch, i64 layer) { all(1, group, pitch, layer); }
	__device__ __forceinline__ void all(int, const T *group, i64 pitch, i64 layer) {
		first = group, this->pitch = pitch, this->layer = layer;
	}
	__device__ __forceinline__ void step() {}

	__device__ __forceinline__ T at(int layer, int v, int dx, int dy, int dz) const {
		if (!R::reads(dx, dy, dz)) R::outside();
		const i64 m = layer + (R::FLAT ? dy : dz), row = R::FLAT ? 0 : dy;
		T value;
		read_points<1, false, R::READ_ONLY>(&value, first + m * this->layer + row * pitch + v + dx);
		return value;
	}
};
