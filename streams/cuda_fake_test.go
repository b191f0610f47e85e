//go:build linux && cgo

package streams

import (
	"regexp"
	"slices"
	"testing"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
)

// rig holds the GPUs of a fake driver.
type rig struct {
	fake     *cudafake.Fake
	platform *Platform
	devices  []*Device
}

// newRig opens n GPUs. After the test they are closed, and no objects may be left.
func newRig(t testing.TB, n int) *rig {
	t.Helper()
	r := openRig(t, n)
	t.Cleanup(func() {
		test.Check(t, CloseAll(r.devices), r.platform.Close())
		if live := r.fake.Live(); live != (cudafake.Live{}) {
			t.Errorf("objects left: %+v", live)
		}
	})
	return r
}

func openRig(t testing.TB, n int) *rig {
	t.Helper()
	library := cudafake.Build(t, cudafake.Devices(n))
	p := test.Must(CUDAPlatform(library))(t)
	return &rig{cudafake.Inspect(t, library), p, test.Must(p.Open())(t)}
}

// kernel prepares a launch of a kernel k with an argument of 12 bytes.
func kernel(t testing.TB, d *Device) *Kernel {
	t.Helper()
	m := test.Must(d.LoadModule(cudafake.Image(map[string]int{"k": 12})))(t)
	return kernelOf(t, d, test.Must(m.Function("k"))(t), 1000)
}

// kernelOf prepares a launch of a function with the given bytes of dynamic shared memory.
func kernelOf(t testing.TB, d *Device, f Function, shared int) *Kernel {
	t.Helper()
	return test.Must(d.NewKernel(KernelSpec{
		Name: "k of the test", Function: f,
		Grid: [3]int{70000, 2, 3}, Block: [3]int{64, 4, 1}, Shared: shared, Argument: []byte("twelve bytes"),
	}))(t)
}

func TestCUDADevices(t *testing.T) {
	r := newRig(t, 2)
	want := []Info{
		{Backend: CUDA, Traits: Traits{Noun: "GPU", Label: "GPU"}, ID: 0, Name: "Fake GPU 0", Memory: 6 << 30, PCIBusID: "0000:3b:00.0", UUID: "GPU-00010203-0405-0607-0809-0a0b0c0d0ef0", Arch: "sm_90", Cores: 4, Shared: 227 << 10},
		{Backend: CUDA, Traits: Traits{Noun: "GPU", Label: "GPU"}, ID: 1, Name: "Fake GPU 1", Memory: 6 << 30, PCIBusID: "0000:3c:00.0", UUID: "GPU-00010203-0405-0607-0809-0a0b0c0d0ef1", Arch: "sm_90", Cores: 4, Shared: 227 << 10},
	}
	if got := r.platform.Devices(); !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if v := r.platform.Version(); v != "13.0" {
		t.Errorf("version %s", v)
	}
	if flags := r.fake.PrimaryFlags(1); flags != uint32(cuda.SchedBlocking) {
		t.Errorf("waiting threads must sleep, got flags %d", flags)
	}
	for p, want := range map[Priority]int{Normal: 0, Urgent: -5} {
		test.Must(r.devices[0].NewStream(p))(t)
		if r.fake.Streams(want) != 1 {
			t.Errorf("priority %v: must create a stream of priority %d", p, want)
		}
	}
	if free, total, err := r.devices[0].MemoryInfo(); free != 5<<30 || total != 6<<30 || err != nil {
		t.Errorf("memory %d of %d, %v", free, total, err)
	}
}

