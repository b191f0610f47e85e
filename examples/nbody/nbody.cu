// Particles that attract each other: steps of the leapfrog method, for the particles of one device.

struct Bodies {
	char *particles; // of all devices
	i64 stride;      // bytes of a particle
	i64 first, count, total; // of this device, and of all
	double dt;
};

// A particle begins with its position, velocity, force and mass.
__device__ double *particle(const Bodies &b, i64 i) { return (double *)(b.particles + i * b.stride); }

enum { VELOCITY = 3, FORCE = 6, MASS = 9 };
#define SOFTENING 1e-4 // square of the length below which the attraction decreases

extern "C" __global__ void kick(const __grid_constant__ Bodies b) {
	const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= b.count) return;
	double *own = particle(b, b.first + i);
	const double x = own[0], y = own[1], z = own[2];
	double ax = 0, ay = 0, az = 0;
	for (i64 j = 0; j < b.total; j++) {
		const double *other = particle(b, j);
		const double dx = other[0] - x, dy = other[1] - y, dz = other[2] - z;
		const double square = dx * dx + dy * dy + dz * dz + SOFTENING;
		const double pull = other[MASS] / (square * sqrt(square));
		ax += pull * dx, ay += pull * dy, az += pull * dz;
	}
	own[FORCE] = own[MASS] * ax, own[FORCE + 1] = own[MASS] * ay, own[FORCE + 2] = own[MASS] * az;
	own[VELOCITY] += b.dt * ax, own[VELOCITY + 1] += b.dt * ay, own[VELOCITY + 2] += b.dt * az;
}

extern "C" __global__ void drift(const __grid_constant__ Bodies b) {
	const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= b.count) return;
	double *own = particle(b, b.first + i);
	for (int a = 0; a < 3; a++) own[a] += b.dt * own[VELOCITY + a];
}
