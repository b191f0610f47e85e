//go:build linux && cgo

package streams

import (
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/test"
)

// Copies go to and fro on each device, one device after the other in a ring, and the trace agrees with
// what is known of it. The fake knows no durations.
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
		t.Logf("%v: times within %v of the others'", dev.Device, dev.Within)
		if dev.Within <= 0 || real && dev.Within > 10*time.Millisecond {
			t.Errorf("device %d: times are within %v", i, dev.Within)
		}
	}
	if real {
		checkPlausible(t, trace, wall)
		checkRing(t, trace)
	}
	test.Check(t, tracer.Close())
}

// checkPlausible fails the test unless operations take as long as they can.
func checkPlausible(t *testing.T, trace *Trace, wall time.Duration) {
	t.Helper()
	const fastest = 10e12 // bytes a second
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
			if sum > wall+2*d.Within {
				t.Errorf("%v: operations of %v in a window of %v", d.Device, sum, wall)
			}
		}
	}
}

// checkRing fails the test unless a copy ends after the one that it waited for, by the
// clocks of two devices and as far as they can be compared.
func checkRing(t *testing.T, trace *Trace) {
	t.Helper()
	at := func(i, n int) Operation { return trace.Devices[i].Streams[0].Operations[n] }
	for n := 1; n < 4; n += 2 {
		for i := 1; i < len(trace.Devices); i++ {
			before, after := at(i-1, n), at(i, n)
			if slack := trace.Devices[i-1].Within + trace.Devices[i].Within; after.End+slack < before.End {
				t.Errorf("device %d is done at %v, device %d, which it waited for, at %v; give or take %v", i, after.End, i-1, before.End, slack)
			}
		}
	}
}

// What the driver says to a tracer is an error that names the device, and all is freed.
func TestTraceOfADriverThatFails(t *testing.T) {
	for _, tc := range []struct{ name, call string }{
		{"no event", "cuEventCreate"}, {"no stream", "cuStreamCreateWithPriority"},
		{"a clock that fails", "cuEventRecord"},
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
