//go:build linux && cgo

package cuda_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
)

// The loader would crash on a truncated library.
func TestOpenOfALibraryThatIsCutOff(t *testing.T) {
	path := cudafake.Build(t)
	whole := test.Must(os.ReadFile(path))(t)
	cut := filepath.Join(t.TempDir(), "libcuda.so.1")
	test.Check(t, os.WriteFile(cut, whole[:len(whole)/2], 0o600))
	if _, err := cuda.Open(cut); !errors.Is(err, cuda.ErrNoLibrary) || !strings.Contains(err.Error(), "is truncated") {
		t.Errorf("got %v", err)
	}
}

// That there is nothing to run on is told apart from something broken.
func TestOpenRefuses(t *testing.T) {
	nowhere, mismatched := filepath.Join(t.TempDir(), "libcuda.so.1"), cudafake.Build(t)
	cudafake.Inspect(t, mismatched).Fail("cuInit", int(cuda.CodeDriverMismatch), 0, 1)
	noDevice := "no usable CUDA driver: the library exists, but cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected"
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

// CUDA_VISIBLE_DEVICES takes the UUID of a MIG instance only with its own prefix.
func TestMIG(t *testing.T) {
	uuids := func() (all []string) {
		driver := test.Must(cuda.Open(cudafake.Build(t, cudafake.MIG)))(t)
		for i := range test.Must(driver.DeviceCount())(t) {
			all = append(all, test.Must(test.Must(driver.Device(i))(t).UUID())(t))
		}
		test.Check(t, driver.Close())
		return all
	}
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	all := uuids()
	if len(all) != 2 || !strings.HasPrefix(all[0], "MIG-00010203-") {
		t.Fatal(all)
	}
	slices.Reverse(all)
	t.Setenv("CUDA_VISIBLE_DEVICES", strings.Join(all, ","))
	if got := uuids(); !slices.Equal(got, all) {
		t.Errorf("%v, not %v", got, all)
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
			Text: "no description", Device: cuda.NoDevice}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, isError := errors.AsType[*cuda.Error](tc.call())
			if !isError || *got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

// rig is a fake driver with a context on each of its devices.
type rig struct {
	fake     *cudafake.Fake
	driver   *cuda.Driver
	contexts []*cuda.Context
}

func newRig(t *testing.T, devices int) *rig {
	t.Helper()
	library := cudafake.Build(t, cudafake.Devices(devices))
	r := &rig{fake: cudafake.Inspect(t, library), driver: test.Must(cuda.Open(library))(t)}
	t.Cleanup(func() { test.Check(t, r.driver.Close()) })
	for i := range devices {
		device := test.Must(r.driver.Device(i))(t)
		ctx := test.Must(device.RetainPrimary(cuda.SchedBlocking))(t)
		t.Cleanup(func() { test.Check(t, ctx.Release()) })
		r.contexts = append(r.contexts, ctx)
	}
	return r
}

// pinned is host memory as a slice, and as the pointer that copies take.
func pinned(t *testing.T, ctx *cuda.Context, n int) ([]byte, unsafe.Pointer) {
	t.Helper()
	p := test.Must(ctx.HostAlloc(uint64(n), cuda.HostPortable|cuda.HostMapped))(t)
	return unsafe.Slice((*byte)(p), n), p
}

// kernel loads a module with one kernel that takes argBytes.
func kernel(t *testing.T, ctx *cuda.Context, name string, argBytes int) cuda.Function {
	t.Helper()
	m := test.Must(ctx.ModuleLoad(cudafake.Image(map[string]int{name: argBytes})))(t)
	return test.Must(ctx.ModuleFunction(m, name))(t)
}

// steps are what a time step calls, by name.
func steps(t *testing.T, r *rig) map[string]func() error {
	ctx := r.contexts[0]
	s := test.Must(ctx.StreamCreate(0))(t)
	e := test.Must(ctx.EventCreate(0))(t)
	p, q := test.Must(ctx.MemAlloc(64))(t), test.Must(ctx.MemAlloc(64))(t)
	_, host := pinned(t, ctx, 64)
	l := test.Must(cuda.NewLaunch(kernel(t, ctx, "k", 16), grid, block, 0, make([]byte, 16)))(t)
	t.Cleanup(l.Free)
	small := cuda.Extent{Width: 8, Height: 2, Depth: 2}
	return map[string]func() error{
		"Launch":          func() error { return ctx.Launch(l, s) },
		"MemcpyHtoDAsync": func() error { return ctx.MemcpyHtoDAsync(p, host, 64, s) },
		"MemcpyDtoHAsync": func() error { return ctx.MemcpyDtoHAsync(host, p, 64, s) },
		"MemcpyDtoDAsync": func() error { return ctx.MemcpyDtoDAsync(p, q, 64, s) },
		"MemcpyPeerAsync": func() error { return ctx.MemcpyPeerAsync(p, ctx, q, ctx, 64, s) },
		"Memcpy3DAsync": func() error {
			return ctx.Memcpy3DAsync(cuda.Pitched{Device: p, Pitch: 16, Rows: 2}, cuda.Pitched{Host: host, Pitch: 8, Rows: 3}, small, s)
		},
		"Memcpy3DPeerAsync": func() error {
			return ctx.Memcpy3DPeerAsync(cuda.Pitched{Device: p, Pitch: 16, Rows: 2}, ctx,
				cuda.Pitched{Device: q, Pitch: 8, Rows: 3}, ctx, small, s)
		},
		"MemsetD8Async":     func() error { return ctx.MemsetD8Async(p, 0, 64, s) },
		"EventRecord":       func() error { return ctx.EventRecord(e, s) },
		"EventQuery":        func() error { _, err := ctx.EventQuery(e); return err },
		"EventSynchronize":  func() error { return ctx.EventSynchronize(e) },
		"EventElapsed":      func() error { _, err := ctx.EventElapsed(e, e); return err },
		"StreamWaitEvent":   func() error { return ctx.StreamWaitEvent(s, e) },
		"StreamQuery":       func() error { _, err := ctx.StreamQuery(s); return err },
		"StreamSynchronize": func() error { return ctx.StreamSynchronize(s) },
		"Synchronize":       func() error { return ctx.Synchronize() },
	}
}

func TestAStepAllocatesNothing(t *testing.T) {
	r := newRig(t, 1)
	calls := steps(t, r)
	test.Check(t, calls["EventRecord"]())
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			test.Check(t, call())
			if n := testing.AllocsPerRun(100, func() { _ = call() }); n != 0 {
				t.Errorf("%v allocations a call", n)
			}
		})
	}
}

