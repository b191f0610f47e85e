package testdevices

import (
	"os"
	"path/filepath"
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

// CachingCompiler is Compiler, but what it compiled stays in the folder .cache of the module, for all tests.
func CachingCompiler(t *testing.T) *kernels.Compiler {
	t.Helper()
	cache := filepath.Join(moduleRoot(t), ".cache", "images")
	return kernels.NewCompiler(kernels.Options{NVRTC: NVRTC(t), Cache: cache})
}

// Compile compiles the source for each generation of GPUs that halox runs on, for one unless tests are long, or for
// those that are named. What was compiled stays in the folder .cache of the module. See Once.
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

// NVRTC returns where NVRTC is. It skips the test where that is neither installed nor in
// the module's own folder (make nvrtc).
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

func moduleRoot(t testing.TB) string {
	t.Helper()
	root, err := cudafake.ModuleRoot()
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	return root
}