// A cooperative launch must fit on the GPU at once, or the error has the numbers. It is never early.
func TestCUDACooperative(t *testing.T) {
	r := newRig(t, 1)
	d := r.devices[0]
	m := test.Must(d.LoadModule(cudafake.Image(map[string]int{"k": 0})))(t)
	spec := KernelSpec{Name: "k", Function: test.Must(m.Function("k"))(t), Block: [3]int{32, 8, 1}, Shared: 100 << 10, Early: true, Cooperative: true}
	spec.Grid = [3]int{3, 3, 1}
	says := "prepare k: cooperative launch of 9 thread blocks with 256 threads and 102400 bytes of shared memory each: must be at most 8 blocks: 2 on each of 4 multiprocessors"
	test.Says(t, test.ErrorOf(d.NewKernel(spec)), says)
	test.Check(t, d.Err())
	spec.Grid = [3]int{2, 2, 2}
	k := test.Must(d.NewKernel(spec))(t)
	s := test.Must(d.NewStream(Normal))(t)
	test.Check(t, s.Launch(k), s.Sync(testLimit))
	if got := r.fake.Launches(); len(got) != 1 || !got[0].Cooperative || got[0].Early {
		t.Errorf("launched %+v", got)
	}
	r.fake.Fail("cuOccupancyMaxActiveBlocksPerMultiprocessor", int(cuda.CodeInvalidValue), 0, 1)
	test.Is(t, test.ErrorOf(d.NewKernel(spec)), cuda.CodeInvalidValue)
}

func TestCUDAOpen(t *testing.T) {
	library := cudafake.Build(t, cudafake.Devices(3))
	fake := cudafake.Inspect(t, library)
	p := test.Must(CUDAPlatform(library))(t)
	defer p.Close()
	for _, tc := range []struct {
		name  string
		ids   []int
		fails string // a driver call that fails for some device: devices are opened concurrently
		skip  int    // the number of calls before the one that fails
		want  []int
		says  string
	}{
		{name: "all", want: []int{0, 1, 2}},
		{name: "some", ids: []int{2, 0}, want: []int{2, 0}},
		{name: "an unknown id", ids: []int{0, 3}, says: "device id: must be at least 0 and less than 3, got 3"},
		{name: "twice", ids: []int{1, 1}, says: "device ids: must be distinct, got 1 twice"},
		{name: "no context", ids: []int{0, 2}, fails: "cuDevicePrimaryCtxRetain", skip: 1, says: `device cuda (0|2): open: device [02]: cuDevicePrimaryCtxRetain`},
		{name: "no capability", fails: "cuDeviceGetAttribute", skip: 3, says: `device cuda (\d): open: device \d: cuDeviceGetAttribute`},
		{name: "no pitch", fails: "cuDeviceGetAttribute", skip: 2, says: `device cuda (\d): open: device \d: cuDeviceGetAttribute`},
		{name: "no priorities", fails: "cuCtxGetStreamPriorityRange", skip: 1, says: `device cuda (\d): open: device \d: cuCtxGetStreamPriorityRange`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.fails != "" {
				fake.Fail(tc.fails, int(cuda.CodeOutOfMemory), tc.skip, 1)
			}
			devices, err := p.Open(tc.ids...)
			if (err == nil) != (tc.says == "") || err != nil && !regexp.MustCompile(tc.says).MatchString(err.Error()) {
				t.Errorf("error %v", err)
			}
			var got []int
			for _, d := range devices {
				got = append(got, d.ID)
			}
			if !slices.Equal(got, tc.want) || fake.Live().Contexts != len(tc.want) {
				t.Errorf("opened %v, %d contexts", got, fake.Live().Contexts)
			}
			test.Check(t, CloseAll(devices))
		})
	}
}

func TestCUDAEventsOrderDevices(t *testing.T) {
	r := newRig(t, 2)
	first := test.Must(r.devices[0].NewStream(Normal))(t)
	second := test.Must(r.devices[1].NewStream(Urgent))(t)
	e := test.Must(r.devices[0].NewEvent())(t)
	if done, err := e.Done(); !done || err != nil {
		t.Errorf("an event that was never recorded: got %v, %v", done, err)
	}
	test.Check(t, first.Record(e), second.Wait(e), e.Sync(testLimit))
	if r.fake.Calls("cuEventRecord") != 1 || r.fake.Calls("cuStreamWaitEvent") != 1 {
		t.Error("must call the driver to record and to wait")
	}
	r.fake.Fail("cuEventQuery", int(cuda.CodeNotReady), 0, 1)
	if done, err := e.Done(); done || err != nil {
		t.Errorf("an event that is not done: got %v, %v", done, err)
	}
}

