// Time steps of a field that stays on the multiprocessors. Each thread block keeps a tile
// of the field in shared memory for all the steps of a launch. After each step it sends
// the points at its faces to the tiles beside it, on this GPU or another, as packets that
// hold a value and the number of the step: who waits for a packet looks at it until the
// step is there, so that no fence and no flag stand between a store and its use.
//
// There are two packets for each ghost point, for even and for odd steps. That is enough:
// a tile sends step n+2 after it has got step n+1 from the tile beside it, which sent that
// after it had read step n. Nor does a tile change the fields before those beside it have read
// them at the beginning of a launch: it has got their first packets by then. Steps count modulo
// 2^32 in packets, which nobody misses as long as no packet is so old.
//
// The stencil is a star that reaches one point (see tapsSource in taps.go). Build options:
// REAL, and PART where shared memory does not hold all layers of a tile.
//
// The axes of tiles are x, y and depth, the slowest of the field: in two dimensions y is
// the depth, and tiles are one point high. Threads form layers as wide and high as a tile;
// each has a column of points along the depth.
//
// Of a tile that is too large for shared memory only the first layers are held there. The
// rest is swept from one field to the other, which the second-level cache keeps.

// batch is how many points of a column are computed between two barriers: as many as the
// compiler has registers for.
__device__ constexpr int batch(bool norms) { return (norms ? 8 : __CUDA_ARCH__ < 1000 ? 32 : 16) / sizeof(REAL); }

// sweep makes a step of the layers that are held, in place: the points of a batch are stored
// when all threads have read what they need of them. What a column needs of the next layer's,
// which may be ahead of it, is read before the first batch is stored.
template <bool NORMS> __device__ __forceinline__ void sweep(const Worker &w, unsigned step, Found &norms) {
	enum { BATCH = batch(NORMS) };
	const Tile &t = w.t;
	const int pitch = w.pitch(), plane = w.plane(), length = (t.held + blockDim.z - 1) / blockDim.z;
	const bool mine = threadIdx.x < t.n[X] && threadIdx.y < t.n[Y];
	const int begin = threadIdx.z * length, here = mine ? min(length, t.held - begin) : 0;
	REAL *p = w.cells + w.cell(threadIdx.x, threadIdx.y, begin);
	REAL below, c, end;
	if (here > 0) {
		below = p[-plane], c = p[0], end = p[here * plane];
		if (REST && t.held < t.n[DEPTH]) end = value(w, step - 1, threadIdx.x, threadIdx.y, t.held);
	}
#pragma unroll 1
	for (int z = 0; z < length; z += BATCH, p += BATCH * plane) {
		REAL out[BATCH];
#pragma unroll
		for (int d = 0; d < BATCH; d++) {
			if (z + d >= here) break;
			const REAL above = z + d + 1 < here ? p[(d + 1) * plane] : end;
			out[d] = apply([&](int dx, int dy, int dz) {
				const int along = DIMS == 3 ? dz : dy;
				if (along != 0) return along < 0 ? below : above;
				return dx == 0 && (DIMS == 2 || dy == 0) ? c : p[d * plane + dx + (DIMS == 3 ? dy * pitch : 0)];
			});
			if (NORMS) norms.point(out[d], c);
			below = c;
			c = above;
		}
		__syncthreads();
#pragma unroll
		for (int d = 0; d < BATCH; d++)
			if (z + d < here) p[d * plane] = out[d];
	}
}

// sweep_rest makes a step of the layers that are not held, by one layer of threads, before
// those that are held change.
template <bool NORMS> __device__ __forceinline__ void sweep_rest(const Worker &w, unsigned step, Found &norms) {
	const Tile &t = w.t;
	const int x = threadIdx.x, y = threadIdx.y;
	if (!REST || t.held == t.n[DEPTH] || x >= t.n[X] || y >= t.n[Y]) return;
	const i64 pitch = w.s.strides.pitch, layer = DIMS == 3 ? w.s.strides.plane : pitch;
	const REAL *p = w.field(w.s.field[(step - 1) % 2], w.s.strides, x, y, t.held);
	REAL *q = w.field(w.s.field[step % 2], w.s.strides, x, y, t.held);
	REAL below = w.cells[w.cell(x, y, t.held - 1)], c = *p;
#pragma unroll 1
	for (int z = t.held; z < t.n[DEPTH]; z++, p += layer, q += layer) {
		const REAL above = z + 1 < t.n[DEPTH] ? p[layer] : w.cells[w.ghost<DEPTH>(HIGH, x, y, z)];
		const REAL left = x > 0 ? p[-1] : w.cells[w.ghost<X>(LOW, x, y, z)];
		const REAL right = x + 1 < t.n[X] ? p[1] : w.cells[w.ghost<X>(HIGH, x, y, z)];
		REAL front = 0, back = 0;
		if (DIMS == 3) {
			front = y > 0 ? p[-pitch] : w.cells[w.ghost<Y>(LOW, x, y, z)];
			back = y + 1 < t.n[Y] ? p[pitch] : w.cells[w.ghost<Y>(HIGH, x, y, z)];
		}
		const REAL out = apply([&](int dx, int dy, int dz) {
			const int along = DIMS == 3 ? dz : dy;
			if (along != 0) return along < 0 ? below : above;
			if (dx != 0) return dx < 0 ? left : right;
			return DIMS == 2 || dy == 0 ? c : dy < 0 ? front : back;
		});
		*q = out;
		if (NORMS) norms.point(out, c);
		below = c;
		c = above;
	}
}

