package exampletest

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
)

// Compile compiles a source: its kernels keep their variables in registers, of which threads have so many at most, or what others
// has for a generation of GPUs such as sm_100, and no fence but the one that acquires alone: ranks order what they store by releases. It looks at
// the registers of each generation of GPUs and at the fences if tests are long, else at one or the other, of one generation, by the seed.
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
	ptx, err := testdevices.CachingCompiler(t).Compile(source, "sm_999") // newer than those that the compiler knows
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(ptx)) {
		if strings.Contains(line, "membar") || strings.Contains(strings.ReplaceAll(line, "fence.acquire.sys", ""), "fence.") {
			t.Errorf("%s has %s", source.Name, strings.TrimSpace(line))
		}
	}
	if !strings.Contains(string(ptx), "red.release.sys") {
		t.Errorf("%s is no PTX that tells by releases", source.Name)
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
		options := []string{"--gpu-architecture=" + arch, "--std=c++17", "--fmad=false", "-default-device", "--pre-include=halox.cuh", "--ptxas-options=-v"}
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
