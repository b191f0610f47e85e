// One step of the lattice Boltzmann method on the lattice D3Q19: distributions are pulled from upstream points, relaxed
// at a single rate (Bhatnagar, Gross and Krook), and driven by a force along x (Guo, Zheng and Shi, 2002). At the
// walls, half a spacing beyond the first and the last point of y, they are reflected (half-way bounce-back).
//
// Component 0 is at rest, 2n + 1 moves in direction n, and 2n + 2 in the opposite direction.
constexpr int cx[9] = {1, 0, 0, 1, 1, 1, 1, 0, 0};
constexpr int cy[9] = {0, 1, 0, 1, -1, 0, 0, 1, 1};
constexpr int cz[9] = {0, 0, 1, 0, 0, 1, -1, 1, -1};
constexpr double weight[3] = {1.0 / 3, 1.0 / 18, 1.0 / 36}; // at rest, along an axis, along two

// plus adds c times a value; c is 1, 0 or -1.
__device__ __forceinline__ double plus(double sum, int c, double value) {
	return c == 0 ? sum : c > 0 ? sum + value : sum - value;
}

template <typename P> __device__ __forceinline__ void lbm(P &p) {
	const auto &a = p.parameters;
	const bool low = p.j() == 0, high = p.j() == a.NY - 1;
	const double rest = p.at(f[0]);
	double forth[9], back[9], rho = rest, jx = 0.5 * a.Force, jy = 0, jz = 0;
#pragma unroll
	for (int n = 0; n < 9; n++) {
		const bool behind = cy[n] == 1 ? low : cy[n] == -1 && high, ahead = cy[n] == 1 ? high : cy[n] == -1 && low;
		forth[n] = behind ? p.at(f[2 * n + 2]) : p.at(f[2 * n + 1], -cx[n], -cy[n], -cz[n]);
		back[n] = ahead ? p.at(f[2 * n + 1]) : p.at(f[2 * n + 2], cx[n], cy[n], cz[n]);
		const double flow = forth[n] - back[n];
		rho += forth[n] + back[n];
		jx = plus(jx, cx[n], flow), jy = plus(jy, cy[n], flow), jz = plus(jz, cz[n], flow);
	}
	const double volume = 1 / rho, ux = jx * volume, uy = jy * volume, uz = jz * volume;
	const double keep = 1 - a.Omega, relax = a.Omega * rho, drive = 3 * (1 - 0.5 * a.Omega) * a.Force;
	const double all = relax * (1 - 1.5 * (ux * ux + uy * uy + uz * uz)) - drive * ux;
	p.set(next[0], keep * rest + weight[0] * all);
#pragma unroll
	for (int n = 0; n < 9; n++) { // even is the common part of both directions, odd is half their difference
		const double w = weight[n < 3 ? 1 : 2], u = plus(plus(plus(0, cx[n], ux), cy[n], uy), cz[n], uz);
		const double even = all + u * plus(4.5 * relax * u, cx[n], 3 * drive), odd = plus(3 * relax * u, cx[n], drive);
		p.set(next[2 * n + 1], keep * forth[n] + w * (even + odd));
		p.set(next[2 * n + 2], keep * back[n] + w * (even - odd));
	}
}
