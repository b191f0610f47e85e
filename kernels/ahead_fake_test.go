//go:build linux && cgo

package kernels_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/streams"
)

// twoGPUs opens two GPUs of a fake driver, and their devices of a dry run.
func twoGPUs(t *testing.T) (fake *cudafake.Fake, real, dry []*streams.Device) {
	t.Helper()
	library := cudafake.Build(t, cudafake.Devices(2))
	platform, err := streams.CUDAPlatform(library)
	test.Check(t, err)
	if real, err = platform.Open(); err != nil {
		t.Fatal(err)
	}
	dry = streams.DryRun(real)
	t.Cleanup(func() { test.Report(t, errors.Join(streams.CloseAll(dry), streams.CloseAll(real), platform.Close())) })
	return cudafake.Inspect(t, library), real, dry
}

var variants = []kernels.Program{moves, {File: "move.cu", Defines: []string{"A=1"}}, {File: "reduce.cu"}}

// Programs are compiled concurrently, each once, and loaded on all devices before Wait.
func TestAheadCompilesConcurrently(t *testing.T) {
	slow := testdevices.SlowNVRTC(t, 300*time.Millisecond, "")
	fake, real, dry := twoGPUs(t)
	c := kernels.NewCompiler(kernels.Options{NVRTC: slow.Library, Cache: t.TempDir()})
	a := c.Ahead(t.Context())
	for _, d := range dry {
		for _, p := range variants {
			found, err := a.Compiler().Load(d, p, "a", "b")
			if err != nil || len(found) != 2 {
				t.Fatalf("%v, %v", found, err)
			}
		}
	}
	if _, err := a.Compiler().Load(real[0], moves, "a"); err == nil {
		t.Error("Load on a real device: got no error")
	}
	a.Wait(nil)
	names, together := slow.Compiled(t)
	slices.Sort(names)
	if !slices.Equal(names, []string{"move.cu", "move.cu", "reduce.cu"}) || together < 2 || fake.Calls("cuModuleLoadDataEx") != 6 {
		t.Errorf("compiled %v, %d concurrently, %d modules", names, together, fake.Calls("cuModuleLoadDataEx"))
	}
	for _, d := range real {
		for _, p := range variants {
			if _, err := c.Load(d, p, "a"); err != nil {
				t.Error(err)
			}
		}
	}
	if names, _ := slow.Compiled(t); len(names) != 3 || fake.Calls("cuModuleLoadDataEx") != 6 {
		t.Errorf("second time: compiled %v, %d modules", names, fake.Calls("cuModuleLoadDataEx"))
	}
	if begun, done := c.Compiled(); begun != 3 || done != 3 {
		t.Errorf("got %d begun and %d done", begun, done)
	}
}

// The end of the context ends Wait, and Stop does not wait, even during a compilation, whose result is not loaded
// afterwards.
func TestAheadEnds(t *testing.T) {
	fake, _, dry := twoGPUs(t)
	for _, end := range []func(a *kernels.Ahead, cancel func()){
		func(a *kernels.Ahead, cancel func()) { cancel(); a.Wait(nil) },
		func(a *kernels.Ahead, _ func()) { a.Stop() },
	} {
		endsEarly(t, fake, dry, end)
	}
}

func endsEarly(t *testing.T, fake *cudafake.Fake, dry []*streams.Device, end func(*kernels.Ahead, func())) {
	t.Helper()
	testdevices.Patiently(t, func(takes time.Duration) error {
		slow, before := testdevices.SlowNVRTC(t, takes, ""), fake.Calls("cuModuleLoadDataEx")
		c := kernels.NewCompiler(kernels.Options{NVRTC: slow.Library, Cache: t.TempDir()})
		ctx, cancel := context.WithCancel(t.Context())
		a := c.Ahead(ctx)
		_, _ = a.Compiler().Load(dry[0], moves, "a")
		for begun, _ := c.Compiled(); begun == 0; begun, _ = c.Compiled() {
			time.Sleep(time.Millisecond)
		}
		defer cancel()
		end(a, cancel)
		_, early := c.Compiled()
		for done := early; done == 0; _, done = c.Compiled() {
			time.Sleep(time.Millisecond)
		}
		other := c.Ahead(t.Context()) // running compilations are kept
		_, _ = other.Compiler().Load(dry[1], moves, "a")
		other.Wait(nil)
		names, _ := slow.Compiled(t)
		if loaded := fake.Calls("cuModuleLoadDataEx") - before; early != 0 || len(names) != 1 || loaded != 1 {
			return fmt.Errorf("waited for %d; compiled %v, %d modules", early, names, loaded)
		}
		return nil
	})
}

