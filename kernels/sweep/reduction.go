package sweep

import (
	"math"

	"github.com/halox/halox/kernels/sums"
)

// Reduction is a number made of one value of each point, in float64.
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
	return map[Operation]float64{Max: math.Inf(-1), Min: math.Inf(1)}[o]
}

// join joins two values that are no sums, as join of totals.cuh does.
func (o Operation) join(a, b float64) float64 {
	if o == Max {
		return max(a, b)
	}
	return min(a, b)
}

// Reduced is a reduction over some points.
type Reduced struct {
	op    Operation
	value float64 // unless it is a sum
	sum   sums.Sum
}

// Join adds what the same reduction is over other points.
func (r *Reduced) Join(other Reduced) {
	r.sum.Join(other.sum)
	if r.op != Sum {
		r.value = r.op.join(r.value, other.value)
	}
}

// Stored is what a Reduced holds beside its operation, for other processes.
type Stored struct {
	Value float64
	Sum   sums.Sum
}

// Stored returns what it holds.
func (r Reduced) Stored() Stored { return Stored{r.value, r.sum} }

// With returns the same reduction over the points that another process has stored.
func (r Reduced) With(s Stored) Reduced { return Reduced{r.op, s.Value, s.Sum} }

// Value returns its value.
func (r Reduced) Value() float64 {
	if r.op == Sum {
		return r.sum.Value()
	}
	return r.value
}
