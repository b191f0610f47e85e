package streams

import (
	"sync"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
)

// traced returns CPU devices with a tracer of steps 3 to 5.
func traced(t *testing.T, n int) ([]*Device, *Tracer) {
	t.Helper()
	d := hostDevices(t, n)
	tracer := test.Must(NewTracer(d, Window{3, 5}))(t)
	t.Cleanup(func() { test.Check(t, tracer.Close()) })
	return d, tracer
}

// sleeper returns a kernel that sleeps.
func sleeper(t *testing.T, d *Device, name string, work Work, took time.Duration) *Kernel {
	t.Helper()
	return test.Must(d.NewKernel(KernelSpec{Name: name, Work: work, Run: func() { time.Sleep(took) }}))(t)
}

// checkOperations fails the test unless the operations of each stream are in order.
func checkOperations(t *testing.T, trace *Trace) {
	t.Helper()
	for _, d := range trace.Devices {
		for _, s := range d.Streams {
			last := time.Duration(0)
			for _, o := range s.Operations {
				if o.Begin < last || o.End < o.Begin {
					t.Errorf("%v, %s: %s from %v to %v after %v", d.Device, s.Name, o.Name, o.Begin, o.End, last)
				}
				last = o.End
			}
		}
	}
}

// Operations appear on their device and stream, only in the steps of the window, and a wait is distinct from the
// work before and after it.
func TestTraceOfTwoStreams(t *testing.T) {
	const took = 5 * time.Millisecond
	d, tracer := traced(t, 2)
	a, b := test.Must(d[0].NewStream(Normal))(t), test.Must(d[1].NewStream(Normal))(t)
	a.SetName("of %d", 0)
	sweep, pack := sleeper(t, d[0], "sweep", Sweep, took), sleeper(t, d[1], "pack", Pack, took)
	m, away := test.Must(d[0].Alloc(64))(t), test.Must(d[1].Alloc(64))(t)
	e := test.Must(d[0].NewEvent())(t)
	for n := range int64(8) {
		a.BeginStep(n)
		b.BeginStep(n)
		test.Check(t, a.Launch(sweep), a.Record(e), b.Wait(e), b.Launch(pack), b.Copy(away.All(), m.All()), b.Sync(testLimit))
	}
	trace := tracer.Trace()
	test.Check(t, trace.Err())
	checkOperations(t, trace)
	for i, want := range []struct {
		stream string
		names  []string
	}{{"of 0", []string{"sweep"}}, {"stream 0", []string{"wait", "pack", "copy to peer"}}} {
		streams := trace.Devices[i].Streams
		if len(streams) != 1 || streams[0].Name != want.stream {
			t.Fatalf("device %d: streams %+v", i, streams)
		}
		for j, o := range streams[0].Operations {
			step := int64(3 + j/len(want.names))
			if o.Name != want.names[j%len(want.names)] || o.Step != step {
				t.Errorf("device %d, operation %d: %+v", i, j, o)
			}
			if (o.Work == Sweep || o.Work == Pack) && o.End-o.Begin < took*9/10 {
				t.Errorf("device %d: %s took %v", i, o.Name, o.End-o.Begin)
			}
		}
		if got := len(streams[0].Operations); got != 3*len(want.names) {
			t.Errorf("device %d: %d operations", i, got)
		}
	}
	// The pack waits for the sweep, on another device.
	sweeps, others := trace.Devices[0].Streams[0].Operations, trace.Devices[1].Streams[0].Operations
	for n, s := range sweeps {
		if p := others[3*n+1]; p.Begin < s.End {
			t.Errorf("the pack begins at %v, before the end of the sweep at %v", p.Begin, s.End)
		}
	}
	if c := others[2]; c.Bytes != 64 || c.With != d[1] || c.Work != CopyWork {
		t.Errorf("the copy is %+v", c)
	}
}

// An operation on an idle stream does not begin when the previous one ended.
func TestTraceOfAnIdleStream(t *testing.T) {
	const idle = 20 * time.Millisecond
	d, tracer := traced(t, 1)
	s := test.Must(d[0].NewStream(Normal))(t)
	may := make(chan bool, 3)
	k := test.Must(d[0].NewKernel(KernelSpec{Name: "k", Run: func() { <-may }}))(t)
	s.BeginStep(3)
	may <- true
	test.Check(t, s.Launch(k), s.Sync(testLimit))
	time.Sleep(idle)
	test.Check(t, s.Launch(k), s.Launch(k))
	may <- true
	may <- true
	test.Check(t, s.Sync(testLimit))
	o := tracer.Trace().Devices[0].Streams[0].Operations
	if len(o) != 3 || o[1].Begin-o[0].End < idle/2 || o[2].Begin != o[1].End || o[0].Work != OtherWork {
		t.Errorf("operations %+v", o)
	}
}

