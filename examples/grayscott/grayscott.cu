// One explicit Euler step of length 1 of the Gray-Scott model on a plane: u and v
// diffuse, u is fed, v is removed, and u + 2v become 3v.
struct GrayScott {
	View<double> next_u, next_v;
	View<const double> u, v;
	double diffuse_u, diffuse_v, feed, kill;
};

// The Laplacian over the nine points of a box (Sims' weights: 0.2 for faces, 0.05
// for corners).
__device__ double laplacian(const View<const double> &f, i64 x, i64 y) {
	const double faces = f(x - 1, y) + f(x + 1, y) + f(x, y - 1) + f(x, y + 1);
	const double corners = f(x - 1, y - 1) + f(x + 1, y - 1) + f(x - 1, y + 1) + f(x + 1, y + 1);
	return 0.2 * faces + 0.05 * corners - f(x, y);
}

extern "C" __global__ void grayscott(const __grid_constant__ Points<GrayScott> p) {
	const GrayScott &g = p.arg;
	p.each([&](i64 x, i64 y, i64) {
		const double u = g.u(x, y), v = g.v(x, y), made = u * v * v;
		g.next_u(x, y) = u + g.diffuse_u * laplacian(g.u, x, y) - made + g.feed * (1 - u);
		g.next_v(x, y) = v + g.diffuse_v * laplacian(g.v, x, y) + made - (g.feed + g.kill) * v;
	});
}
