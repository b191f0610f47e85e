// The part of an array that a thread holds for a point function: a window of points around a group of N points that are
// adjacent along x.
//
// A layer is the points with one index on the slowest axis: a plane in three dimensions, a row in two. A read access,
// as accesses.cuh describes it, is a struct with
//
//	T                     the type of the elements
//	READ_ONLY             nothing writes the array while the kernel runs
//	SPARSE                values are loaded where the point function asks for them
//	FLAT                  layers are rows: there are two dimensions
//	UNIFORM               the points of a row share one value
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

// The parts of a row: the points read left of a group, the group, and the points read right of it.
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

// read_word reads a word, through the read-only cache if the word does not change during the kernel.
template <bool READ_ONLY, typename W> __device__ __forceinline__ W read_word(const W *from) {
	if constexpr (READ_ONLY) return __ldg(from);
	else return *from;
}

// word_points returns the number of points per word: all COUNT if they are aligned to their size, up to 16 bytes.
template <typename T, int COUNT, bool ALIGNED> __device__ constexpr int word_points() {
	if (!ALIGNED || (COUNT & (COUNT - 1)) != 0) return 1;
	return COUNT * (int)sizeof(T) > 16 ? 16 / (int)sizeof(T) : COUNT;
}

// read_points reads COUNT adjacent points.
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

// The window of a read access around groups of N points in LAYERS layers, all held at once. Groups of more than one
// point are aligned.
template <typename R, int N, int LAYERS, bool SPARSE = R::SPARSE> struct Window {
	typedef typename R::T T;
	enum { ALIGNED = N > 1, WIDTH = R::UNIFORM ? 1 : R::LEFT + N + R::RIGHT };

	T held[R::HIGH - R::LOW + LAYERS][R::ROW_HIGH - R::ROW_LOW + 1][WIDTH];

	// load reads one part of a row of a layer, counted from the first layer held; group is the address of the group of
	// that row.
	__device__ __forceinline__ void load(int layer, int row, int part, const T *group) {
		T *to = held[layer][row];
		if constexpr (R::UNIFORM) {
			if (part == GROUP_PART) read_points<1, false, R::READ_ONLY>(to, group);
			return;
		}
		if constexpr (R::LEFT > 0)
			if (part == LEFT_PART) read_points<R::LEFT, ALIGNED && R::LEFT <= N, R::READ_ONLY>(to, group - R::LEFT);
		if (part == GROUP_PART) read_points<N, ALIGNED, R::READ_ONLY>(to + R::LEFT, group);
		if constexpr (R::RIGHT > 0)
			if (part == RIGHT_PART)
				read_points<R::RIGHT, ALIGNED && R::RIGHT <= N, R::READ_ONLY>(to + R::LEFT + N, group + N);
	}

	// fill reads the layers for a first layer, except for the last one that it needs; group is the group in that layer.
	__device__ __forceinline__ void fill(const T *group, i64 pitch, i64 layer) {
#pragma unroll
		for (int m = R::LOW; m < R::HIGH; m++) EACH_PART(R)
		if (m >= R::low(row, part) && m < R::high(row, part))
			load(m - R::LOW, row, part, group + m * layer + (row + R::ROW_LOW) * pitch);
	}

	// next reads the layers that the d-th layer needs and earlier ones did not; group is the group in the first layer.
	__device__ __forceinline__ void next(int d, const T *group, i64 pitch, i64 layer) {
#pragma unroll
		for (int m = R::HIGH; m >= R::LOW; m--) EACH_PART(R)
		if (m == R::high(row, part) && m >= R::low(row, part))
			load(d + m - R::LOW, row, part, group + (d + m) * layer + (row + R::ROW_LOW) * pitch);
	}

	// all reads all data that the first `layers` layers need.
	__device__ __forceinline__ void all(int layers, const T *group, i64 pitch, i64 layer) {
#pragma unroll
		for (int l = R::LOW; l < R::HIGH + LAYERS; l++)
			if (l < layers + R::HIGH) EACH_PART(R)
		if (l >= R::low(row, part) && l < LAYERS + R::high(row, part))
			load(l - R::LOW, row, part, group + l * layer + (row + R::ROW_LOW) * pitch);
	}

	// step advances by LAYERS layers.
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
		return held[layer + m - R::LOW][row - R::ROW_LOW][R::UNIFORM ? 0 : R::LEFT + v + dx];
	}
};

// The window of a sparse access holds only the address of the group in the first layer.
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
		read_points<1, false, R::READ_ONLY>(&value, first + m * this->layer + row * pitch + (R::UNIFORM ? 0 : v + dx));
		return value;
	}
};
