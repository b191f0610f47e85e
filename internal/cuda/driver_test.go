//go:build linux && cgo

package cuda_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
)

// The loader would crash on a library that is cut off.
func TestOpenOfALibraryThatIsCutOff(t *testing.T) {
	path := cudafake.Build(t)
	whole := test.Must(os.ReadFile(path))(t)
	cut := filepath.Join(t.TempDir(), "libcuda.so.1")
	test.Check(t, os.WriteFile(cut, whole[:len(whole)/2], 0o600))
	if _, err := cuda.Open(cut); !errors.Is(err, cuda.ErrNoLibrary) || !strings.Contains(err.Error(), "is cut off") {
		t.Errorf("got %v", err)
	}
}

// That there is nothing to run on is told apart from something broken.
func TestOpenRefuses(t *testing.T) {
	nowhere, mismatched := filepath.Join(t.TempDir(), "libcuda.so.1"), cudafake.Build(t)
	cudafake.Inspect(t, mismatched).Fail("cuInit", int(cuda.CodeDriverMismatch), 0, 1)
	noDevice := "no usable CUDA driver: the library is there, but cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected"
	for _, tc := range []struct {
		library string
		none    bool
		code    error
		says    string
	}{
		{nowhere, true, nil, nowhere},
		{cudafake.Build(t, cudafake.Devices(0)), true, cuda.CodeNoDevice, noDevice},
		{cudafake.Build(t, cudafake.WithoutPeer), false, nil, "it lacks cuCtxEnablePeerAccess, cuMemcpyPeerAsync"},
		{mismatched, false, cuda.CodeDriverMismatch, "cuInit"},
	} {
		_, err := cuda.Open(tc.library)
		test.Says(t, err, tc.says)
		if errors.Is(err, cuda.ErrNoDriver) != tc.none || errors.Is(err, cuda.CodeNoDevice) != (tc.code == cuda.CodeNoDevice) ||
			tc.code != nil && !errors.Is(err, tc.code) {
			t.Errorf("got %v", err)
		}
	}
}

func TestCloseEndsTheDriver(t *testing.T) {
	r := newRig(t, 1)
	stream := test.Must(r.contexts[0].StreamCreate(0))(t)
	test.Check(t, r.contexts[0].Release())
	test.Check(t, r.driver.Close())
	test.Check(t, r.driver.Close())
	test.Is(t, test.ErrorOf(r.driver.DeviceCount()), cuda.CodeDeinitialized)
	test.Is(t, r.contexts[0].StreamSynchronize(stream), cuda.CodeDeinitialized)
}

func TestDevices(t *testing.T) {
	r := newRig(t, 3)
	if n := test.Must(r.driver.DeviceCount())(t); n != 3 {
		t.Errorf("%d devices", n)
	}
	if v := test.Must(r.driver.Version())(t); v != 13000 {
		t.Errorf("version %d", v)
	}
	first, last := r.contexts[0].Device(), r.contexts[2].Device()
	for _, tc := range []struct{ name, got, want string }{
		{"name", test.Must(last.Name())(t), "Fake GPU 2"},
		{"PCI bus id", test.Must(last.PCIBusID())(t), "0000:3d:00.0"},
		{"UUID", test.Must(last.UUID())(t), "GPU-00010203-0405-0607-0809-0a0b0c0d0ef2"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s is %q, want %q", tc.name, tc.got, tc.want)
		}
	}
	if n := test.Must(last.TotalMemory())(t); n != 6<<30 {
		t.Errorf("%d bytes of memory", n)
	}
	if v := test.Must(last.Attribute(cuda.AttrComputeCapabilityMajor))(t); v != 9 {
		t.Errorf("compute capability %d", v)
	}
	if !test.Must(first.CanAccessPeer(last))(t) || test.Must(first.CanAccessPeer(first))(t) {
		t.Error("wrong answer to CanAccessPeer")
	}
	if v := test.Must(first.P2PAttribute(cuda.P2PNativeAtomics, last))(t); v != 1 {
		t.Errorf("native atomics %d", v)
	}
	if last.Ordinal() != 2 {
		t.Errorf("ordinal %d", last.Ordinal())
	}
}

func TestErrorsNameTheCallAndTheDevice(t *testing.T) {
	r := newRig(t, 2)
	for _, tc := range []struct {
		name string
		call func() error
		want cuda.Error
	}{
		{"no such device", func() error { _, err := r.driver.Device(2); return err },
			cuda.Error{Call: "cuDeviceGet", Code: cuda.CodeInvalidDevice, Name: "CUDA_ERROR_INVALID_DEVICE",
				Text: "invalid device ordinal", Device: 2}},
		{"out of memory", func() error { _, err := r.contexts[1].MemAlloc(1 << 40); return err },
			cuda.Error{Call: "cuMemAlloc", Code: cuda.CodeOutOfMemory, Name: "CUDA_ERROR_OUT_OF_MEMORY",
				Text: "out of memory", Device: 1}},
		{"a code without words", func() error {
			r.fake.Fail("cuDeviceGetCount", 12345, 0, 1)
			_, err := r.driver.DeviceCount()
			return err
		}, cuda.Error{Call: "cuDeviceGetCount", Code: 12345, Name: "CUDA_ERROR",
			Text: "the driver has no words for it", Device: cuda.NoDevice}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, isError := errors.AsType[*cuda.Error](tc.call())
			if !isError || *got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}
