package solvers

import (
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// What is traced of every scheme and path is all sweeps and messages of the steps of the
// window, in order, and takes as long as it can.
func TestTraceOfSchemes(t *testing.T) {
	const first, last, steps = 3, 6, 9
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		for i, cut := range []domain.Vec{{1, 1, 1}, {2, 1, 1}, {2, 1, 2}} {
			for j, h := range ways() {
				if !testdevices.Turn(i+j, 1, 3) {
					continue
				}
				if h.parts = cut; h.scheme == scheme.Resident || h.scheme == scheme.Ranks {
					continue // they do not suit the problem, and a launch of them is many steps
				}
				walls := "tdnnpp"
				if h.scheme == scheme.Graph || h.scheme == scheme.Blocked {
					walls = "ddnnpp"
				}
				p := problem(t, []int{40, 24, 24}, kernels.Float64, walls)
				t.Run(h.String(), func(t *testing.T) {
					s := prepare(t, set, p, h)
					tracer := must(streams.NewTracer(s.Placement().Devices, streams.Window{First: first, Last: last}))(t)
					begin := time.Now()
					if _, err := s.Run(t.Context(), h.options(scheme.Options{Steps: steps, CheckEvery: 4, History: true})); err != nil {
						t.Fatal(err)
					}
					wall := time.Since(begin)
					trace := tracer.Trace()
					succeeds(t, trace.Err())
					for rank, d := range trace.Devices {
						checkStreams(t, d, wall)
						checkSteps(t, s, h, rank, d, first, last)
					}
					if err := tracer.Close(); err != nil {
						t.Error(err)
					}
				})
			}
		}
	})
}

// checkStreams fails the test unless the operations of each stream come one after another
// and take as long as they can.
func checkStreams(t *testing.T, d streams.DeviceTrace, wall time.Duration) {
	t.Helper()
	const fastest = 10e12 // bytes a second
	if d.Lost > 0 || len(d.Streams) == 0 {
		t.Errorf("%v: %d streams, %d operations lost", d.Device, len(d.Streams), d.Lost)
	}
	for _, s := range d.Streams {
		var sum, before time.Duration
		for _, o := range s.Operations {
			took := o.End - o.Begin
			sum += took
			if o.Begin < before || took < 0 || o.Work != streams.WaitWork && took == 0 && d.Device.Backend == streams.CUDA {
				t.Errorf("%v, %s: %s from %v to %v, after %v", d.Device, s.Name, o.Name, o.Begin, o.End, before)
			}
			if took.Seconds() < float64(o.Bytes)/fastest && d.Device.Backend == streams.CUDA {
				t.Errorf("%v, %s: %s of %d bytes took %v", d.Device, s.Name, o.Name, o.Bytes, took)
			}
			before = o.End
		}
		if sum > wall+2*d.Within {
			t.Errorf("%v, %s: operations of %v in a run of %v", d.Device, s.Name, sum, wall)
		}
	}
}

// checkSteps fails the test unless every step of the window, and no other, has all its
// sweeps, and something on its way for every message.
func checkSteps(t *testing.T, s *Solver, h how, rank int, d streams.DeviceTrace, first, last int64) {
	t.Helper()
	sweeps, sent := map[int64]int{}, map[int64]int{}
	for _, stream := range d.Streams {
		for _, o := range stream.Operations {
			switch {
			case o.Step < first || o.Step > last:
				t.Errorf("%v: %s of step %d", d.Device, o.Name, o.Step)
			case o.Work == streams.Sweep:
				sweeps[o.Step]++
			case o.Work == streams.CopyWork || o.Work == streams.Exchange:
				sent[o.Step]++
			}
		}
	}
	want, messages := 0, 0
	boundary, interior := s.Boxes(0, rank)
	if len(boundary) > 0 {
		want++
	}
	if !interior.Empty() {
		want++
	}
	for _, m := range s.Plan().Messages {
		if m.From == rank {
			messages++
		}
	}
	switch h.scheme {
	case scheme.Baseline:
		want = 1
	case scheme.Blocked: // which sweeps, as it exchanges after each step
		if want = 1; h.path == p2p.Direct {
			messages = 1 // one kernel
		}
	case scheme.Fused:
		if !scheme.SweepsInstead(scheme.Fused, d.Device) {
			want, messages = 1, 0 // the sweep stores into the ghosts
		}
	case scheme.Graph:
		want, messages = 0, 0 // the first device shows what all do
		if rank == 0 {
			want = 1
		}
	}
	for n := first; n <= last; n++ {
		if sweeps[n] != want || sent[n] < messages {
			t.Errorf("%v, step %d: %d sweeps of %d, %d copies for %d messages", d.Device, n, sweeps[n], want, sent[n], messages)
		}
	}
}
