//go:build linux && cgo

package streams

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
)

// Streams and memory of the caller can be used, and are unchanged by Close.
func TestWrappedStreamAndMemory(t *testing.T) { onCUDA(t, wrapAndUse) }

// onCUDA runs a test with the GPUs of a fake driver, and with those of this machine.
func onCUDA(t *testing.T, f func(t *testing.T, d []*Device)) {
	t.Run("fake", func(t *testing.T) { f(t, newRig(t, 2).devices) })
	t.Run("gpu", func(t *testing.T) {
		p, err := CUDAPlatform("")
		if errors.Is(err, ErrNoDriver) {
			t.Skip("SKIPPED: no GPU: ", err)
		}
		test.Check(t, err)
		devices := test.Must(p.Open())(t)
		t.Cleanup(func() { test.Check(t, CloseAll(devices), p.Close()) })
		f(t, devices)
	})
}

func wrapAndUse(t *testing.T, devices []*Device) {
	d := devices[0]
	stream := test.Must(d.NewStream(Normal))(t)
	memory := test.Must(d.Alloc(64))(t)
	in, out := test.Must(d.AllocPinned(64))(t), test.Must(d.AllocPinned(64))(t)
	for i := range in.Bytes() {
		in.Bytes()[i] = byte(i * 7)
	}

	handle := stream.Handle()
	if handle == 0 {
		t.Error("a stream of a GPU has no handle")
	}
	inside := errors.New("inside")
	if err := d.InContext(func() error { return inside }); err != inside {
		t.Errorf("InContext on a GPU: got %v", err)
	}
	wrapped := test.Must(d.WrapStream(handle))(t)
	view := test.Must(d.WrapMemory(memory.Address()+16, 32))(t)
	test.Check(t, wrapped.Copy(view.All(), in.Span(0, 32)), wrapped.Close(), view.Close())
	test.Check(t, stream.Copy(out.Span(0, 32), memory.Span(16, 32)), stream.Sync(testLimit))
	if !bytes.Equal(out.Bytes()[:32], in.Bytes()[:32]) {
		t.Error("the caller's memory must contain the copied bytes")
	}
	if _, err := d.WrapStream(0); err == nil {
		t.Error("WrapStream of the default stream: got no error")
	}
	if _, err := d.WrapMemory(0, 8); err == nil {
		t.Error("WrapMemory of address 0: got no error")
	}
	if _, err := d.WrapBytes(make([]byte, 8)); err == nil {
		t.Error("WrapBytes on a GPU: got no error")
	}
	test.Check(t, CloseAll(devices))
	if err := d.InContext(func() error { return inside }); err == nil || errors.Is(err, inside) {
		t.Errorf("InContext on a closed GPU: got %v", err)
	}
}

// Boxes are copied before and after peer access is enabled between the first and the last device, which may be the
// same.
func TestCopyBoxCUDA(t *testing.T) { onCUDA(t, copyBoxesCUDA) }

func copyBoxesCUDA(t *testing.T, devices []*Device) {
	first, last := devices[0], devices[len(devices)-1]
	t.Run("access=false", func(t *testing.T) { copyBoxes(t, devices) })
	t.Run("access=true", func(t *testing.T) {
		if open, err := first.CanAccess(last); err != nil || !open || first == last {
			t.Skipf("SKIPPED: no access from %v to %v: %v", first, last, err)
		}
		test.Check(t, first.EnablePeer(last), last.EnablePeer(first))
		copyBoxes(t, devices)
	})
}

