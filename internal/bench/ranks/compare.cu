// Steps of two problems, by device ranks in one kernel, and by one kernel per phase of a step, ordered by streams or
// graphs. Diffusion has messages of constant length, particles messages whose length only the device knows. Rows of
// numbers are consecutive on a device, and the devices form a ring. The Go counterpart is in compare.go.
#include "ranks.cuh"

// The levels and rows of a block, half-open.
struct Share {
	i64 level[2], row[2];
};

// The part of a device: fields of rows 0 to rows-1, each with levels of nx numbers, and the ghost rows -1 and rows,
// which are copies of neighbors' rows.
struct Part {
	double *values;
	i64 nx, levels, rows;
	i64 chunks, slabs; // blocks divide the levels into chunks, and the rows into slabs
	i64 steps;         // per run by device ranks, an even number

	__device__ i64 offset(int field, i64 y) const { return (field * (rows + 2) + y + 1) * levels * nx; }
	__device__ double *row(int field, i64 y) const { return values + offset(field, y); }
	__device__ Share share(i64 block) const {
		const i64 c = block / slabs, s = block % slabs;
		return {{levels * c / chunks, levels * (c + 1) / chunks}, {rows * s / slabs, rows * (s + 1) / slabs}};
	}
};

// Horizontal diffusion with a flux limiter, as in examples/diffusion: the Laplacian, the limited fluxes and their
// divergence.
struct Diffusion {
	enum { LAP = 2, FLX, FLY, FIELDS, PHASES = 3 };

	// The field that a phase computes from field now, and whether neighbors below (side 0) and above need it.
	static __device__ int made(int phase, int now) { return phase == 0 ? LAP : phase == 1 ? FLY : 1 - now; }
	static __device__ bool sends(int phase, int side) { return phase != 1 - side; }
	// The number of values of a row to send, starting at the first level of a share.
	static __device__ i64 length(const Part &p, const Share &s, const double *) {
		return (s.level[1] - s.level[0]) * p.nx;
	}

	static __device__ double limited(double ahead, double here, double value_ahead, double value) {
		const double flux = ahead - here;
		return flux * (value_ahead - value) > 0 ? 0 : flux;
	}

	static __device__ void compute(const Part &p, const Share &s, int phase, int now) {
		const i64 pitch = p.levels * p.nx, points = (s.level[1] - s.level[0]) * p.nx;
		for (i64 y = s.row[0]; y < s.row[1]; y++)
			for (i64 k = threadIdx.x; k < points; k += blockDim.x) {
				const i64 i = s.level[0] * p.nx + k, x = k % p.nx;
				const i64 west = x == 0 ? i + p.nx - 1 : i - 1, east = x == p.nx - 1 ? i + 1 - p.nx : i + 1;
				const double *const u = p.row(now, y);
				double *const lap = p.row(LAP, y), *const flx = p.row(FLX, y), *const fly = p.row(FLY, y);
				if (phase == 0) {
					lap[i] = 4 * u[i] - (u[west] + u[east] + u[i - pitch] + u[i + pitch]);
				} else if (phase == 1) {
					flx[i] = limited(lap[east], lap[i], u[east], u[i]);
					fly[i] = limited(lap[i + pitch], lap[i], u[i + pitch], u[i]);
				} else {
					p.row(1 - now, y)[i] = u[i] - 0.025 * (flx[i] - flx[west] + fly[i] - fly[i - pitch]);
				}
			}
	}
};

// Particles that repel each other. A row has the number of particles and their positions in the row, from 0 to 1.
// Particles appear and disappear between steps, so that the lists change their lengths.
struct Particles {
	enum { FIELDS = 2, PHASES = 1 };

	static __device__ int made(int, int now) { return 1 - now; }
	static __device__ bool sends(int, int) { return true; }
	static __device__ i64 length(const Part &, const Share &, const double *row) { return 1 + (i64)row[0]; }

