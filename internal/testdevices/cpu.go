package testdevices

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Sources that compile CUDA for the CPU, and run its threads there.
//
//go:embed cpu
var onCPU embed.FS

// filesForCPU are those sources and the replacements for CUDA headers, by path.
func filesForCPU() (map[string]string, error) {
	files, err := kernels.Program{File: "latency.cu"}.Files() // of any program
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(files, func(name, _ string) bool { return !strings.HasPrefix(name, "cpu/") })
	own, err := fs.Glob(onCPU, "cpu/*")
	for _, name := range own {
		text, err := onCPU.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files[name] = string(text)
	}
	return files, err
}

// EachKernel is Each with an additional backend, if this machine has a C++ compiler: GPUs emulated on the CPU. They run
// the sources of the kernels, launched as on a GPU, see CPU.
func EachKernel(t *testing.T, n int, f func(t *testing.T, s *Set)) {
	Each(t, n, f)
	onBackend(t, "cuda-on-cpu", func(t *testing.T) { f(t, CPU(t, n)) })
}

// CPU opens n emulated GPUs for the duration of the test, and skips the test if that is not possible: a driver with the
// devices, streams and events of cudafake, and an NVRTC that compiles kernels with the C++ compiler of this machine.
// Thread blocks, barriers, shuffles, flags and packets work as on a GPU, in changing orders; the arithmetic is that of
// the CPU, which rounds equally. It also skips the test under the race detector, which does not see the C++ threads of
// kernels.
func CPU(t testing.TB, n int) *Set {
	t.Helper()
	notAgain(t)
	return cpu(t, n)
}

// notAgain skips a test of emulated GPUs if tests run again, see Again.
func notAgain(t testing.TB) {
	t.Helper()
	if again {
		t.Skip("SKIPPED: under the race detector, or without cgo: kernels on the CPU are C++, not threads of Go")
	}
}

// CPUBesideThreads is CPU for tests of Go threads that run concurrently with kernels, which also run under the race
// detector.
func CPUBesideThreads(t testing.TB, n int) *Set {
	t.Helper()
	return cpu(t, n)
}

// CPUApart is CPUBesideThreads with GPUs without access to each other: Go threads copy between them.
func CPUApart(t testing.TB, n int) *Set {
	t.Helper()
	return cpu(t, n, cudafake.Apart)
}

func cpu(t testing.TB, n int, flags ...string) *Set {
	t.Helper()
	compiler, err := compilerForCPU()
	if err != nil {
		t.Skip("SKIPPED: no CUDA kernel was run on the CPU: ", err)
	}
	if !cudafake.Opens {
		t.Skip("SKIPPED: no CUDA kernel was run on the CPU: without cgo no driver can be opened")
	}
	flags = append(flags, cudafake.Devices(n), cudafake.Multiprocessors(8), cudafake.Shared(40<<10), cudafake.Runs)
	driver := cudafake.Build(t, flags...)
	p, err := streams.CUDAPlatform(driver)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // once the devices are closed
		for _, kernel := range cudafake.Ran(t, driver) {
			ranOnCPU.Store(kernel, true)
		}
	})
	s := open(t, p)
	s.Compiler = compiler
	return s
}

// OnCPU reports whether a GPU is emulated on the CPU, which is far slower.
func OnCPU(d *streams.Device) bool {
	return d.Backend == streams.CUDA && d.Name == "Fake GPU "+fmt.Sprint(d.ID)
}

// OnGPU reports whether a device is a real GPU.
func OnGPU(d *streams.Device) bool { return d.Backend == streams.CUDA && !OnCPU(d) }

// compilerForCPU is the compiler of the process.
var compilerForCPU = sync.OnceValues(func() (*kernels.Compiler, error) {
	options, err := optionsForCPU()
	return kernels.NewCompiler(options), err
})

// optionsForCPU are the options of compilers for the CPU, with the folder .cache of the module as their cache.
var optionsForCPU = sync.OnceValues(func() (none kernels.Options, _ error) {
	nvrtc, err := libraryForCPU()
	if err != nil {
		return none, err
	}
	return kernels.Options{NVRTC: nvrtc, Cache: filepath.Dir(nvrtc)}, nil
})

// libraryForCPU returns the NVRTC that compiles for the CPU, in its cache folder.
func libraryForCPU() (string, error) {
	cc, err := CPlusPlus()
	if err != nil {
		return "", err
	}
	root, err := cudafake.ModuleRoot()
	if err != nil {
		return "", err
	}
	files, err := filesForCPU()
	if err != nil {
		return "", err
	}
	key, err := keyForCPU(cc, files)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".cache", "cpu-"+key)
	nvrtc := filepath.Join(dir, "libnvrtc.so")
	if _, err := os.Stat(nvrtc); err != nil {
		if err := buildNVRTC(cc, dir, nvrtc, files); err != nil {
			return "", err
		}
	}
	return nvrtc, nil
}

// optionsOfCompiler are the compiler options for the CPU. Without -fno-gnu-unique, __shared__ variables with the same
// name in two programs would be one variable.
var optionsOfCompiler = strings.Fields(
	"-std=c++17 -Og -w -fPIC -pthread -ffp-contract=off -fno-strict-aliasing -fno-gnu-unique",
)

// keyForCPU returns a hash of everything that a compiled kernel depends on, except its source.
func keyForCPU(cc string, files map[string]string) (string, error) {
	version, err := exec.Command(cc, "--version").Output()
	h := sha256.New()
	fmt.Fprintf(h, "%s %q\n", version, optionsOfCompiler)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%q %q\n", name, files[name])
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6]), err
}

// buildNVRTC builds the library in a temporary folder, which is then renamed: another process may do the same.
func buildNVRTC(cc, dir, library string, files map[string]string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), "new-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	if err := os.Mkdir(filepath.Join(made, "cpu"), 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(made, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, options := range [][]string{
		{"-xc++-header", "-o", "cpu/program.h.gch", "cpu/program.h"},
		{"-c", "-o", "cpu/run.o", "cpu/run.cc"},
		{"-shared", "-o", filepath.Base(library), fmt.Sprintf("-DINCLUDE=%q", dir),
			fmt.Sprintf("-DCOMPILER=%q", cc+" "+strings.Join(optionsOfCompiler, " ")), "cpu/nvrtc.cc"},
	} {
		build := exec.Command(cc, slices.Concat(optionsOfCompiler, []string{"-I."}, options)...)
		build.Dir = made
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
	}
	if os.Rename(made, dir) == nil {
		return nil
	}
	if _, missing := os.Stat(library); missing == nil {
		return nil // another process was faster
	}
	if err := os.RemoveAll(dir); err != nil { // a folder without the library
		return err
	}
	return os.Rename(made, dir)
}
