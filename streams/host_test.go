package streams

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/halox/halox/internal/host"
	"github.com/halox/halox/internal/test"
)

const testLimit = 5 * time.Minute

func hostDevices(t testing.TB, n int) []*Device {
	t.Helper()
	devices := test.Must(HostPlatform(n).Open())(t)
	t.Cleanup(func() { CloseAll(devices) })
	return devices
}

// Recording an event again neither releases waiters for the first record late, nor delays earlier waiters.
func TestWaitUsesTheLastRecord(t *testing.T) {
	d := hostDevices(t, 1)[0]
	s, w := test.Must(d.NewStream(Normal))(t), test.Must(d.NewStream(Normal))(t)
	e := test.Must(d.NewEvent())(t)
	hold := make(chan struct{})
	var order []int
	kernel := func(f func()) *Kernel {
		return test.Must(d.NewKernel(KernelSpec{Name: "test", Run: f}))(t)
	}
	test.Check(t, w.Wait(e)) // never recorded: no wait
	test.Check(t, w.Sync(testLimit))
	test.Check(t, s.Record(e), w.Wait(e), s.Launch(kernel(func() { <-hold })), s.Record(e), w.Sync(testLimit))
	test.Check(t, w.Wait(e), w.Launch(kernel(func() { order = append(order, 2) })))
	order = append(order, 1)
	close(hold)
	test.Check(t, w.Sync(testLimit))
	if len(order) != 2 || order[1] != 2 {
		t.Errorf("order %v", order)
	}
}

