package exampletest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
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

// Compile compiles a source for each generation of GPUs. It fails the test where a kernel spills registers to memory.
func Compile(t *testing.T, source kernels.Source) {
	t.Helper()
	testdevices.OtherCompilers(t)
	headers, err := filepath.Glob("../../kernels/cu/*.cuh")
	if err != nil || len(headers) == 0 {
		t.Skip("SKIPPED: no kernel was looked at for spills: the headers are not beside the tests")
	}
	text := nvrtc.Source{Name: source.Name, Text: source.Text}
	for _, h := range headers {
		content, err := os.ReadFile(h)
		if err != nil {
			t.Fatal(err)
		}
		text.Headers = append(text.Headers, nvrtc.Header{Name: filepath.Base(h), Text: string(content)})
	}
	c, err := nvrtc.Open(testdevices.NVRTC(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, arch := range []string{"sm_80", "sm_90", "sm_100"} {
		options := []string{"--gpu-architecture=" + arch, "--std=c++17", "--fmad=false", "-default-device", "--pre-include=halox.cuh", "--ptxas-options=-v"}
		for _, d := range source.Defines {
			options = append(options, "--define-macro="+d)
		}
		made, err := c.Compile(text, options)
		if err != nil {
			t.Fatal(err)
		}
		usages := nvrtc.ParseUsage(made.Log)
		if len(usages) == 0 {
			t.Errorf("%s: nothing is known of the kernels of %s", arch, source.Name)
		}
		for _, u := range usages {
			t.Logf("%s %v: %s: %d registers, %d bytes shared", arch, source.Defines, u.Name, u.Registers, u.Shared)
			if u.SpillStores+u.SpillLoads+u.StackFrame != 0 {
				t.Errorf("%s %v: %s spills: %+v", arch, source.Defines, u.Name, u)
			}
		}
	}
}
