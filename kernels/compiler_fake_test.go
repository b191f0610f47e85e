//go:build linux && cgo

package kernels_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// A machine with a GPU but no compiler: the error says what to install and
// where it was looked for.
func TestNoNVRTC(t *testing.T) {
	library := cudafake.Build(t, cudafake.Devices(1))
	fake := cudafake.Inspect(t, library)
	platform, err := streams.CUDAPlatform(library)
	if err != nil {
		t.Fatal(err)
	}
	devices, err := platform.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer streams.CloseAll(devices)
	dir := t.TempDir()
	broken := filepath.Join(dir, "libnvrtc.so")
	if err := os.WriteFile(broken, []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, nvrtc string
		says        []string
	}{
		{"nowhere", filepath.Join(dir, "nowhere"),
			[]string{"GPUs need NVRTC", filepath.Join(dir, "nowhere"), "install the CUDA toolkit or the pip package nvidia-cuda-nvrtc"}},
		{"no library", broken, []string{"GPUs need NVRTC", "load NVRTC from " + broken}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := kernels.NewCompiler(kernels.Options{NVRTC: tc.nvrtc, Cache: dir})
			_, err := c.NewSweeper(devices[0], stencil.Star{Dims: 2}, kernels.Float64)
			if err == nil {
				t.Fatal("compiled without a compiler")
			}
			for _, says := range tc.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("the error does not say %q: %v", says, err)
				}
			}
			if live := fake.Live(); live != (cudafake.Live{Contexts: 1}) {
				t.Errorf("left behind: %+v", live)
			}
		})
	}
}