func TestErrorsNameTheDevice(t *testing.T) {
	d := hostDevices(t, 2)
	m := test.Must(d[1].Alloc(8))(t)
	s := test.Must(d[1].NewStream(Normal))(t)
	_, thief := d[1].NewKernel(KernelSpec{Name: "thief", Uses: []Span{test.Must(d[0].Alloc(8))(t).All()}, Run: func() {}})
	other := test.Must(d[0].NewEvent())(t)
	foreign := test.Must(d[0].NewKernel(KernelSpec{Name: "k", Run: func() {}}))(t)
	for name, err := range map[string]error{
		"lengths":   s.Copy(m.Span(0, 4), m.Span(0, 5)),
		"beyond":    s.Copy(m.Span(4, 5), m.Span(0, 5)),
		"negative":  s.Copy(m.Span(-1, 2), m.Span(0, 2)),
		"no memory": s.Copy(Span{}, m.Span(0, 0)),
		"event":     s.Record(other),
		"kernel":    s.Launch(foreign),
		"thief":     thief,
	} {
		if e := (*Error)(nil); !errors.As(err, &e) || e.Device != "host 1" || e.Fatal {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d[0].Alloc(0); err == nil {
		t.Error("must allocate")
	}
	if err := d[1].Err(); err != nil {
		t.Errorf("a rejected call must not make the device unusable, got %v", err)
	}
}

func TestPanicFailsOnlyItsDevice(t *testing.T) {
	d := hostDevices(t, 2)
	s0, s1 := test.Must(d[0].NewStream(Normal))(t), test.Must(d[1].NewStream(Normal))(t)
	e := test.Must(d[0].NewEvent())(t)
	bad := test.Must(d[0].NewKernel(KernelSpec{Name: "bad", Run: func() { panic("index out of range") }}))(t)
	test.Check(t, s0.Launch(bad))
	s0.Record(e)
	test.Check(t, s1.Wait(e), s1.Sync(testLimit)) // waits for a dead device end
	err := s0.Sync(testLimit)
	if err == nil || !strings.Contains(err.Error(), "index out of range") {
		t.Fatalf("error must contain the panic, got %v", err)
	}
	if again := s0.Copy(Span{}, Span{}); !errors.Is(again, d[0].Err()) || d[0].Err() == nil {
		t.Errorf("later calls: got %v, want %v", again, d[0].Err())
	}
	if d[1].Err() != nil {
		t.Errorf("the other device must remain usable, got %v", d[1].Err())
	}
}

// As on a GPU, a failure in one stream is an error of all streams and events of the device.
func TestPanicFailsAllStreamsOfItsDevice(t *testing.T) {
	d := hostDevices(t, 1)[0]
	a, b := test.Must(d.NewStream(Normal))(t), test.Must(d.NewStream(Normal))(t)
	ahead, e := test.Must(d.NewEvent())(t), test.Must(d.NewEvent())(t)
	begin, ran := make(chan struct{}), false
	bad := test.Must(d.NewKernel(KernelSpec{Name: "bad", Run: func() { <-begin; panic("index out of range") }}))(t)
	next := test.Must(d.NewKernel(KernelSpec{Name: "next", Run: func() { ran = true }}))(t)
	test.Check(t, a.Launch(bad), a.Record(e), b.Wait(e), b.Launch(next), b.Record(ahead))
	close(begin)
	e.marker.(*hostEvent).await(1, new(atomic.Bool))
	test.Is(t, test.ErrorOf(ahead.marker.done()), ErrPanicked)
	test.Is(t, b.Sync(testLimit), ErrPanicked)
	test.Check(t, b.queue.close())
	if ran {
		t.Error("a kernel after the failure must not run")
	}
}

// A stream closed by another thread rejects work queued later.
func TestQueuingOnAClosedQueue(t *testing.T) {
	q := newHostQueue(&atomic.Pointer[error]{})
	test.Check(t, q.close(), q.close())
	test.Is(t, q.put(command{}), errClosed)
	full := newHostQueue(&atomic.Pointer[error]{})
	e := test.Must((&hostDriver{}).marker(false))(t).(*hostEvent)
	e.issue()
	test.Check(t, full.put(command{wait: e, n: 1}))
	for full.ran.Load() == 0 && len(full.commands) > 0 { // it waits for the event
		time.Sleep(time.Millisecond)
	}
	for range hostQueueLength {
		test.Check(t, full.put(command{wait: e, n: 0}))
	}
	result := make(chan error)
	go func() { result <- full.put(command{}) }()
	time.Sleep(10 * time.Millisecond)
	test.Check(t, full.close())
	test.Is(t, <-result, errClosed)
	e.pass(1)
}

// A closed queue does not wait forever for an event of a device that hangs: it ends without running later work,
// and its waiters continue.
func TestClosedQueueStopsWaiting(t *testing.T) {
	d := &hostDriver{}
	never, after := test.Must(d.marker(false))(t).(*hostEvent), test.Must(d.marker(false))(t).(*hostEvent)
	q := test.Must(d.queue(Normal))(t).(*hostQueue)
	q.closedLimit = 20 * time.Millisecond
	never.issue()
	ran := false
	test.Check(t, q.wait(never), q.put(command{kernel: &hostKernel{run: func([]byte) { ran = true }}}), q.record(after), q.close())
	ended := make(chan struct{})
	go func() {
		after.await(after.last(), new(atomic.Bool))
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(testLimit):
		t.Fatal("the queue must stop waiting")
	}
	if err := d.failed.Load(); err == nil || !errors.Is(*err, errHangs) || ran {
		t.Errorf("got error %v, kernel after the wait ran: %t", err, ran)
	}
}

// Allocating on a device that is being closed does not leak memory.
func TestAllocateOnAClosingDevice(t *testing.T) {
	d := hostDevices(t, 1)[0]
	m, err := d.allocate("allocate", 8, func(h driver, bytes int64) (*Memory, error) {
		return h.alloc(bytes + test.Must(int64(0), d.Close())(t))
	})
	if m != nil || !errors.Is(err, errClosed) {
		t.Errorf("memory %v, error %v", m, err)
	}
	if now := d.Held(); now != (Held{}) || d.driver.host().used != 0 {
		t.Errorf("held: %+v, %d bytes", now, d.driver.host().used)
	}
}

func TestOpenAndClose(t *testing.T) {
	p := HostPlatform(3)
	for _, ids := range [][]int{{3}, {-1}, {0, 0}} {
		if _, err := p.Open(ids...); err == nil {
			t.Errorf("ids %v: got no error", ids)
		}
	}
	devices, err := p.Open(2, 0)
	test.Check(t, err)
	if devices[0].ID != 2 || devices[1].ID != 0 {
		t.Errorf("opened %v", devices)
	}
	m := test.Must(devices[0].Alloc(100))(t)
	if now := devices[0].Held(); now != (Held{Memory: 100}) {
		t.Errorf("held: %+v", now)
	}
	test.Check(t, m.Close(), m.Close())
	if now := devices[0].Held(); now != (Held{}) {
		t.Errorf("held after it was freed: %+v", now)
	}
	test.Check(t, CloseAll(devices), CloseAll(devices))
	if _, err := devices[0].NewStream(Normal); err == nil {
		t.Error("NewStream on a closed device: got no error")
	}
}

// Queuing on a stream does not allocate, whether traced, in the window and outside, or not.
func TestQueuingDoesNotAllocate(t *testing.T) {
	d, _ := traced(t, 1)
	for _, d := range []*Device{d[0], hostDevices(t, 1)[0]} {
		s, e, m := test.Must(d.NewStream(Normal))(t), test.Must(d.NewEvent())(t), test.Must(d.Alloc(64))(t)
		k := test.Must(d.NewKernel(KernelSpec{Name: "k", Run: func() {}}))(t)
		for _, step := range []int64{3, 6} {
			s.BeginStep(step)
			n := testing.AllocsPerRun(20, func() {
				test.Check(t, s.Copy(m.Span(0, 32), m.Span(32, 32)), s.Launch(k), s.Record(e), s.Wait(e),
					s.CopyBox(Pitched{m.All(), 0, 8, 16}, Pitched{m.All(), 32, 8, 16}, 4, 2, 2))
			})
			if n > 0 {
				t.Errorf("step %d: got %v allocations", step, n)
			}
		}
	}
}

// The time between two timed events includes the work between them.
func TestTimedEvents(t *testing.T) {
	d := hostDevices(t, 1)[0]
	s := test.Must(d.NewStream(Normal))(t)
	start, end := test.Must(d.NewTimedEvent())(t), test.Must(d.NewTimedEvent())(t)
	if _, err := end.Since(start); err == nil {
		t.Error("Since of events that were not recorded: got no error")
	}
	const nap = 20 * time.Millisecond
	k := test.Must(d.NewKernel(KernelSpec{Name: "nap", Run: func() { time.Sleep(nap) }}))(t)
	test.Check(t, s.Record(start), s.Launch(k), s.Record(end), s.Sync(testLimit))
	if took := test.Must(end.Since(start))(t); took < nap || took > testLimit {
		t.Errorf("a kernel of %v: got %v", nap, took)
	}
	untimed := test.Must(d.NewEvent())(t)
	test.Check(t, s.Record(untimed), s.Sync(testLimit))
	if _, err := untimed.Since(start); err == nil {
		t.Error("Since of an untimed event: got no error")
	}
}

// A launch uses its argument as it was when it was queued or captured, the latter in each launch of a graph.
func TestHostKernelsCopyTheirArgument(t *testing.T) {
	device := hostDevices(t, 1)[0]
	stream := test.Must(device.NewStream(Normal))(t)
	var got []byte
	k := test.Must(device.NewKernel(KernelSpec{Name: "note", Argument: []byte{0}, RunWith: func(argument []byte) { got = append(got, argument[0]) }}))(t)
	queue := func(v byte) error {
		k.Argument()[0] = v
		return stream.Launch(k)
	}
	err := errors.Join(queue(1), queue(2))
	graph := test.Must(Capture(stream, nil, func() error { return queue(3) }))(t)
	k.Argument()[0] = 9
	err = errors.Join(err, graph.Launch(), graph.Launch(), queue(4), stream.Sync(testLimit))
	if want := []byte{1, 2, 3, 3, 4}; err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %v, want %v: %v", got, want, err)
	}
	test.Report(t, graph.Close())
}

// limited opens n CPU devices of a host with the given free memory, of which the process holds *resident bytes.
func limited(t *testing.T, n int, free int64, resident *int64) []*Device {
	t.Helper()
	devices := hostDevices(t, n)
	ledger := devices[0].driver.host()
	ledger.now = func() (host.Memory, error) {
		return host.Memory{Free: free - *resident, Total: 2 * free, Resident: *resident, Source: "a test"}, nil
	}
	return devices
}

// Devices and pinned memory share the host memory. Allocated memory counts once, before and after it is written.
func TestHostMemoryIsShared(t *testing.T) {
	resident := int64(0)
	d := limited(t, 2, 1000, &resident)
	a := test.Must(d[0].Alloc(400))(t)
	b := test.Must(d[1].AllocPinned(300))(t)
	_, err := d[1].Alloc(301)
	for _, says := range []string{"device host 1: allocate device memory: 301 bytes: out of memory: need 301 B, but only 300 B of host memory are available: a test"} {
		if !errors.Is(err, ErrOutOfMemory) || err.Error() != says {
			t.Errorf("got %v", err)
		}
	}
	resident = 700 // all pages are written: they must not count twice
	if free, total, err := d[0].MemoryInfo(); free != 300 || total != 2000 || err != nil {
		t.Errorf("got %d of %d free: %v", free, total, err)
	}
	resident = 0
	test.Check(t, a.Close(), b.Close())
	test.Must(d[1].Alloc(1000))(t)
	if info, err := d[0].HostMemoryInfo(); info != (HostInfo{Free: 0, Total: 2000, Source: "a test"}) || err != nil {
		t.Errorf("%+v, %v", info, err)
	}
}

// Concurrent allocations never exceed the available memory.
func TestHostMemoryIsAllocatedOnce(t *testing.T) {
	resident := int64(0)
	d := limited(t, 4, 1000, &resident)
	var group sync.WaitGroup
	for _, one := range d {
		for range 8 {
			group.Go(func() {
				for range 8 { // more in total than available
					_, _ = one.Alloc(7)
					_, _ = one.AllocPinned(3)
				}
			})
		}
	}
	group.Wait()
	sum := int64(0)
	for _, one := range d {
		now, most := one.Held(), one.Peak()
		if now != most {
			t.Errorf("%v: got %+v, peak %+v", one, now, most)
		}
		sum += now.Memory + now.Pinned
	}
	if sum > 1000 || sum < 994 || sum != d[0].driver.host().used {
		t.Errorf("allocated %d of 1000 bytes", sum)
	}
}

// A reading of the available memory is valid for a limited time and a limited fraction.
func TestHostMemoryReadings(t *testing.T) {
	looks := 0
	l := &hostLedger{now: func() (host.Memory, error) {
		looks++
		return host.Memory{Free: 1600, Total: 1600}, nil
	}}
	test.Check(t, l.take(16), l.take(50), l.take(40))
	if looks != 1 {
		t.Errorf("got %d readings", looks)
	}
	if test.Check(t, l.take(20)); looks != 2 {
		t.Errorf("got %d readings", looks)
	}
	l.then = time.Now().Add(-time.Second)
	if test.Check(t, l.take(1)); looks != 3 {
		t.Errorf("got %d readings", looks)
	}
}

// No size makes an allocation panic, whether the available memory is known or not.
func TestSizesBeyondTheHost(t *testing.T) {
	for _, known := range []bool{true, false} {
		d := hostDevices(t, 1)[0]
		if !known {
			d.driver.host().now = nil
		}
		for _, bytes := range []int64{1 << 47, 1 << 62, math.MaxInt64 - 127, math.MaxInt64} {
			for _, alloc := range []func(int64) (*Memory, error){d.Alloc, d.AllocPinned, DryRun([]*Device{d})[0].Alloc} {
				test.Is(t, test.ErrorOf(alloc(bytes)), ErrOutOfMemory)
			}
		}
	}
}

// Demands on devices that share host memory are added up without overflow.
func TestFit(t *testing.T) {
	resident := int64(0)
	d := limited(t, 2, 1000, &resident)
	want := func(memory, pinned int64) []Demand {
		return []Demand{{d[0], Held{memory, pinned}}, {d[1], Held{memory, pinned}}}
	}
	test.Check(t, Fit(want(300, 200)), Fit(nil))
	for _, all := range [][]Demand{want(301, 200), want(0, 501), want(math.MaxInt64, math.MaxInt64)} {
		if err := Fit(all); !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "1000 B of 2 KiB are available: a test") {
			t.Errorf("%v: %v", all, err)
		}
	}
	test.Is(t, Fit(want(-1, 0)), ErrOutOfMemory)
	dry := DryRun(d)
	test.Check(t, Fit([]Demand{{dry[0], Held{1 << 60, 0}}}))
	d[0].driver.host().now = nil
	test.Check(t, Fit(want(1<<60, 0)))
}
