//go:build linux && cgo

package streams

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
)

// Errors name the operation, the device and the failed driver call. The device remains usable.
func TestCUDAErrors(t *testing.T) {
	const code = cuda.CodeOutOfMemory
	r := newRig(t, 2)
	for doing, ask := range calls(t, r.devices[0], r.devices[1]) {
		if ask.call == "" {
			continue
		}
		t.Run(ask.call, func(t *testing.T) {
			live := r.fake.Live()
			r.fake.Fail(ask.call, int(code), 0, 1)
			err := ask.do()
			said, ok := errors.AsType[*cuda.Error](err)
			if !ok || said.Call != ask.call || said.Device != 0 || !errors.Is(err, code) ||
				!strings.HasPrefix(err.Error(), "device cuda 0: "+doing) {
				t.Errorf("got %v", err)
			}
			if got := r.fake.Live(); got != live {
				t.Errorf("objects: got %+v, want %+v", got, live)
			}
			test.Check(t, r.devices[0].Err(), ask.do())
		})
	}
}

// After a sticky error every call returns it, even if the driver would work again. Other devices are not affected.
func TestCUDAStickyError(t *testing.T) {
	r := newRig(t, 2)
	d, other := r.devices[0], r.devices[1]
	all, others := calls(t, d, other), calls(t, other, d)
	r.fake.Fail("cuStreamQuery", int(cuda.CodeIllegalAddress), 0, 1)
	first := all["wait for a stream"].do()
	if e, ok := errors.AsType[*Error](first); !ok || !e.Fatal || d.Err() != first || !cuda.IsSticky(first) {
		t.Fatalf("sticky error %v, but Err: %v", first, d.Err())
	}
	for doing, ask := range all {
		if err := ask.do(); err != first {
			t.Errorf("%s: %v", doing, err)
		}
	}
	test.Check(t, other.Err())
	for _, ask := range others {
		test.Check(t, ask.do())
	}
	r.fake.Kill(0, int(cuda.CodeIllegalAddress))
	begin := time.Now()
	test.Check(t, d.Close(), d.Close())
	if took := time.Since(begin); took > testLimit {
		t.Errorf("Close took %v", took)
	}
}

// A sticky error that occurs in Close is returned once.
func TestCUDAStickyErrorInClose(t *testing.T) {
	r := newRig(t, 2)
	calls(t, r.devices[1], r.devices[0])
	r.fake.Kill(1, int(cuda.CodeIllegalAddress))
	err := CloseAll(r.devices)
	if !errors.Is(err, cuda.CodeIllegalAddress) || strings.Count(err.Error(), "\n") > 0 || !strings.HasPrefix(err.Error(), "device cuda 1: ") {
		t.Errorf("got %v", err)
	}
	test.Check(t, CloseAll(r.devices))
}

func TestCUDASyncHasALimit(t *testing.T) {
	const short = 30 * time.Millisecond
	r := newRig(t, 1)
	s := test.Must(r.devices[0].NewStream(Normal))(t)
	e := test.Must(r.devices[0].NewEvent())(t)
	for call, sync := range map[string]func(time.Duration) error{"cuStreamQuery": s.Sync, "cuEventQuery": e.Sync} {
		t.Run(call, func(t *testing.T) {
			r.fake.Fail(call, int(cuda.CodeNotReady), 0, -1)
			begin := time.Now()
			err := sync(short)
			if took := time.Since(begin); took < short || took > testLimit {
				t.Errorf("waited %v", took)
			}
			if err == nil || !strings.HasPrefix(err.Error(), "device cuda 0: wait for ") || !strings.HasSuffix(err.Error(), "not done after 30ms") {
				t.Errorf("got %v", err)
			}
			r.fake.Fail(call, 0, 0, 0)
			test.Check(t, sync(testLimit))
		})
	}
}

// Freeing anything on a GPU that hangs would wait without a limit.
func TestCUDACloseOfAHangingDevice(t *testing.T) {
	r := openRig(t, 2)
	for _, d := range r.devices {
		test.Must(d.Alloc(64))(t)
		test.Must(d.NewStream(Normal))(t)
		d.SetGrace(30 * time.Millisecond)
	}
	r.fake.Fail("cuStreamQuery", int(cuda.CodeNotReady), 0, -1)
	err := CloseAll(r.devices)
	if err == nil || strings.Count(err.Error(), "close a stream: hangs: not done after 30ms") != 2 {
		t.Errorf("got %v", err)
	}
	if r.fake.Calls("cuMemFree")+r.fake.Calls("cuDevicePrimaryCtxRelease") > 0 {
		t.Error("nothing must be freed")
	}
}

