package streams

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/guard"
	"github.com/halox/halox/internal/test"
)

// Memory is freed after the streams that may use it, even if its device comes earlier, or if it was added to
// Resources after a stream.
func TestCloseFreesMemoryAfterStreams(t *testing.T) {
	for name, closeAll := range map[string]func(d []*Device, s *Stream, m *Memory) error{
		"devices": func(d []*Device, _ *Stream, _ *Memory) error { return CloseAll(d) },
		"resources": func(d []*Device, s *Stream, m *Memory) error {
			var made Resources
			made.Add(s, m)
			return errors.Join(made.Close(), CloseAll(d))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := hostDevices(t, 2)
			m := test.Must(d[0].Alloc(8))(t)
			s := test.Must(d[1].NewStream(Normal))(t)
			slow := test.Must(d[1].NewKernel(KernelSpec{Name: "slow", Run: func() {
				time.Sleep(30 * time.Millisecond)
				if m.Bytes() == nil {
					panic("memory is freed")
				}
			}}))(t)
			test.Check(t, s.Launch(slow), closeAll(d, s, m))
			if m.Bytes() != nil {
				t.Error("the memory was not freed")
			}
		})
	}
}

func TestHangingStreamFailsItsDevice(t *testing.T) {
	d := hostDevices(t, 1)[0]
	d.SetGrace(30 * time.Millisecond)
	m := test.Must(d.Alloc(8))(t)
	s := test.Must(d.NewStream(Normal))(t)
	end := make(chan struct{})
	defer close(end)
	test.Check(t, s.Launch(test.Must(d.NewKernel(KernelSpec{Name: "endless", Run: func() { <-end }}))(t)))
	err := s.Close()
	test.Says(t, err, "device host 0: close a stream: hangs: not done after 30ms")
	if _, again := d.NewEvent(); again != err {
		t.Errorf("later calls: got %v", again)
	}
	test.Check(t, m.Close(), d.Close())
	if m.Bytes() == nil {
		t.Error("memory must not be freed while the stream may use it")
	}
}

