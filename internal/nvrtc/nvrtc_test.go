package nvrtc_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/internal/test"
)

// open gives a compiler, or skips the test where there is none. A wheel that
// was unpacked below .nvrtc at the module's root will do.
func open(t *testing.T) *nvrtc.Compiler {
	t.Helper()
	path, _, err := nvrtc.Find(os.Getenv("HALOX_NVRTC"))
	if errors.Is(err, nvrtc.ErrNotFound) {
		path, _, err = nvrtc.Find(filepath.Join("..", "..", ".nvrtc"))
	}
	if errors.Is(err, nvrtc.ErrNotFound) || errors.Is(err, nvrtc.ErrUnsupported) {
		t.Skip("SKIPPED: ", err)
	}
	test.Check(t, err)
	c := test.Must(nvrtc.Open(path))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

var scale = nvrtc.Source{Name: "scale.cu", Text: `
extern "C" __global__ void scale(float *a) { a[threadIdx.x] *= FACTOR; }`}

func TestCompile(t *testing.T) {
	c := open(t)
	for _, tc := range []struct{ name, arch, magic string }{
		{"a real architecture gives a cubin", "sm_90", "\x7fELF"},
		{"a virtual architecture gives PTX", "compute_90", "//"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := test.Must(c.Compile(scale, []string{"--gpu-architecture=" + tc.arch, "-lineinfo", "--define-macro=FACTOR=3.0f"}))(t)
			image := bytes.TrimSpace(r.Image)
			if !bytes.HasPrefix(image, []byte(tc.magic)) || !bytes.Contains(image, []byte("scale")) {
				t.Errorf("image of %d bytes begins with %q", len(image), image[:min(16, len(image))])
			}
		})
	}
}

