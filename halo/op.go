package halo

import "github.com/halox/halox/kernels/reduce"

// Op is what a Reduction computes of the values of a field.
type Op string

// The operations. A NaN among reals makes the result NaN in all of them.
const (
	Sum Op = "sum"
	Min Op = "min" // not of complex numbers
	Max Op = "max" // not of complex numbers
	L2  Op = "l2"  // the root of the sum of the squared magnitudes
)

// kernel returns the operation on the points of one subdomain.
func (op Op) kernel() (k reduce.Op, ok bool) {
	k, ok = map[Op]reduce.Op{Sum: reduce.Sum, Min: reduce.Min, Max: reduce.Max, L2: reduce.Squares}[op]
	return k, ok
}

// join puts what subdomains gave together, but for sums of reals.
func join[T float64 | int64](op Op, a, b T) T {
	switch op {
	case Min:
		return min(a, b)
	case Max:
		return max(a, b)
	}
	return a + b
}
