package temporal

import "math"

// Cut divides steps into passes. cost[d] is the time of a pass of d steps, infinite where there is none; cost[1] is that of a
// sweep. Passes swap two arrays as sweeps do, so there are an odd number of them for an odd number of steps, and an even
// number for an even one: the last level lies where sweeps would leave it. It returns their depths, of the fastest such division, the deepest first.
func Cut(steps int, cost []float64) (depths []int) {
	deepest := 1
	for d := range cost {
		if d > 0 && cost[d]/float64(d) < cost[deepest]/float64(deepest) {
			deepest = d
		}
	}
	// Far from the end the fastest depth is taken; twice the greatest depth is left to be divided in the best way, in pairs of
	// passes so that the number of those left is as odd as before.
	if left := steps - 4*len(cost); left > 0 {
		pairs := left / (2 * deepest)
		for range 2 * pairs {
			depths = append(depths, deepest)
		}
		steps -= 2 * pairs * deepest
	}
	return append(depths, cutFew(steps, cost)...)
}

// cutFew finds the best of all divisions.
func cutFew(steps int, cost []float64) (depths []int) {
	type way struct {
		cost float64
		last int
	}
	best := make([][2]way, steps+1) // by steps, and whether the number of passes is odd
	for n := range best {
		best[n] = [2]way{{math.Inf(1), 0}, {math.Inf(1), 0}}
	}
	best[0][0].cost = 0
	for n := 1; n <= steps; n++ {
		for d := 1; d < len(cost) && d <= n; d++ {
			for odd := range 2 {
				if c := best[n-d][1-odd].cost + cost[d]; c < best[n][odd].cost {
					best[n][odd] = way{c, d}
				}
			}
		}
	}
	for n, odd := steps, steps%2; n > 0; odd = 1 - odd {
		d := best[n][odd].last
		depths = append(depths, d)
		n -= d
	}
	return depths
}
