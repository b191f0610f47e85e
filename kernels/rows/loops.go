package rows

// The loops in Go: what runs where there is no assembly, and what the assembly
// is tested against.
//
// A product that is added to something stands in a conversion, T(a*b). It looks
// idle, but without it the compiler may fuse the two on arm64 and others, or
// on amd64 with GOAMD64=v3, and skip a rounding.

func star5Loop[T Float](dst, centre, south, north []T, alpha, beta T) {
	n := len(dst)
	// Slices of known length let the compiler drop the checks in the loop.
	xm, c, xp := centre[:n], centre[1:n+1], centre[2:n+2]
	south, north = south[:n], north[:n]
	for i := range dst {
		sum := xp[i] + north[i] + xm[i] + south[i]
		dst[i] = T(alpha*c[i]) + T(beta*sum)
	}
}

func star7Loop[T Float](dst, centre, south, north, below, above []T, alpha, beta T) {
	n := len(dst)
	xm, c, xp := centre[:n], centre[1:n+1], centre[2:n+2]
	south, north, below, above = south[:n], north[:n], below[:n], above[:n]
	for i := range dst {
		sum := xp[i] + north[i] + above[i] + xm[i] + south[i] + below[i]
		dst[i] = T(alpha*c[i]) + T(beta*sum)
	}
}

func star5AxesLoop[T Float](dst, centre, south, north []T, alpha, bx, by T) {
	n := len(dst)
	xm, c, xp := centre[:n], centre[1:n+1], centre[2:n+2]
	south, north = south[:n], north[:n]
	for i := range dst {
		dst[i] = T(alpha*c[i]) + T(bx*(xp[i]+xm[i])) + T(by*(north[i]+south[i]))
	}
}

func star7AxesLoop[T Float](dst, centre, south, north, below, above []T, alpha, bx, by, bz T) {
	n := len(dst)
	xm, c, xp := centre[:n], centre[1:n+1], centre[2:n+2]
	south, north, below, above = south[:n], north[:n], below[:n], above[:n]
	for i := range dst {
		dst[i] = T(alpha*c[i]) + T(bx*(xp[i]+xm[i])) + T(by*(north[i]+south[i])) + T(bz*(above[i]+below[i]))
	}
}
