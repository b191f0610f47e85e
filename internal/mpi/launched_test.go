//go:build unix

package mpi_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
)

func TestPrograms(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, tc := range []struct {
			program string
			ranks   []int
		}{
			{"exchanges", []int{2, 3, 4}},
			{"large", []int{2}},
			{"collectives", []int{2, 3, 4}},
			{"misuse", []int{2, 3}},
			{"lent", []int{2}},
			{"signals", []int{2}},
		} {
			for _, ranks := range testdevices.Some(1, tc.ranks) {
				t.Run(fmt.Sprintf("%s/%d", tc.program, ranks), func(t *testing.T) {
					r := in.Done(t, testmpi.Job{Program: tc.program, Ranks: ranks})
					family := cmp.Or(map[string]string{"mpich": "MPICH", "mpich-abi": "standard ABI"}[in.Name], "Open MPI")
					if n := strings.Count(r.Out, " done, "+family); n != ranks {
						t.Errorf("%d ranks ran under %s:\n%s", n, family, r.Out)
					}
				})
			}
		}
	})
}

// A rank that does nothing ends the others, which wait for its message, or for it to copy or split a communicator, no
// longer than the limit, and name it. One that dies ends them too: its launcher does, or MPI. Which of them is first, and
// whether the others can still say anything, is theirs.
func TestRanksThatFail(t *testing.T) {
	for program, words := range map[string][]string{
		"hanging": {"MPI_Irecv from rank 1, tag 77: waited too long for "},
		"alone":   {"MPI_Comm_idup with all ranks: waited too long for "},
		"split":   {"MPI_Comm_split with all ranks: waited too long for "},
		"killed":  nil,
	} {
		t.Run(program, func(t *testing.T) {
			testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
				in.Fails(t, testmpi.Job{Program: program, Ranks: 3}, words...)
			})
		})
	}
}

// A launcher and a library that do not match are rejected, by every rank, and a library that is not there, and one
// that is no MPI, are named.
func TestLibrariesThatDoNotSuit(t *testing.T) {
	for _, tc := range []struct{ launcher, library, want string }{
		{"mpich", "openmpi", "mpiexec of MPICH or Intel MPI started 2 processes, but for "},
		{"openmpi", "mpich", "mpirun of Open MPI started this process, which "},
		{"openmpi", "mpich-abi", "mpirun of Open MPI started this process, which "},
		{"mpich", "/nowhere/libmpi.so.12", "HALOX_MPI: /nowhere/libmpi.so.12: "},
		{"mpich", "libm.so.6", "must be a library of MPI 3 or newer, lacks MPI_Init_thread, MPI_Initialized"},
	} {
		t.Run(tc.launcher+" starts "+tc.library, func(t *testing.T) {
			in, words := testmpi.Named(t, tc.launcher), []string{tc.want}
			if !strings.Contains(tc.library, ".so") {
				tc.library = testmpi.Named(t, tc.library).Library
				words = []string{tc.want + tc.library, "HALOX_MPI"}
			}
			in.Fails(t, testmpi.Job{Program: "absent", Ranks: 2, Env: []string{"HALOX_MPI=" + tc.library}}, words...)
		})
	}
}

// Without HALOX_MPI the library next to the launcher is used.
func TestFindsTheLibraryOfTheLauncher(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		in.Done(t, testmpi.Job{Program: "collectives", Ranks: 2, Env: []string{"HALOX_MPI="}})
	})
}
