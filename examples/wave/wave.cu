// One leap-frog step of the wave equation: next = 2 now - last + (c dt/h)^2 times
// the sum of the differences to the six neighbours. next holds last before.
struct Wave {
	View<double> next;
	View<const double> now;
	double courant2;
};

extern "C" __global__ void wave(const __grid_constant__ Points<Wave> p) {
	const auto &next = p.arg.next;
	const auto &now = p.arg.now;
	p.each([&](i64 x, i64 y, i64 z) {
		const double sum = now(x - 1, y, z) + now(x + 1, y, z) + now(x, y - 1, z) + now(x, y + 1, z) +
		                   now(x, y, z - 1) + now(x, y, z + 1);
		const double u = now(x, y, z);
		next(x, y, z) = 2 * u - next(x, y, z) + p.arg.courant2 * (sum - 6 * u);
	});
}
