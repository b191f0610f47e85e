// Particles that repel each other in a box, divided into segments along its height: the particle case study of Kuster
// 2017, originally of Gysi, Bär and Hoefler 2016. The height of a segment is the cutoff, 1, and its particles are
// ordered by id. A step has two parts. Advance sums the forces on each particle of a segment, moves it, and lists those
// that move to the segment below or above. Merge makes the new list of a segment from the remaining and the arriving
// particles.
//
// A device rank is a block of THREADS threads. The Go counterpart is in main.go.
#include "ranks.cuh"

enum { BELOW, STAY, ABOVE };          // where a particle moves to
enum { NOTHING, TOO_MANY, TOO_FAST }; // why a run fails
enum { TAG_MIGRANTS, TAG_STATE };     // of notifications
enum { HEADER = 32, PARTICLE = 40 };  // bytes of a list before its particles, and of a particle

// The first error on a device.
struct Failure {
	u64 what;
	i64 segment, count;
};

struct Particle {
	double x, y, vx, vy;
	i64 id;
};

// The data of a device: its segments, and one of a neighbor at each side. Go: part.
struct Part {
	char *slots; // starting with the segment below the first one
	Failure *failure;
	i64 segments; // number of segments of this device
	i64 first;    // index of the first among all segments
	i64 all;      // number of segments of all devices, and height of the box
	i64 capacity; // maximum number of particles in a segment
	i64 steps;    // per run
	double width, dt;
};

// A list of particles, stored as separate arrays.
struct State {
	char *at;
	i64 capacity;

	__device__ i64 &count() const { return *(i64 *)at; }
	__device__ double *numbers(int n) const { return (double *)(at + HEADER) + n * capacity; }
	__device__ double *x() const { return numbers(0); }
	__device__ double *y() const { return numbers(1); }
	__device__ double *vx() const { return numbers(2); }
	__device__ double *vy() const { return numbers(3); }
	__device__ i64 *id() const { return (i64 *)numbers(4); }
};

// A list of particles that leave, stored as an array of particles.
struct Migrants {
	char *at;

	__device__ i64 &count() const { return *(i64 *)at; }
	__device__ Particle *particles() const { return (Particle *)(at + HEADER); }
	__device__ i64 bytes() const { return HEADER + count() * PARTICLE; }
};

// A segment of a part, where -1 and segments are those of neighbors: four consecutive lists.
struct Segment {
	const Part &part;
	i64 index;

	__device__ i64 list() const { return HEADER + part.capacity * PARTICLE; }
	__device__ i64 offset(int n) const { return ((index + 1) * 4 + n) * list(); } // of a list, from the first slot
	__device__ State state() const { return {part.slots + offset(0), part.capacity}; }
	__device__ State stay() const { return {part.slots + offset(1), part.capacity}; }
	__device__ Migrants leave(int where) const { return {part.slots + offset(where == BELOW ? 2 : 3)}; }
	__device__ bool exists() const { return part.first + index >= 0 && part.first + index < part.all; }
};

// The shared memory of a block.
struct Scratch {
	double x[THREADS], y[THREADS];
	u64 counts[32];
};

__device__ inline void report(const Part &part, u64 what, i64 segment, i64 count) {
	if (atomicCAS(&part.failure->what, NOTHING, what) != NOTHING) return;
	part.failure->segment = part.first + segment, part.failure->count = count;
}

// repel adds the forces of a list on a particle at x, y: (1 - r)/r times the distance vector from each particle closer
// than 1. All threads of a block call it; those without a particle are not active.
__device__ inline void repel(const State &from, bool active, double x, double y, double &fx, double &fy, Scratch &s) {
	const i64 n = from.count();
	for (i64 base = 0; base < n; base += THREADS) {
		__syncthreads();
		const i64 mine = base + threadIdx.x;
		if (mine < n) s.x[threadIdx.x] = from.x()[mine], s.y[threadIdx.x] = from.y()[mine];
		__syncthreads();
		const int some = n - base < THREADS ? (int)(n - base) : THREADS;
		if (!active) continue;
#pragma unroll 4
		for (int k = 0; k < some; k++) {
			const double dx = x - s.x[k], dy = y - s.y[k], square = dx * dx + dy * dy;
			if (square < 1 && square > 0) {
				const double r = sqrt(square), c = (1 - r) / r;
				fx += c * dx, fy += c * dy;
			}
		}
	}
}

// Counts of particles that stay, move below and move above, in one number.
__device__ inline u64 one_of(int where) { return 1ull << 21 * where; }
__device__ inline i64 count_of(u64 all, int where) { return (i64)(all >> 21 * where & 0x1fffff); }

