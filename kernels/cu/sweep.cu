// One application of a star stencil (stencil.Star) to boxes of a subdomain.
//
// The stencil, and the build options, are those of star.cuh.

struct Sweep {
	REAL *dst;
	const REAL *src;
	Strides strides;
	double centre, axis[3];
	i64 march;        // planes (rows, in 2-D) a thread marches through
	Region region[6];
};

// sweep_march sweeps region[0], a large box. Each thread keeps a column: it
// marches along the slowest axis and holds the points before and behind in
// registers, so that each is loaded once. Unrolling costs registers, and with
// them the threads that hide the latency of memory: 25% of the speed on an H200.
extern "C" __global__ void __launch_bounds__(256, 6) sweep_march(const __grid_constant__ Sweep s) {
	after_predecessor();
	const Weights w(s.centre, s.axis);
	const Region r = s.region[0];
	const REAL *__restrict__ src = s.src;
	REAL *__restrict__ dst = s.dst;
	const i64 pitch = s.strides.pitch;
	const i64 i = thread_index();
	if (i >= r.nx) return;
#if DIMS == 3
	const i64 plane = s.strides.plane;
	const i64 k0 = blockIdx.z * s.march, k1 = min(k0 + s.march, r.nz);
	for (i64 j = (i64)blockIdx.y * blockDim.y + threadIdx.y; j < r.ny; j += (i64)gridDim.y * blockDim.y) {
		const i64 o = r.first + i + j * pitch + k0 * plane;
		const REAL *p = src + o;
		REAL *q = dst + o;
		REAL below = p[-plane], c = p[0];
#pragma unroll 1
		for (i64 k = k0; k < k1; k++) {
			REAL above = p[plane];
			*q = w.apply(c, p[-1], p[1], p[-pitch], p[pitch], below, above);
			below = c;
			c = above;
			p += plane;
			q += plane;
		}
	}
#else
	const i64 j0 = blockIdx.z * s.march, j1 = min(j0 + s.march, r.ny);
	const i64 o = r.first + i + j0 * pitch;
	const REAL *p = src + o;
	REAL *q = dst + o;
	REAL south = p[-pitch], c = p[0];
#pragma unroll 1
	for (i64 j = j0; j < j1; j++) {
		REAL north = p[pitch];
		*q = w.apply(c, p[-1], p[1], south, north, 0, 0);
		south = c;
		c = north;
		p += pitch;
		q += pitch;
	}
#endif
}

// sweep_flat sweeps several small or thin boxes in one launch, a point a
// thread: box b is the work of the blocks with blockIdx.y = b.
extern "C" __global__ void __launch_bounds__(256, 6) sweep_flat(const __grid_constant__ Sweep s) {
	after_predecessor();
	const Weights w(s.centre, s.axis);
	const Region r = s.region[blockIdx.y];
	const REAL *__restrict__ src = s.src;
	REAL *__restrict__ dst = s.dst;
	const i64 pitch = s.strides.pitch, plane = s.strides.plane;
	const i64 points = r.nx * r.ny * r.nz;
	for (i64 n = thread_index(); n < points; n += thread_count()) {
		const i64 o = place(r, s.strides, n);
		const REAL *p = src + o;
#if DIMS == 3
		REAL zm = p[-plane], zp = p[plane];
#else
		REAL zm = 0, zp = 0;
#endif
		dst[o] = w.apply(p[0], p[-1], p[1], p[-pitch], p[pitch], zm, zp);
	}
}
