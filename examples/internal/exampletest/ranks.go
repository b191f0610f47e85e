package exampletest

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
)

// Main runs the tests of a package and exits. It fails if a kernel of a source never ran on the CPU.
func Main(m *testing.M, source string) { os.Exit(testdevices.Main(m, source)) }

// Ranks is a program with device ranks whose tests run on CPU devices, GPUs and emulated GPUs.
type Ranks struct{ New func() example.Program }

// OneAnswer runs the program with the flags on the given number of devices of each backend. Each result must agree with
// the reference of the program, and all checksums must be equal.
func (r Ranks) OneAnswer(t *testing.T, devices int, flags string) {
	t.Helper()
	sums := map[uint32]bool{}
	run := func(t *testing.T, s *testdevices.Set) {
		if devices > len(s.Devices) {
			t.Skipf("SKIPPED: %d devices, the test needs %d", len(s.Devices), devices)
		}
		program := r.New()
		if _, err := program.Parse(strings.Fields(flags), io.Discard); err != nil {
			t.Fatal(err)
		}
		sum, err := program.Run(t.Context(), Session(s, devices), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if sums[sum] = true; len(sums) > 1 {
			t.Errorf("checksum %08X, other backends have another: %08X", sum, slices.Collect(maps.Keys(sums)))
		}
	}
	t.Run(fmt.Sprintf("devices=%d/%s", devices, strings.ReplaceAll(flags, " ", "_")), func(t *testing.T) {
		t.Run("backend=host", func(t *testing.T) { run(t, testdevices.Host(t, devices)) })
		t.Run("backend=cuda", func(t *testing.T) { run(t, testdevices.GPUs(t)) })
		t.Run("backend=cuda-on-cpu", func(t *testing.T) { run(t, testdevices.CPU(t, devices)) })
	})
}

// Session returns a session of the first devices of a set.
func Session(s *testdevices.Set, devices int) *halo.Session {
	return &halo.Session{
		Backend: s.Devices[0].Backend, Devices: s.Devices[:devices], Links: s.Links, Compiler: s.Compiler,
	}
}

// Each calls f with a setup of equally many ranks on 1 to n devices of each backend, at most two emulated GPUs.
func Each(t *testing.T, most, ranks int, f func(t *testing.T, s *example.Setup)) {
	t.Helper()
	testdevices.EachKernel(t, most, func(t *testing.T, s *testdevices.Set) {
		all := min(most, len(s.Devices))
		if testdevices.OnCPU(s.Devices[0]) {
			all = min(all, 2)
		}
		for n := 1; n <= all; n++ {
			t.Run(fmt.Sprintf("devices=%d", n), func(t *testing.T) { f(t, Setup(t, s, n, ranks)) })
		}
	})
}

// Setup returns a setup with a number of ranks on devices of a set, for the duration of a test.
func Setup(t *testing.T, s *testdevices.Set, devices, each int) *example.Setup {
	setup := &example.Setup{Session: Session(s, devices), Threads: 64}
	setup.Options.Ranks, setup.Options.Limit = each, 5*time.Minute // also on a busy machine
	t.Cleanup(func() {
		if err := setup.Close(); err != nil {
			t.Error(err)
		}
	})
	return setup
}

// Rejects checks that the program rejects flags: wrong has the error for flags. It also checks that it prints its flags
// for -h.
func (r Ranks) Rejects(t *testing.T, wrong map[string]string) {
	t.Helper()
	for flags, want := range wrong {
		err := r.New().Command(t.Context(), strings.Fields("--backend host --devices 2 "+flags), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", flags, err, want)
		}
	}
	var help strings.Builder
	_, err := r.New().Parse([]string{"-h"}, &help)
	if !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-per-multiprocessor") {
		t.Errorf("-h gives %v and\n%s", err, help.String())
	}
}

// Compile compiles a source for generations of GPUs, and checks that its kernels spill no registers, use at most the
// given number of registers per thread, or that of others for a generation such as sm_100, and have no fences except
// acquires: device ranks order stores by releases. A long test checks the registers of all generations and fences, a
// short one checks one of these.
func Compile(t *testing.T, source kernels.Source, registers int, others map[string]int) {
	testdevices.Once(t)
	if testdevices.Turn(0, 2, 1) {
		withoutFences(t, source)
	}
	if testdevices.Turn(1, 2, 1) {
		inRegisters(t, source, registers, others)
	}
}

func withoutFences(t *testing.T, source kernels.Source) {
	ptx, err := testdevices.CachingCompiler(t).Compile(source, "sm_999") // newer than those that the compiler supports
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(ptx)) {
		others := strings.ReplaceAll(line, "fence.acquire.sys", "")
		if strings.Contains(line, "membar") || strings.Contains(others, "fence.") {
			t.Errorf("%s has %s", source.Name, strings.TrimSpace(line))
		}
	}
	if !strings.Contains(string(ptx), "red.release.sys") {
		t.Errorf("%s has no release in its PTX", source.Name)
	}
}

func inRegisters(t *testing.T, source kernels.Source, registers int, others map[string]int) {
	c, err := nvrtc.Open(testdevices.NVRTC(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text := nvrtc.Source{Name: source.Name, Text: source.Text}
	headers, err := filepath.Glob("../../kernels/cu/*.cuh")
	if err != nil || len(headers) == 0 {
		t.Skip("SKIPPED: the headers of kernels/cu are not here: ", err)
	}
	for _, file := range headers {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text.Headers = append(text.Headers, nvrtc.Header{Name: filepath.Base(file), Text: string(content)})
	}
	for _, arch := range testdevices.Generations(1) {
		most := cmp.Or(others[arch], registers)
		options := []string{
			"--gpu-architecture=" + arch, "--std=c++17", "--fmad=false", "-default-device",
			"--pre-include=halox.cuh", "--ptxas-options=-v",
		}
		for _, d := range source.Defines {
			options = append(options, "--define-macro="+d)
		}
		compiled, err := c.Compile(text, options)
		if err != nil {
			t.Fatal(err)
		}
		all := nvrtc.ParseUsage(compiled.Log)
		if len(all) != strings.Count(source.Text, `extern "C" __global__`) {
			t.Fatalf("%s: the usage of %d kernels in\n%s", arch, len(all), compiled.Log)
		}
		for _, u := range all {
			t.Logf("%s: %s: %d registers, %d bytes of shared memory", arch, u.Name, u.Registers, u.Shared)
			if u.SpillStores+u.SpillLoads+u.StackFrame != 0 || u.Registers > most {
				t.Errorf("%s: %s: %+v", arch, u.Name, u)
			}
		}
	}
}
