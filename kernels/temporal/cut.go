package temporal

import (
	"errors"
	"math"
	"slices"
)

// ErrImpossible means that passes of a stencil are not possible on a device.
var ErrImpossible = errors.New("temporal blocking is not possible")

// Cut divides steps into passes of at most deepest steps each with the least total cost, and returns their depths.
//
// cost returns the cost of a pass that begins after a number of steps: infinite if it is not possible, finite for
// depth 1. end is an additional cost after an even and after an odd number of passes, since each swaps the two
// arrays. If least < steps, Cut returns the passes of least to steps steps with the least cost per step. Of two
// divisions with equal cost it returns the one whose first passes are deeper.
func Cut(steps, least, deepest int, cost func(after, depth int) float64, end [2]float64) (depths []int) {
	best := make([][2]division, steps+1) // by steps, and whether the number of passes is odd
	for n := range best {
		best[n] = [2]division{{math.Inf(1), 0}, {math.Inf(1), 0}}
	}
	best[0][0].cost = 0
	for n := 1; n <= steps; n++ {
		for d := 1; d <= min(n, deepest); d++ {
			one := cost(n-d, d)
			for odd := range 2 {
				if c := best[n-d][1-odd].cost + one; c < best[n][odd].cost*(1-rounding) {
					best[n][odd] = division{c, d}
				}
			}
		}
	}
	last, odd, fewest := 0, 0, math.Inf(1)
	for n := max(1, least); n <= steps; n++ {
		for k := range 2 {
			if c := (best[n][k].cost + end[k]) / float64(n); c < fewest*(1-rounding) {
				last, odd, fewest = n, k, c
			}
		}
	}
	return passesTo(best, last, odd)
}

// division is the cost of the passes up to a step, and the depth of the last one.
type division struct {
	cost  float64
	depth int
}

// rounding is the relative difference of sums of the same costs in another order.
const rounding = 1e-12

// passesTo returns the depths of the passes up to a step, in order.
func passesTo(best [][2]division, n, odd int) (depths []int) {
	for ; n > 0; odd = 1 - odd {
		depths = append(depths, best[n][odd].depth)
		n -= depths[len(depths)-1]
	}
	slices.Reverse(depths)
	return depths
}

// maxDepth is the largest number of steps of a pass.
const maxDepth = 32
