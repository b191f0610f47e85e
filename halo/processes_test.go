//go:build unix

package halo_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
)

// Programs of several processes succeed on all of them.
func TestProcesses(t *testing.T) {
	testdevices.InTurn(t, 0, 2)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, tc := range []struct {
			program string
			ranks   []int // one of them unless tests are long, but for geometry
		}{
			{"geometry", []int{2, 3, 4}},
			{"different plans", []int{3}},
			{"one cannot", []int{2}},
			{"one errs", []int{3}},
			{"own points", []int{2}},
			{"session", []int{3, 2}},
			{"accumulate", []int{4, 2}},
			{"measure", []int{3}},
		} {
			few := 1
			if tc.program == "geometry" {
				few = 2
			}
			for _, ranks := range testdevices.Some(few, tc.ranks) {
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

// A process that takes no part in an exchange ends the others, which name the message.
func TestProcessesNameWhoHangs(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		r := in.Run(t, testmpi.Job{Program: "a rank hangs", Ranks: 3, Limit: 60 * time.Second})
		r.Fails(t, "mpi: the message of subdomain 2 to subdomain ", "rank 2 on host ", "waited too long for 4s")
		if r.Took > 20*time.Second {
			t.Errorf("it took %v", r.Took)
		}
	})
}
