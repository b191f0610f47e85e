// One step of the lattice Boltzmann method on the lattice D3Q19: distributions are pulled from where
// they come from, relax at one rate (Bhatnagar, Gross and Krook), and are driven by a force along x
// (Guo, Zheng and Shi, 2002). What would come through a wall, half a spacing beyond the first and the
// last point of y, comes back instead (half-way bounce-back).
constexpr int cx[19] = {0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1, 0, 0, 0, 0};
constexpr int cy[19] = {0, 0, 0, 1, -1, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 1, -1, 1, -1};
constexpr int cz[19] = {0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 1, -1, -1, 1, 1, -1, -1, 1};
constexpr int opposite[19] = {0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 16, 15, 18, 17};
constexpr double weight[3] = {1.0 / 3, 1.0 / 18, 1.0 / 36}; // at rest, along an axis, along two

template <typename P> __device__ __forceinline__ void lbm(P &p) {
	const auto &a = p.parameters;
	const bool low = p.j() == 0, high = p.j() == a.NY - 1;
	double in[19], rho = 0, ux = 0, uy = 0, uz = 0;
#pragma unroll
	for (int q = 0; q < 19; q++) {
		const bool back = (cy[q] == 1 && low) || (cy[q] == -1 && high);
		in[q] = back ? p.at(f[opposite[q]]) : p.at(f[q], -cx[q], -cy[q], -cz[q]);
		rho += in[q];
		ux += cx[q] * in[q], uy += cy[q] * in[q], uz += cz[q] * in[q];
	}
	ux = (ux + 0.5 * a.Force) / rho, uy /= rho, uz /= rho;
	const double square = 1.5 * (ux * ux + uy * uy + uz * uz);
#pragma unroll
	for (int q = 0; q < 19; q++) {
		const double w = weight[cx[q] * cx[q] + cy[q] * cy[q] + cz[q] * cz[q]];
		const double c = 3 * (cx[q] * ux + cy[q] * uy + cz[q] * uz);
		const double relaxed = in[q] + a.Omega * (w * rho * (1 + c + 0.5 * c * c - square) - in[q]);
		const double driven = (1 - 0.5 * a.Omega) * w * (3 * (cx[q] - ux) + 3 * c * cx[q]) * a.Force;
		p.set(next[q], relaxed + driven);
	}
}
