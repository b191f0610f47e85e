package sweep

import "math"

// Reduction is a number made of one value of each point, in float64. Sums are in a fixed order,
// which depends on the boxes and on the shape of the sweep.
type Reduction struct {
	Name string // in the source
	Op   Operation
}

// Operation joins the values of a reduction.
type Operation string

// The operations. A NaN among the values makes each of them NaN.
const (
	Sum Operation = "sum"
	Max Operation = "max"
	Min Operation = "min"
)

// identity is what joining with changes nothing.
func (o Operation) identity() float64 {
	return map[Operation]float64{Sum: 0, Max: math.Inf(-1), Min: math.Inf(1)}[o]
}

// join joins two values, as join of totals.cuh does.
func (o Operation) join(a, b float64) float64 {
	switch o {
	case Max:
		return max(a, b)
	case Min:
		return min(a, b)
	}
	return a + b
}
