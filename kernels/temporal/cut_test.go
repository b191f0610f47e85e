package temporal

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A division into passes costs as little as the best of all, which are tried one by one, with any costs and any
// number of steps.
func TestCut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		steps, deepest := 1+r.IntN(9), 1+r.IntN(5)
		table := map[[2]int]float64{}
		for after := range steps {
			for depth := 1; depth <= deepest; depth++ {
				table[[2]int{after, depth}] = float64(depth) * (0.5 + r.Float64())
				if depth > 1 && r.IntN(3) == 0 {
					table[[2]int{after, depth}] = math.Inf(1)
				}
			}
		}
		cost := func(after, depth int) float64 { return table[[2]int{after, depth}] }
		end := [2]float64{r.Float64() * float64(r.IntN(2)), r.Float64() * float64(r.IntN(2))}
		least := 1 + r.IntN(steps)
		depths := Cut(steps, least, deepest, cost, end)
		made, took := 0, 0.0
		for _, d := range depths {
			took += cost(made, d)
			made += d
		}
		took = (took + end[len(depths)%2]) / float64(made)
		if want := cheapest(0, 0, steps, least, deepest, 0, cost, end); made < least || made > steps || math.Abs(took-want) > 1e-9 {
			t.Fatalf("%d to %d steps: passes %v cost %v a step, the best ones %v", least, steps, depths, took, want)
		}
	}
}

// cheapest returns the least cost of a step over all ways to go on after some passes.
func cheapest(made, passes, steps, least, deepest int, took float64, cost func(after, depth int) float64, end [2]float64) float64 {
	best := math.Inf(1)
	if made >= least {
		best = (took + end[passes%2]) / float64(made)
	}
	for d := 1; d <= min(deepest, steps-made); d++ {
		best = min(best, cheapest(made+d, passes+1, steps, least, deepest, took+cost(made, d), cost, end))
	}
	return best
}

// Of passes in any order that cost the same the deepest come first, so that who makes the first and divides again
// loses nothing.
func TestCutTakesDeepPassesFirst(t *testing.T) {
	costs := []float64{0, 1, 1.2, 1.4, 1.6}
	cost := func(_, depth int) float64 { return costs[depth] }
	for steps := 4; steps < 40; steps++ {
		for left := steps; left >= 4; left -= 4 {
			if depths := Cut(left, left, 4, cost, [2]float64{}); depths[0] != 4 {
				t.Fatalf("%d steps: passes %v", left, depths)
			}
		}
	}
}
