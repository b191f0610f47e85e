package rows

// Star5 applies the isotropic 5-point stencil of two dimensions to a band:
//
//	dst = alpha*c + beta*(((xp + yp) + xm) + ym)
//
// where c, xm and xp are the point and its neighbours in centre, ym is south
// and yp is north.
func Star5[T Float](dst, centre, south, north []T, b Band, alpha, beta T) {
	n := b.span("Star5")
	if n == 0 {
		return
	}
	need("Star5", "dst", len(dst), n)
	need("Star5", "centre", len(centre), n+2)
	need("Star5", "south", len(south), n)
	need("Star5", "north", len(north), n)
	star5(best(), dst, centre, south, north, b, alpha, beta)
}

// Star7 applies the isotropic 7-point stencil of three dimensions to a band:
//
//	dst = alpha*c + beta*(((((xp + yp) + zp) + xm) + ym) + zm)
//
// where c, xm and xp are the point and its neighbours in centre, ym is south,
// yp is north, zm is below and zp is above.
func Star7[T Float](dst, centre, south, north, below, above []T, b Band, alpha, beta T) {
	n := b.span("Star7")
	if n == 0 {
		return
	}
	need("Star7", "dst", len(dst), n)
	need("Star7", "centre", len(centre), n+2)
	need("Star7", "south", len(south), n)
	need("Star7", "north", len(north), n)
	need("Star7", "below", len(below), n)
	need("Star7", "above", len(above), n)
	star7(best(), dst, centre, south, north, below, above, b, alpha, beta)
}
