//go:build !amd64 || race || purego

package rows

// assembly reports whether this processor runs the loops in assembly.
const assembly = false

func star5[T Float](_ bool, dst, centre, south, north []T, b Band, alpha, beta T) {
	star5Loop(dst, centre, south, north, b, alpha, beta)
}

func star7[T Float](_ bool, dst, centre, south, north, below, above []T, b Band, alpha, beta T) {
	star7Loop(dst, centre, south, north, below, above, b, alpha, beta)
}

func star5Axes[T Float](_ bool, dst, centre, south, north []T, b Band, alpha, bx, by T) {
	star5AxesLoop(dst, centre, south, north, b, alpha, bx, by)
}

func star7Axes[T Float](_ bool, dst, centre, south, north, below, above []T, b Band, alpha, bx, by, bz T) {
	star7AxesLoop(dst, centre, south, north, below, above, b, alpha, bx, by, bz)
}

func accumulate[T Float](_ bool, l *lanes, new, old []T) { add(l, new, old) }
