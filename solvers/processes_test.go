package solvers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
)

// Several processes make the steps, and come to the norms, of one, to the bit.
func TestProcesses(t *testing.T) {
	testdevices.InTurn(t, 0, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, tc := range []struct {
			program string
			ranks   []int
			some    int // how many of these unless tests are long
		}{
			{"schemes", []int{4, 2, 3}, 1},
			{"cuts", []int{3, 2, 4, 8}, 2},
			{"tolerance", []int{3, 2}, 1},
			{"interrupt", []int{2, 3}, 1},
			{"intervals", []int{3}, 1},
			{"refusals", []int{3}, 1},
		} {
			for _, ranks := range testdevices.Again(1, testdevices.Some(tc.some, tc.ranks)) {
				t.Run(fmt.Sprintf("%s/%d", tc.program, ranks), func(t *testing.T) {
					r := in.Run(t, testmpi.Job{Program: tc.program, Ranks: ranks, Limit: 200 * time.Second})
					r.Succeeds(t)
					if n := strings.Count(r.Out, fmt.Sprintf(" of %d done", ranks)); n != ranks {
						t.Errorf("%d ranks are done:\n%s", n, r.Out)
					}
				})
			}
		}
	})
}

// A process that is lost in mid-run, or fails, ends the others in time, which name it.
func TestProcessesNameWhoIsLost(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		type loss struct{ program, says string }
		for _, tc := range testdevices.Some(3, []loss{ // a scheme with assistants or fused, unless tests are long
			{"one stops", "has said nothing for 2s"},
			{"one is gone", "has said nothing for 2s"},
			{"one is gone in fused", "has said nothing for 2s"},
			{"one stops in fused", "has said nothing for 2s"},
			{"one fails", "the disk is full"},
			{"one fails in fused", "the disk is full"},
		}) {
			t.Run(tc.program, func(t *testing.T) {
				job := testmpi.Job{Program: tc.program, Ranks: 3, Limit: 60 * time.Second}
				words := []string{"<rank 0 after ", "rank 2 on host ", tc.says}
				gone := strings.HasPrefix(tc.program, "one is gone")
				if gone && in.Hydra {
					job.Args = []string{"-disable-auto-cleanup"}
				}
				r := in.Run(t, job)
				if gone && !strings.Contains(r.Out, words[0]) {
					words = nil // the launcher has ended all before anybody missed it
				}
				r.Fails(t, words...)
				if r.Took > 20*time.Second {
					t.Errorf("it took %v:\n%s", r.Took, r.Out)
				}
			})
		}
	})
}
