package streams

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// What is nil is an error of the call that got it.
func TestWhatIsNilIsRefused(t *testing.T) {
	d := hostDevices(t, 1)[0]
	s := must[*Stream](t)(d.NewStream(Normal))
	m := must[*Memory](t)(d.Alloc(8))
	e := must[*Event](t)(d.NewTimedEvent())
	var signal = must[*Signal](t)(d.NewSignal("nobody"))
	errorOf := func(_ any, err error) error { return err }
	var none *Stream
	nothing := func() error { return nil }
	for name, err := range map[string]error{
		"copy on no stream":       none.Copy(m.All(), m.All()),
		"copy a box on no stream": none.CopyBox(Pitched{}, Pitched{}, 1, 1, 1),
		"launch on no stream":     none.Launch(nil),
		"record on no stream":     none.Record(e),
		"wait on no stream":       none.Wait(e),
		"sync no stream":          none.Sync(time.Second),
		"signal on no stream":     signal.Record(nil),
		"await in no group":       signal.Wait(nil, s, 0),
		"time since no event":     errorOf(e.Since(nil)),
		"no event is done":        errorOf((*Event)(nil).Done()),
		"access no device":        errorOf(d.CanAccess(nil)),
		"enable no peer":          d.EnablePeer(nil),
		"capture no stream":       errorOf(Capture(nil, nil, nothing)),
		"capture beside none":     errorOf(Capture(s, []*Stream{nil}, nothing)),
		"capture nothing":         errorOf(Capture(s, nil, nil)),
		"a kernel on no memory":   errorOf(d.NewKernel(KernelSpec{Name: "k", Uses: []Span{{}}, Run: func() {}})),
		"a kernel of no form":     errorOf(d.NewKernel(KernelSpec{Name: "k"})),
		"wrap no bytes":           errorOf(d.WrapBytes(nil)),
		"allocate on no device":   errorOf((*Device)(nil).Alloc(8)),
		"pin on no device":        errorOf((*Device)(nil).AllocPinned(8)),
		"a stream of no device":   errorOf((*Device)(nil).NewStream(Normal)),
		"an event of no device":   errorOf((*Device)(nil).NewEvent()),
		"a kernel of no device":   errorOf((*Device)(nil).NewKernel(KernelSpec{})),
		"upload nothing":          errorOf(Upload[int32](d, nil)),
		"upload to no device":     errorOf(Upload(nil, []int32{1})),
	} {
		if err == nil {
			t.Errorf("%s is no error", name)
		}
	}
	if d.Reaches(nil) {
		t.Error("no memory is reached")
	}
	check(t, CloseAll([]*Device{nil}))
}

// Memory that is closed is copied neither to nor from.
func TestCopiesOfClosedMemoryAreRefused(t *testing.T) {
	d := hostDevices(t, 1)[0]
	s := must[*Stream](t)(d.NewStream(Normal))
	m, gone := must[*Memory](t)(d.Alloc(8)), must[*Memory](t)(d.AllocPinned(8))
	check(t, gone.Close())
	for name, err := range map[string]error{"to": s.Copy(gone.All(), m.All()), "from": s.Copy(m.All(), gone.All())} {
		if !errors.Is(err, errFreed) {
			t.Errorf("a copy %s pinned memory that is closed: %v", name, err)
		}
	}
	check(t, s.Sync(testLimit))
}

// However many streams wait for a kernel that never ends, on its device and on others, closing the
// devices or Resources of their streams takes one grace.
func TestCloseOfWhatHangsTakesOneGrace(t *testing.T) {
	t.Run("devices", func(t *testing.T) { closeWhatHangs(t, func(d []*Device, _ Resources) error { return CloseAll(d) }) })
	t.Run("resources", func(t *testing.T) { closeWhatHangs(t, func(_ []*Device, r Resources) error { return r.Close() }) })
}

func closeWhatHangs(t *testing.T, closeAll func(d []*Device, r Resources) error) {
	const grace = 300 * time.Millisecond
	var made Resources
	d := hostDevices(t, 4)
	end := make(chan struct{})
	defer close(end)
	endless := must[*Kernel](t)(d[0].NewKernel(KernelSpec{Name: "endless", Run: func() { <-end }}))
	e := must[*Event](t)(d[0].NewEvent())
	for i, one := range d {
		one.SetGrace(grace)
		for k := range 3 {
			s := must[*Stream](t)(one.NewStream(Normal))
			made.Add(s)
			if i == 0 && k == 0 {
				check(t, s.Launch(endless), s.Record(e))
			} else {
				check(t, s.Wait(e))
			}
		}
	}
	begin := time.Now()
	err := closeAll(d, made)
	if took := time.Since(begin); took > 2*grace || !errors.Is(err, errHangs) {
		t.Errorf("it took %v: %v", took, err)
	}
}

// A panic in a worker comes back with the place where it happened.
func TestPanicOfAWorkerSaysWhere(t *testing.T) {
	g := NewWorkerGroup(1, time.Minute)
	g.Go("one", func() error { panickingWorker(); return nil })
	if err := g.Wait(); err == nil || !strings.Contains(err.Error(), "no such thing") || !strings.Contains(err.Error(), "panickingWorker") {
		t.Errorf("got %v", err)
	}
}

func panickingWorker() { panic("no such thing") }
