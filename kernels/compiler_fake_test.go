//go:build linux && cgo

package kernels

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// fakeGPU opens the only GPU of a fake driver.
func fakeGPU(t *testing.T) (*cudafake.Fake, *streams.Device) {
	t.Helper()
	library := cudafake.Build(t, cudafake.Devices(1))
	platform, err := streams.CUDAPlatform(library)
	if err != nil {
		t.Fatal(err)
	}
	devices, err := platform.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { streams.CloseAll(devices) })
	return cudafake.Inspect(t, library), devices[0]
}

// sweepError is that of making a sweeper, which must fail and leave nothing.
func sweepError(t *testing.T, fake *cudafake.Fake, d *streams.Device, nvrtc string) string {
	t.Helper()
	c := NewCompiler(Options{NVRTC: nvrtc, Cache: t.TempDir()})
	_, err := c.NewSweeper(d, stencil.StarWeights{Dims: 2}.Stencil(), Float64)
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
	fake, device := fakeGPU(t)
	dir := t.TempDir()
	broken, nowhere := filepath.Join(dir, "libnvrtc.so"), filepath.Join(dir, "nowhere")
	if err := os.WriteFile(broken, []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, nvrtc, says string }{
		{"nowhere", nowhere, "kernels cannot be compiled for this GPU: NVRTC not found; pip install nvidia-cuda-nvrtc " +
			"or install the CUDA toolkit, or name the library in HALOX_NVRTC; looked for " + nowhere},
		{"no library", broken, "kernels cannot be compiled for this GPU: load NVRTC from " + broken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := sweepError(t, fake, device, tc.nvrtc); !strings.HasPrefix(got, tc.says) {
				t.Errorf("got %q\nnot %q", got, tc.says)
			}
		})
	}
}

// A driver that cannot read what a newer NVRTC wrote: the error says which
// NVRTC that was. A device that died would have read nothing.
func TestImagesThatTheDriverRefuses(t *testing.T) {
	path := findNVRTC(t)
	for _, tc := range []struct {
		code cuda.Code
		says bool
	}{
		{cuda.CodeInvalidImage, true},
		{cuda.CodeNoBinaryForGPU, true},
		{cuda.CodeUnsupportedPTX, true},
		{cuda.CodeECCUncorrectable, false},
	} {
		t.Run(tc.code.Error(), func(t *testing.T) {
			fake, device := fakeGPU(t)
			fake.Fail("cuModuleLoadDataEx", int(tc.code), 0, 1)
			got := sweepError(t, fake, device, path)
			for _, says := range []string{"] was compiled by NVRTC 1", " for sm_90: ", "set HALOX_NVRTC to an NVRTC not newer than the driver"} {
				if strings.Contains(got, says) != tc.says {
					t.Errorf("%q is or is not in: %s", says, got)
				}
			}
			t.Log(got)
		})
	}
}

// A tuner tries shapes within its budget and remembers what it found, in the compiler and
// on disk; a damaged file is measured anew.
func TestTune(t *testing.T) {
	_, device := fakeGPU(t)
	dir := filepath.Join(t.TempDir(), "cache")
	star := stencil.StarWeights{Dims: 3, Equal: true}.Stencil()
	form := formOf(star, Float64)
	functions := map[string]streams.Function{}
	for _, variant := range []string{"", withNorms} {
		for _, name := range []string{"sweep_stream", "sweep_flat"} {
			functions[name+variant] = fakeFunctions(t, device, int(unsafe.Sizeof(sweepArgs{})), name+variant)[0]
		}
	}
	box := domain.Box{Hi: domain.Vec{64, 64, 64}}
	l, err := domain.NewLayout(box, star.Radius(), 8)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := device.Alloc(2 * l.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	dst := Array{Data: memory.Span(0, l.Bytes()), Layout: l}
	src := Array{Data: memory.Span(l.Bytes(), l.Bytes()), Layout: l}
	tune := func(c *Compiler, budget time.Duration) Tuning {
		t.Helper()
		s := Sweeper{device: device, stencil: star, real: Float64, kernels: functions, form: form, shape: form.shapes[0], tuner: c.tuner, cache: cache.At(dir)}
		got, err := s.Tune(dst, src, box, budget)
		if err != nil {
			t.Fatal(err)
		}
		if got.Shape != s.shape || !slices.Contains(form.shapes, got.Shape) {
			t.Errorf("chose %v, uses %v", got, s.shape)
		}
		return got
	}
	first := NewCompiler(Options{})
	if got := tune(first, time.Minute); got.Tried != len(form.shapes) || got.Took <= 0 {
		t.Errorf("tried %d shapes of %d: %+v", got.Tried, len(form.shapes), got)
	}
	if got := tune(first, time.Minute); got.Tried != 0 {
		t.Errorf("tried again: %+v", got)
	}
	if got := tune(NewCompiler(Options{}), time.Minute); got.Tried != 0 || got.Key == "" {
		t.Errorf("did not read what was kept: %+v", got)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "sweep-*.json"))
	if len(files) != 1 {
		t.Fatal(files)
	}
	kept, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	spoilt := func(from, to string) string { return regexp.MustCompile(from).ReplaceAllString(string(kept), to) }
	for _, text := range []string{
		"", "{", `{"key": "of another GPU"}`, spoilt(`"sweep_ns": `, `"sweep_ns": -`), spoilt(`"default_ns": \d+`, `"default_ns": 0`),
		spoilt(`"shape": [^}]*}`, `"shape": {}`),
	} {
		if text == string(kept) {
			t.Fatal("nothing was spoilt")
		}
		if err := os.WriteFile(files[0], []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := tune(NewCompiler(Options{}), 0); got.Tried != 1 || got.Shape != form.shapes[0] {
			t.Errorf("after %q, without time: %+v", text, got)
		}
	}
}
