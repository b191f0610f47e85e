package streams

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
)

// backend opens devices of one kind for a test.
type backend struct {
	name   string
	open   func(t testing.TB, n int) []*Device
	kernel func(t testing.TB, d *Device) *Kernel // does nothing
}

// backends has CPU devices and, with cgo, the GPUs of a fake driver.
var backends = []backend{{"host", hostDevices, func(t testing.TB, d *Device) *Kernel {
	return test.Must(d.NewKernel(KernelSpec{Name: "k", Run: func() {}}))(t)
}}}

// eachLoom runs a test with a loom of each backend.
func eachLoom(t *testing.T, f func(t *testing.T, l *loom)) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) { f(t, newLoom(t, b)) })
	}
}

// loom holds streams of two devices and work to capture: bytes are copied from the host to the first device, to
// the second, and back, with kernels in between.
type loom struct {
	t          *testing.T
	d          []*Device
	one, two   *Stream
	in, out    *Memory // pinned
	near, far  *Memory
	here, away *Event
	kernel     *Kernel // of the second device
}

func newLoom(t *testing.T, b backend) *loom { return loomOf(t, b, b.open(t, 2)) }

func loomOf(t *testing.T, b backend, d []*Device) *loom {
	test.Check(t, d[0].EnablePeer(d[1]), d[1].EnablePeer(d[0]))
	return &loom{
		t: t, d: d, one: test.Must(d[0].NewStream(Normal))(t), two: test.Must(d[1].NewStream(Urgent))(t),
		in: test.Must(d[0].AllocPinned(64))(t), out: test.Must(d[1].AllocPinned(64))(t),
		near: test.Must(d[0].Alloc(64))(t), far: test.Must(d[1].Alloc(64))(t),
		here: test.Must(d[0].NewEvent())(t), away: test.Must(d[1].NewEvent())(t), kernel: b.kernel(t, d[1]),
	}
}

// weave queues all of it.
func (l *loom) weave() error {
	return errors.Join(
		l.one.Copy(l.near.All(), l.in.All()), l.one.Copy(l.far.All(), l.near.All()), l.one.Record(l.here),
		l.two.Wait(l.here), l.two.Launch(l.kernel), l.two.Launch(l.kernel), l.two.Copy(l.out.All(), l.far.All()),
		l.two.Launch(l.kernel), l.two.Record(l.away), l.one.Wait(l.away),
	)
}

func (l *loom) capture(f func() error) (*Graph, error) {
	return Capture(l.one, []*Stream{l.two}, f)
}

// works fails the test unless both streams run new work at once.
func (l *loom) works() {
	l.t.Helper()
	l.in.Bytes()[0]++
	test.Check(l.t, l.weave(), l.one.Sync(testLimit), l.two.Sync(testLimit))
	if l.out.Bytes()[0] != l.in.Bytes()[0] {
		l.t.Error("the streams must run new work")
	}
}

func TestGraphRunsOnlyWhenLaunched(t *testing.T) {
	eachLoom(t, func(t *testing.T, l *loom) {
		g := test.Must(l.capture(l.weave))(t)
		l.in.Bytes()[0], l.out.Bytes()[0] = 7, 1
		test.Check(t, l.one.Sync(testLimit), l.two.Sync(testLimit))
		if l.out.Bytes()[0] != 1 {
			t.Error("nothing must run before the launch")
		}
		test.Check(t, g.Launch(), l.one.Sync(testLimit))
		if l.out.Bytes()[0] != 7 {
			t.Error("the origin must wait for all of it")
		}
		if n := testing.AllocsPerRun(100, func() { test.Check(t, g.Launch()) }); n > 0 {
			t.Errorf("got %v allocations per launch", n)
		}
		test.Check(t, l.one.Sync(testLimit), g.Close(), g.Close())
		test.Says(t, g.Launch(), "0: launch a graph")
		l.works()
	})
}

