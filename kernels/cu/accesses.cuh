// The accesses of a point function and the function, as source.go of kernels/sweep writes them.
#include "names.cuh"

// clang-format off
enum { STAGE_SINGLE = false, STAGE_LAYERS = 1, STAGE_MEASURED_LAYERS = 1, STAGE_PREFETCH = 1, PHASES = 3 };
#define TARGETS 6
#define DIMS 3
#define TOTALS 15
enum { GROUP = 2, ARRAYS = 3, CLASSES = 1 };
#define SWEEP_BYTES 616
#define FRAME_BYTES 80
#define FEW_ARRAYS
#define READS(X) X(0) X(1)
#define WRITES(X) X(0)
#define NORMS(X) X(0)
#define REDUCTIONS(X) X(0) X(1)

enum { ROWS_PER_THREAD = 1, L2_PREFETCH = 0 };
enum { LARGE_THREADS = 256, LARGE_BLOCKS = ARCH == 900 ? 4 : 3 };
enum { MEASURED_THREADS = 256, MEASURED_BLOCKS = ARCH == 900 ? 2 : 1 };
enum { SINGLE_THREADS = 256, SINGLE_BLOCKS = ARCH == 900 ? 4 : 3 };
enum { SINGLE_MEASURED_THREADS = 256, SINGLE_MEASURED_BLOCKS = ARCH == 900 ? 2 : 1 };
#define STREAMS

struct Parameters {
	double C2;
};
static_assert(sizeof(Parameters) == 8, "as in Go");

template <int K> struct Read;
template <int K> struct Written;
template <int K> struct Norm;
template <int K> struct Reduced;

NEVER_LINKED(offset_beside_the_footprint_of_u)
template <> struct Read<0> {
	typedef double T;
	enum { ARRAY = 0, CLASS = 0, LEFT = 1, RIGHT = 1, ROW_LOW = -1, ROW_HIGH = 1, LOW = -1, HIGH = 1 };
	static constexpr bool READ_ONLY = ALL_READ_ONLY, SPARSE = false, FLAT = false;
	__device__ static constexpr int high(int row, int part) {
		constexpr int layers[][3] = {{-99, 0, -99}, {0, 1, 0}, {-99, 0, -99}};
		return layers[row][part];
	}
	__device__ static constexpr int low(int row, int part) {
		constexpr int layers[][3] = {{99, 0, 99}, {0, -1, 0}, {99, 0, 99}};
		return layers[row][part];
	}
	__device__ static constexpr bool reads(int dx, int dy, int dz) {
		return (dx == 0 && dy == 0 && dz == -1) ||
		       (dx == 0 && dy == -1 && dz == 0) ||
		       (dx == -1 && dy == 0 && dz == 0) ||
		       (dx == 0 && dy == 0 && dz == 0) ||
		       (dx == 1 && dy == 0 && dz == 0) ||
		       (dx == 0 && dy == 1 && dz == 0) ||
		       (dx == 0 && dy == 0 && dz == 1);
	}
	__device__ static void outside() { offset_beside_the_footprint_of_u(); }
};
NEVER_LINKED(offset_beside_the_footprint_of_old)
template <> struct Read<1> {
	typedef double T;
	enum { ARRAY = 1, CLASS = 0, LEFT = 0, RIGHT = 0, ROW_LOW = 0, ROW_HIGH = 0, LOW = 0, HIGH = 0 };
	static constexpr bool READ_ONLY = ALL_READ_ONLY, SPARSE = false, FLAT = false;
	__device__ static constexpr int high(int row, int part) {
		constexpr int layers[][3] = {{-99, 0, -99}};
		return layers[row][part];
	}
	__device__ static constexpr int low(int row, int part) {
		constexpr int layers[][3] = {{99, 0, 99}};
		return layers[row][part];
	}
	__device__ static constexpr bool reads(int dx, int dy, int dz) {
		return 0 <= dx && dx < 1 && 0 <= dy && dy < 1 && 0 <= dz && dz < 1;
	}
	__device__ static void outside() { offset_beside_the_footprint_of_old(); }
};
template <> struct Written<0> {
	typedef double T;
	enum { ARRAY = 2, CLASS = 0, BEFORE = 0, NORM = 0, IN_PLACE = false };
};
template <> struct Norm<0> { typedef double T; };
template <> struct Reduced<0> { static constexpr Operation OP = SUM; };
template <> struct Reduced<1> { static constexpr Operation OP = MAX; };
#define OPERATIONS MAX, SUM, MAX, SUM, SUM, MAX
#define SLOT_PLACES 0, 1, 5, 6, 10, 14

namespace point_function {
constexpr Access<0, -1, 1> u{};
constexpr Access<1, -1, 1> old{};
constexpr Access<-1, 0, 1> next{};
constexpr Reduction<0> motion{};
constexpr Reduction<1> highest{};
#line 1 "wave.cu"
template <typename P> __device__ __forceinline__ void wave(P &p) {
	const double sum = p.at(u, 1, 0, 0) + p.at(u, -1, 0, 0) + p.at(u, 0, 1, 0) + p.at(u, 0, -1, 0)
		+ p.at(u, 0, 0, 1) + p.at(u, 0, 0, -1);
	const double v = 2 * p.at(u) - p.at(old) + p.parameters.C2 * (sum - 6 * p.at(u));
	p.set(next, v);
	p.reduce(motion, (v - p.at(old)) * (v - p.at(old)));
	p.reduce(highest, v);
}
#line 1 "accesses.cuh"
template <typename P> __device__ __forceinline__ void call(P &p) { wave(p); }
}