// Each box takes a single driver call, the simplest one that works.
func TestCopyBoxCallsTheDriver(t *testing.T) {
	r := newRig(t, 2)
	d, fake := r.devices[0], r.fake
	s := test.Must(d.NewStream(Normal))(t)
	const limit, size = 1 << 20, 4 << 20 // the pitch limit of the fake driver
	a, b := test.Must(d.Alloc(size))(t), test.Must(d.Alloc(size))(t)
	far := test.Must(r.devices[1].Alloc(size))(t)
	host := test.Must(d.AllocPinned(size))(t)
	on := func(m *Memory, pitch, plane int64) Pitched { return Pitched{m.All(), 0, pitch, plane} }
	for _, tc := range []struct {
		name                 string
		dst, src             Pitched
		width, height, depth int64
		call                 string // "" for none
		says                 string
	}{
		{"3-D", on(a, 16, 64), on(b, 8, 32), 8, 3, 2, "cuMemcpy3DAsync", ""},
		{"2-D", on(a, 16, 0), on(b, 8, 0), 8, 3, 1, "cuMemcpy3DAsync", ""},
		{"3-D to a peer", on(far, 16, 64), on(b, 8, 32), 8, 3, 2, "cuMemcpy3DPeerAsync", ""},
		{"3-D to pinned memory", on(host, 16, 64), on(b, 8, 32), 8, 3, 2, "cuMemcpy3DAsync", ""},
		{"no gaps", on(a, 8, 24), on(b, 8, 24), 8, 3, 2, "cuMemcpyDtoDAsync", ""},
		{"no gaps, to a peer", on(far, 8, 24), on(b, 8, 24), 8, 3, 2, "cuMemcpyPeerAsync", ""},
		{"no gaps, to pinned memory", on(host, 8, 24), on(b, 8, 24), 8, 3, 2, "cuMemcpyDtoHAsync", ""},
		{"one row beyond the limit", on(a, 0, 0), on(b, 0, 0), limit + 1, 1, 1, "cuMemcpyDtoDAsync", ""},
		{"a pitch at the limit", on(a, limit, 0), on(b, 8, 0), 8, 3, 1, "cuMemcpy3DAsync", ""},
		{"a pitch beyond the limit", on(a, limit+1, 0), on(b, 8, 0), 8, 3, 1, "",
			"not possible as a single copy: pitch must be at most 1048576 bytes, got 1048577"},
		{"a pitch of the source beyond the limit", on(host, 8, 0), on(b, 2*limit, 0), 8, 2, 1, "",
			"not possible as a single copy: pitch must be at most 1048576 bytes, got 2097152"},
		{"planes beyond the limit", on(a, 16, 2*limit), on(b, 8, 32), 8, 3, 2, "cuMemcpy3DAsync", ""},
		{"planes without gaps beyond the limit", on(a, 8, 2*limit), on(b, 8, 32), 8, 3, 2, "cuMemcpy3DAsync", ""},
		{"plane distance not a multiple of the pitch", on(a, 24, 80), on(b, 8, 32), 8, 3, 2, "",
			"not possible as a single copy: the distance of planes, 80 bytes, must be a multiple of the pitch, 24"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := copyCalls(fake)
			err := s.CopyBox(tc.dst, tc.src, tc.width, tc.height, tc.depth)
			if tc.says == "" && err != nil || tc.says != "" && (!errors.Is(err, ErrUnsuited) || !strings.HasSuffix(err.Error(), tc.says)) {
				t.Errorf("got %v", err)
			}
			for call, n := range copyCalls(fake) {
				if made := n - before[call]; made > 1 || (made == 1) != (call == tc.call) {
					t.Errorf("%d calls of %s", made, call)
				}
			}
		})
	}
}

// copyCalls returns the number of calls of each copy function.
func copyCalls(fake *cudafake.Fake) map[string]int {
	calls := map[string]int{}
	for _, name := range []string{"cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync", "cuMemcpyPeerAsync",
		"cuMemcpy3DAsync", "cuMemcpy3DPeerAsync"} {
		calls[name] = fake.Calls(name)
	}
	return calls
}

// Data is copied back and forth on each device, one device after the other in a ring, and the trace must be
// consistent with that. The fake driver has no durations.
func TestTraceCUDA(t *testing.T) { onCUDA(t, traceCUDA) }

