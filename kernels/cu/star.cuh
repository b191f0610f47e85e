// The star stencil (stencil.Star). Its sums keep the order that stencil.Star gives, and
// the options forbid contraction, so that every kernel, here and on the host, gives the
// same bits.
//
// Build options: REAL; DIMS, 2 or 3; EQUAL, 1 where all axes have one weight.

struct Weights {
	REAL centre, x, y, z;
	__device__ Weights(double c, const double *axis) : centre((REAL)c), x((REAL)axis[0]), y((REAL)axis[1]), z((REAL)axis[2]) {}

	__device__ REAL apply(REAL c, REAL xm, REAL xp, REAL ym, REAL yp, REAL zm, REAL zp) const {
#if DIMS == 3 && EQUAL
		return centre * c + x * (xp + yp + zp + xm + ym + zm);
#elif DIMS == 3
		return centre * c + x * (xp + xm) + y * (yp + ym) + z * (zp + zm);
#elif EQUAL
		return centre * c + x * (xp + yp + xm + ym);
#else
		return centre * c + x * (xp + xm) + y * (yp + ym);
#endif
	}
};