// Stop skips compilations that have not begun.
func TestAheadStops(t *testing.T) {
	slow := testdevices.SlowNVRTC(t, 50*time.Millisecond, "")
	fake, _, dry := twoGPUs(t)
	c := kernels.NewCompiler(kernels.Options{NVRTC: slow.Library, Cache: t.TempDir()})
	a := c.Ahead(t.Context())
	for i := range 200 {
		_, _ = a.Compiler().Load(dry[0], kernels.Program{File: "move.cu", Defines: []string{"A=" + string(rune('0'+i))}}, "a")
	}
	for begun, _ := c.Compiled(); begun == 0; begun, _ = c.Compiled() {
		time.Sleep(time.Millisecond)
	}
	a.Stop()
	_, early := c.Compiled()
	a.Wait(nil)
	begun, done := c.Compiled()
	if names, _ := slow.Compiled(t); begun != done || len(names) != begun || begun > 100 {
		t.Errorf("got %d begun, %d done, %d compiled", begun, done, len(names))
	}
	if n := fake.Calls("cuModuleLoadDataEx"); n > early {
		t.Errorf("got %d modules of %d programs", n, early)
	}
}

// The compiler itself returns compilation errors.
func TestAheadWithACompileError(t *testing.T) {
	slow := testdevices.SlowNVRTC(t, 0, "move.cu")
	_, real, dry := twoGPUs(t)
	c := kernels.NewCompiler(kernels.Options{NVRTC: slow.Library, Cache: t.TempDir()})
	a := c.Ahead(t.Context())
	if _, err := a.Compiler().Load(dry[0], moves, "a"); err != nil {
		t.Error(err)
	}
	a.Wait(nil)
	test.Is(t, test.ErrorOf(c.Load(real[0], moves, "a")), kernels.ErrNotCompiled)
}

// loadError returns the error of loading kernels, which must fail and leave no objects.
func loadError(t *testing.T, fake *cudafake.Fake, d *streams.Device, nvrtc string) string {
	t.Helper()
	c := kernels.NewCompiler(kernels.Options{NVRTC: nvrtc, Cache: t.TempDir()})
	_, err := c.Load(d, moves, "move")
	if err == nil {
		t.Fatal("got no error")
	}
	if live := fake.Live(); live != (cudafake.Live{Contexts: 1}) {
		t.Errorf("objects left: %+v", live)
	}
	return err.Error()
}

// On a machine with a GPU but without a compiler, the error contains what to install and where the compiler was
// searched.
func TestNoNVRTC(t *testing.T) {
	fake, device := kerneltest.FakeGPU(t)
	dir := t.TempDir()
	broken, nowhere := filepath.Join(dir, "libnvrtc.so"), filepath.Join(dir, "nowhere")
	test.Check(t, os.WriteFile(broken, []byte("no library"), 0o644))
	for _, tc := range []struct{ name, nvrtc, says string }{
		{"nowhere", nowhere, "kernels cannot be compiled for this GPU: NVRTC not found; pip install nvidia-cuda-nvrtc " +
			"or install the CUDA toolkit, or name the library in HALOX_NVRTC; searched " + nowhere},
		{"no library", broken, "kernels cannot be compiled for this GPU: load NVRTC from " + broken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := loadError(t, fake, device, tc.nvrtc); !strings.HasPrefix(got, tc.says) {
				t.Errorf("got  %q\nwant %q", got, tc.says)
			}
		})
	}
}

// If a driver cannot read the image of a newer NVRTC, the error names the NVRTC version. An unusable device
// returns its own error.
func TestImagesRejectedByTheDriver(t *testing.T) {
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
					t.Errorf("%q must, or must not, be in: %s", says, got)
				}
			}
			t.Log(got)
		})
	}
}
