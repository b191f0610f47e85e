package temporal

import (
	"math"
	"slices"
)

// Cut divides steps into passes of at most so many steps each, so that what they cost together is least, and returns their depths. cost is
// that of a pass of a depth which begins after some of the steps: infinite where there is none, finite for depth 1. end is what comes on top
// after an even and after an odd number of passes: each swaps the two arrays. If all steps need not be made, but least of them at least, it returns
// the passes, of that many or more, that cost the least for a step. Of two divisions that cost the same it takes the one whose first passes are deeper.
func Cut(steps, least, deepest int, cost func(after, depth int) float64, end [2]float64) (depths []int) {
	best := make([][2]way, steps+1) // by steps, and whether the number of passes is odd
	for n := range best {
		best[n] = [2]way{{math.Inf(1), 0}, {math.Inf(1), 0}}
	}
	best[0][0].cost = 0
	for n := 1; n <= steps; n++ {
		for d := 1; d <= min(n, deepest); d++ {
			one := cost(n-d, d)
			for odd := range 2 {
				if c := best[n-d][1-odd].cost + one; c < best[n][odd].cost*(1-rounding) {
					best[n][odd] = way{c, d}
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

// way is what passes up to a step cost, and the depth of the last.
type way struct {
	cost  float64
	depth int
}

// rounding is what sums of the same costs in another order may differ by.
const rounding = 1e-12

// passesTo returns the depths of the passes that lead to a step, the first first.
func passesTo(best [][2]way, n, odd int) (depths []int) {
	for ; n > 0; odd = 1 - odd {
		depths = append(depths, best[n][odd].depth)
		n -= depths[len(depths)-1]
	}
	slices.Reverse(depths)
	return depths
}