func TestCompileErrorHoldsTheLog(t *testing.T) {
	c := open(t)
	src := nvrtc.Source{Name: "broken.cu", Text: `__global__ void k() { return undeclared_name; }`}
	_, err := c.Compile(src, []string{"--gpu-architecture=sm_90"})
	e, ok := errors.AsType[*nvrtc.Error](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	if e.Call != "nvrtcCompileProgram" || e.Text != "NVRTC_ERROR_COMPILATION" || e.Source != "broken.cu" {
		t.Errorf("got %+v", e)
	}
	for _, want := range []string{"broken.cu(1)", "undeclared_name"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

// Headers are found by their names, include each other, and errors name their lines.
func TestCompileWithHeaders(t *testing.T) {
	c := open(t)
	src := nvrtc.Source{Name: "main.cu", Text: "#include \"outer.cuh\"\n#include \"inner.cuh\"\n" +
		`extern "C" __global__ void k(float *a) { a[0] = twice(WEIGHT); }`, Headers: []nvrtc.Header{
		{Name: "outer.cuh", Text: "#pragma once\n#include \"inner.cuh\"\n__device__ inline float twice(float v) { return 2 * v; }"},
		{Name: "inner.cuh", Text: "#pragma once\nenum { WEIGHT = 3 };"},
	}}
	options := []string{"--gpu-architecture=sm_90"}
	if _, err := c.Compile(src, options); err != nil {
		t.Error(err)
	}
	src.Headers[0].Text += "\nundeclared_type v;"
	test.Says(t, test.ErrorOf(c.Compile(src, options)), "outer.cuh(4)")
	src.Headers = nil
	test.Says(t, test.ErrorOf(c.Compile(src, options)), "outer.cuh")
}

func TestCompileRefusesAnUnknownOption(t *testing.T) {
	c := open(t)
	test.Says(t, test.ErrorOf(c.Compile(scale, []string{"--no-such-option"})), "no-such-option")
}

func TestVersionAndArchitectures(t *testing.T) {
	c := open(t)
	major, minor, err := c.Version()
	if err != nil || major < 11 {
		t.Errorf("version %d.%d, %v", major, minor, err)
	}
	archs, err := c.SupportedArchs()
	if err != nil || !slices.Contains(archs, 90) || !slices.IsSorted(archs) {
		t.Errorf("architectures %v, %v", archs, err)
	}
	t.Logf("NVRTC %d.%d for %v", major, minor, archs)
}

func TestCompileFromManyGoroutines(t *testing.T) {
	c := open(t)
	var group sync.WaitGroup
	images := make([][]byte, 8)
	for i := range images {
		group.Go(func() {
			r, err := c.Compile(scale, []string{"--gpu-architecture=sm_90", "--define-macro=FACTOR=3.0f"})
			test.Report(t, err)
			images[i] = r.Image
		})
	}
	group.Wait()
	for i, image := range images {
		if !bytes.Equal(image, images[0]) {
			t.Errorf("goroutine %d got another cubin than goroutine 0", i)
		}
	}
}

func TestUsageOfACompilation(t *testing.T) {
	c := open(t)
	src := nvrtc.Source{Name: "usage.cu", Text: `
__device__ __noinline__ float far(float x) { return x * x + 1; }
extern "C" __global__ void shared(float *a) {
	__shared__ float s[32];
	s[threadIdx.x & 31] = far(a[threadIdx.x]);
	__syncthreads();
	a[threadIdx.x] = s[31 - (threadIdx.x & 31)];
}
extern "C" __global__ void spills(float *a, int n) {
	float x[64];
	for (int i = 0; i < 64; i++) x[i] = a[i * n];
	for (int j = 0; j < n; j++)
		for (int i = 0; i < 64; i++) x[i] = x[i] * a[j] + x[(i + 7) % 64];
	for (int i = 0; i < 64; i++) a[i * n] = x[i];
}`}
	r := test.Must(c.Compile(src, []string{"--gpu-architecture=sm_90", "--ptxas-options=-v", "--maxrregcount=32"}))(t)
	byName := map[string]nvrtc.KernelUsage{}
	for _, u := range nvrtc.ParseUsage(r.Log) {
		byName[u.Name] = u
	}
	if u := byName["shared"]; u.Registers == 0 || u.Shared != 128 || u.SpillStores != 0 {
		t.Errorf("shared: %+v", u)
	}
	if u := byName["spills"]; u.Registers != 32 || u.SpillStores == 0 || u.SpillLoads == 0 || u.StackFrame == 0 {
		t.Errorf("spills: %+v", u)
	}
	if len(byName) != 2 {
		t.Errorf("kernels %v", byName)
	}
	if t.Failed() {
		t.Log(r.Log)
	}
}

// A compilation that is canceled fails, for an NVRTC that can do that.
func TestCancel(t *testing.T) {
	c := open(t)
	if major, minor, err := c.Version(); err != nil || 100*major+minor < 1208 {
		t.Skipf("SKIPPED: NVRTC %d.%d, %v", major, minor, err)
	}
	c.Cancel()
	test.Says(t, test.ErrorOf(c.Compile(scale, []string{"--gpu-architecture=sm_90", "--define-macro=FACTOR=3.0f"})), "CANCEL")
}

func TestCloseTwice(t *testing.T) {
	c := open(t)
	for range 2 {
		test.Report(t, c.Close())
	}
}

func TestOpenSaysWhyItCannot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libnvrtc.so")
	test.Check(t, os.WriteFile(path, []byte("not a library"), 0o644))
	_, err := nvrtc.Open(path)
	if errors.Is(err, nvrtc.ErrUnsupported) {
		t.Skip("SKIPPED: ", err)
	}
	test.Says(t, err, path)
}

func TestOpenNamesMissingSymbols(t *testing.T) {
	_, err := nvrtc.Open("libdl.so.2")
	if errors.Is(err, nvrtc.ErrUnsupported) {
		t.Skip("SKIPPED: ", err)
	}
	if err == nil || !strings.Contains(err.Error(), "nvrtcCompileProgram") {
		t.Skipf("SKIPPED: no plain libdl here: %v", err)
	}
}
