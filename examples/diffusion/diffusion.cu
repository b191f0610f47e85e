// Fourth-order horizontal diffusion with a flux limiter, as used in weather models, on levels of a periodic plane: the
// stencil case study of Kuster 2017, originally of Gysi, Bär and Hoefler 2016, in the form of COSMO. A step has three
// stages: the Laplacian, the limited fluxes along x and y, and their divergence. The Go counterparts are in main.go.
#include "ranks.cuh"

__device__ __forceinline__ double laplacian(double here, double west, double east, double south, double north) {
	return 4 * here - (west + east + south + north);
}

// limited is the flux from a point to the next one: 0 if it is directed up the gradient.
__device__ __forceinline__ double limited(double ahead, double here, double value_ahead, double value) {
	const double flux = ahead - here;
	return flux * (value_ahead - value) > 0 ? 0 : flux;
}

__device__ __forceinline__ double diffused(double value, double x, double before_x, double y, double before_y) {
	return value - 0.025 * (x - before_x + y - before_y);
}

enum Field { U0, U1, LAP, FLX, FLY, FIELDS };
enum { LAPLACE, FLUXES, DIFFUSE, STAGES }; // also the tags of notifications

// The data of a device: rows y of nx points, on nz levels. Go: part.
struct Part {
	double *values;    // of all fields: rows -1 to ny of each level; the first and the last are those of neighbors
	i64 nx, ny, nz;    // points of the device
	i64 steps, done;   // steps of this run and of earlier runs
	i64 chunks, slabs; // ranks divide the levels into chunks, and the rows into slabs

	__device__ i64 offset(int field, i64 z, i64 y) const { return ((field * nz + z) * (ny + 2) + y + 1) * nx; }
	__device__ double *row(int field, i64 z, i64 y) const { return values + offset(field, z, y); }
};

// The levels and rows of a rank, half-open.
struct Slab {
	i64 level[2], row[2];
};

// each calls body(z, x) for the columns of a slab, with those of a level adjacent, so that accesses coalesce. A body
// loops along y.
template <typename Body> __device__ __forceinline__ void each(const Part &p, const Slab &s, Body body) {
	for (i64 z = s.level[0]; z < s.level[1]; z++)
		for (i64 x = threadIdx.x; x < p.nx; x += blockDim.x) body(z, x);
}

__device__ inline void laplace_slab(const Part &p, const Slab &s, int now) {
	each(p, s, [&](i64 z, i64 x) {
		const i64 west = x == 0 ? p.nx - 1 : x - 1, east = x == p.nx - 1 ? 0 : x + 1;
		const double *u = p.row(now, z, s.row[0]);
		double *lap = p.row(LAP, z, s.row[0]), south = u[x - p.nx], here = u[x];
#pragma unroll 4
		for (i64 y = s.row[0]; y < s.row[1]; y++, u += p.nx, lap += p.nx) {
			const double north = u[x + p.nx];
			lap[x] = laplacian(here, u[west], u[east], south, north);
			south = here, here = north;
		}
	});
}

__device__ inline void fluxes_slab(const Part &p, const Slab &s, int now) {
	each(p, s, [&](i64 z, i64 x) {
		const i64 east = x == p.nx - 1 ? 0 : x + 1;
		const double *u = p.row(now, z, s.row[0]), *lap = p.row(LAP, z, s.row[0]);
		double *flx = p.row(FLX, z, s.row[0]), *fly = p.row(FLY, z, s.row[0]), value = u[x], here = lap[x];
#pragma unroll 4
		for (i64 y = s.row[0]; y < s.row[1]; y++, u += p.nx, lap += p.nx, flx += p.nx, fly += p.nx) {
			const double value_north = u[x + p.nx], north = lap[x + p.nx];
			flx[x] = limited(lap[east], here, u[east], value);
			fly[x] = limited(north, here, value_north, value);
			value = value_north, here = north;
		}
	});
}

