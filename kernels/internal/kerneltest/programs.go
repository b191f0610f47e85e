package kerneltest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/internal/nvrtc/usages"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/source"
)

// CompileWithoutSpills fails the test unless programs compile for each generation of GPUs, see
// testdevices.Generations, and keep their variables in registers.
func CompileWithoutSpills(t *testing.T, programs ...kernels.Program) {
	t.Helper()
	testdevices.Once(t)
	c := test.Must(nvrtc.Open(testdevices.NVRTC(t)))(t)
	for i, p := range programs {
		for _, arch := range testdevices.Generations(i) {
			WithoutSpills(t, c, p.String(), p, arch)
		}
	}
}

// WithoutSpills fails the test unless a program compiles for one generation and keeps its variables in registers.
// It runs as a parallel subtest.
func WithoutSpills(t *testing.T, c *nvrtc.Compiler, name string, p kernels.Program, arch string) {
	t.Run(arch+"/"+name, func(t *testing.T) {
		t.Parallel()
		for _, u := range usage(t, c, p, arch) {
			t.Logf("%s: %d registers", u.Name, u.Registers)
			if u.SpillStores+u.SpillLoads+u.StackFrame != 0 {
				t.Errorf("%s spills: %+v", u.Name, u)
			}
		}
	})
}

// usage returns the resource usage of the kernels of a program. The output of the compiler is cached in the folder
// .cache of the module, two folders above that of the test.
func usage(t *testing.T, c *nvrtc.Compiler, p kernels.Program, arch string) []nvrtc.KernelUsage {
	t.Helper()
	text := nvrtc.Source{Name: p.File}
	for name, content := range test.Must(p.Files())(t) {
		switch {
		case name == p.File:
			text.Text = content
		case !strings.HasPrefix(name, "cpu/"):
			text.Headers = append(text.Headers, nvrtc.Header{Name: name, Text: content})
		}
	}
	return test.Must(usages.Of(c, "../../.cache/usages", text, source.Options(arch, p.Defines...)))(t)
}

// PTX returns the PTX of a program for GPUs newer than the compiler supports.
func PTX(t *testing.T, c *kernels.Compiler, p kernels.Program) string {
	t.Helper()
	return string(test.Must(c.Image(p, "sm_999"))(t))
}

// AcquireAndRelease fails the test unless the kernels of a program wait for other GPUs by acquires and signal by
// releases, and use no fences, which would cost more.
func AcquireAndRelease(t *testing.T, p kernels.Program) {
	t.Helper()
	testdevices.Once(t)
	text := PTX(t, testdevices.CachingCompiler(t), p)
	for _, has := range []string{"ld.acquire.sys", "red.release.sys"} {
		if !strings.Contains(text, has) {
			t.Errorf("PTX must contain %s", has)
		}
	}
	for _, hasNot := range []string{"membar", "fence."} {
		if strings.Contains(text, hasNot) {
			t.Errorf("PTX must not contain %s", hasNot)
		}
	}
}

// CompileAsCPP fails the test unless programs compile as C++ with their mirrors, which needs no NVRTC: one of each
// file and type.
func CompileAsCPP(t *testing.T, programs ...kernels.Program) {
	t.Helper()
	testdevices.Once(t)
	compiler, flags := CPP(t, "../cu")
	seen := map[string]bool{}
	for _, p := range programs {
		kind := fmt.Sprint(p.File, p.Defines[:min(1, len(p.Defines))])
		if seen[kind] {
			continue
		}
		seen[kind] = true
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			all := append(flags[:len(flags):len(flags)], "-w")
			for _, d := range p.Defines {
				all = append(all, "-D"+d)
			}
			check := exec.Command(compiler, append(all, filepath.Join(writeSources(t, p), p.File))...)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// CPP returns a C++ compiler, and the flags with which editors read the sources of a folder: headers that replace
// CUDA on a CPU. It skips the test without a compiler, or if the sources of tests are missing.
func CPP(t *testing.T, folder string) (compiler string, flags []string) {
	t.Helper()
	compiler, err := testdevices.CPlusPlus()
	if err != nil {
		t.Skip("SKIPPED: no C++ compiler: ", err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "compile_flags.txt"))
	if err != nil {
		t.Skip("SKIPPED: the CUDA sources are missing: ", err)
	}
	flags = []string{"-I" + test.Must(filepath.Abs(folder))(t), "-fsyntax-only"}
	for flag := range strings.Lines(string(text)) {
		flags = append(flags, strings.TrimSpace(flag))
	}
	return compiler, flags
}

// writeSources writes the sources of a program to a folder.
func writeSources(t *testing.T, p kernels.Program) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range test.Must(p.Files())(t) {
		if strings.HasPrefix(name, "cpu/") {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// argument finds the types of kernel arguments.
var argument = regexp.MustCompile(`const __grid_constant__ (\w+)`)

// MirrorArguments fails the test unless every kernel argument has a mirror in Go.
func MirrorArguments(t *testing.T, programs ...kernels.Program) {
	t.Helper()
	for _, p := range programs {
		text, layout, _ := strings.Cut(test.Must(p.Files())(t)[p.File], "#line 1 \"the layout of ")
		for _, found := range argument.FindAllStringSubmatch(text, -1) {
			name := found[1]
			if name != "i64" && !strings.Contains(layout, "sizeof("+name+") ==") {
				t.Errorf("%s: must have a mirror of %s", p.File, name)
			}
		}
	}
}
