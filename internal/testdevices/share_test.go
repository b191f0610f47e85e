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
