package rows

// Star5Axes applies the 5-point stencil with a weight for each axis, as
// unequal spacings need, to a row:
//
//	dst = (alpha*c + bx*(xp + xm)) + by*(yp + ym)
//
// with the names of [Star5].
func Star5Axes[T Float](dst, centre, south, north []T, alpha, bx, by T) {
	n := len(dst)
	if n == 0 {
		return
	}
	need("Star5Axes", "centre", len(centre), n+2)
	need("Star5Axes", "south", len(south), n)
	need("Star5Axes", "north", len(north), n)
	star5Axes(best(), &dst[0], &centre[0], &south[0], &north[0], n, alpha, bx, by)
}

// Star7Axes applies the 7-point stencil with a weight for each axis, as
// unequal spacings need, to a row:
//
//	dst = ((alpha*c + bx*(xp + xm)) + by*(yp + ym)) + bz*(zp + zm)
//
// with the names of [Star7].
func Star7Axes[T Float](dst, centre, south, north, below, above []T, alpha, bx, by, bz T) {
	n := len(dst)
	if n == 0 {
		return
	}
	need("Star7Axes", "centre", len(centre), n+2)
	need("Star7Axes", "south", len(south), n)
	need("Star7Axes", "north", len(north), n)
	need("Star7Axes", "below", len(below), n)
	need("Star7Axes", "above", len(above), n)
	star7Axes(best(), &dst[0], &centre[0], &south[0], &north[0], &below[0], &above[0], n, alpha, bx, by, bz)
}
