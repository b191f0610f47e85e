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
