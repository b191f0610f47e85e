//go:build !amd64 || race || purego

package rows

// assembly reports whether this processor supports the loops in assembly.
const assembly = false

func star5[T Float](_ bool, dst, center, south, north []T, b Band, alpha, beta T) {
	star5Loop(dst, center, south, north, b, alpha, beta)
}

func star7[T Float](_ bool, dst, center, south, north, below, above []T, b Band, alpha, beta T) {
	star7Loop(dst, center, south, north, below, above, b, alpha, beta)
}

func star5Axes[T Float](_ bool, dst, center, south, north []T, b Band, alpha, bx, by T) {
	star5AxesLoop(dst, center, south, north, b, alpha, bx, by)
}

func star7Axes[T Float](_ bool, dst, center, south, north, below, above []T, b Band, alpha, bx, by, bz T) {
	star7AxesLoop(dst, center, south, north, below, above, b, alpha, bx, by, bz)
}

func accumulate[T Float](_ bool, l *lanes, new, old []T) { add(l, new, old) }

func inAssembly(string, int) bool { return true }

func (p *code[T]) assemble() {}

func (p *code[T]) next(points int) (int, bool) { return min(points, block), false }

func (p *code[T]) run(int, int) {}
