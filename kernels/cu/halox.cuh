// For user kernels: fields with global indices, and loops over the points of boxes. The Go forms of the structs are in
// kernels/points.go.
#pragma once

typedef long long i64;

// The values of a field in one subdomain, with ghosts. A field of two dimensions has z = 0.
template <typename T> struct View {
	T *origin; // address of point 0, 0, 0, which may be outside
	i64 pitch, plane;

	__device__ T &operator()(i64 x, i64 y, i64 z = 0) const { return origin[x + y * pitch + z * plane]; }
};

// A half-open box of points.
struct Box {
	i64 lo[3], hi[3];
};

// The parameter of a kernel that works point by point: its argument and boxes; the blocks with blockIdx.y = b process
// box b.
template <typename Argument> struct Points {
	Argument arg;
	Box box[6];

	// each calls body(x, y, z) for every point, one point per thread, x fastest. Boxes of less than 2^31 points use
	// 32-bit divisions, because a 64-bit division costs about ten times as much.
	template <typename Body> __device__ __forceinline__ void each(Body body) const {
		const Box &b = box[blockIdx.y];
		if ((b.hi[0] - b.lo[0]) * (b.hi[1] - b.lo[1]) * (b.hi[2] - b.lo[2]) <= 0x7fffffff) walk<unsigned>(b, body);
		else walk<unsigned long long>(b, body);
	}

	template <typename Index, typename Body> static __device__ __forceinline__ void walk(const Box &b, Body body) {
		const Index nx = (Index)(b.hi[0] - b.lo[0]), ny = (Index)(b.hi[1] - b.lo[1]);
		const Index points = nx * ny * (Index)(b.hi[2] - b.lo[2]), step = gridDim.x * blockDim.x;
		for (Index n = (Index)blockIdx.x * blockDim.x + threadIdx.x; n < points; n += step) {
			const Index row = n / nx, z = row / ny;
			body(b.lo[0] + (i64)(n - row * nx), b.lo[1] + (i64)(row - z * ny), b.lo[2] + (i64)z);
		}
	}
};
