//go:build linux && cgo

package cuda_test

import (
	"testing"
	"unsafe"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
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
