package rows

// Star5Axes applies the 5-point stencil with a weight for each axis, as
// unequal spacings need, to a band:
//
//	dst = (alpha*c + bx*(xp + xm)) + by*(yp + ym)
//
// with the names of [Star5].
func Star5Axes[T Float](dst, centre, south, north []T, b Band, alpha, bx, by T) {
	n := b.span("Star5Axes")
	if n == 0 {
		return
	}
	need("Star5Axes", "dst", len(dst), n)
	need("Star5Axes", "centre", len(centre), n+2)
	need("Star5Axes", "south", len(south), n)
	need("Star5Axes", "north", len(north), n)
	star5Axes(best(), dst, centre, south, north, b, alpha, bx, by)
}

// Star7Axes applies the 7-point stencil with a weight for each axis, as
// unequal spacings need, to a band:
//
//	dst = ((alpha*c + bx*(xp + xm)) + by*(yp + ym)) + bz*(zp + zm)
//
// with the names of [Star7].
func Star7Axes[T Float](dst, centre, south, north, below, above []T, b Band, alpha, bx, by, bz T) {
	n := b.span("Star7Axes")
	if n == 0 {
		return
	}
	need("Star7Axes", "dst", len(dst), n)
	need("Star7Axes", "centre", len(centre), n+2)
	need("Star7Axes", "south", len(south), n)
	need("Star7Axes", "north", len(north), n)
	need("Star7Axes", "below", len(below), n)
	need("Star7Axes", "above", len(above), n)
	star7Axes(best(), dst, centre, south, north, below, above, b, alpha, bx, by, bz)
}