func TestCUDALaunch(t *testing.T) {
	r := newRig(t, 2)
	for _, d := range r.devices {
		test.Check(t, test.Must(d.NewStream(Normal))(t).Launch(kernel(t, d)))
	}
	for i, got := range r.fake.Launches() {
		if got.Device != i || got.Kernel != "k" || got.Shared != 1000 || string(got.Arg) != "twelve bytes" ||
			got.Grid != [3]uint32{70000, 2, 3} || got.Block != [3]uint32{64, 4, 1} {
			t.Errorf("launch %d: got %+v", i, got)
		}
	}
	if n := len(r.fake.Launches()); n != 2 {
		t.Errorf("got %d launches", n)
	}
	m := test.Must(r.devices[1].LoadModule(cudafake.Image(map[string]int{"f": 0})))(t)
	if u, err := test.Must(m.Function("f"))(t).Usage(); u != (Usage{Registers: 32, Threads: 1024}) || err != nil {
		t.Errorf("usage: got %+v, %v", u, err)
	}
}

// A kernel may use all shared memory of a multiprocessor, less its static shared memory. The driver allows that
// only after the attribute of the function is set, and another launch of the function with less must not lower it.
func TestCUDALaunchOfMuchShared(t *testing.T) {
	r := newRig(t, 1)
	d := r.devices[0]
	m := test.Must(d.LoadModule(cudafake.Image(map[string]int{"k": 12, "has_1_kib": 0})))(t)
	f, s := test.Must(m.Function("k"))(t), test.Must(d.NewStream(Normal))(t)
	much := kernelOf(t, d, f, int(d.Shared))
	kernelOf(t, d, f, 100<<10)
	test.Check(t, s.Launch(much))
	if got := r.fake.Launches(); len(got) != 1 || int64(got[0].Shared) != d.Shared {
		t.Errorf("got %+v", got)
	}
	spec := KernelSpec{Name: "k", Function: test.Must(m.Function("has_1_kib"))(t), Grid: [3]int{4, 1, 1}, Block: [3]int{32, 1, 1}}
	for _, spec.Shared = range []int{47 << 10, 47<<10 + 1, 48 << 10, 47<<10 + 1} {
		for _, spec.Cooperative = range []bool{true, false} {
			test.Check(t, s.Launch(test.Must(d.NewKernel(spec))(t)), s.Sync(testLimit))
		}
	}
	if got := r.fake.Launches(); len(got) != 9 {
		t.Errorf("launched %+v", got)
	}
}

// asked is a call on a device, and the driver call that it makes, if that may fail.
type asked struct {
	call string
	do   func() error
}

