// Kernels of the tests of ranks on devices of several processes.
#include "ranks.cuh"

using namespace ranks;

// Data that a rank puts before a barrier to the rank a stride above is seen after it, by a get, by the rank a stride
// below: the barrier waits for stores at a third rank.
struct Third {
	char *memory; // of this device: one slot per rank
	i64 slot, rounds, stride;
	unsigned long long wrong; // 1 + the first round in which a rank saw wrong data
};

extern "C" __global__ void third(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Third &data = rank.data<Third>();
	const int n = rank.size(), me = rank.index(), next = (me + (int)data.stride) % n,
	          after = (next + (int)data.stride) % n;
	const i64 half = data.slot / 2, words = half / 8;
	char *const mine = data.memory + 2 * data.slot * rank.index(DEVICE);
	i64 *const source = (i64 *)(mine + data.slot), *const got = source + words;
	const Window w = rank.create_window(WORLD, mine, data.slot);
	for (i64 t = 0; t < data.rounds; t++) {
		const i64 offset = t % 2 * half;
		for (i64 i = threadIdx.x; i < words; i += blockDim.x) source[i] = 1000 * t + me + i;
		__syncthreads();
		rank.put(w, next, offset, half, source);
		rank.flush(w);
		if (!rank.barrier(WORLD)) break;
		rank.get(w, after, offset, half, got);
		rank.flush(w);
		if (rank.ended()) break;
		for (i64 i = threadIdx.x; i < words; i += blockDim.x)
			if (got[i] != 1000 * t + next + i) atomicCAS(&data.wrong, 0, (unsigned long long)t + 1);
		if (!rank.barrier(WORLD)) break;
	}
	rank.free_window(w);
	rank.finish();
}

// Two consecutive barriers. The first rank of a process sees between them the data that the last rank of another puts
// before the first, even if other ranks, whose proxy has less to do, are already at the second barrier.
struct Twice {
	char *memory; // of this device: a slot, and the source of the last rank
	i64 slot, rounds, to;
	unsigned long long wrong; // 1 + the first round in which the rank saw wrong data
};

extern "C" __global__ void twice(const __grid_constant__ World world) {
	__shared__ State state;
	Rank rank(world, state);
	Twice &data = rank.data<Twice>();
	const i64 words = data.slot / 8, rounds = data.rounds, to = data.to;
	const bool puts = rank.index() == rank.size() - 1, looks = rank.index() == to;
	i64 *const mine = (i64 *)data.memory, *const source = mine + words;
	const Window w = rank.create_window(WORLD, mine, data.slot);
	for (i64 t = 1; t <= rounds; t++) {
		if (puts) {
			for (i64 i = threadIdx.x; i < words; i += blockDim.x) source[i] = 1000 * t + i;
			__syncthreads();
			rank.put(w, (int)to, 0, data.slot, source);
			rank.flush(w);
		}
		if (!rank.barrier(WORLD)) break;
		if (looks)
			for (i64 i = words - 1 - threadIdx.x; i >= 0; i -= blockDim.x)
				if (mine[i] != 1000 * t + i) atomicCAS(&data.wrong, 0, (unsigned long long)t);
		if (!rank.barrier(WORLD) || !rank.barrier(WORLD)) break;
	}
	rank.free_window(w);
	rank.finish();
}

// Diffusion along a ring of cells, equally many per rank. In each step neighboring cells arrive with a notification, in
// one of two slots per side. In the end all ranks sum up their cells.
struct Diffusion {
	double *memory; // of this device, per rank: cells twice, and the neighboring cells
	i64 cells, steps;
	double sum;
};

extern "C" __global__ void diffuse(const __grid_constant__ World world) {
	__shared__ State state;
	__shared__ double sum;
	Rank rank(world, state);
	Diffusion &data = rank.data<Diffusion>();
	const int n = rank.size(), me = rank.index();
	const i64 m = data.cells, steps = data.steps, room = 2 * m + 4;
	double *const mine = data.memory + room * rank.index(DEVICE), *const beside = mine + 2 * m;
	double *u = mine, *v = mine + m;
	const Window w = rank.create_window(WORLD, mine, 8 * room);
	for (i64 t = 0; t < steps; t++) {
		const i64 place = 2 * (t % 2); // of the cell to the left; the cell to the right follows
#pragma unroll 1
		for (i64 side = 0; side < 2; side++) {
			const int to = (me + (side == 0 ? n - 1 : 1)) % n;
			rank.put_notify(w, to, 8 * (2 * m + place + 1 - side), 8, side == 0 ? u : u + m - 1, (int)(t % 2));
		}
		if (!rank.wait_notifications((int)(t % 2), 2)) break;
		rank.flush(w);
		for (i64 i = threadIdx.x; i < m; i += blockDim.x) {
			const double left = i > 0 ? u[i - 1] : beside[place], right = i + 1 < m ? u[i + 1] : beside[place + 1];
			v[i] = u[i] + 0.25 * ((left - u[i]) + (right - u[i]));
		}
		__syncthreads();
		double *const last = u;
		u = v, v = last;
	}
	if (threadIdx.x == 0) {
		sum = 0;
		for (i64 i = 0; i < m; i++) sum += u[i];
	}
	__syncthreads();
	rank.allreduce(&sum, &sum, 1, SUM);
	if (threadIdx.x == 0 && rank.index(DEVICE) == 0) data.sum = sum;
	rank.free_window(w);
	rank.finish();
}
