// One leap-frog step of the wave equation: next = 2 u - old + (c dt/h)^2 times the sum of the
// differences to the six neighbors.
template <typename P> __device__ __forceinline__ void wave(P &p) {
	const double sum = p.at(u, -1, 0, 0) + p.at(u, 1, 0, 0) + p.at(u, 0, -1, 0) + p.at(u, 0, 1, 0) +
	                   p.at(u, 0, 0, -1) + p.at(u, 0, 0, 1);
	const double now = p.at(u);
	p.set(next, 2 * now - p.at(old) + p.parameters.Courant2 * (sum - 6 * now));
}
