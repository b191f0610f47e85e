package rows

// The loops in Go: what runs where there is no assembly, and what the assembly
// is tested against.
//
// A product that is added to something stands in a conversion, T(a*b). It looks
// idle, but without it the compiler may fuse the two on arm64 and others, or
// on amd64 with GOAMD64=v3, and skip a rounding.

func star5Loop[T Float](dst, centre, south, north []T, b Band, alpha, beta T) {
	n := b.Points
	for row := range b.Count {
		o := row * b.Pitch
		// Slices of known length let the compiler drop the checks in the loop.
		out, xm, c, xp := dst[o:o+n], centre[o:o+n], centre[o+1:o+1+n], centre[o+2:o+2+n]
		south, north := south[o:o+n], north[o:o+n]
		for i := range out {
			sum := xp[i] + north[i] + xm[i] + south[i]
			out[i] = T(alpha*c[i]) + T(beta*sum)
		}
	}
}

func star7Loop[T Float](dst, centre, south, north, below, above []T, b Band, alpha, beta T) {
	n := b.Points
	for row := range b.Count {
		o := row * b.Pitch
		out, xm, c, xp := dst[o:o+n], centre[o:o+n], centre[o+1:o+1+n], centre[o+2:o+2+n]
		south, north, below, above := south[o:o+n], north[o:o+n], below[o:o+n], above[o:o+n]
		for i := range out {
			sum := xp[i] + north[i] + above[i] + xm[i] + south[i] + below[i]
			out[i] = T(alpha*c[i]) + T(beta*sum)
		}
	}
}

func star5AxesLoop[T Float](dst, centre, south, north []T, b Band, alpha, bx, by T) {
	n := b.Points
	for row := range b.Count {
		o := row * b.Pitch
		out, xm, c, xp := dst[o:o+n], centre[o:o+n], centre[o+1:o+1+n], centre[o+2:o+2+n]
		south, north := south[o:o+n], north[o:o+n]
		for i := range out {
			out[i] = T(alpha*c[i]) + T(bx*(xp[i]+xm[i])) + T(by*(north[i]+south[i]))
		}
	}
}

func star7AxesLoop[T Float](dst, centre, south, north, below, above []T, b Band, alpha, bx, by, bz T) {
	n := b.Points
	for row := range b.Count {
		o := row * b.Pitch
		out, xm, c, xp := dst[o:o+n], centre[o:o+n], centre[o+1:o+1+n], centre[o+2:o+2+n]
		south, north, below, above := south[o:o+n], north[o:o+n], below[o:o+n], above[o:o+n]
		for i := range out {
			out[i] = T(alpha*c[i]) + T(bx*(xp[i]+xm[i])) + T(by*(north[i]+south[i])) + T(bz*(above[i]+below[i]))
		}
	}
}
