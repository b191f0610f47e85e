// Moves boxes of a field to and from buffers without gaps, and copies layers
// within a field.
//
// Build options: REAL, here any type of the size of an element.

struct Pack {
	REAL *field;
	REAL *buffer;
	Strides strides;
	Region region;
};

// pack fills the buffer with the points of the region, x fastest.
extern "C" __global__ void __launch_bounds__(256) pack(const __grid_constant__ Pack p) {
	const i64 points = p.region.nx * p.region.ny * p.region.nz;
	for (i64 n = thread_index(); n < points; n += thread_count())
		p.buffer[n] = p.field[place(p.region, p.strides, n)];
}

// unpack puts the buffer back.
extern "C" __global__ void __launch_bounds__(256) unpack(const __grid_constant__ Pack p) {
	const i64 points = p.region.nx * p.region.ny * p.region.nz;
	for (i64 n = thread_index(); n < points; n += thread_count())
		p.field[place(p.region, p.strides, n)] = p.buffer[n];
}

struct Mirror {
	REAL *field;
	Strides strides;
	i64 count;
	Region region[6];
	i64 from[6]; // distance in elements from a ghost to the point it repeats
};

// mirror fills the ghosts of walls without flux: each repeats the point beside
// it. Region r is the work of the blocks with blockIdx.y = r.
extern "C" __global__ void __launch_bounds__(256) mirror(const __grid_constant__ Mirror m) {
	const Region r = m.region[blockIdx.y];
	const i64 points = r.nx * r.ny * r.nz;
	for (i64 n = thread_index(); n < points; n += thread_count()) {
		const i64 o = place(r, m.strides, n);
		m.field[o] = m.field[o + m.from[blockIdx.y]];
	}
}
