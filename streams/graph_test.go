package streams

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// loom is streams of two host devices with something to capture: bytes go from the host
// to the first device, to the second, and back.
type loom struct {
	t          *testing.T
	d          []*Device
	one, two   *Stream
	in, out    *Memory // pinned
	near, far  *Memory
	here, away *Event
}

func newLoom(t *testing.T) *loom {
	d := hostDevices(t, 2)
	return loomOf(t, d)
}

func loomOf(t *testing.T, d []*Device) *loom {
	stream, memory, event := must[*Stream](t), must[*Memory](t), must[*Event](t)
	return &loom{
		t: t, d: d, one: stream(d[0].NewStream(Normal)), two: stream(d[1].NewStream(Urgent)),
		in: memory(d[0].AllocPinned(64)), out: memory(d[1].AllocPinned(64)),
		near: memory(d[0].Alloc(64)), far: memory(d[1].Alloc(64)),
		here: event(d[0].NewEvent()), away: event(d[1].NewEvent()),
	}
}

// weave queues it all.
func (l *loom) weave() error {
	for _, err := range []error{
		l.one.Copy(l.near.All(), l.in.All()), l.one.Copy(l.far.All(), l.near.All()), l.one.Record(l.here),
		l.two.Wait(l.here), l.two.Copy(l.out.All(), l.far.All()), l.two.Record(l.away),
		l.one.Wait(l.away),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *loom) capture(f func() error) (*Graph, error) {
	return Capture(l.one, []*Stream{l.two}, f)
}

// works fails the test unless both streams do what they are given, at once.
func (l *loom) works() {
	l.t.Helper()
	l.in.Bytes()[0]++
	check(l.t, l.weave(), l.one.Sync(testLimit), l.two.Sync(testLimit))
	if l.out.Bytes()[0] != l.in.Bytes()[0] {
		l.t.Error("the streams no longer do what they are given")
	}
}

func TestGraphIsDoneWhenItIsLaunched(t *testing.T) {
	l := newLoom(t)
	g := must[*Graph](t)(l.capture(l.weave))
	l.in.Bytes()[0] = 7
	check(t, l.one.Sync(testLimit), l.two.Sync(testLimit))
	if l.out.Bytes()[0] != 0 {
		t.Error("something was done before the launch")
	}
	check(t, g.Launch(), l.one.Sync(testLimit))
	if l.out.Bytes()[0] != 7 {
		t.Error("the origin did not wait for all of it")
	}
	if n := testing.AllocsPerRun(100, func() { check(t, g.Launch()) }); n > 0 {
		t.Errorf("%v allocations a launch", n)
	}
	check(t, l.one.Sync(testLimit), g.Close(), g.Close())
	if err := g.Launch(); err == nil || !strings.Contains(err.Error(), "device host 0: launch a graph") {
		t.Errorf("launched after Close: %v", err)
	}
	l.works()
}

// A graph waits for nothing that other streams than its origin were given.
func TestGraphKeepsOrderWithItsOriginAlone(t *testing.T) {
	l := newLoom(t)
	end := make(chan struct{})
	slow := must[*Kernel](t)(l.d[1].NewKernel(KernelSpec{Name: "slow", Run: func() { <-end }}))
	g := must[*Graph](t)(l.capture(l.weave))
	l.in.Bytes()[0] = 7
	check(t, l.two.Launch(slow), g.Launch(), l.one.Sync(testLimit))
	if l.out.Bytes()[0] != 7 {
		t.Error("the graph is not done")
	}
	close(end)
	check(t, l.two.Sync(testLimit), g.Close())
}

// A graph of streams that do nothing is one all the same.
func TestGraphOfNothing(t *testing.T) {
	l := newLoom(t)
	g := must[*Graph](t)(l.capture(func() error { return nil }))
	check(t, g.Launch(), l.one.Sync(testLimit), g.Close())
}

func TestWhatACaptureRefuses(t *testing.T) {
	mine := errors.New("my own")
	for _, tc := range []struct {
		name string
		f    func(l *loom) error
		says string
	}{
		{"an error of f", func(*loom) error { return mine }, "my own"},
		{"to wait for a stream", func(l *loom) error { return l.two.Sync(time.Second) }, "device host 1: wait for a stream: it is being captured"},
		{"to close a stream", func(l *loom) error { return l.two.Close() }, "device host 1: close a stream: it is being captured"},
		{"an event from outside", func(l *loom) error { return l.one.Wait(l.away) }, "device host 0: wait for an event of device host 1: what is captured waits"},
		{"a capture in a capture", func(l *loom) error { _, err := Capture(l.two, nil, l.weave); return err }, "device host 1: capture a stream: it is being captured"},
		{"a box to a peer", func(l *loom) error {
			return l.one.CopyBox(Pitched{Span: l.far.All(), Pitch: 16}, Pitched{Span: l.near.All(), Pitch: 16}, 8, 2, 1)
		}, "a box from device to device is not captured"},
		{"half of it", func(l *loom) error { return errors.Join(l.weave(), mine) }, "my own"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLoom(t)
			open := len(l.d[0].all()) + len(l.d[1].all())
			g, err := l.capture(func() error { return tc.f(l) })
			if g != nil || err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("graph %v, error %v", g, err)
			}
			if now := len(l.d[0].all()) + len(l.d[1].all()); now != open {
				t.Errorf("%d things open before, %d after", open, now)
			}
			l.works()
		})
	}
}

