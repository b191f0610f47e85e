package solvers

import (
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// The trace of every scheme and path has all sweeps and messages of the steps of the window.
func TestTraceOfSchemes(t *testing.T) {
	const first, last, steps = 3, 6, 9
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		for i, cut := range []domain.Vec{{1, 1, 1}, {2, 1, 1}, {2, 1, 2}} {
			for j, h := range ways() {
				if !testdevices.Turn(i+j, 1, 3) {
					continue
				}
				if h.parts = cut; h.scheme == scheme.Resident || h.scheme == scheme.Ranks {
					continue // they do not suit the problem, and one launch runs many steps
				}
				walls := "tdnnpp"
				if h.scheme == scheme.Graph || h.scheme == scheme.Blocked {
					walls = "ddnnpp"
				}
				p := problem(t, []int{40, 24, 24}, domain.Float64, walls)
				t.Run(h.String(), func(t *testing.T) {
					s := prepare(t, set, p, h)
					tracer := must(streams.NewTracer(s.Placement().Devices, streams.Window{First: first, Last: last}))(t)
					must(s.Run(t.Context(), h.options(scheme.Options{Steps: steps, CheckEvery: 4, History: true})))(t)
					trace := tracer.Trace()
					succeeds(t, trace.Err())
					for rank, d := range trace.Devices {
						if d.Lost > 0 {
							t.Errorf("%v: %d operations lost", d.Device, d.Lost)
						}
						checkSteps(t, s, h, rank, d, first, last)
					}
					succeeds(t, tracer.Close())
				})
			}
		}
	})
}

// checkSteps fails the test unless every step of the window, and no other, has all its sweeps, and an
// operation for every message.
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
	case scheme.Blocked: // sweeps, since it exchanges after each step
		if want = 1; h.path == p2p.Direct {
			messages = 1 // one kernel
		}
	case scheme.Fused:
		if !scheme.SweepsInstead(scheme.Fused, d.Device) {
			want, messages = 1, 0 // the sweep stores into the ghosts
		}
	case scheme.Graph:
		want, messages = 0, 0 // the first device traces the work of all
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
