package ranks

// Op is what Reduce and Allreduce join numbers by: enum Op of rank_collectives.cuh. A NaN shows in each. Of zeros of
// both signs Min and Max give either.
type Op int

// The operations.
const (
	Sum Op = iota
	Min
	Max
)

// Numeric is a type of numbers that collectives take.
type Numeric interface{ float64 | float32 | int64 }

func join[T Numeric](op Op, a, b T) T {
	switch {
	case op == Sum:
		return a + b
	case a != a || op == Min && a < b || op == Max && a > b:
		return a
	}
	return b
}