func TestCaptureOfUnusableStreams(t *testing.T) {
	l := newLoom(t)
	closed := must[*Stream](t)(l.d[0].NewStream(Normal))
	check(t, closed.Close())
	for name, others := range map[string][]*Stream{"twice": {l.two, l.two}, "the origin again": {l.one}, "closed": {closed}} {
		if g, err := Capture(l.one, others, l.weave); g != nil || err == nil {
			t.Errorf("%s: graph %v, %v", name, g, err)
		}
	}
	l.works()
}

// A panic in f leaves the streams as they were.
func TestCaptureThatPanics(t *testing.T) {
	l := newLoom(t)
	func() {
		defer func() { _ = recover() }()
		_, _ = l.capture(func() error { panic("oh") })
	}()
	l.works()
}

// A kernel that panics in a graph kills its own device, which is named.
func TestADyingGraph(t *testing.T) {
	l := newLoom(t)
	bad := must[*Kernel](t)(l.d[1].NewKernel(KernelSpec{Name: "bad", Run: func() { panic("bad cell") }}))
	g := must[*Graph](t)(l.capture(func() error { return l.two.Launch(bad) }))
	for i := range 3 {
		err := g.Launch()
		if err == nil && i == 0 { // the kernel may run later
			check(t, l.one.Sync(testLimit))
			continue
		}
		if e := (*Error)(nil); !errors.As(err, &e) || e.Device != "host 1" || !e.Fatal || !strings.Contains(err.Error(), "bad cell") {
			t.Fatalf("got %v", err)
		}
	}
	check(t, l.d[0].Err(), g.Close())
	check(t, l.one.Copy(l.near.All(), l.in.All()), l.one.Sync(testLimit))
}

// A device that is closed closes its graphs.
func TestDevicesCloseGraphs(t *testing.T) {
	l := newLoom(t)
	g := must[*Graph](t)(l.capture(l.weave))
	check(t, g.Launch(), CloseAll(l.d))
	if g.graph != nil {
		t.Error("the graph is open")
	}
	check(t, g.Close())
}

// A launch shows in a trace as one operation of its origin; what it is made of does not.
func TestTraceOfAGraph(t *testing.T) {
	const took = 5 * time.Millisecond
	d, tracer := traced(t, 2)
	l := loomOf(t, d)
	slow := sleeper(t, d[1], "slow", Sweep, took)
	l.one.BeginStep(3)
	l.two.BeginStep(3)
	g := must[*Graph](t)(l.capture(func() error { return errors.Join(l.two.Launch(slow), l.weave()) }))
	for n := range int64(8) {
		l.one.BeginStep(n)
		check(t, g.Launch())
	}
	check(t, l.one.Sync(testLimit))
	trace := tracer.Trace()
	check(t, trace.Err())
	checkOperations(t, trace)
	if len(trace.Devices[0].Streams) != 1 || len(trace.Devices[1].Streams) != 0 {
		t.Fatalf("streams %+v", trace.Devices)
	}
	all := trace.Devices[0].Streams[0].Operations
	if len(all) != 3 {
		t.Fatalf("operations %+v", all)
	}
	for i, o := range all {
		if o.Name != "graph" || o.Work != Sweep || o.Step != int64(3+i) || o.End-o.Begin < took*9/10 {
			t.Errorf("operation %d: %+v", i, o)
		}
	}
	if !l.one.Traced(1, 3) || !l.one.Traced(5, 9) || l.one.Traced(1, 2) || l.one.Traced(6, 9) {
		t.Error("it is not steps 3 to 5 that are traced")
	}
}
