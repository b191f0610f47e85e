package temporal

import (
	"math"
	"testing"
)

// A run is divided into passes that there are, as many of them as make the last level lie where sweeps leave it, and none is slower than sweeps.
func TestCut(t *testing.T) {
	none := math.Inf(1)
	for name, cost := range map[string][]float64{
		"sweeps":  {0, 1},
		"four":    {0, 1, 1.2, none, 1.5},
		"twelve":  {0, 1, 1.1, 1.2, none, none, 1.4, none, none, none, none, none, 1.7},
		"slower":  {0, 1, 2.5, none, 5},
		"an even": {0, 1, 0.9},
	} {
		for steps := range 400 {
			all, took := 0, 0.0
			depths := Cut(steps, cost)
			for _, d := range depths {
				if d < 1 || d >= len(cost) || math.IsInf(cost[d], 1) {
					t.Fatalf("%s: %d steps: passes %v", name, steps, depths)
				}
				all += d
				took += cost[d]
			}
			if all != steps || len(depths)%2 != steps%2 {
				t.Fatalf("%s: %d steps: passes %v", name, steps, depths)
			}
			if took > float64(steps)*cost[1] {
				t.Errorf("%s: %d steps take %v", name, steps, took)
			}
			if steps == 100 && name == "twelve" && took > 100/12.*1.7*1.12 {
				t.Errorf("%s: %d steps take %v: %v", name, steps, took, depths)
			}
		}
	}
}

// A division whose last pass is of another kind is as good as the best of all, and leaves the last level where sweeps do.
func TestCutLast(t *testing.T) {
	none := math.Inf(1)
	cost, last := []float64{0, 1, 1.2, none, 1.5}, []float64{0, 1.1, 1.6, 1.9, none}
	for steps := 1; steps < 60; steps++ {
		depths := CutLast(steps, cost, last)
		all, took := 0, 0.0
		for i, d := range depths {
			of := cost
			if i == len(depths)-1 {
				of = last
			}
			all, took = all+d, took+of[d]
		}
		if best := cheapest(steps, steps%2, cost, last); all != steps || len(depths)%2 != steps%2 || math.Abs(took-best) > 1e-9 {
			t.Fatalf("%d steps: passes %v take %v, the best ones %v", steps, depths, took, best)
		}
	}
}

// cheapest tries all divisions, from the last pass on, into an odd or an even number of passes.
func cheapest(steps, odd int, cost, last []float64) float64 {
	table := map[[2]int]float64{{0, 0}: 0, {0, 1}: math.Inf(1)}
	for n := 1; n < steps; n++ {
		for odd := range 2 {
			best := math.Inf(1)
			for d := 1; d < len(cost) && d <= n; d++ {
				best = min(best, cost[d]+table[[2]int{n - d, 1 - odd}])
			}
			table[[2]int{n, odd}] = best
		}
	}
	best := math.Inf(1)
	for d := 1; d < len(last) && d <= steps; d++ {
		best = min(best, last[d]+table[[2]int{steps - d, 1 - odd}])
	}
	return best
}