func TestCopies(t *testing.T) {
	const n = 1000
	r := newRig(t, 2)
	a, b := r.contexts[0], r.contexts[1]
	stream := test.Must(a.StreamCreate(0))(t)
	src, srcPtr := pinned(t, a, n)
	dst, dstPtr := pinned(t, a, n)
	first, second := test.Must(a.MemAlloc(n))(t), test.Must(a.MemAlloc(n))(t)
	remote := test.Must(b.MemAlloc(n))(t)
	for i := range src {
		src[i] = byte(i * 7)
	}

	test.Check(t, a.MemcpyHtoDAsync(first, srcPtr, n, stream))
	test.Check(t, a.MemcpyPeerAsync(remote, b, first, a, n, stream))
	test.Check(t, a.MemsetD8Async(first, 0xEE, n, stream))
	test.Check(t, a.MemcpyPeerAsync(second, a, remote, b, n, stream))
	test.Check(t, a.MemcpyDtoDAsync(first+1, second+3, n-100, stream))
	test.Check(t, a.MemcpyDtoHAsync(dstPtr, first, n, stream))
	test.Check(t, a.StreamSynchronize(stream))

	want := bytes.Repeat([]byte{0xEE}, n)
	copy(want[1:], src[3:n-97])
	if !bytes.Equal(dst, want) {
		t.Errorf("got  %x\nwant %x", dst[:16], want[:16])
	}
}