// counts_before returns the sum of v over preceding threads of the block, and over all threads.
__device__ inline u64 counts_before(u64 v, u64 &all, Scratch &s) {
	const int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x / 32;
	u64 sum = v;
	for (int by = 1; by < 32; by *= 2) {
		const u64 other = __shfl_up_sync(~0u, sum, by);
		if (lane >= by) sum += other;
	}
	__syncthreads(); // all have read the previous counts
	if (lane == 31) s.counts[warp] = sum;
	__syncthreads();
	u64 before = sum - v;
	all = 0;
	for (int w = 0; w < THREADS / 32; w++) {
		if (w < warp) before += s.counts[w];
		all += s.counts[w];
	}
	return before;
}

// reflect reflects at the walls at 0 and at wall.
__device__ inline void reflect(double &x, double &v, double wall) {
	if (x < 0) x = -x, v = -v;
	else if (x > wall) x = wall + wall - x, v = -v;
}

// advance moves the particles of a segment by a step of symplectic Euler, into its lists of remaining and leaving
// particles, each ordered by id. A particle that moves past the adjacent segment is reported.
__device__ inline void advance(const Part &part, i64 index, Scratch &scratch) {
	const Segment here = {part, index}, below = {part, index - 1}, above = {part, index + 1};
	const State from = here.state(), stay = here.stay();
	const bool has_below = below.exists(), has_above = above.exists();
	const double low = (double)(part.first + index), high = low + 1;
	const i64 n = from.count();
	u64 gone = 0; // number of particles in the lists so far
	for (i64 base = 0; base < n; base += THREADS) {
		const i64 i = base + threadIdx.x;
		const bool active = i < n;
		double x = 0, y = 0, fx = 0, fy = 0;
		if (active) x = from.x()[i], y = from.y()[i];
#pragma unroll 1
		for (i64 other = index - 1; other <= index + 1; other++) {
			const Segment near = {part, other};
			if (near.exists()) repel(near.state(), active, x, y, fx, fy, scratch);
		}
		int where = STAY;
		double vx = 0, vy = 0;
		if (active) {
			vx = from.vx()[i] + part.dt * fx, vy = from.vy()[i] + part.dt * fy;
			x += part.dt * vx, y += part.dt * vy;
			reflect(x, vx, part.width);
			reflect(y, vy, (double)part.all);
			if (y < low && has_below) where = BELOW;
			if (y >= high && has_above) where = ABOVE;
			if (!(y >= low - 1 && y < high + 1)) report(part, TOO_FAST, index, from.id()[i]);
		}
		u64 all;
		const u64 before = counts_before(active ? one_of(where) : 0, all, scratch);
		const i64 at = count_of(gone + before, where);
		if (active && where == STAY) {
			stay.x()[at] = x, stay.y()[at] = y, stay.vx()[at] = vx, stay.vy()[at] = vy, stay.id()[at] = from.id()[i];
		} else if (active) {
			here.leave(where).particles()[at] = {x, y, vx, vy, from.id()[i]};
		}
		gone += all;
	}
	if (threadIdx.x == 0) {
		stay.count() = count_of(gone, STAY);
		here.leave(BELOW).count() = count_of(gone, BELOW), here.leave(ABOVE).count() = count_of(gone, ABOVE);
	}
	__syncthreads();
}

// before returns how many of n ascending ids are less than the given one.
__device__ inline i64 before(const i64 *ids, i64 n, i64 stride, i64 id) {
	i64 low = 0;
	while (low < n) {
		const i64 middle = (low + n) / 2;
		if (ids[middle * stride] < id) low = middle + 1;
		else n = middle;
	}
	return low;
}

// The ids of lists of migrants, at a constant stride.
enum { STRIDE = PARTICLE / 8 };

__device__ inline void put_at(const State &to, i64 at, const Particle &p) {
	if (at >= to.capacity) return;
	to.x()[at] = p.x, to.y()[at] = p.y, to.vx()[at] = p.vx, to.vy()[at] = p.vy, to.id()[at] = p.id;
}

// merge makes the list of a segment from the remaining and the arriving particles. Particles beyond the capacity are
// reported and omitted.
__device__ inline void merge(const Part &part, i64 index) {
	const Segment here = {part, index}, below = {part, index - 1}, above = {part, index + 1};
	const State to = here.state(), stay = here.stay();
	const Migrants up = below.leave(ABOVE), down = above.leave(BELOW);
	const i64 n = stay.count(), n_up = below.exists() ? up.count() : 0, n_down = above.exists() ? down.count() : 0;
	const i64 *const ids = stay.id(), *const ids_up = &up.particles()->id, *const ids_down = &down.particles()->id;
	for (i64 i = threadIdx.x; i < n; i += THREADS) {
		const i64 id = ids[i], at = i + before(ids_up, n_up, STRIDE, id) + before(ids_down, n_down, STRIDE, id);
		put_at(to, at, {stay.x()[i], stay.y()[i], stay.vx()[i], stay.vy()[i], id});
	}
	for (i64 i = threadIdx.x; i < n_up; i += THREADS) {
		const Particle p = up.particles()[i];
		put_at(to, i + before(ids, n, 1, p.id) + before(ids_down, n_down, STRIDE, p.id), p);
	}
	for (i64 i = threadIdx.x; i < n_down; i += THREADS) {
		const Particle p = down.particles()[i];
		put_at(to, i + before(ids, n, 1, p.id) + before(ids_up, n_up, STRIDE, p.id), p);
	}
	if (threadIdx.x == 0) {
		const i64 all = n + n_up + n_down;
		to.count() = all < part.capacity ? all : part.capacity;
		if (all > part.capacity) report(part, TOO_MANY, index, all);
	}
	__syncthreads();
}

