// Sound on a staggered grid: pressures at the cells, velocities at their lower faces. A step updates the velocities by
// the differences of the pressure, then the pressure by the differences of the velocities. At the rigid walls, at 0 and
// after the last cells, the velocities stay 0.
template <typename P> __device__ __forceinline__ void velocity(P &q) {
	const double courant = q.parameters.Courant;
	q.set(vx, q.i() > 0 ? q.at(vx) - courant * (q.at(p) - q.at(p, -1, 0, 0)) : q.at(vx));
	q.set(vy, q.j() > 0 ? q.at(vy) - courant * (q.at(p) - q.at(p, 0, -1, 0)) : q.at(vy));
}

template <typename P> __device__ __forceinline__ void pressure(P &q) {
	const double divergence = q.at(vx, 1, 0, 0) - q.at(vx) + q.at(vy, 0, 1, 0) - q.at(vy);
	q.set(p, q.at(p) - q.parameters.Courant * divergence);
}
