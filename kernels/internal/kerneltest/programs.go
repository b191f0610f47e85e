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

// CompileWithoutSpills wants programs to compile for each generation of GPUs, see testdevices.Generations, and to keep
// their variables in registers.
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

// WithoutSpills wants a program to compile for one generation, in a subtest beside others, and to keep its variables in
// registers.
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

// usage returns what the kernels of a program use. What the compiler said is kept in the folder .cache of the
// module, which lies two folders above that of the test.
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

// PTX returns what the compiler makes of a program for GPUs newer than those that it knows.
func PTX(t *testing.T, c *kernels.Compiler, p kernels.Program) string {
	t.Helper()
	return string(test.Must(c.Image(p, "sm_999"))(t))
}

// AcquireAndRelease wants the kernels of a program to wait for other GPUs by acquires and to signal by
// releases, and by no fence, which would cost more.
func AcquireAndRelease(t *testing.T, p kernels.Program) {
	t.Helper()
	testdevices.Once(t)
	text := PTX(t, testdevices.CachingCompiler(t), p)
	for _, has := range []string{"ld.acquire.sys", "red.release.sys"} {
		if !strings.Contains(text, has) {
			t.Errorf("no %s", has)
		}
	}
	for _, hasNot := range []string{"membar", "fence."} {
		if strings.Contains(text, hasNot) {
			t.Errorf("%s in it", hasNot)
		}
	}
}

// CompileAsCPP wants programs to compile as C++ with their mirrors, where there is no NVRTC either: one of
// each file and type.
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

// CPP returns a C++ compiler, and the flags with which editors read the sources in a folder too: they have
// what stands for CUDA on a CPU. It skips the test without one, and where the sources of tests are not.
func CPP(t *testing.T, folder string) (compiler string, flags []string) {
	t.Helper()
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("SKIPPED: no C++ compiler: ", err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "compile_flags.txt"))
	if err != nil {
		t.Skip("SKIPPED: the CUDA sources are not here: ", err)
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

// argument finds the types of kernels' arguments.
var argument = regexp.MustCompile(`const __grid_constant__ (\w+)`)

// MirrorArguments wants every argument of a kernel to have its mirror in Go.
func MirrorArguments(t *testing.T, programs ...kernels.Program) {
	t.Helper()
	for _, p := range programs {
		text, layout, _ := strings.Cut(test.Must(p.Files())(t)[p.File], "#line 1 \"the layout of ")
		for _, found := range argument.FindAllStringSubmatch(text, -1) {
			name := found[1]
			if name != "i64" && !strings.Contains(layout, "sizeof("+name+") ==") {
				t.Errorf("%s: no mirror of %s", p.File, name)
			}
		}
	}
}
