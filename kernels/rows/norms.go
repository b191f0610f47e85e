package rows

import "github.com/halox/halox/kernels/sums"

// Norms gathers what a convergence check asks about a sweep, row by row. The
// zero value is the norms of no rows. All of it is float64, whatever the type
// of the rows. Kernels write it as struct NormSum of norms.cuh.
//
// A NaN does not vanish: if any new point is NaN, Max and Sum2 are NaN, and if
// any change is NaN (also that from an infinity to the same infinity),
// MaxChange and SumChange2 are.
type Norms struct {
	MaxChange  float64  // the largest |new - old|
	SumChange2 sums.Sum // the sum of (new - old)^2
	Max        float64  // the largest |new|
	Sum2       sums.Sum // the sum of new^2
}

// Add joins to n the norms of other rows, say those another goroutine swept.
func (n *Norms) Add(other Norms) {
	n.MaxChange = max(n.MaxChange, other.MaxChange)
	n.SumChange2.Join(other.SumChange2)
	n.Max = max(n.Max, other.Max)
	n.Sum2.Join(other.Sum2)
}