// advance makes a step of a tile.
template <bool NORMS> __device__ __forceinline__ void advance(const Worker &w, unsigned step, Found &norms) {
	sweep_rest<NORMS>(w, step, norms);
	sweep<NORMS>(w, step, norms);
	__syncthreads();
}

// each_side calls visit(axis, high) for the sides of a tile, the threads sharing them.
template <typename Visit> __device__ __forceinline__ void each_side(const Worker &w, Visit visit) {
#pragma unroll 1
	for (int side = w.thread; side < 2 * AXES; side += w.threads) visit(side / 2, side % 2);
}

// ready waits until the neighbours that store into this tile's ghosts have made all
// launches before this one, by one thread for each side of a tile.
__device__ bool ready(const Worker &w) {
	bool all = true;
	each_side(w, [&](int axis, int high) {
		const i64 from = w.s.side[axis][high].from;
		if (from < 0 || !w.outer(axis, high)) return;
		const Neighbour &other = w.s.neighbour[from];
		if (await(other.my_count, w.s.launch * other.expected, w.s.limit)) return;
		complain(w.s.failed, 1 + from);
		all = false;
	});
	return all;
}

// tell counts the launch of this block for the neighbours whose ghosts it stored.
__device__ void tell(const Worker &w) {
	each_side(w, [&](int axis, int high) {
		const i64 to = w.s.side[axis][high].to;
		if (to >= 0 && w.outer(axis, high)) raise(w.s.neighbour[to].its_count);
	});
}

// total puts the sum of all threads' norms there, by halves, after a barrier behind which
// nobody needs the cells. Other than over_block it takes blocks of any size.
__device__ void total(const Worker &w, const Found &norms, Four *there) {
	Four *all = (Four *)w.cells;
	all[w.thread] = norms.four();
#pragma unroll 1
	for (int n = w.threads; n > 1; n = (n + 1) / 2) {
		__syncthreads();
		if (w.thread < n / 2) all[w.thread].add(all[w.thread + (n + 1) / 2]);
	}
	if (w.thread == 0) *there = all[0];
}

// make makes the steps of a launch, with the norms of the last.
template <bool NORMS> __device__ __forceinline__ void make(const Tiles &s) {
	extern __shared__ double2 memory[];
	__shared__ Tile t;
	const int thread = threadIdx.x + (threadIdx.y + threadIdx.z * blockDim.y) * blockDim.x;
	Worker w = {s, t, (REAL *)memory, 0, thread, (int)(blockDim.x * blockDim.y * blockDim.z)};
	if (thread == 0) place_tile(s, t);
	__syncthreads();
	w.errands = (Errand *)(w.cells + ((w.cells_held() * sizeof(REAL) + 15) & ~15) / sizeof(REAL));
	each_side(w, [&](int axis, int high) { t.door[2 * axis + high] = w.door(axis, high); });
	if (!__syncthreads_and(ready(w))) return;
	fill(w, s.field[(s.first - 1) % 2]);
	int errands = 0;
#pragma unroll
	for (int f = 0; f < 2 * AXES && w.listed(); f++) errands = w.lay_out(f / 2, f % 2, errands);
	if (thread == 0) t.errands = errands;
	__syncthreads();
	First first = {};
	if (thread < errands) {
		const Errand e = w.errands[thread];
		const Door &d = t.door[e.side];
		first = First{d.out + e.place, d.in + e.place, d.odd, e.cell, e.cell + d.ghost};
	}
	Found norms;
	unsigned step = (unsigned)s.first; // modulo 2^32, as packets have it
#pragma unroll 1
	for (unsigned left = (unsigned)s.count; left > (NORMS ? 1 : 0); left--, step++) {
		disturb(3 * step);
		advance<false>(w, step, norms);
		disturb(3 * step + 1);
		if (left > 1) send(w, first, step);
		if (left <= 2) keep(w, step);
		disturb(3 * step + 2);
		if (left > 1 && !__syncthreads_and(receive(w, first, step))) return;
	}
	if (NORMS) {
		norms = Found{0, 0, 0, 0};
		advance<true>(w, step, norms);
		keep(w, step++);
	}
	hand_over(w, step - 1);
	__syncthreads();
	tell(w);
	if (NORMS) total(w, norms, s.norms[(step - 1) % 2] + blockIdx.x);
}

// hold makes the steps of a launch. All its blocks run at once. hold_norms does so too, and
// takes the norms of the last step.
extern "C" __global__ void __launch_bounds__(1024, 1) hold(const __grid_constant__ Tiles s) {
	after_predecessor();
	make<false>(s);
}

extern "C" __global__ void __launch_bounds__(1024, 1) hold_norms(const __grid_constant__ Tiles s) {
	after_predecessor();
	make<true>(s);
}