// A graph over two devices that is launched repeatedly gives the same numbers as the calls, also with calls
// between the launches.
func TestGraphRepeatsOverDevices(t *testing.T) {
	const n, launches = 100, 50
	d := hostDevices(t, 2)
	out, back, far := test.Must(d[0].NewStream(Normal))(t), test.Must(d[0].NewStream(Urgent))(t), test.Must(d[1].NewStream(Normal))(t)
	near, came := test.Must(d[0].Alloc(8*n))(t), test.Must(d[0].Alloc(8*n))(t)
	sum, arrived := test.Must(d[1].Alloc(8*n))(t), test.Must(d[1].Alloc(8*n))(t)
	host, sent, added := test.Must(d[0].AllocPinned(8*n))(t), test.Must(d[0].NewEvent())(t), test.Must(d[1].NewEvent())(t)
	again := test.Must(d[0].NewEvent())(t)
	adds := func(d *Device, to *Memory, value func(i int) int64) *Kernel {
		return test.Must(d.NewKernel(KernelSpec{Name: "add", Run: func() {
			for i := range View[int64](to.Bytes()) {
				View[int64](to.Bytes())[i] += value(i)
			}
		}}))(t)
	}
	count := adds(d[0], near, func(i int) int64 { return int64(i + 1) })
	collect := adds(d[1], sum, func(i int) int64 { return View[int64](arrived.Bytes())[i] })
	bring := adds(d[0], near, func(i int) int64 { return View[int64](came.Bytes())[i] })
	round := func() error {
		return errors.Join(
			out.Launch(count), out.Copy(arrived.All(), near.All()), out.Record(sent),
			far.Wait(sent), far.Launch(collect), far.Copy(host.All(), sum.All()), far.Record(added),
			back.Wait(added), back.Copy(came.All(), host.All()), back.Launch(bring), back.Record(again),
			out.Wait(again),
		)
	}
	g := test.Must(Capture(out, []*Stream{back, far}, func() error { return errors.Join(round(), round()) }))(t)
	var wantNear, wantSum int64
	for range launches {
		test.Check(t, g.Launch(), out.Launch(count))
		for range 2 {
			wantNear++
			wantSum += wantNear
			wantNear += wantSum
		}
		wantNear++
	}
	test.Check(t, out.Copy(host.All(), near.All()), out.Sync(testLimit), g.Close())
	for i, got := range View[int64](host.Bytes()) {
		if want := wantNear * int64(i+1); got != want {
			t.Fatalf("number %d: got %d, want %d", i, got, want)
		}
	}
}

// A graph is not ordered with work on streams other than its origin.
func TestGraphIsOrderedOnlyWithItsOrigin(t *testing.T) {
	l := newLoom(t, backends[0])
	end := make(chan struct{})
	slow := test.Must(l.d[1].NewKernel(KernelSpec{Name: "slow", Run: func() { <-end }}))(t)
	g := test.Must(l.capture(l.weave))(t)
	l.in.Bytes()[0] = 7
	test.Check(t, l.two.Launch(slow), g.Launch(), l.one.Sync(testLimit))
	if l.out.Bytes()[0] != 7 {
		t.Error("the graph must be done")
	}
	close(end)
	test.Check(t, l.two.Sync(testLimit), g.Close())
}

// An empty capture is a valid graph.
func TestEmptyGraph(t *testing.T) {
	eachLoom(t, func(t *testing.T, l *loom) {
		g := test.Must(l.capture(func() error { return nil }))(t)
		test.Check(t, g.Launch(), l.one.Sync(testLimit), g.Close())
	})
}

