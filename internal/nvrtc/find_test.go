package nvrtc_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/internal/test"
)

// plant makes an empty file, which Find takes for a library: it opens none.
func plant(t *testing.T, elements ...string) string {
	t.Helper()
	path := filepath.Join(elements...)
	test.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	test.Check(t, os.WriteFile(path, nil, 0o644))
	return path
}

func find(t *testing.T, override string) (string, []string, error) {
	t.Helper()
	path, tried, err := nvrtc.Find(override)
	if errors.Is(err, nvrtc.ErrUnsupported) {
		t.Skip("SKIPPED: ", err)
	}
	return path, tried, err
}

func TestFindOverride(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "toolkit", "lib64", "libnvrtc-builtins.so.13.0")
	plant(t, dir, "toolkit", "lib64", "libnvrtc.so")
	plant(t, dir, "toolkit", "lib64", "libnvrtc.so.12.9")
	inToolkit := plant(t, dir, "toolkit", "lib64", "libnvrtc.so.12.10")
	inWheel := plant(t, dir, "target", "nvidia", "cu13", "lib", "libnvrtc.so.13")
	for _, tc := range []struct{ name, override, want string }{
		{"a file", inWheel, inWheel},
		{"a folder", filepath.Dir(inWheel), inWheel},
		{"the target of a wheel", filepath.Join(dir, "target"), inWheel},
		{"a toolkit, of which the newest", filepath.Join(dir, "toolkit"), inToolkit},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, _, err := find(t, tc.override); got != tc.want || err != nil {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestFindTakesNothingInPlaceOfTheOverride(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "libnvrtc.so.13")
	_, tried, err := find(t, missing)
	if !errors.Is(err, nvrtc.ErrNotFound) || !slices.Contains(tried, missing) {
		t.Errorf("tried %v: %v", tried, err)
	}
	for _, want := range []string{missing, "pip install nvidia-cuda-nvrtc", "CUDA toolkit", "HALOX_NVRTC"} {
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
}

func TestFindLooksInVirtualEnvironments(t *testing.T) {
	env := t.TempDir()
	want := plant(t, env, "lib", "python3.13", "site-packages", "nvidia", "cuda_nvrtc", "lib", "libnvrtc.so.12")
	t.Setenv("VIRTUAL_ENV", env)
	got, tried, err := find(t, "")
	test.Check(t, err)
	if got != want && !strings.HasPrefix(got, env) {
		// An installed library comes first, and that is as it should be.
		t.Skipf("SKIPPED: found %s before the virtual environment, having tried %v", got, tried)
	}
}

func TestFindTriesTheLoaderFirst(t *testing.T) {
	if _, tried, _ := find(t, ""); len(tried) == 0 || tried[0] != "libnvrtc.so.13" {
		t.Errorf("tried %v", tried)
	}
}

func TestParseUsage(t *testing.T) {
	const log = `usage.cu(3): warning #177-D: variable "x" was declared but never referenced
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z4edgePf' for 'sm_90'
ptxas info    : Function properties for _Z4edgePf
    24 bytes stack frame, 20 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 49152 bytes smem, 400 bytes cmem[0]
ptxas info    : Function properties for helper
    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Compiling entry function 'inner' for 'sm_90'
ptxas info    : Function properties for inner
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
`
	want := []nvrtc.KernelUsage{
		{Name: "_Z4edgePf", Registers: 255, SpillStores: 20, SpillLoads: 16, StackFrame: 24, Shared: 49152},
		{Name: "inner", Registers: 8},
	}
	if got := nvrtc.ParseUsage(log); !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := nvrtc.ParseUsage("no ptxas here"); len(got) != 0 {
		t.Errorf("got %+v from a log without usage", got)
	}
}
