package temporal

import "math"

// Cut divides steps into passes. cost[d] is the time of a pass of d steps, infinite where there is none; cost[1] is that of a
// sweep. Passes swap two arrays as sweeps do, so there are an odd number of them for an odd number of steps, and an even
// number for an even one: the last level lies where sweeps would leave it. It returns their depths, of the fastest such division, the deepest first.
func Cut(steps int, cost []float64) (depths []int) {
	depths, _ = cut(steps, cost, steps%2)
	return depths
}

// CutLast is Cut where the last pass is of a kind of its own, as one that takes norms: last[d] is what it costs.
func CutLast(steps int, cost, last []float64) (depths []int) {
	best := math.Inf(1)
	for d := 1; d < len(last) && d <= steps; d++ {
		before, took := cut(steps-d, cost, 1-steps%2)
		if took += last[d]; took < best {
			best, depths = took, append(before, d)
		}
	}
	return depths
}

// cut divides steps into an odd or an even number of passes, and returns their depths and what they cost: nothing, infinite where there is no such division.
func cut(steps int, cost []float64, odd int) (depths []int, took float64) {
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
	few, took := cutFew(steps, cost, odd)
	return append(depths, few...), took + float64(len(depths))*cost[deepest]
}

// cutFew finds the best of all divisions.
func cutFew(steps int, cost []float64, odd int) (depths []int, took float64) {
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
	if took = best[steps][odd].cost; math.IsInf(took, 1) {
		return nil, took
	}
	for n := steps; n > 0; odd = 1 - odd {
		d := best[n][odd].last
		depths = append(depths, d)
		n -= d
	}
	return depths, took
}
