// What all kernels share: fields as they lie in memory, and boxes in them.
//
typedef long long i64;

// A box of points of a field: the place of its first point and its size.
// Rows are `pitch` and planes `plane` elements apart, as domain.Layout says.
struct Region {
	i64 first;
	i64 nx, ny, nz;
};

struct Strides {
	i64 pitch, plane;
};

// place gives the element of the n-th point of a region, x fastest. Divisions
// of 64 bits cost some ten times those of 32, so small regions avoid them.
__device__ inline i64 place(const Region &r, const Strides &s, i64 n) {
	if (r.nx * r.ny * r.nz <= 0x7fffffff) {
		unsigned m = (unsigned)n, nx = (unsigned)r.nx, ny = (unsigned)r.ny;
		unsigned row = m / nx;
		return r.first + (m - row * nx) + (row % ny) * s.pitch + (row / ny) * s.plane;
	}
	i64 row = n / r.nx;
	return r.first + (n - row * r.nx) + (row % r.ny) * s.pitch + (row / r.ny) * s.plane;
}

__device__ inline i64 thread_index() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline i64 thread_count() { return (i64)gridDim.x * blockDim.x; }

// A box to copy, in words of 1, 2, 4, 8 or 16 bytes: nx of them in a row. Rows
// and planes are so many bytes apart on either side. With twin 1, each row has a
// second one that lies so many bytes after it.
struct Segment {
	char *dst;
	const char *src;
	i64 dst_pitch, dst_plane, dst_twin;
	i64 src_pitch, src_plane, src_twin;
	i64 nx, ny, nz;
	i64 twin; // 0 or 1
	i64 word; // its bytes; for add, a Scalar
};

// Where the n-th word of a segment comes from and goes to: x fastest, then the
// twins. Divisions of 64 bits cost some ten times those of 32, so segments of less
// than 2^31 words, which all but the largest are, use those.
template <typename Index>
struct Spot {
	Index x;
	i64 from, to; // bytes; x words come on top

	__device__ Spot(const Segment &s, Index n) {
		const Index nx = (Index)s.nx, ny = (Index)s.ny, mask = (Index)s.twin;
		Index row = n / nx;
		x = n - row * nx;
		const bool second = row & mask;
		row >>= mask;
		const Index z = row / ny, y = row - z * ny;
		from = (i64)y * s.src_pitch + (i64)z * s.src_plane + (second ? s.src_twin : 0);
		to = (i64)y * s.dst_pitch + (i64)z * s.dst_plane + (second ? s.dst_twin : 0);
	}
};

__device__ inline i64 words_of(const Segment &s) { return (s.nx * s.ny * s.nz) << s.twin; }

// A word of 16 bytes.
struct alignas(16) Sixteen {
	unsigned long long low, high;
};