func TestCaptureErrors(t *testing.T) {
	mine := errors.New("my own")
	for _, tc := range []struct {
		name string
		f    func(l *loom) error
		says string
	}{
		{"an error of f", func(*loom) error { return mine }, "my own"},
		{"waiting for a stream", func(l *loom) error { return l.two.Sync(time.Minute) }, "1: wait for a stream: the stream is being captured"},
		{"closing a stream", func(l *loom) error { return l.two.Close() }, "1: close a stream: the stream is being captured"},
		{"an event from outside", func(l *loom) error { return l.one.Wait(l.away) }, "1: captured work may only wait"},
		{"a capture in a capture", func(l *loom) error { _, err := Capture(l.two, nil, l.weave); return err }, "1: capture a stream: the stream is being captured"},
		{"a box to a peer", func(l *loom) error {
			return l.one.CopyBox(Pitched{Span: l.far.All(), Pitch: 16}, Pitched{Span: l.near.All(), Pitch: 16}, 8, 2, 1)
		}, "a box from device to device cannot be captured"},
		{"an error after some work", func(l *loom) error { return errors.Join(l.weave(), mine) }, "my own"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachLoom(t, func(t *testing.T, l *loom) {
				open := len(l.d[0].all()) + len(l.d[1].all())
				g, err := l.capture(func() error { return tc.f(l) })
				if g != nil || err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("got graph %v, error %v", g, err)
				}
				if now := len(l.d[0].all()) + len(l.d[1].all()); now != open {
					t.Errorf("open objects: %d before, %d after", open, now)
				}
				l.works()
			})
		})
	}
}

func TestCaptureOfUnusableStreams(t *testing.T) {
	eachLoom(t, func(t *testing.T, l *loom) {
		closed := test.Must(l.d[0].NewStream(Normal))(t)
		test.Check(t, closed.Close())
		for name, others := range map[string][]*Stream{"twice": {l.two, l.two}, "the origin again": {l.one}, "closed": {closed}} {
			if g, err := Capture(l.one, others, l.weave); g != nil || err == nil {
				t.Errorf("%s: graph %v, %v", name, g, err)
			}
		}
		l.works()
	})
}

// A panic in f leaves the streams unchanged.
func TestCaptureThatPanics(t *testing.T) {
	eachLoom(t, func(t *testing.T, l *loom) {
		func() {
			defer func() { _ = recover() }()
			_, _ = l.capture(func() error { panic("oh") })
		}()
		l.works()
	})
}

// A kernel that panics in a graph makes only its own device unusable, and the error names that device.
func TestGraphWithAPanic(t *testing.T) {
	l := newLoom(t, backends[0])
	bad := test.Must(l.d[1].NewKernel(KernelSpec{Name: "bad", Run: func() { panic("bad cell") }}))(t)
	g := test.Must(l.capture(func() error { return l.two.Launch(bad) }))(t)
	for i := range 3 {
		err := g.Launch()
		if err == nil && i == 0 { // the kernel may run later
			test.Check(t, l.one.Sync(testLimit))
			continue
		}
		if e := (*Error)(nil); !errors.As(err, &e) || e.Device != "host 1" || !e.Fatal || !strings.Contains(err.Error(), "bad cell") {
			t.Fatalf("got %v", err)
		}
	}
	test.Check(t, l.d[0].Err(), g.Close())
	test.Check(t, l.one.Copy(l.near.All(), l.in.All()), l.one.Sync(testLimit))
}

// Closing a device closes its graphs.
func TestDevicesCloseGraphs(t *testing.T) {
	eachLoom(t, func(t *testing.T, l *loom) {
		g := test.Must(l.capture(l.weave))(t)
		test.Check(t, g.Launch(), CloseAll(l.d))
		if g.graph != nil {
			t.Error("the graph must be closed")
		}
		test.Check(t, g.Close())
	})
}

// In a trace a launch is one operation of its origin. The operations of the graph are not traced.
func TestTraceOfAGraph(t *testing.T) {
	const took = 5 * time.Millisecond
	d, tracer := traced(t, 2)
	l := loomOf(t, backends[0], d)
	slow := sleeper(t, d[1], "slow", Sweep, took)
	l.one.BeginStep(3)
	l.two.BeginStep(3)
	g := test.Must(l.capture(func() error { return errors.Join(l.two.Launch(slow), l.weave()) }))(t)
	for n := range int64(8) {
		l.one.BeginStep(n)
		test.Check(t, g.Launch())
	}
	test.Check(t, l.one.Sync(testLimit))
	trace := tracer.Trace()
	test.Check(t, trace.Err())
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
		t.Error("traced steps: must be 3 to 5")
	}
}