// A neighbor of a rank, which has the adjacent segment. If it is on another device, it has a copy of the rank's
// segment, to which lists are put.
struct Neighbor {
	int rank; // -1: none
	bool far;
	i64 own, there; // segments: the rank's, and its copy
};

// tell_migrants sends a neighbor the arriving particles, and tell_state the new positions of the segment's particles.
__device__ inline void tell_migrants(ranks::Rank &r, ranks::Window w, const Part &part, const Neighbor &to,
                                     int where) {
	if (to.rank < 0) return;
	if (!to.far) return r.notify(to.rank, ranks::WORLD, TAG_MIGRANTS);
	const Migrants list = Segment{part, to.own}.leave(where);
	const i64 there = Segment{part, to.there}.offset(where == BELOW ? 2 : 3);
	r.put_notify(w, to.rank, there, list.bytes(), list.at, TAG_MIGRANTS);
}

__device__ inline void tell_state(ranks::Rank &r, ranks::Window w, const Part &part, const Neighbor &to) {
	if (to.rank < 0) return;
	if (!to.far) return r.notify(to.rank, ranks::WORLD, TAG_STATE);
	const State list = Segment{part, to.own}.state();
	const i64 n = list.count(), there = Segment{part, to.there}.offset(0), y = HEADER + part.capacity * 8;
	r.put(w, to.rank, there, HEADER + n * 8, list.at);
	r.put_notify(w, to.rank, there + y, n * 8, list.at + y, TAG_STATE);
}

// By ranks: each has some segments, one after the other. Segments on the same device read each other's data directly,
// so they only send notifications.
extern "C" __global__ void __launch_bounds__(THREADS, 1) particles(const __grid_constant__ ranks::World world) {
	__shared__ ranks::State state;
	__shared__ Part part; // each wait invalidates the L1 cache
	__shared__ Scratch scratch;
	ranks::Rank rank(world, state);
	if (threadIdx.x == 0) part = rank.data<Part>();
	__syncthreads();
	const ranks::Window w =
	    rank.create_window(ranks::WORLD, part.slots, (part.segments + 2) * 4 * (HEADER + part.capacity * PARTICLE));
	// Ranks beyond the number of segments have no work.
	const int n = rank.size(ranks::DEVICE), local = rank.index(ranks::DEVICE), me = rank.index();
	const i64 active = n < part.segments ? n : part.segments;
	const i64 low = local < active ? part.segments * local / active : 0;
	const i64 high = local < active ? part.segments * (local + 1) / active : 0;
	const bool has_below = local < active && part.first + low > 0, first = low == 0;
	const bool has_above = local < active && part.first + high < part.all, last = high == part.segments;
	const int rank_below = first ? me - local - n + (int)active - 1 : me - 1,
	          rank_above = last ? me - local + n : me + 1;
	// In shared memory to save registers.
	__shared__ Neighbor beside[2];
	__shared__ i64 begin, end;
	__shared__ int neighbors;
	if (threadIdx.x == 0) {
		beside[0] = {has_below ? rank_below : -1, first, low, part.segments};
		beside[1] = {has_above ? rank_above : -1, last, high - 1, -1};
		begin = low, end = high, neighbors = has_below + has_above;
	}
	__syncthreads();
	rank.start_timer();
	// A single loop over half steps contains the waits only once, which takes fewer registers than a loop over steps.
	for (i64 half = 0; half < 2 * part.steps; half++) {
		const bool advances = half % 2 == 0; // otherwise, it merges
		if (half > 0 && neighbors > 0 &&
		    !rank.wait_notifications(advances ? TAG_STATE : TAG_MIGRANTS, neighbors))
			break;
		for (i64 s = begin; s < end; s++) {
			if (advances) advance(part, s, scratch);
			else merge(part, s);
		}
#pragma unroll 1
		for (int side = 0; side < 2; side++) {
			if (advances) tell_migrants(rank, w, part, beside[side], side == 0 ? BELOW : ABOVE);
			else tell_state(rank, w, part, beside[side]);
		}
		if (!advances) rank.flush(w);
	}
	rank.stop_timer();
	rank.free_window(w);
	rank.finish();
}
