//go:build !amd64 || race || purego

package rows

// instructions is the set that a loop is written in: here there is one.
type instructions struct{}

// best returns the set to use on this processor.
func best() instructions { return instructions{} }

// usable returns every set that this processor can run.
func usable() []instructions { return []instructions{best()} }

func (instructions) String() string { return "go" }

func star5[T Float](_ instructions, dst, centre, south, north []T, b Band, alpha, beta T) {
	star5Loop(dst, centre, south, north, b, alpha, beta)
}

func star7[T Float](_ instructions, dst, centre, south, north, below, above []T, b Band, alpha, beta T) {
	star7Loop(dst, centre, south, north, below, above, b, alpha, beta)
}

func star5Axes[T Float](_ instructions, dst, centre, south, north []T, b Band, alpha, bx, by T) {
	star5AxesLoop(dst, centre, south, north, b, alpha, bx, by)
}

func star7Axes[T Float](_ instructions, dst, centre, south, north, below, above []T, b Band, alpha, bx, by, bz T) {
	star7AxesLoop(dst, centre, south, north, below, above, b, alpha, bx, by, bz)
}

func accumulate[T Float](_ instructions, l *lanes, new, old []T) { add(l, new, old) }
