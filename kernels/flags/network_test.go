package flags

import (
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/streams"
)

// Every line of a network has one reader and one writer: what a rank keeps for a neighbour is what
// that one finds as its own, and no two lie together.
func TestNetwork(t *testing.T) {
	platform := streams.HostPlatform(4)
	devices := test.Must(platform.Open())(t)
	defer streams.CloseAll(devices)
	n := test.Must(NewNetwork(devices, [][]int{{1, 3}, {0, 2, 3}, {1}, {1, 0}}, 3, 2, 1))(t)
	var open streams.Resources
	defer open.Close()
	for rank := range devices {
		test.Check(t, n.Open(rank, &open))
	}
	readers := map[streams.Span]int{}
	for rank, others := range n.neighbours {
		for at, other := range others {
			for which := range 2 {
				mine, its := n.Pair(rank, at, which)
				if mine.Memory != n.memory[rank] || its.Memory != n.memory[other] || its != n.line(other, n.Place(rank, other), which) {
					t.Errorf("rank %d waits at %v, and %d at %v", rank, mine, other, its)
				}
				readers[mine]++
			}
		}
		readers[n.OwnLine(rank, 0)]++
	}
	for s, count := range readers {
		if count != 1 || s.Offset%lineBytes != 0 || s.Offset+s.Length > s.Memory.Size() {
			t.Errorf("%d use %v", count, s)
		}
	}
	if len(readers) != 2*(2+3+1+2)+4 {
		t.Errorf("%d lines", len(readers))
	}
}

func TestNetworksThatCannotBe(t *testing.T) {
	devices := make([]*streams.Device, 3)
	for says, neighbours := range map[string][][]int{
		"rank 0 exchanges with rank 1, which does not name it": {{1}, {2}, {1}},
		"rank 0 exchanges with rank 3":                         {{3}, {}, {}},
		"rank 1 exchanges with rank 1":                         {{}, {1}, {}},
		"2 neighbours; must be at most 1":                      {{1, 2}, {0}, {0}},
	} {
		test.Says(t, test.ErrorOf(NewNetwork(devices, neighbours, 1, 1, 0)), says)
	}
}
