package exampletest

import (
	"fmt"
	"os"
	"testing"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
)

// EachSession calls f with sessions of 1 to so many host devices, of as many GPUs as there are up to that number, and
// of GPUs that are made of the CPU, one and two.
func EachSession(t *testing.T, most int, f func(t *testing.T, s *halo.Session)) {
	t.Helper()
	testdevices.EachKernel(t, most, func(t *testing.T, s *testdevices.Set) {
		all := min(most, len(s.Devices))
		if testdevices.OnCPU(s.Devices[0]) {
			all = min(all, 2)
		}
		for n := 1; n <= all; n++ {
			t.Run(fmt.Sprintf("devices=%d", n), func(t *testing.T) {
				f(t, &halo.Session{Backend: s.Devices[0].Backend, Devices: s.Devices[:n], Links: s.Links, Compiler: s.Compiler})
			})
		}
	})
}

// Main runs the tests of a package and exits. It fails if a kernel of a source never ran on the CPU.
func Main(m *testing.M, source string) { os.Exit(testdevices.Main(m, source)) }