func TestBoxCopiesAreChecked(t *testing.T) {
	r := newRig(t, 2)
	a, b := r.contexts[0], r.contexts[1]
	s := test.Must(a.StreamCreate(0))(t)
	_, host := pinned(t, a, 100)
	p, far := test.Must(a.MemAlloc(100))(t), test.Must(b.MemAlloc(100))(t)
	good := cuda.Pitched{Device: p, Pitch: 10, Rows: 5}
	n := cuda.Extent{Width: 10, Height: 5, Depth: 2} // all of the memory
	limit := uint64(test.Must(a.Device().Attribute(cuda.AttrMaxPitch))(t))
	for _, tc := range []struct {
		name string
		err  error
		want error
	}{
		{"all of the memory", a.Memcpy3DAsync(good, cuda.Pitched{Host: host, Pitch: 10, Rows: 5}, n, s), nil},
		{"one plane has no height", a.Memcpy3DAsync(good, good, cuda.Extent{Width: 10, Height: 9, Depth: 1}, s), nil},
		{"past the end", a.Memcpy3DAsync(cuda.Pitched{Device: p + 1, Pitch: 10, Rows: 5}, good, n, s), cuda.CodeInvalidValue},
		{"past the end of pinned memory", a.Memcpy3DAsync(good, cuda.Pitched{Host: host, Pitch: 10, Rows: 6}, n, s), cuda.CodeInvalidValue},
		{"a small pitch", a.Memcpy3DAsync(good, cuda.Pitched{Device: p, Pitch: 9, Rows: 5}, n, s), cuda.CodeInvalidValue},
		{"planes that overlap", a.Memcpy3DAsync(cuda.Pitched{Device: p, Pitch: 10, Rows: 4}, good, n, s), cuda.CodeInvalidValue},
		{"a pitch beyond the limit", a.Memcpy3DAsync(cuda.Pitched{Device: p, Pitch: limit + 1, Rows: 1}, good,
			cuda.Extent{Width: 10, Height: 1, Depth: 1}, s), cuda.CodeInvalidValue},
		{"an empty box", a.Memcpy3DAsync(good, good, cuda.Extent{Width: 10, Height: 0, Depth: 1}, s), cuda.CodeInvalidValue},
		{"a peer's memory without access", a.Memcpy3DAsync(cuda.Pitched{Device: far, Pitch: 10, Rows: 5}, good, n, s), cuda.CodeInvalidContext},
		{"contexts the wrong way round", a.Memcpy3DPeerAsync(cuda.Pitched{Device: far, Pitch: 10, Rows: 5}, a, good, b, n, s), cuda.CodeInvalidContext},
		{"the default stream", a.Memcpy3DAsync(good, good, n, 0), cuda.CodeInvalidHandle},
		{"the default stream, to a peer", a.Memcpy3DPeerAsync(good, a, good, a, n, 0), cuda.CodeInvalidHandle},
	} {
		if !errors.Is(tc.err, tc.want) {
			t.Errorf("%s: %v", tc.name, tc.err)
		}
	}
}

func TestPeerAccess(t *testing.T) {
	r := newRig(t, 2)
	a, b := r.contexts[0], r.contexts[1]
	stream := test.Must(a.StreamCreate(0))(t)
	mine, theirs := test.Must(a.MemAlloc(8))(t), test.Must(b.MemAlloc(8))(t)
	test.Is(t, a.MemcpyDtoDAsync(theirs, mine, 8, stream), cuda.CodeInvalidContext)
	test.Check(t, a.EnablePeerAccess(b))
	test.Check(t, a.EnablePeerAccess(b)) // as it was already
	test.Check(t, a.MemcpyDtoDAsync(theirs, mine, 8, stream))
	test.Is(t, a.EnablePeerAccess(a), cuda.CodeInvalidDevice)
}

func TestQueriesTellWaitingFromFailing(t *testing.T) {
	r := newRig(t, 1)
	ctx := r.contexts[0]
	stream, event := test.Must(ctx.StreamCreate(0))(t), test.Must(ctx.EventCreate(0))(t)
	for _, tc := range []struct {
		call  string
		query func() (bool, error)
	}{
		{"cuStreamQuery", func() (bool, error) { return ctx.StreamQuery(stream) }},
		{"cuEventQuery", func() (bool, error) { return ctx.EventQuery(event) }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			if done, err := tc.query(); !done || err != nil {
				t.Errorf("done: %v, %v", done, err)
			}
			r.fake.Fail(tc.call, int(cuda.CodeNotReady), 0, 1)
			if done, err := tc.query(); done || err != nil {
				t.Errorf("not ready: %v, %v", done, err)
			}
			r.fake.Fail(tc.call, int(cuda.CodeLaunchFailed), 0, 1)
			if done, err := tc.query(); done || !errors.Is(err, cuda.CodeLaunchFailed) {
				t.Errorf("failed: %v, %v", done, err)
			}
		})
	}
}

func TestStreamsWaitForEventsOfOtherDevices(t *testing.T) {
	r := newRig(t, 2)
	a, b := r.contexts[0], r.contexts[1]
	streamA, streamB := test.Must(a.StreamCreate(0))(t), test.Must(b.StreamCreate(0))(t)
	event := test.Must(a.EventCreate(cuda.EventNoTiming))(t)
	test.Check(t, a.EventRecord(event, streamA))
	test.Check(t, b.StreamWaitEvent(streamB, event))
}
