package sweep

import (
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
)

// Stages that cannot be made are refused, whatever makes them.
func TestRefusedStages(t *testing.T) {
	set := testdevices.Host(t, 2)
	for name, change := range map[string]func(ranks []StageRank){
		"two ranks on a device":    func(ranks []StageRank) { ranks[1].Sweeper = ranks[0].Sweeper },
		"a store to nobody":        func(ranks []StageRank) { ranks[1].Stores[0].To = 2 },
		"a store of another size":  func(ranks []StageRank) { ranks[1].Stores[0].Ghost.Hi[0]-- },
		"a store beyond the array": func(ranks []StageRank) { s := &ranks[1].Stores[0]; s.Ghost = s.Ghost.Shift(domain.Vec{0, 3}) },
		"a store of what is read":  func(ranks []StageRank) { ranks[1].Stores[0].Access = 0 },
		"an interior too large":    func(ranks []StageRank) { ranks[0].Interior.Hi[0] += 2 },
		"more slabs than faces": func(ranks []StageRank) {
			for range 6 {
				ranks[0].Boundary = append(ranks[0].Boundary, ranks[0].Boundary[0])
			}
		},
		"a store of points in the interior": func(ranks []StageRank) {
			s := &ranks[0].Stores[0]
			s.Send = s.Send.Shift(domain.Vec{0, -1})
		},
		"a store of points that are swept by nobody": func(ranks []StageRank) {
			s := &ranks[0].Stores[0]
			s.Send = s.Send.Shift(domain.Vec{0, 1})
		},
		"a store to ghosts that the interior reads": func(ranks []StageRank) {
			r := &ranks[1]
			r.Stores, r.Interior, r.Boundary = nil, r.Arrays[0][0].Layout.Owned, nil
		},
		"a wall beyond the array": func(ranks []StageRank) { ranks[0].Stores[0].Odd = []domain.Vec{{0, 2}} },
		"a wall that is itself":   func(ranks []StageRank) { ranks[0].Stores[0].Odd = []domain.Vec{{}} },
	} {
		phases := stagePair(t, set)
		change(phases[0][0])
		if f, err := NewFusedStages(phases, time.Second); err == nil {
			f.Close()
			t.Errorf("fused: %s was accepted", name)
		}
		if r, err := NewResidentSteps(phases, time.Second); err == nil {
			r.Close()
			t.Errorf("resident: %s was accepted", name)
		}
	}
}
