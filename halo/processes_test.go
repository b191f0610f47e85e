//go:build unix

package halo_test

import (
	"fmt"
	"testing"

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
					in.Done(t, testmpi.Job{Program: tc.program, Ranks: ranks})
				})
			}
		}
	})
}

// A process that takes no part in an exchange ends the others, which name the message.
func TestProcessesNameWhoHangs(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		in.Fails(t, testmpi.Job{Program: "a rank hangs", Ranks: 3},
			"mpi: the message of subdomain 2 to subdomain ", "rank 2 on host ", "waited too long for ")
	})
}
