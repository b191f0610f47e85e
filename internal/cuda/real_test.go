//go:build linux && cgo

package cuda_test

import (
	_ "embed"
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/test"
)

// realContexts opens the machine's own driver, or skips the test where there
// is none.
func realContexts(t *testing.T) []*cuda.Context {
	t.Helper()
	d, err := cuda.Open("")
	if errors.Is(err, cuda.ErrNoDriver) {
		t.Skip("SKIPPED: ", err)
	}
	test.Check(t, err)
	t.Cleanup(func() { test.Check(t, d.Close()) })
	var all []*cuda.Context
	for i := range test.Must(d.DeviceCount())(t) {
		ctx := test.Must(test.Must(d.Device(i))(t).RetainPrimary(cuda.SchedBlocking))(t)
		t.Cleanup(func() { test.Check(t, ctx.Release()) })
		all = append(all, ctx)
	}
	return all
}

func TestRealDevices(t *testing.T) {
	for _, ctx := range realContexts(t) {
		d := ctx.Device()
		free, total, err := ctx.MemInfo()
		test.Check(t, err)
		least, greatest, err := ctx.StreamPriorityRange()
		test.Check(t, err)
		t.Logf("%s, %s, %s: %d bytes, %d free of %d, priorities %d to %d",
			test.Must(d.Name())(t), test.Must(d.PCIBusID())(t), test.Must(d.UUID())(t), test.Must(d.TotalMemory())(t), free, total, least, greatest)
		for name, a := range map[string]cuda.Attribute{
			"multiprocessors": cuda.AttrMultiprocessorCount, "L2 bytes": cuda.AttrL2CacheSize,
			"shared bytes optin": cuda.AttrMaxSharedPerBlockOptin, "copy engines": cuda.AttrAsyncEngineCount,
			"memory bus bits": cuda.AttrMemoryBusWidth, "warp": cuda.AttrWarpSize,
		} {
			if v := test.Must(d.Attribute(a))(t); v <= 0 {
				t.Errorf("%s: %d", name, v)
			} else {
				t.Logf("%s: %d", name, v)
			}
		}
	}
}

// fillPTX sets n floats at out to value; it travels with the test program.
//
//go:embed testdata/fill.ptx
var fillPTX []byte

// TestRealFill launches on the first device and, where there is a second,
// brings the result back through it.
func TestRealFill(t *testing.T) {
	const n, value = 1000, 2.5
	all := realContexts(t)
	first, last := all[0], all[len(all)-1]
	s := test.Must(first.StreamCreate(0))(t)
	start, end := test.Must(first.EventCreate(cuda.EventDefault))(t), test.Must(first.EventCreate(cuda.EventBlocking))(t)
	out, remote := test.Must(first.MemAlloc(4*n))(t), test.Must(last.MemAlloc(4*n))(t)
	host := test.Must(first.HostAlloc(4*n, cuda.HostPortable|cuda.HostMapped))(t)

	m := test.Must(first.ModuleLoad(fillPTX))(t)
	fn := test.Must(first.ModuleFunction(m, "fill"))(t)
	arg := struct {
		out   cuda.DevicePtr
		n     uint32
		value float32
	}{out, n, value}
	l := test.Must(cuda.NewLaunch(fn, cuda.Dim3{X: 8, Y: 1, Z: 1}, cuda.Dim3{X: 128, Y: 1, Z: 1}, 0,
		unsafe.Slice((*byte)(unsafe.Pointer(&arg)), unsafe.Sizeof(arg))))(t)

	test.Check(t, first.EventRecord(start, s))
	test.Check(t, first.Launch(l, s))
	test.Check(t, first.MemcpyPeerAsync(remote, last, out, first, 4*n, s))
	test.Check(t, first.MemsetD8Async(out, 0, 4*n, s))
	test.Check(t, first.MemcpyPeerAsync(out, first, remote, last, 4*n, s))
	test.Check(t, first.MemcpyDtoHAsync(host, out, 4*n, s))
	test.Check(t, first.EventRecord(end, s))
	test.Check(t, first.EventSynchronize(end))
	t.Logf("%v ms", test.Must(first.EventElapsed(start, end))(t))
	for i, v := range unsafe.Slice((*float32)(host), n) {
		if v != value {
			t.Fatalf("element %d is %v, want %v", i, v, value)
		}
	}
	t.Logf("%d registers, %d blocks a multiprocessor", test.Must(first.FunctionAttribute(fn, cuda.FuncRegisters))(t),
		test.Must(first.OccupancyMaxActiveBlocks(fn, 128, 0))(t))
	if per := testing.AllocsPerRun(100, func() { _ = first.Launch(l, s) }); per != 0 {
		t.Errorf("%v allocations a launch", per)
	}
	test.Check(t, first.StreamSynchronize(s))

	l.Free()
	test.Check(t, errors.Join(first.ModuleUnload(m), first.HostFree(host), last.MemFree(remote), first.MemFree(out),
		first.EventDestroy(start), first.EventDestroy(end), first.StreamDestroy(s)))
}

func TestRealErrors(t *testing.T) {
	ctx := realContexts(t)[0]
	_, err := ctx.ModuleLoad([]byte(".version 6.0\n.target sm_60\nnonsense\n"))
	if !errors.Is(err, cuda.CodeInvalidPTX) || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("bad PTX: %v", err)
	}
	_, err = ctx.MemAlloc(1 << 50)
	if !errors.Is(err, cuda.CodeOutOfMemory) || cuda.IsSticky(err) {
		t.Errorf("too much memory: %v", err)
	}
	t.Log(err)
}

func BenchmarkRealCalls(b *testing.B) {
	d, err := cuda.Open("")
	if err != nil {
		b.Skip("SKIPPED: ", err)
	}
	device, err1 := d.Device(0)
	ctx, err2 := device.RetainPrimary(cuda.SchedSpin)
	s, err3 := ctx.StreamCreate(0)
	e, err4 := ctx.EventCreate(cuda.EventNoTiming)
	test.Check(b, errors.Join(err1, err2, err3, err4))
	b.Run("call=EventRecord", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = ctx.EventRecord(e, s)
		}
	})
	b.Run("call=EventQuery", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = ctx.EventQuery(e)
		}
	})
}
