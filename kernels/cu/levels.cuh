// The fields that a pass of a point function steps, as points_source.go of kernels/temporal writes them.
#pragma once

// clang-format off
enum { DEPTH = 2, WIDE = 32, HIGH = 16, TURN = 1, ROWS = 2, THREADS = 512, BLOCKS = 1 };
enum { LOW_X = 1, HIGH_X = 1, LOW_Y = 1, HIGH_Y = 1, LOW_L = 1, HIGH_L = 1, RING = 4 };
enum { FIELD_COUNT = 1, PASS_BYTES = 200 };
#define FIELDS(X) X(0)
template <int F> struct Field;
template <int R> struct Held { enum { FIELD = -1 }; };
template <> struct Field<0> {
	typedef double T;
	enum { FROM = 0, TO = 0, BEGIN = 0, LOW = 1 | 1 << 4 | 1 << 8, HIGH = 1 | 1 << 4 | 1 << 8 };
};
template <> struct Held<0> { enum { FIELD = 0 }; };