func TestCUDAInvalidArguments(t *testing.T) {
	r := newRig(t, 2)
	d, peer := r.devices[0], r.devices[1]
	host := test.Must(HostPlatform(1).Open())(t)[0]
	defer host.Close()
	s := test.Must(d.NewStream(Normal))(t)
	m, far := test.Must(d.Alloc(64))(t), test.Must(peer.Alloc(64))(t)
	pinned := test.Must(d.AllocPinned(64))(t)
	foreign, foreignPinned := test.Must(host.Alloc(64))(t), test.Must(host.AllocPinned(64))(t)
	module := test.Must(d.LoadModule(cudafake.Image(map[string]int{"f": 0})))(t)
	f := test.Must(module.Function("f"))(t)
	box := func(m *Memory, offset int64) Pitched {
		return Pitched{Span: m.All(), Offset: offset, Pitch: 16}
	}
	prepare := func(on *Device, f Function, grid int, uses ...Span) error {
		_, err := on.NewKernel(KernelSpec{Name: "f", Function: f, Uses: uses, Grid: [3]int{grid, 1, 1}, Block: [3]int{1, 1, 1}})
		return err
	}
	for _, tc := range []struct {
		name string
		err  error
		says string // "" if it is allowed
	}{
		{"host memory to host memory", s.Copy(pinned.Span(0, 8), pinned.Span(8, 8)), "one must be GPU memory"},
		{"memory of a CPU device", s.Copy(m.All(), foreign.All()), "must be GPU memory"},
		{"Go memory as pinned memory", s.Copy(m.All(), foreignPinned.All()), "must be GPU memory"},
		{"past the end", s.Copy(m.Span(60, 8), m.Span(0, 8)), "copy to cuda 0 [60, 68) of 64 bytes"},
		{"a box of host memory to host memory", s.CopyBox(box(pinned, 0), box(pinned, 8), 4, 2, 1), "one must be GPU memory"},
		{"a box of a CPU device", s.CopyBox(box(m, 0), box(foreign, 0), 4, 2, 1), "must be GPU memory"},
		{"a box of Go memory", s.CopyBox(box(m, 0), box(foreignPinned, 0), 4, 2, 1), "must be GPU memory"},
		{"nothing", s.Copy(m.Span(64, 0), far.Span(0, 0)), ""},
		{"a kernel on its memory and pinned memory", prepare(d, f, 1, m.All(), pinned.All()), ""},
		{"a kernel on a peer's memory", prepare(d, f, 1, far.All()), "must use its own or pinned memory, got cuda 1 [0, 64)"},
		{"a kernel on Go memory", prepare(d, f, 1, foreignPinned.All()), "must use its own or pinned memory, got pinned memory"},
		{"a kernel of a peer", prepare(peer, f, 1), "function must be loaded on the same device"},
		{"a kernel without a CUDA function", prepare(d, nil, 1), "must have a CUDA function"},
		{"an empty grid", prepare(d, f, 0), "launch geometry: must be between 1 and 2^31-1 per axis, got [0 1 1]"},
		{"a huge grid", prepare(d, f, 1<<31), "got [2147483648 1 1]"},
		{"a launch of a peer's kernel", s.Launch(kernel(t, peer)), "the kernel belongs to device cuda 1"},
		{"a record of a peer's event", s.Record(test.Must(peer.NewEvent())(t)), "the event belongs to device cuda 1"},
		{"a wait for a CPU device's event", s.Wait(test.Must(host.NewEvent())(t)), "the event must belong to a GPU"},
		{"access to a CPU device", d.EnablePeer(host), "the same backend"},
		{"no bytes", func() error { _, err := d.Alloc(0); return err }(), "size must be at least 1"},
		{"no image", func() error { _, err := d.LoadModule([]byte("text")); return err }(), "ptxas fatal: this is not an image"},
		{"no such kernel", func() error { _, err := module.Function("g"); return err }(), `find kernel g: kernel "g": `},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.says == "" {
				test.Check(t, tc.err)
			} else if tc.err == nil || !strings.Contains(tc.err.Error(), tc.says) || !strings.HasPrefix(tc.err.Error(), "device cuda ") {
				t.Errorf("got %v", tc.err)
			}
		})
	}
	test.Check(t, d.Err(), peer.Err())
}

// Out-of-memory errors of the driver are ErrOutOfMemory, and pinned memory counts as host memory.
func TestCUDAOutOfMemory(t *testing.T) {
	r := newRig(t, 2)
	d := r.devices[0]
	for call, alloc := range map[string]func(int64) (*Memory, error){"cuMemAlloc": d.Alloc, "cuMemHostAlloc": d.AllocPinned} {
		r.fake.Fail(call, int(cuda.CodeOutOfMemory), 0, 1)
		if _, err := alloc(64); !errors.Is(err, ErrOutOfMemory) || !errors.Is(err, cuda.CodeOutOfMemory) {
			t.Errorf("%s: %v", call, err)
		}
	}
	calls := r.fake.Calls("cuMemHostAlloc")
	if _, err := d.AllocPinned(1 << 62); !errors.Is(err, ErrOutOfMemory) || r.fake.Calls("cuMemHostAlloc") != calls {
		t.Errorf("4 EiB of pinned memory: must not call the driver, got %v", err)
	}
	if now := d.Held(); now != (Held{}) {
		t.Errorf("held: %+v", now)
	}
	test.Check(t, d.Err())

	m, host := test.Must(d.Alloc(1<<20))(t), test.Must(d.AllocPinned(1<<10))(t)
	if now := d.Held(); now != (Held{Memory: 1 << 20, Pinned: 1 << 10}) {
		t.Errorf("held: %+v", now)
	}
	want := func(memory, pinned int64) []Demand {
		return []Demand{
			{Device: d, Held: Held{Memory: memory}}, {Device: d, Held: Held{Memory: memory}},
			{Device: r.devices[1], Held: Held{Memory: 5 << 30, Pinned: pinned}},
		}
	}
	test.Check(t, Fit(want((5<<30-1<<20)/2, 1<<20)))
	for says, demand := range map[string][]Demand{
		"device cuda 0: check memory: out of memory: need 5367660546 B, but only 5367660544 B of 6 GiB are free": want((5<<30-1<<20)/2+1, 0),
		"out of memory on the host: need 1 EiB, but only ":                                                       want(1, 1<<60),
	} {
		if err := Fit(demand); !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", says, err)
		}
	}
	test.Check(t, m.Close(), host.Close())
}
