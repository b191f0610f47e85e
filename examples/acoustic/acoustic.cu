// Sound on a staggered grid: pressure at the cells, and the velocities at the low
// faces of each. A step moves the velocities by the differences of the pressure,
// then the pressure by the differences of the velocities.
struct Sound {
	View<double> p, vx, vy;
	double courant;
};

// In the rigid walls, at 0 and behind the last cells, the velocities stay 0.
extern "C" __global__ void velocity(const __grid_constant__ Points<Sound> a) {
	const Sound &s = a.arg;
	a.each([&](i64 x, i64 y, i64) {
		if (x > 0) s.vx(x, y) -= s.courant * (s.p(x, y) - s.p(x - 1, y));
		if (y > 0) s.vy(x, y) -= s.courant * (s.p(x, y) - s.p(x, y - 1));
	});
}

extern "C" __global__ void pressure(const __grid_constant__ Points<Sound> a) {
	const Sound &s = a.arg;
	a.each([&](i64 x, i64 y, i64) {
		s.p(x, y) -= s.courant * (s.vx(x + 1, y) - s.vx(x, y) + s.vy(x, y + 1) - s.vy(x, y));
	});
}