// calls returns all calls on a device, by their description in errors.
func calls(t testing.TB, d, peer *Device) map[string]asked {
	s := test.Must(d.NewStream(Normal))(t)
	e := test.Must(d.NewEvent())(t)
	m, host := test.Must(d.Alloc(64))(t), test.Must(d.AllocPinned(64))(t)
	far := test.Must(peer.Alloc(64))(t)
	k := kernel(t, d)
	image := cudafake.Image(map[string]int{"f": 0})
	mod := test.Must(d.LoadModule(image))(t)
	f := test.Must(mod.Function("f"))(t)
	spec := KernelSpec{Name: "f", Function: f, Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}}
	on := func(m *Memory) Pitched {
		return Pitched{Span: m.All(), Offset: 4, Pitch: 8, Plane: 32}
	}
	return map[string]asked{
		"allocate device memory":       {"cuMemAlloc", func() error { _, err := d.Alloc(32); return err }},
		"allocate pinned host memory":  {"cuMemHostGetDevicePointer", func() error { _, err := d.AllocPinned(32); return err }},
		"query free memory":            {"cuMemGetInfo", func() error { _, _, err := d.MemoryInfo(); return err }},
		"create a stream":              {"cuStreamCreateWithPriority", func() error { _, err := d.NewStream(Normal); return err }},
		"create an event":              {"cuEventCreate", func() error { _, err := d.NewEvent(); return err }},
		"load a module":                {"cuModuleLoadDataEx", func() error { _, err := d.LoadModule(image); return err }},
		"find kernel f":                {"cuModuleGetFunction", func() error { _, err := mod.Function("f"); return err }},
		"prepare f":                    {"", func() error { _, err := d.NewKernel(spec); return err }},
		"query access to cuda 1":       {"cuDeviceCanAccessPeer", func() error { _, err := d.CanAccess(peer); return err }},
		"enable access to cuda 1":      {"cuCtxEnablePeerAccess", func() error { return d.EnablePeer(peer) }},
		"copy to cuda 0 [0, 32)":       {"cuMemcpyDtoDAsync", func() error { return s.Copy(m.Span(0, 32), m.Span(32, 32)) }},
		"copy to cuda 1 [0, 64)":       {"cuMemcpyPeerAsync", func() error { return s.Copy(far.All(), m.All()) }},
		"copy to cuda 0 [0, 64)":       {"cuMemcpyHtoDAsync", func() error { return s.Copy(m.All(), host.All()) }},
		"copy to pinned memory":        {"cuMemcpyDtoHAsync", func() error { return s.Copy(host.All(), m.All()) }},
		"launch k of the test":         {"cuLaunchKernelEx", func() error { return s.Launch(k) }},
		"record an event":              {"cuEventRecord", func() error { return s.Record(e) }},
		"wait for an event of device ": {"cuStreamWaitEvent", func() error { return s.Wait(e) }},
		"wait for a stream":            {"cuStreamQuery", func() error { return s.Sync(testLimit) }},
		"query an event":               {"cuEventQuery", func() error { _, err := e.Done(); return err }},

		"copy 2 planes of 3 rows of 4 bytes to cuda 0 [0, 64)": {"cuMemcpy3DAsync", func() error { return s.CopyBox(on(m), on(host), 4, 3, 2) }},
		"copy 2 planes of 3 rows of 4 bytes to pinned memory":  {"", func() error { return s.CopyBox(on(host), on(m), 4, 3, 2) }},
		"copy 2 planes of 3 rows of 4 bytes to cuda 1 [0, 64)": {"cuMemcpy3DPeerAsync", func() error { return s.CopyBox(on(far), on(m), 4, 3, 2) }},
	}
}

// Objects closed before or after their device are closed only once.
func TestCUDACloseAll(t *testing.T) {
	r := newRig(t, 2)
	d := r.devices[0]
	for _, ask := range calls(t, d, r.devices[1]) {
		test.Check(t, ask.do())
	}
	m, host := test.Must(d.Alloc(64))(t), test.Must(d.AllocPinned(64))(t)
	e, late := test.Must(d.NewEvent())(t), test.Must(d.NewEvent())(t)
	s, k := test.Must(d.NewStream(Normal))(t), kernel(t, d)
	test.Check(t, s.Launch(k), s.Copy(host.All(), m.All()), s.Record(e))
	test.Check(t, k.Close(), k.Close(), m.Close(), m.Close(), host.Close(), e.Close(), s.Close(), s.Close())
	test.Is(t, test.Must(d.NewStream(Normal))(t).Launch(k), cuda.CodeInvalidHandle)
	test.Check(t, CloseAll(r.devices), CloseAll(r.devices), late.Close())
	test.Says(t, test.ErrorOf(d.Alloc(8)), "use the device: it is closed")
}

func TestCUDAQueuingDoesNotAllocate(t *testing.T) {
	r := newRig(t, 2)
	all := calls(t, r.devices[0], r.devices[1])
	for _, doing := range []string{
		"copy to cuda 0 [0, 32)", "copy to cuda 1 [0, 64)", "copy to cuda 0 [0, 64)", "copy to pinned memory",
		"copy 2 planes of 3 rows of 4 bytes to cuda 0 [0, 64)", "copy 2 planes of 3 rows of 4 bytes to pinned memory",
		"copy 2 planes of 3 rows of 4 bytes to cuda 1 [0, 64)",
		"launch k of the test", "record an event", "wait for an event of device ", "wait for a stream", "query an event",
	} {
		if n := testing.AllocsPerRun(100, func() { test.Check(t, all[doing].do()) }); n > 0 {
			t.Errorf("%s: got %v allocations", doing, n)
		}
	}
}
