// One explicit Euler step of length 1 of the Gray-Scott model on a plane: u and v diffuse, u is fed, v is removed, and
// u + 2v react to 3v.

// The Laplacian over the nine points of a box (Sims' weights: 0.2 for faces, 0.05 for corners).
template <typename P, typename Field> __device__ __forceinline__ double laplacian(P &p, Field f) {
	const double faces = p.at(f, -1, 0, 0) + p.at(f, 1, 0, 0) + p.at(f, 0, -1, 0) + p.at(f, 0, 1, 0);
	const double corners = p.at(f, -1, -1, 0) + p.at(f, 1, -1, 0) + p.at(f, -1, 1, 0) + p.at(f, 1, 1, 0);
	return 0.2 * faces + 0.05 * corners - p.at(f);
}

template <typename P> __device__ __forceinline__ void grayscott(P &p) {
	const auto &rate = p.parameters;
	const double here_u = p.at(u), here_v = p.at(v), made = here_u * here_v * here_v;
	p.set(next_u, here_u + rate.DiffuseU * laplacian(p, u) - made + rate.Feed * (1 - here_u));
	p.set(next_v, here_v + rate.DiffuseV * laplacian(p, v) + made - (rate.Feed + rate.Kill) * here_v);
}
