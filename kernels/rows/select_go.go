//go:build !amd64 || race || purego

package rows

// instructions is the set that a loop is written in: here there is one.
type instructions struct{}

// best returns the set to use on this processor.
func best() instructions { return instructions{} }

// usable returns every set that this processor can run.
func usable() []instructions { return []instructions{best()} }

func (instructions) String() string { return "go" }

func star5[T Float](_ instructions, dst, centre, south, north *T, n int, alpha, beta T) {
	star5Loop(points(dst, n), points(centre, n+2), points(south, n), points(north, n), alpha, beta)
}

func star7[T Float](_ instructions, dst, centre, south, north, below, above *T, n int, alpha, beta T) {
	star7Loop(points(dst, n), points(centre, n+2), points(south, n), points(north, n), points(below, n), points(above, n), alpha, beta)
}

func star5Axes[T Float](_ instructions, dst, centre, south, north *T, n int, alpha, bx, by T) {
	star5AxesLoop(points(dst, n), points(centre, n+2), points(south, n), points(north, n), alpha, bx, by)
}

func star7Axes[T Float](_ instructions, dst, centre, south, north, below, above *T, n int, alpha, bx, by, bz T) {
	star7AxesLoop(points(dst, n), points(centre, n+2), points(south, n), points(north, n), points(below, n), points(above, n), alpha, bx, by, bz)
}

func accumulate[T Float](_ instructions, l *lanes, new, old []T) { add(l, new, old) }
