package scheme

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// With order Concurrent, the sweeps of the interior and of both parts of the boundary region wait for each other, so
// they must run at the same time, as their intervals in the trace show. With order Serial there is one at a time.
func TestAssistedSweepsAtOnce(t *testing.T) {
	set := testdevices.Host(t, 3)
	const layers = 4 // of each subdomain
	for _, c := range []struct {
		order  Order
		path   p2p.Path
		atOnce int
	}{{Concurrent, p2p.Staged, 3}, {Concurrent, p2p.Direct, 3}, {Serial, p2p.Staged, 1}} {
		t.Run(fmt.Sprint(c.order, " ", c.path), func(t *testing.T) {
			place := placed(t, set.Devices, []int{4, 4, 3 * layers}, [3]bool{}, domain.Vec{1, 1, 3})
			u := newVariable(t, place, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}, 2)
			var met sync.WaitGroup
			met.Add(c.atOnce)
			all := make(chan struct{})
			go func() { met.Wait(); close(all) }()
			meet := func() {
				met.Done()
				select {
				case <-all:
				case <-time.After(testLimit):
					panic("the sweeps do not run at the same time")
				}
			}
			var begun [layers]sync.Once
			point := &sweep.Point{Name: "copied", Dims: 3, Go: func(r *sweep.Row) {
				copy(sweep.At[float64](r, "next", 0, 0, 0), sweep.At[float64](r, "u", 0, 0, 0))
				switch k := r.K - layers; {
				case c.atOnce == 1 || k < 0 || k >= layers:
				case k == 0 || k == layers-1:
					begun[k].Do(meet)
				default:
					begun[1].Do(meet)
				}
			}}
			star := stencil.Footprint{{}, {0, 0, -1}, {0, 0, 1}}
			x := runnerBy(t, set, &Step{Stages: []Stage{{
				Name: "copied", Point: point, Reads: []Access{u.At(0, star)}, Writes: []Access{u.At(1, nil).Named("next")},
			}}}, c.path)
			tracer := must(streams.NewTracer(set.Devices, streams.Window{First: 1, Last: 1}))(t)
			_, err := x.Run(t.Context(), Options{Scheme: Assisted, Order: c.order, Steps: 3, Limit: testLimit})
			succeeds(t, err)
			if got := sweepsAtOnce(tracer.Trace().Devices[1]); got != c.atOnce {
				t.Errorf("%d sweeps at once, want %d", got, c.atOnce)
			}
			succeeds(t, tracer.Close())
		})
	}
}

// sweepsAtOnce returns how many sweeps of a trace run at the same time, at most.
func sweepsAtOnce(d streams.DeviceTrace) (most int) {
	var all []streams.Operation
	for _, s := range d.Streams {
		for _, o := range s.Operations {
			if o.Work == streams.Sweep {
				all = append(all, o)
			}
		}
	}
	for _, o := range all {
		n := 0
		for _, other := range all {
			if other.Begin <= o.Begin && o.Begin < other.End {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
