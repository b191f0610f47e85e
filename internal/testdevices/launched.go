package testdevices

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/streams"
)

// launchedVariable set has Launched take GPUs.
const launchedVariable = "HALOX_TEST_GPUS"

// Environment returns variables by which programs of several processes, see package testmpi, have n GPUs that are made
// of the CPU, as CPU opens in the test's own process: Launched opens them, and so does a session of backend cuda. It
// skips the test where CPU does.
func Environment(t testing.TB, n int) []string {
	t.Helper()
	notAgain(t)
	nvrtc, err := libraryForCPU()
	if err != nil {
		t.Skip("SKIPPED: no CUDA kernel was run on the CPU: ", err)
	}
	driver := cudafake.Build(
		t, cudafake.Devices(n), cudafake.Multiprocessors(8), cudafake.Shared(40<<10), cudafake.Runs,
	)
	return []string{
		launchedVariable + "=1", "HALOX_CUDA=" + driver, "HALOX_NVRTC=" + nvrtc, "HALOX_CACHE=" + filepath.Dir(nvrtc),
	}
}

// Launched returns the devices of a process of such a program: GPUs where Environment has made some, else n host
// devices.
func Launched(n int) (*streams.Platform, error) {
	if os.Getenv(launchedVariable) == "" {
		return streams.HostPlatform(n), nil
	}
	return streams.CUDAPlatform(os.Getenv("HALOX_CUDA"))
}