	static __device__ void compute(const Part &p, const Share &s, int, int now) {
		for (i64 y = s.row[0]; y < s.row[1]; y++) {
			const double *const here = p.row(now, y);
			double *const to = p.row(1 - now, y);
			const i64 n = (i64)here[0], capacity = p.nx - 1, least = capacity / 2;
			const i64 next = least + (n * 7 + 3) % (capacity - least + 1);
			for (i64 i = threadIdx.x; i < next; i += blockDim.x) {
				double at = (i + 0.5) / capacity, force = 0;
				if (i < n) at = here[1 + i];
				for (i64 other = -1; other <= 1; other++) {
					const double *const row = p.row(now, y + other);
					for (i64 k = 1; k <= (i64)row[0]; k++) {
						const double d = at - (row[k] + other), square = d * d;
						if (square < 1 && square > 0) {
							const double r = sqrt(square);
							force += (1 - r) / r * d;
						}
					}
				}
				at += 1e-6 * force;
				to[1 + i] = at < 0 ? 0 : at > 1 ? 1 : at;
			}
			if (threadIdx.x == 0) to[0] = next;
		}
		__syncthreads(); // length reads the count
	}
};

// By device ranks: each has a share, and puts its rows at the edge of the device into the neighboring rank on another
// device. Ranks of one device see each other's rows, and are only notified. Tags of successive steps differ, since a
// neighbor may be a step ahead.
template <typename Problem> __device__ __forceinline__ void by_ranks(const ranks::World &world) {
	__shared__ ranks::State state;
	__shared__ Part p; // each wait invalidates the L1 cache
	__shared__ Share s;
	ranks::Rank rank(world, state);
	if (threadIdx.x == 0) p = rank.data<Part>(), s = p.share(rank.index(ranks::DEVICE));
	__syncthreads();
	const ranks::Window w = rank.create_window(ranks::WORLD, p.values, p.offset(Problem::FIELDS, -1) * 8);
	const int n = rank.size(ranks::DEVICE), local = rank.index(ranks::DEVICE), all = rank.size(), me = rank.index();
	const int slabs = (int)p.slabs, at = local % slabs;
	const bool far[2] = {at == 0, at == slabs - 1};
	const int neighbors[2] = {far[0] ? (me - n + all) % all + slabs - 1 : me - 1,
	                       far[1] ? (me - at + n) % all : me + 1};
	bool ok = local < p.chunks * slabs; // the other ranks have no work
	rank.start_timer();
	for (i64 t = 0; t < p.steps && ok; t++) {
		const int now = (int)(t % 2);
#pragma unroll 1
		for (int phase = 0; phase < Problem::PHASES && ok; phase++) {
			Problem::compute(p, s, phase, now);
			const int field = Problem::made(phase, now), tag = 2 * phase + now;
			u64 told = 0;
#pragma unroll 1
			for (int side = 0; side < 2; side++) {
				if (!Problem::sends(phase, side)) continue;
				told++;
				if (!far[side]) {
					rank.notify(neighbors[side], ranks::WORLD, tag);
					continue;
				}
				const i64 first = s.level[0] * p.nx, there = p.offset(field, side == 0 ? p.rows : -1) + first;
				const double *const own = p.row(field, side == 0 ? s.row[0] : s.row[1] - 1);
				rank.put_notify(w, neighbors[side], there * 8, Problem::length(p, s, own) * 8, own + first, tag);
			}
			ok = rank.wait_notifications(tag, told);
		}
		rank.flush(w);
	}
	rank.stop_timer();
	rank.free_window(w);
	rank.finish();
}

// Argument of the kernel of a phase.
struct Phase {
	Part part;
	i64 phase, now;
};

template <typename Problem> __device__ __forceinline__ void by_phases(const Phase &a) {
	Problem::compute(a.part, a.part.share(blockIdx.x), (int)a.phase, (int)a.now);
}

extern "C" __global__ void diffusion_ranks(const __grid_constant__ ranks::World world) { by_ranks<Diffusion>(world); }
extern "C" __global__ void particles_ranks(const __grid_constant__ ranks::World world) { by_ranks<Particles>(world); }
extern "C" __global__ void diffusion_phase(const __grid_constant__ Phase phase) { by_phases<Diffusion>(phase); }
extern "C" __global__ void particles_phase(const __grid_constant__ Phase phase) { by_phases<Particles>(phase); }