func traceCUDA(t *testing.T, d []*Device) {
	tracer := test.Must(NewTracer(d, Window{1, 2}))(t)
	const bytes = 64 << 20
	ring := make([]*Stream, len(d))
	memory, done := make([]*Memory, len(d)), make([]*Event, len(d))
	for i := range d {
		ring[i] = test.Must(d[i].NewStream(Normal))(t)
		memory[i] = test.Must(d[i].Alloc(2 * bytes))(t)
		done[i] = test.Must(d[i].NewEvent())(t)
	}
	begin := time.Now()
	for step := range int64(4) {
		for i, s := range ring {
			s.BeginStep(step)
			before := (i + len(d) - 1) % len(d)
			test.Check(t, s.Wait(done[before]), s.Copy(memory[i].Span(0, bytes), memory[i].Span(bytes, bytes)), s.Record(done[i]))
		}
	}
	for _, s := range ring {
		test.Check(t, s.Sync(testLimit))
	}
	wall := time.Since(begin)
	trace := tracer.Trace()
	test.Check(t, trace.Err())
	checkOperations(t, trace)
	real := !strings.HasSuffix(t.Name(), "/fake")
	for i, dev := range trace.Devices {
		if len(dev.Streams) != 1 || len(dev.Streams[0].Operations) != 4 || dev.Lost != 0 {
			t.Fatalf("device %d: %+v", i, dev)
		}
		t.Logf("%v: times relative to other devices within %v", dev.Device, dev.ClockError)
		if dev.ClockError <= 0 || real && dev.ClockError > 10*time.Millisecond {
			t.Errorf("device %d: times are within %v", i, dev.ClockError)
		}
	}
	if real {
		checkPlausible(t, trace, wall)
		checkRing(t, trace)
	}
	test.Check(t, tracer.Close())
}

// checkPlausible fails the test if operations are impossibly fast or slow.
func checkPlausible(t *testing.T, trace *Trace, wall time.Duration) {
	t.Helper()
	const fastest = 10e12 // bytes per second
	for _, d := range trace.Devices {
		for _, s := range d.Streams {
			sum := time.Duration(0)
			for _, o := range s.Operations {
				took := o.End - o.Begin
				sum += took
				if o.Work != WaitWork && took <= 0 || took.Seconds() < float64(o.Bytes)/fastest {
					t.Errorf("%v: %s of %d bytes took %v", d.Device, o.Name, o.Bytes, took)
				}
			}
			if sum > wall+2*d.ClockError {
				t.Errorf("%v: operations of %v in a window of %v", d.Device, sum, wall)
			}
		}
	}
}

// checkRing fails the test unless a copy ends after the one it waited for, within the uncertainty of the clocks of
// the two devices.
func checkRing(t *testing.T, trace *Trace) {
	t.Helper()
	at := func(i, n int) Operation { return trace.Devices[i].Streams[0].Operations[n] }
	for n := 1; n < 4; n += 2 {
		for i := 1; i < len(trace.Devices); i++ {
			before, after := at(i-1, n), at(i, n)
			if slack := trace.Devices[i-1].ClockError + trace.Devices[i].ClockError; after.End+slack < before.End {
				t.Errorf("device %d is done at %v, device %d, which it waited for, at %v; give or take %v", i, after.End, i-1, before.End, slack)
			}
		}
	}
}

// Driver errors in a tracer name the device, and everything is freed.
func TestTraceWithAFailingDriver(t *testing.T) {
	for _, tc := range []struct{ name, call string }{
		{"no event", "cuEventCreate"}, {"no stream", "cuStreamCreateWithPriority"},
		{"clock failure", "cuEventRecord"},
		{"no times", "cuEventElapsedTime"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, 2)
			d := r.devices
			r.fake.Fail(tc.call, int(cuda.CodeOutOfMemory), 1, 1)
			tracer, err := NewTracer(d, Window{1, 1})
			if err == nil {
				s := test.Must(d[0].NewStream(Normal))(t)
				m := test.Must(d[0].Alloc(64))(t)
				s.BeginStep(1)
				test.Check(t, s.Copy(m.Span(0, 32), m.Span(32, 32)))
				err = tracer.Trace().Err()
				test.Check(t, tracer.Close())
			}
			test.Is(t, err, cuda.CodeOutOfMemory)
		})
	}
}
