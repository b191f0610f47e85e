package rows

import (
	"math"

	"github.com/halox/halox/kernels/sums"
)

// width is the number of lanes: one AVX-512 register of float64.
const width = 8

// lanes are the norms of every eighth point. The assembly knows the layout.
//
// Here a maximum passes over NaN, as the comparison and the vector instruction
// do; fold puts it back.
type lanes struct {
	maxChange, sumChange2, max, sum2 [width]float64
}

// add puts the points of a row, or of a part of it that starts at a multiple of
// width, into the lanes. The conversions of products keep them from being
// fused, as in the stencils' loops.
func add[T Float](l *lanes, new, old []T) {
	old = old[:len(new)]
	for i, v := range new {
		lane := i % width
		value := float64(v)
		change := value - float64(old[i])
		l.sumChange2[lane] += float64(change * change)
		l.sum2[lane] += float64(value * value)
		if d := math.Abs(change); d > l.maxChange[lane] {
			l.maxChange[lane] = d
		}
		if d := math.Abs(value); d > l.max[lane] {
			l.max[lane] = d
		}
	}
}

// fold joins the lanes, halving their number until one is left.
func (l *lanes) fold() Norms {
	for half := width / 2; half > 0; half /= 2 {
		for i := range half {
			l.maxChange[i] = max(l.maxChange[i], l.maxChange[i+half])
			l.sumChange2[i] += l.sumChange2[i+half]
			l.max[i] = max(l.max[i], l.max[i+half])
			l.sum2[i] += l.sum2[i+half]
		}
	}
	return Norms{
		MaxChange:  orNaN(l.maxChange[0], l.sumChange2[0]),
		SumChange2: sums.Plain(l.sumChange2[0]),
		Max:        orNaN(l.max[0], l.sum2[0]),
		Sum2:       sums.Plain(l.sum2[0]),
	}
}

// orNaN returns the maximum, or NaN if the sum of squares over the same points
// is. A sum of squares is NaN only if a point was: its terms have one sign.
func orNaN(maximum, sum float64) float64 {
	if math.IsNaN(sum) {
		return sum
	}
	return maximum
}