__device__ inline void diffuse_slab(const Part &p, const Slab &s, int now) {
	each(p, s, [&](i64 z, i64 x) {
		const i64 west = x == 0 ? p.nx - 1 : x - 1;
		const double *u = p.row(now, z, s.row[0]), *flx = p.row(FLX, z, s.row[0]), *fly = p.row(FLY, z, s.row[0]);
		double *next = p.row(U0 + U1 - now, z, s.row[0]), south = fly[x - p.nx];
#pragma unroll 4
		for (i64 y = s.row[0]; y < s.row[1]; y++, u += p.nx, flx += p.nx, fly += p.nx, next += p.nx) {
			const double here = fly[x];
			next[x] = diffused(u[x], flx[x], flx[west], here, south);
			south = here;
		}
	});
}

// A neighbor of a rank. If it is on another device, or across the periodic edge, it has a copy of the rank's adjacent
// row.
struct Neighbor {
	int rank;
	bool far;
	i64 own, there; // rows: the rank's row, and its copy
};

// tell sends a neighbor the row of a field that it needs, or only notifies it if it is on the same device.
__device__ inline void tell(ranks::Rank &r, ranks::Window w, const Part &p, const Slab &s, const Neighbor &to,
                            int field, int tag) {
	if (!to.far) return r.notify(to.rank, ranks::WORLD, tag);
	const i64 plane = (p.ny + 2) * p.nx * 8;
	r.put_box(w, to.rank, p.offset(field, s.level[0], to.there) * 8, {0, plane},
	          {p.nx * 8, 1, s.level[1] - s.level[0]}, p.row(field, s.level[0], to.own), {0, plane});
	r.notify(to.rank, ranks::WORLD, tag);
}

// By ranks: each has some rows of some levels. Ranks that share a border on one device see each other's rows, so they
// only send notifications. Neighbors have read the data that a rank overwrites: their notification of a later stage
// implies it.
extern "C" __global__ void __launch_bounds__(THREADS, 1) diffusion(const __grid_constant__ ranks::World world) {
	__shared__ ranks::State state;
	__shared__ Part p; // each wait invalidates the L1 cache
	__shared__ Neighbor beside[2]; // below and above; in shared memory to save registers
	__shared__ Slab slab;
	ranks::Rank rank(world, state);
	if (threadIdx.x == 0) p = rank.data<Part>();
	__syncthreads();
	const ranks::Window w = rank.create_window(ranks::WORLD, p.values, p.offset(FIELDS, 0, -1) * 8);
	const int n = rank.size(ranks::DEVICE), local = rank.index(ranks::DEVICE), all = rank.size();
	const bool active = local < p.chunks * p.slabs; // the other ranks have no work
	if (active && threadIdx.x == 0) {
		const int slabs = (int)p.slabs, at = local % slabs, first = rank.index() - at, device = rank.index() - local;
		const i64 chunk = local / slabs;
		slab = {{p.nz * chunk / p.chunks, p.nz * (chunk + 1) / p.chunks}, {p.ny * at / slabs, p.ny * (at + 1) / slabs}};
		const int before = (device + all - n) % all, after = (device + n) % all; // the first ranks of devices
		beside[0] = {at > 0 ? first + at - 1 : before + first - device + slabs - 1, at == 0, slab.row[0], p.ny};
		beside[1] = {at < slabs - 1 ? first + at + 1 : after + first - device, at == slabs - 1, slab.row[1] - 1, -1};
	}
	rank.start_timer();
	for (i64 step = 0; active && step < p.steps; step++) {
		const int now = (int)((p.done + step) % 2);
		bool ok = true;
#pragma unroll 1
		for (int stage = 0; stage < STAGES && ok; stage++) {
			if (stage == LAPLACE) laplace_slab(p, slab, now);
			if (stage == FLUXES) fluxes_slab(p, slab, now);
			if (stage == DIFFUSE) diffuse_slab(p, slab, now);
			const int field = stage == LAPLACE ? LAP : stage == FLUXES ? FLY : U0 + U1 - now;
			// A Laplacian is needed by the rows below, a flux by the rows above, values by both.
			const int to = stage == FLUXES ? 1 : 0, end = stage == LAPLACE ? 1 : 2;
#pragma unroll 1
			for (int side = to; side < end; side++) tell(rank, w, p, slab, beside[side], field, stage);
			ok = rank.wait_notifications(stage, (u64)(end - to));
		}
		if (!ok) break;
		rank.flush(w);
	}
	rank.stop_timer();
	rank.free_window(w);
	rank.finish();
}
