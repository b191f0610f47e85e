package testdevices

import (
	"fmt"
	"testing"
)

// Processes have as many GPUs each, which are theirs alone, and none where these do not suffice.
func TestShares(t *testing.T) {
	defer Share(0, 1)
	for _, c := range []struct {
		gpus, processes int
		want            string
	}{
		{4, 1, "[[0 1 2 3]]"},
		{4, 2, "[[0 1] [2 3]]"},
		{4, 3, "[[0] [1] [2]]"},
		{2, 3, "[[] [] []]"},
		{0, 2, "[[] []]"},
	} {
		var got [][]int
		for r := range c.processes {
			Share(r, c.processes)
			got = append(got, shareOf(c.gpus))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%d GPUs among %d: %v, want %s", c.gpus, c.processes, got, c.want)
		}
	}
}

// Each turn comes once in n seeds, and its seeds come to each of any few cases.
func TestTurns(t *testing.T) {
	const most = 24 // cases of a part
	for n := 1; n <= 8; n++ {
		for turn := range n {
			for cases := 1; cases <= most; cases++ {
				met := map[int]bool{}
				for first := 0; first < n*n*most*most; first += n {
					turns := 0
					for seed := first; seed < first+n; seed++ {
						if turnOf(seed, n) == turn {
							turns++
							met[seed%cases] = true
						}
					}
					if turns != 1 {
						t.Fatalf("turn %d of %d has %d of the seeds from %d", turn, n, turns, first)
					}
				}
				if len(met) != cases {
					t.Errorf("turn %d of %d comes to %d of %d cases", turn, n, len(met), cases)
				}
			}
		}
	}
}