// Nil arguments and receivers are errors.
func TestNilIsAnError(t *testing.T) {
	d := hostDevices(t, 1)[0]
	s := test.Must(d.NewStream(Normal))(t)
	m := test.Must(d.Alloc(8))(t)
	e := test.Must(d.NewTimedEvent())(t)
	var signal = test.Must(d.NewSignal("unused"))(t)
	errorOf := func(_ any, err error) error { return err }
	var none *Stream
	nothing := func() error { return nil }
	for name, err := range map[string]error{
		"copy on no stream":           none.Copy(m.All(), m.All()),
		"copy a box on no stream":     none.CopyBox(Pitched{}, Pitched{}, 1, 1, 1),
		"launch on no stream":         none.Launch(nil),
		"record on no stream":         none.Record(e),
		"wait on no stream":           none.Wait(e),
		"sync no stream":              none.Sync(time.Second),
		"signal on no stream":         signal.Record(nil),
		"await in no group":           signal.Wait(nil, s, 0),
		"time since no event":         errorOf(e.Since(nil)),
		"no event is done":            errorOf((*Event)(nil).Done()),
		"access no device":            errorOf(d.CanAccess(nil)),
		"enable no peer":              d.EnablePeer(nil),
		"capture no stream":           errorOf(Capture(nil, nil, nothing)),
		"capture with a nil stream":   errorOf(Capture(s, []*Stream{nil}, nothing)),
		"capture nothing":             errorOf(Capture(s, nil, nil)),
		"a kernel on no memory":       errorOf(d.NewKernel(KernelSpec{Name: "k", Uses: []Span{{}}, Run: func() {}})),
		"a kernel without a function": errorOf(d.NewKernel(KernelSpec{Name: "k"})),
		"wrap no bytes":               errorOf(d.WrapBytes(nil)),
		"context of a CPU device":     d.InContext(nothing),
		"allocate on no device":       errorOf((*Device)(nil).Alloc(8)),
		"pin on no device":            errorOf((*Device)(nil).AllocPinned(8)),
		"a stream of no device":       errorOf((*Device)(nil).NewStream(Normal)),
		"an event of no device":       errorOf((*Device)(nil).NewEvent()),
		"a kernel of no device":       errorOf((*Device)(nil).NewKernel(KernelSpec{})),
		"upload nothing":              errorOf(Upload[int32](d, nil)),
		"upload to no device":         errorOf(Upload(nil, []int32{1})),
	} {
		if err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	if d.Reaches(nil) || s.Handle() != 0 {
		t.Error("nil memory must not be reachable, and a host stream must not have a handle")
	}
	test.Check(t, CloseAll([]*Device{nil}))
}

// Closed memory and closed streams are errors, but do not make the device unusable.
func TestClosedIsAnError(t *testing.T) {
	d := hostDevices(t, 1)[0]
	s, gone := test.Must(d.NewStream(Normal))(t), test.Must(d.NewStream(Normal))(t)
	m, freed := test.Must(d.Alloc(8))(t), test.Must(d.AllocPinned(8))(t)
	test.Check(t, gone.Close(), freed.Close())
	box := func(m *Memory) Pitched { return Pitched{Span: m.All()} }
	for name, c := range map[string]struct{ err, want error }{
		"to freed memory":       {s.Copy(freed.All(), m.All()), errFreed},
		"from freed memory":     {s.Copy(m.All(), freed.All()), errFreed},
		"a box to freed memory": {s.CopyBox(box(freed), box(m), 8, 1, 1), errFreed},
		"on a closed stream":    {gone.Copy(m.Span(0, 4), m.Span(4, 4)), errClosed},
		"a box on a closed one": {gone.CopyBox(box(m), box(m), 8, 1, 1), errClosed},
		"wait for a closed one": {gone.Sync(testLimit), errClosed},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	if err := s.Copy(m.Span(0, 5), m.Span(4, 4)); err == nil {
		t.Error("spans of different lengths: got no error")
	}
	test.Says(t, s.Copy(m.Span(0, 5), m.Span(3, 5)), "spans must not overlap")
	test.Check(t, s.Sync(testLimit), d.Err())
}

// Held devices stay open, also in Resources, and so do all devices closed in the same call.
func TestHeldDevicesStayOpen(t *testing.T) {
	d := hostDevices(t, 3)
	held := []*Device{d[1], nil}
	test.Check(t, Hold(held))
	all := Resources{closers: []io.Closer{d[0], d[1], d[2]}}
	for name, err := range map[string]error{"close": d[1].Close(), "close all": CloseAll(d), "idle": Idle(d)} {
		if !errors.Is(err, guard.ErrBusy) || !strings.Contains(err.Error(), "device host 1: close during a run") {
			t.Errorf("%s: %v", name, err)
		}
	}
	test.Check(t, test.Must(d[0].Alloc(8))(t).Close())
	if err := all.Close(); !errors.Is(err, guard.ErrBusy) || len(all.closers) != 1 || d[2].usable() == nil {
		t.Errorf("close of %d resources, one of them held: got %v", len(all.closers), err)
	}
	test.Is(t, Hold(d), errClosed)
	test.Check(t, test.Must(d[1].Alloc(8))(t).Close())
	Release(held)
	test.Check(t, all.Close(), CloseAll(d))
	test.Is(t, test.ErrorOf(d[1].Alloc(8)), errClosed)
}

// Closing devices or Resources takes one grace period, however many streams wait for a kernel that never ends, on
// its device and on others.
func TestCloseOfHangingStreamsTakesOneGrace(t *testing.T) {
	t.Run("devices", func(t *testing.T) { closeHanging(t, func(d []*Device, _ *Resources) error { return CloseAll(d) }) })
	t.Run("resources", func(t *testing.T) { closeHanging(t, func(_ []*Device, r *Resources) error { return r.Close() }) })
}

func closeHanging(t *testing.T, closeAll func(d []*Device, r *Resources) error) {
	t.Parallel()
	const grace, devices = 3 * time.Second, 12 // a grace period per device would exceed the limit
	var made Resources
	d := hostDevices(t, devices)
	end := make(chan struct{})
	defer close(end)
	endless := test.Must(d[0].NewKernel(KernelSpec{Name: "endless", Run: func() { <-end }}))(t)
	e := test.Must(d[0].NewEvent())(t)
	for i, one := range d {
		one.SetGrace(grace)
		for k := range 3 {
			s := test.Must(one.NewStream(Normal))(t)
			made.Add(s)
			if i == 0 && k == 0 {
				test.Check(t, s.Launch(endless), s.Record(e))
			} else {
				test.Check(t, s.Wait(e))
			}
		}
	}
	begin := time.Now()
	err := closeAll(d, &made)
	if took := time.Since(begin); took > (devices-1)*grace || !errors.Is(err, errHangs) {
		t.Errorf("took %v: %v", took, err)
	}
}
