package temporal

import (
	"slices"
	"testing"
)

// Ladders lead away from a weight on both sides, whether it is one of those that are tried or lies between two,
// before the first or behind the last.
func TestLadders(t *testing.T) {
	for weight := range weights[len(weights)-1] + 3 {
		l := ladders(weight)
		if !slices.IsSorted(l[0]) || len(l[0]) > 0 && l[0][0] <= weight {
			t.Errorf("above %d: %d", weight, l[0])
		}
		down := slices.Clone(l[1])
		if slices.Reverse(down); !slices.IsSorted(down) || len(down) > 0 && l[1][0] >= weight {
			t.Errorf("below %d: %d", weight, l[1])
		}
		if got := append(append(down, l[0]...), weight); len(got) < len(weights) {
			t.Errorf("beside %d: %d", weight, got)
		}
	}
}
