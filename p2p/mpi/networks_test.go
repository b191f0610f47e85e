//go:build unix

package mpi_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/nccl/ncclfake"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
)

// Messages between devices arrive over each network as those through pinned memory do. NCCL has no tags: several
// messages between two devices arrive where they belong, in whatever order they are sent.
func TestProgramsOverNetworks(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		device := append(testdevices.Environment(t, 2), networkVariable+"=mpi-device")
		for _, tc := range []struct {
			name  string
			env   []string
			ranks []int
		}{{"mpi-device", device, []int{3, 2, 4}}, {"nccl", overNCCL(t), []int{2, 3}}} {
			for _, ranks := range testdevices.Some(1, tc.ranks) {
				t.Run(fmt.Sprintf("%s/%d", tc.name, ranks), func(t *testing.T) {
					in.Done(t, testmpi.Job{Program: "messages", Ranks: ranks, Env: tc.env})
				})
			}
		}
	})
}

// MPI that takes host memory, which that of these GPUs is, is found right where it is not asked what it says, and a rank that
// does not send ends the others there too.
func TestProgramsTryDeviceMemory(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	gpus := slices.Clip(testdevices.Environment(t, 2))
	insist := insistVariable + "=1"
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		tries(t, in, testmpi.Job{Program: "try", Ranks: 3}, []trial{
			{"believed", append(gpus, insist), "tried: <nil>"},
			{"asked", gpus, "does not say that it takes device memory"},
			{"host devices", []string{insist}, "tried: mpi: memory of host devices is the host's"},
		})
		t.Run("a rank hangs", func(t *testing.T) {
			job := testmpi.Job{Program: "hangs", Ranks: 3, Env: append(gpus, networkVariable+"=mpi-device")}
			in.Fails(t, job, "mpi: message 5 from rank 2 on host ", "MPI_Irecv from rank 2, tag 1: waited too long for ")
		})
	})
}

// A library that says that it takes device memory, and does not, is found out, and ends no program that shares grids.
func TestLibrariesThatLie(t *testing.T) {
	in := testmpi.Named(t, "openmpi")
	gpus := slices.Clip(testdevices.Environment(t, 2))
	in.Library = lying(t, in.Library)
	how := func(does string) []string { return append(gpus, "SHIM="+does) }
	tries(t, in, testmpi.Job{Program: "try", Ranks: 3}, testdevices.Some(2, []trial{
		{"crashes", how("crashes"), "device memory: exit status 2: SIGABRT: abort"},
		{"never", how("never"), "tried: <nil>"},
		{"corrupts alone", how("corrupts alone"), "1000 bytes of device memory from rank 0 to rank 0: they arrived wrong"},
		{"corrupts together", how("corrupts together"), "1000 bytes of device memory from rank 1 to rank 2: they arrived wrong"},
	}))
}

func overNCCL(t *testing.T) []string {
	return append(testdevices.Environment(t, 2), networkVariable+"=nccl", "HALOX_NCCL="+ncclfake.Build(t))
}

// NCCL that is not there, or does wrong, is found out by a trial, after which processes go on.
func TestProgramsTryNCCL(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		env := slices.Clip(overNCCL(t))
		with := func(variable string) []string { return append(env, variable) }
		tries(t, in, testmpi.Job{Program: "try nccl", Ranks: 2}, testdevices.Some(3, []trial{
			{"none", with("HALOX_NCCL=/nowhere/libnccl.so.2"), "no NCCL library found: /nowhere/libnccl.so.2"},
			{"right", with("NCCLFAKE="), "tried: <nil> NCCL 2.27.5 over FAKE/SOCKET"},
			{"host devices", with("HALOX_TEST_GPUS="), "memory of host devices is the host's"},
			{"never begins", with("NCCLFAKE=never begins"), "8 bytes by NCCL to rank 1 on host "},
			{"corrupts", with("NCCLFAKE=corrupts"), "8 bytes by NCCL from rank 1 to rank 0: they arrived wrong"},
			{"fails", with("NCCLFAKE=fails"), "NCCL: unhandled system error (2): as NCCLFAKE says"},
		}))
	})
}

// NCCL that hangs or fails in the middle, a rank that sends nothing and one that is gone end all others in time, which say
// what they waited for.
func TestFailuresOverNCCL(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		env := overNCCL(t)
		for _, tc := range testdevices.Some(2, []struct {
			name, program, variable string
			words                   []string
		}{
			{"it hangs", "one way", "NCCLFAKE=hangs:15", []string{"message 5 from rank 1 on host ", "NCCL: waited too long for NCCL to queue it: "}},
			{"it fails", "one way", "NCCLFAKE=fails:15", []string{"message 5 from rank 1 on host ", "NCCL: unhandled system error (2)"}},
			{"a rank hangs", "hangs", "NCCLFAKE=", []string{"mpi: message 5 from rank 1 on host ", "MPI_Irecv from rank 1, tag 1: waited too long for "}},
			{"a rank is gone", "killed", "NCCLFAKE=", nil},
		}) {
			t.Run(tc.name, func(t *testing.T) {
				in.Fails(t, testmpi.Job{Program: tc.program, Ranks: 2, Env: append(env, tc.variable)}, tc.words...)
			})
		}
	})
}

// trial is variables of a job, and what each rank says was found.
type trial struct {
	name  string
	env   []string
	found string
}

func tries(t *testing.T, in testmpi.Installation, job testmpi.Job, trials []trial) {
	t.Helper()
	for _, tc := range trials {
		t.Run(tc.name, func(t *testing.T) {
			job.Env = tc.env
			in.Patiently(t, job, func(r testmpi.Result) error {
				if n := strings.Count(r.Out, tc.found); r.Err != nil || n < job.Ranks {
					return fmt.Errorf("%d times %q: %w\n%s", n, tc.found, r.Err, r.Out)
				}
				return nil
			})
		})
	}
}

// lying builds the shim over a library.
func lying(t *testing.T, library string) string {
	t.Helper()
	shim := filepath.Join(t.TempDir(), "libshim.so")
	out, err := exec.Command("cc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", shim, "testdata/shim.c", library, "-ldl", "-Wl,-rpath,"+filepath.Dir(library)).CombinedOutput()
	if err != nil {
		t.Skipf("SKIPPED: no C compiler for an MPI library that lies: %v\n%s", err, out)
	}
	return shim
}