// Notes in lanes come after the streams, on the same clock, only in the steps of the window, and up to the
// capacity.
func TestTraceOfLanes(t *testing.T) {
	d, tracer := traced(t, 2)
	lane, empty := d[0].NewLane("to rank %d", 1), d[0].NewLane("empty")
	s := test.Must(d[0].NewStream(Normal))(t)
	k := sleeper(t, d[0], "k", Sweep, time.Millisecond)
	began := time.Now()
	for n := range int64(8) {
		s.BeginStep(n)
		lane.Note(Operation{Name: "message", Work: CopyWork, Step: n, Bytes: 64}, began, began.Add(time.Millisecond))
		began = time.Now()
		test.Check(t, s.Launch(k), s.Sync(testLimit))
	}
	lane.Note(Operation{Name: "message", Step: 5}, began, began)
	trace := tracer.Trace()
	test.Check(t, trace.Err())
	streams := trace.Devices[0].Streams
	if len(streams) != 2 || streams[1].Name != "to rank 1" || len(trace.Devices[1].Streams) != 0 || trace.Devices[0].Lost != 1 {
		t.Fatalf("traced %+v, %d lost", streams, trace.Devices[0].Lost)
	}
	sweeps, messages := streams[0].Operations, streams[1].Operations
	if len(messages) != 3 || messages[0].Begin != 0 || messages[0].End != time.Millisecond || messages[0].Bytes != 64 {
		t.Fatalf("messages %+v", messages)
	}
	for i, m := range messages {
		if m.Step != int64(3+i) || i > 0 && m.Begin > sweeps[i-1].Begin || i > 1 && m.Begin < sweeps[i-2].End {
			t.Errorf("message %d: %+v, sweeps %+v", i, m, sweeps)
		}
	}
	var none *Lane
	none.Note(Operation{Step: 4}, began, began)
	if hostDevices(t, 1)[0].NewLane("untraced") != nil || len(empty.notes) != 0 {
		t.Error("NewLane without a tracer must return nil, and a nil lane must ignore notes")
	}
}

// Operations without a mark are counted.
func TestTraceBeyondCapacity(t *testing.T) {
	d, tracer := traced(t, 1)
	s := test.Must(d[0].NewStream(Normal))(t)
	k := sleeper(t, d[0], "k", OtherWork, 0)
	s.BeginStep(4)
	const more = 10
	n := 0
	for ; n < 3*marksPerStep+more; n++ {
		test.Check(t, s.Launch(k))
	}
	test.Check(t, s.Sync(testLimit))
	trace := tracer.Trace()
	checkOperations(t, trace)
	got, lost := len(trace.Devices[0].Streams[0].Operations), trace.Devices[0].Lost
	if got+lost != n || lost < more {
		t.Errorf("got %d operations and %d lost of %d", got, lost, n)
	}
}

// The trace of a hanging stream has the operations before it.
func TestTraceOfAStreamThatHangs(t *testing.T) {
	d, tracer := traced(t, 1)
	s := test.Must(d[0].NewStream(Normal))(t)
	hold := make(chan struct{})
	stuck := test.Must(d[0].NewKernel(KernelSpec{Name: "stuck", Run: func() { <-hold }}))(t)
	free := sync.OnceFunc(func() { close(hold) })
	defer free()
	k := sleeper(t, d[0], "k", OtherWork, 0)
	s.BeginStep(3)
	test.Check(t, s.Launch(k), s.Sync(testLimit), s.Launch(stuck), s.Launch(k))
	trace := tracer.Trace()
	if o := trace.Devices[0].Streams[0].Operations; len(o) != 1 || trace.Devices[0].Lost != 2 || trace.Err() != nil {
		t.Errorf("operations %+v, %d lost, %v", o, trace.Devices[0].Lost, trace.Err())
	}
	free()
	test.Check(t, s.Sync(testLimit))
	if o := tracer.Trace().Devices[0].Streams[0].Operations; len(o) != 3 {
		t.Errorf("later %d operations", len(o))
	}
}

// A device has at most one tracer. After Close it may get another, and the remaining streams keep working.
func TestTracersInTurn(t *testing.T) {
	d := hostDevices(t, 1)
	untraced, other := test.Must(d[0].NewStream(Normal))(t), test.Must(d[0].NewStream(Normal))(t)
	untraced.SetName("without a tracer")
	untraced.BeginStep(1)
	other.Follow(untraced)
	test.Check(t, untraced.Launch(sleeper(t, d[0], "k", Sweep, 0)), untraced.Sync(testLimit))
	first := test.Must(NewTracer(d, Window{1, 1}))(t)
	if _, err := NewTracer(d, Window{1, 1}); err == nil {
		t.Error("a second tracer: got no error")
	}
	s := test.Must(d[0].NewStream(Normal))(t)
	k := sleeper(t, d[0], "k", Sweep, 0)
	s.BeginStep(1)
	test.Check(t, s.Launch(k), s.Sync(testLimit), first.Close(), first.Close(), s.Launch(k))
	s.BeginStep(1)
	test.Check(t, s.Launch(k), s.Sync(testLimit))
	second := test.Must(NewTracer(d, Window{1, 1}))(t)
	test.Check(t, second.Close())
	for _, w := range []Window{{2, 1}, {1, MaxTracedSteps + 1}} {
		if _, err := NewTracer(d, w); err == nil {
			t.Errorf("window %+v: got no error", w)
		}
	}
}
