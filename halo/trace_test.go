package halo_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// An exchange on separate streams is traced in the step of the callers' streams, on streams with names, and
// all of it counts as communication.
func TestTraceOfStart(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		if len(set.Devices) < 2 {
			t.Skip("SKIPPED: needs 2 devices")
		}
		for _, path := range paths {
			t.Run("path="+string(path), func(t *testing.T) { traceOfStart(t, set, path) })
		}
	})
}

func traceOfStart(t *testing.T, set *testdevices.Set, path p2p.Path) {
	p := place(t, &testdevices.Set{Devices: set.Devices[:2]}, []int{16, 8, 8}, [3]bool{}, domain.Vec{2, 1, 1})
	tracer := open(streams.NewTracer(p.Devices, streams.Window{First: 2, Last: 2}))(t)
	f := openField(t, p, star(3))
	plan, err := halo.NewPlan(p, set.Links, path, f.Spec)
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	x := open(halo.NewExchanger(plan, set.Compiler, f))(t)
	at := halo.Streams(openStreams(t, p))
	for step := range int64(4) {
		for _, s := range at {
			s.BeginStep(step)
		}
		done(t, nil, errors.Join(x.Start(at), x.Wait(at)))
	}
	done(t, nil, at.Sync(testLimit))
	trace := tracer.Trace()
	done(t, nil, trace.Err())
	for _, d := range trace.Devices {
		sent := 0
		for _, s := range d.Streams {
			lane := slices.Contains([]string{"send", "receive"}, s.Name)
			for _, o := range s.Operations {
				if o.Step != 2 || !lane && o.Work.Communicates() || lane && o.Work == streams.OtherWork {
					t.Errorf("%v, %s: %+v", d.Device, s.Name, o)
				}
				if o.Work.Communicates() {
					sent++
				}
			}
		}
		if sent == 0 {
			t.Errorf("%v: no communication in %+v", d.Device, d.Streams)
		}
	}
}
