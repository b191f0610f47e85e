package testdevices

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/internal/nvrtc/usages"
	"github.com/halox/halox/kernels"
)

// Compiler returns a compiler that needs no GPU, see its Compile. It skips the
// test where there is no NVRTC.
func Compiler(t *testing.T) *kernels.Compiler {
	t.Helper()
	return kernels.NewCompiler(kernels.Options{NVRTC: NVRTC(t), Cache: t.TempDir()})
}

// CachingCompiler is Compiler with the folder .cache of the module as its cache, for all tests.
func CachingCompiler(t *testing.T) *kernels.Compiler {
	t.Helper()
	cache := filepath.Join(moduleRoot(t), ".cache", "images")
	return kernels.NewCompiler(kernels.Options{NVRTC: NVRTC(t), Cache: cache})
}

// Compile compiles the source for the named generations of GPUs, by default for one that halox supports, or for all if
// tests are long. Results stay in the folder .cache of the module. See Once.
func Compile(t *testing.T, source kernels.Source, named ...string) {
	t.Helper()
	Once(t)
	c := CachingCompiler(t)
	if len(named) == 0 {
		named = Generations(1)
	}
	for _, arch := range named {
		image, err := c.Compile(source, arch)
		if err != nil {
			t.Error(err)
		}
		for _, lost := range usages.LostSigns(image) {
			t.Errorf("%s: compilers lose the sign of what is negated here: %s", arch, lost)
		}
	}
}

// NVRTC returns the path of NVRTC. It skips the test if NVRTC is neither installed nor in the folder of the module
// (make nvrtc).
func NVRTC(t *testing.T) string {
	t.Helper()
	path, tried, err := nvrtc.Find(os.Getenv("HALOX_NVRTC"))
	if err != nil {
		path, _, err = nvrtc.Find(filepath.Join(moduleRoot(t), ".nvrtc"))
	}
	if err != nil {
		t.Skipf("SKIPPED: no CUDA kernel was compiled: NVRTC is not installed; make nvrtc gets it. Looked in %v", tried)
	}
	return path
}

// CPlusPlus returns a C++ compiler that works.
var CPlusPlus = sync.OnceValues(func() (string, error) {
	c := exec.Command("g++", "-x", "c++", "-include", "cmath", "-fsyntax-only", os.DevNull)
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("no g++ that works: %w\n%s", err, out)
	}
	return exec.LookPath("g++")
})

func moduleRoot(t testing.TB) string {
	t.Helper()
	root, err := cudafake.ModuleRoot()
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	return root
}
