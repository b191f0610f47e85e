//go:build linux && cgo

package kernels_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/streams"
)

// loadError is that of loading kernels, which must fail and leave nothing.
func loadError(t *testing.T, fake *cudafake.Fake, d *streams.Device, nvrtc string) string {
	t.Helper()
	c := kernels.NewCompiler(kernels.Options{NVRTC: nvrtc, Cache: t.TempDir()})
	_, err := c.Load(d, moves, "move")
	if err == nil {
		t.Fatal("no error")
	}
	if live := fake.Live(); live != (cudafake.Live{Contexts: 1}) {
		t.Errorf("left behind: %+v", live)
	}
	return err.Error()
}

// A machine with a GPU but no compiler: the error says what to install and
// where it was looked for.
func TestNoNVRTC(t *testing.T) {
	fake, device := kerneltest.FakeGPU(t)
	dir := t.TempDir()
	broken, nowhere := filepath.Join(dir, "libnvrtc.so"), filepath.Join(dir, "nowhere")
	test.Check(t, os.WriteFile(broken, []byte("no library"), 0o644))
	for _, tc := range []struct{ name, nvrtc, says string }{
		{"nowhere", nowhere, "kernels cannot be compiled for this GPU: NVRTC not found; pip install nvidia-cuda-nvrtc " +
			"or install the CUDA toolkit, or name the library in HALOX_NVRTC; looked for " + nowhere},
		{"no library", broken, "kernels cannot be compiled for this GPU: load NVRTC from " + broken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := loadError(t, fake, device, tc.nvrtc); !strings.HasPrefix(got, tc.says) {
				t.Errorf("got %q\nnot %q", got, tc.says)
			}
		})
	}
}

// A driver that cannot read what a newer NVRTC wrote: the error says which
// NVRTC that was. A device that died would have read nothing.
func TestImagesThatTheDriverRefuses(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	path := testdevices.NVRTC(t)
	for _, tc := range testdevices.Some(2, []struct {
		code cuda.Code
		says bool
	}{
		{cuda.CodeInvalidImage, true},
		{cuda.CodeNoBinaryForGPU, true},
		{cuda.CodeUnsupportedPTX, true},
		{cuda.CodeECCUncorrectable, false},
	}) {
		t.Run(tc.code.Error(), func(t *testing.T) {
			fake, device := kerneltest.FakeGPU(t)
			fake.Fail("cuModuleLoadDataEx", int(tc.code), 0, 1)
			got := loadError(t, fake, device, path)
			for _, says := range []string{"] was compiled by NVRTC 1", " for sm_90: ", "set HALOX_NVRTC to an NVRTC not newer than the driver"} {
				if strings.Contains(got, says) != tc.says {
					t.Errorf("%q is or is not in: %s", says, got)
				}
			}
			t.Log(got)
		})
	}
}
