package testdevices

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/streams"
)

// launchedVariable makes Launched use GPUs.
const launchedVariable = "HALOX_TEST_GPUS"

// Environment returns variables with which programs of several processes, see package testmpi, have n emulated GPUs,
// like those of CPU: Launched opens them, and so does a session with backend cuda. flags are more flags of
// cudafake.Build. It skips the test if CPU does.
func Environment(t testing.TB, n int, flags ...string) []string {
	t.Helper()
	notAgain(t)
	nvrtc, err := libraryForCPU()
	if err != nil {
		t.Skip("SKIPPED: no CUDA kernel was run on the CPU: ", err)
	}
	driver := cudafake.Build(t, append(flags,
		cudafake.Devices(n), cudafake.Multiprocessors(8), cudafake.Shared(40<<10), cudafake.Runs)...)
	return []string{
		launchedVariable + "=1", "HALOX_CUDA=" + driver, "HALOX_NVRTC=" + nvrtc, "HALOX_CACHE=" + filepath.Dir(nvrtc),
	}
}

// Launched returns the devices of a process of such a program: GPUs if Environment provides some, otherwise n
// CPU devices.
func Launched(n int) (*streams.Platform, error) {
	if os.Getenv(launchedVariable) == "" {
		return streams.HostPlatform(n), nil
	}
	return streams.CUDAPlatform(os.Getenv("HALOX_CUDA"))
}
