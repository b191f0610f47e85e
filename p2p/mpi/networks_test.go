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

// Messages between devices arrive over each network like those through pinned memory. NCCL has no tags, but
// messages between two devices arrive at their destination in any order of sending.
func TestProgramsOverNetworks(t *testing.T) {
	testdevices.InTurn(t, 1, 4)
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

// MPI with host memory, which the memory of these GPUs is, passes the trial if insist is set, and a rank that does
// not send ends the others there too.
func TestProgramsTryDeviceMemory(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	gpus := slices.Clip(testdevices.Environment(t, 2))
	insist := insistVariable + "=1"
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		tries(t, in, testmpi.Job{Program: "try", Ranks: 3}, []trial{
			{"insist", append(gpus, insist), "tried: <nil>"},
			{"not reported", gpus, "does not report support for device memory"},
			{"CPU devices", []string{insist}, "tried: mpi: CPU devices have no device memory"},
		})
		t.Run("a rank hangs", func(t *testing.T) {
			job := testmpi.Job{Program: "hangs", Ranks: 3, Env: append(gpus, networkVariable+"=mpi-device")}
			in.Fails(t, job, "mpi: message 5 from rank 2 on host ", "MPI_Irecv from rank 2, tag 1: waited too long for ")
		})
	})
}

// A library that wrongly reports support for device memory is detected, and does not end a program.
func TestWrongLibraries(t *testing.T) {
	in := testmpi.Named(t, "openmpi")
	gpus := slices.Clip(testdevices.Environment(t, 2))
	in.Library = lying(t, in.Library)
	how := func(does string) []string { return append(gpus, "SHIM="+does) }
	tries(t, in, testmpi.Job{Program: "try", Ranks: 3}, testdevices.Some(2, []trial{
		{"crashes", how("crashes"), "device memory: exit status 2: SIGABRT: abort"},
		{"never", how("never"), "tried: <nil>"},
		{"corrupts alone", how("corrupts alone"), "1000 bytes of device memory from rank 0 to rank 0: data was corrupted"},
		{"corrupts together", how("corrupts together"), "1000 bytes of device memory from rank 1 to rank 2: data was corrupted"},
	}))
}

func overNCCL(t *testing.T) []string {
	return append(testdevices.Environment(t, 2), networkVariable+"=nccl", "HALOX_NCCL="+ncclfake.Build(t))
}

// A trial detects that NCCL is missing or wrong, after which processes continue.
func TestProgramsTryNCCL(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		env := slices.Clip(overNCCL(t))
		with := func(variable string) []string { return append(env, variable) }
		tries(t, in, testmpi.Job{Program: "try nccl", Ranks: 2}, testdevices.Some(3, []trial{
			{"missing", with("HALOX_NCCL=/nowhere/libnccl.so.2"), "no NCCL library found: /nowhere/libnccl.so.2"},
			{"correct", with("NCCLFAKE="), "tried: <nil> NCCL 2.27.5 over FAKE/SOCKET"},
			{"CPU devices", with("HALOX_TEST_GPUS="), "CPU devices have no device memory"},
			{"never begins", with("NCCLFAKE=never begins"), "8 bytes by NCCL to rank 1 on host "},
			{"corrupts", with("NCCLFAKE=corrupts"), "8 bytes by NCCL from rank 1 to rank 0: data was corrupted"},
			{"fails", with("NCCLFAKE=fails"), "NCCL: unhandled system error (2): as NCCLFAKE says"},
		}))
	})
}

// If NCCL hangs or fails during a run, or a rank sends nothing or ends, all others end in time, and their errors
// name what they waited for.
func TestFailuresOverNCCL(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		env := overNCCL(t)
		for _, tc := range testdevices.Some(2, []struct {
			name, program, variable string
			words                   []string
		}{
			{"NCCL hangs", "one way", "NCCLFAKE=hangs:15", []string{"message 5 from rank 1 on host ", "NCCL: waited too long for NCCL to queue it: "}},
			{"NCCL fails", "one way", "NCCLFAKE=fails:15", []string{"message 5 from rank 1 on host ", "NCCL: unhandled system error (2)"}},
			{"a rank hangs", "hangs", "NCCLFAKE=", []string{"mpi: message 5 from rank 1 on host ", "MPI_Irecv from rank 1, tag 1: waited too long for "}},
			{"a rank is gone", "killed", "NCCLFAKE=", nil},
		}) {
			t.Run(tc.name, func(t *testing.T) {
				in.Fails(t, testmpi.Job{Program: tc.program, Ranks: 2, Env: append(env, tc.variable)}, tc.words...)
			})
		}
	})
}

// trial holds variables of a job, and the result that each rank must print.
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

// lying builds the test shim over a library.
func lying(t *testing.T, library string) string {
	t.Helper()
	shim := filepath.Join(t.TempDir(), "libshim.so")
	out, err := exec.Command("cc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", shim, "testdata/shim.c", library, "-ldl", "-Wl,-rpath,"+filepath.Dir(library)).CombinedOutput()
	if err != nil {
		t.Skipf("SKIPPED: no C compiler for the test MPI library: %v\n%s", err, out)
	}
	return shim
}
