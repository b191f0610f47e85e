//go:build linux && cgo

package cuda_test

import (
	"testing"
	"unsafe"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
)

// rig is a fake driver with a context on each of its devices.
type rig struct {
	fake     *cudafake.Fake
	driver   *cuda.Driver
	contexts []*cuda.Context
}

func newRig(t *testing.T, devices int) *rig {
	t.Helper()
	library := cudafake.Build(t, cudafake.Devices(devices))
	r := &rig{fake: cudafake.Inspect(t, library), driver: must(cuda.Open(library))(t)}
	t.Cleanup(func() { ok(t, r.driver.Close()) })
	for i := range devices {
		device := must(r.driver.Device(i))(t)
		ctx := must(device.RetainPrimary(cuda.SchedBlocking))(t)
		t.Cleanup(func() { ok(t, ctx.Release()) })
		r.contexts = append(r.contexts, ctx)
	}
	return r
}

// must is for calls that have to work: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pinned is host memory as a slice, and as the pointer that copies take.
func pinned(t *testing.T, ctx *cuda.Context, n int) ([]byte, unsafe.Pointer) {
	t.Helper()
	p := must(ctx.HostAlloc(uint64(n), cuda.HostPortable|cuda.HostMapped))(t)
	return unsafe.Slice((*byte)(p), n), p
}

// kernel loads a module with one kernel that takes argBytes.
func kernel(t *testing.T, ctx *cuda.Context, name string, argBytes int) cuda.Function {
	t.Helper()
	m := must(ctx.ModuleLoad(cudafake.Image(map[string]int{name: argBytes})))(t)
	return must(ctx.ModuleFunction(m, name))(t)
}
