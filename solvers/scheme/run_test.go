package scheme

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

const testLimit = 5 * time.Minute

// newRunner prepares a step that spreads a variable over n devices in a row. sweep is called whenever a rank
// sweeps its interior, or its whole box.
func newRunner(t *testing.T, set *testdevices.Set, n int, sweep func(rank int)) *Runner {
	t.Helper()
	place := placed(t, set.Devices, []int{7, 6, 4 * n}, [3]bool{}, domain.Vec{1, 1, n})
	u := newVariable(t, place, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}, 2)
	kernel := func(r Region) (Launch, error) {
		k, err := kernels.Launch(r.Device, kernels.LaunchSpec[int64]{Name: r.Name, Work: streams.Sweep, Host: func() {
			if r.Name != "sweep boundary" {
				sweep(r.Rank)
			}
		}})
		return Kernel(k), err
	}
	star := stencil.Footprint{{0, 0, -1}, {0, 0, 1}}
	step := &Step{Stages: []Stage{{Name: "sweep", Reads: []Access{u.At(0, star)}, Writes: []Access{u.At(1, nil)}, Kernels: kernel}}, Measured: []*Variable{u}}
	return runnerBy(t, set, step, p2p.Staged)
}

// threaded are the schemes that support user kernels.
var threaded = []Scheme{Baseline, TwoStream, Assisted, Graph}

// A device that fails ends the run on all devices, with an error that names it.
func TestFailedDeviceEndsRun(t *testing.T) {
	for _, name := range threaded {
		t.Run(string(name), func(t *testing.T) {
			var launches atomic.Int64
			x := newRunner(t, testdevices.Host(t, 4), 4, func(rank int) {
				if rank == 2 && launches.Add(1) == 30 {
					panic("bad cell")
				}
			})
			_, err := x.Run(context.Background(), Options{Scheme: name, Steps: 1 << 40, Limit: testLimit})
			if e := (*streams.Error)(nil); !errors.As(err, &e) || e.Device != "host 2" || !strings.Contains(err.Error(), "bad cell") {
				t.Errorf("got %v", err)
			}
			wants(t, "the next run", errOf(x.Run(context.Background(), Options{Scheme: name, Steps: 1})), nil, "an earlier run has failed")
		})
	}
}

// A device that hangs ends the run within the limit, and is named.
func TestHangingDeviceEndsRun(t *testing.T) {
	const late = 5000 // launches, when rounds are long
	for _, name := range testdevices.Again(1, testdevices.Some(2, threaded)) {
		t.Run(string(name), func(t *testing.T) {
			testdevices.Patiently(t, func(limit time.Duration) error {
				var launches atomic.Int64
				release := make(chan struct{})
				x := newRunner(t, testdevices.Host(t, 3), 3, func(rank int) {
					if rank == 1 && launches.Add(1) == late {
						<-release
					}
				})
				t.Cleanup(func() { close(release) })
				_, err := x.Run(context.Background(), Options{Scheme: name, Steps: 1 << 40, Limit: limit})
				says := func(words string) bool { return strings.Contains(fmt.Sprint(err), words) }
				if launches.Load() < late || !says("not done after") && !says("waited") {
					return fmt.Errorf("after %d launches: %w", launches.Load(), err)
				}
				return nil
			})
		})
	}
}

// Non-finite fields have non-finite norms, which end a run but not a timing.
func TestNormsThatAreNotFinite(t *testing.T) {
	x := newRunner(t, testdevices.Host(t, 1), 1, func(int) {})
	for _, timed := range []bool{false, true} {
		r := &run{Runner: x}
		c := must(newController(t.Context(), Options{Steps: 10, CheckEvery: 1, anything: timed}, r, []worker{&twoStream{run: r}}))(t)
		sums.Reproducible.Add(&c.collected[0][0].norms[0].Sum2, []float64{math.NaN()})
		if ends, err := c.judge(0, 3); ends == timed || err != nil {
			t.Errorf("timed %v: the run ended: %v, %v", timed, ends, err)
		}
	}
}

// Steps use as few graphs as possible, but separate graphs if they are traced.
func TestChoiceOfGraphs(t *testing.T) {
	set := testdevices.Host(t, 2)
	tracer := must(streams.NewTracer(set.Devices, streams.Window{First: 100, Last: 102}))(t)
	x := newRunner(t, set, 2, func(int) {})
	r := &run{Runner: x, threads: streams.NewWorkerGroup(1, testLimit)}
	for _, d := range x.subdomains {
		d.totals = d.split
	}
	made := must(newGraph(r, Options{}))(t)
	g := made[0].(*graph)
	for _, tc := range []struct {
		n, last int64
		want    *streams.Graph
		steps   int64
	}{
		{1, 1, g.one[0], 1}, {2, 2, g.one[1], 1}, {1, graphSteps - 1, g.one[0], 1},
		{1, graphSteps, g.many[0], graphSteps}, {2, 50, g.many[1], graphSteps},
		{90, 150, g.one[1], 1}, {101, 150, g.one[0], 1}, {103, 150, g.many[0], graphSteps},
	} {
		if got, steps := g.next(tc.n, tc.last, false); got != tc.want || steps != tc.steps {
			t.Errorf("steps %d to %d: a graph of %d", tc.n, tc.last, steps)
		}
	}
	succeeds(t, errors.Join(r.Close(), tracer.Close()))
}

// A runner keeps nothing of finished runs.
func TestRunsLeaveNothing(t *testing.T) {
	x := newRunner(t, testdevices.Host(t, 2), 2, func(int) {})
	count := func() int { return reflect.ValueOf(x.resources).FieldByName("closers").Len() }
	before := count()
	for range testdevices.Again(5, testdevices.Numbers(20)) {
		must(x.Run(t.Context(), Options{Scheme: Assisted, Steps: 2}))(t)
	}
	if after := count(); after != before {
		t.Errorf("%d resources after 20 runs, %d before", after, before)
	}
}

// stepOf is a step that moves the points of a variable by one along x.
func stepOf(name string, u *Variable) *Step {
	return &Step{Name: name, Stages: []Stage{{
		Reads: []Access{u.At(0, stencil.Star(2, 1))}, Writes: []Access{u.At(1, nil).Named("next")}, Point: &moves,
	}}}
}

// A run within a run of a runner is rejected, and a panic of Options.Progress ends a run with an error that
// names it.
func TestRunsWithinRuns(t *testing.T) {
	set := testdevices.Host(t, 2)
	place := placed(t, set.Devices, []int{12, 10}, [3]bool{}, domain.Vec{1, 2, 1})
	wide := must(halo.NewWideHalo(place.Decomposition, domain.UniformRadius(2, 1), 2))(t)
	u := newVariable(t, place, wide.Spec(halo.Spec{Name: "u", Element: halo.Float64}), 2)
	succeeds(t, halo.FillPoints(u.Level(0), func(p domain.Vec) float64 { return float64(1 + p[0]) }))
	step := stepOf("refused", u)
	step.Group = 2
	x := runnerBy(t, set, step, p2p.Peer)
	_, err := x.Run(t.Context(), Options{Scheme: TwoStream, Steps: 1 << 30, Progress: func(int64) {
		wants(t, "a run within a run", errOf(x.Run(t.Context(), Options{Scheme: TwoStream, Steps: 1})), nil, "a run of this runner is in progress")
		panic("enough")
	}})
	wants(t, "progress", err, nil, `Options.Progress of step "refused" panicked: enough`)
}

// Ranks reject more devices than a world supports, so that auto tries other schemes.
func TestRanksOfManyDevices(t *testing.T) {
	set := testdevices.Host(t, 17)
	place := placed(t, set.Devices, []int{4, 34}, [3]bool{}, domain.Vec{1, 17, 1})
	u := newVariable(t, place, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}, 2)
	step := stepOf("many", u)
	x := runnerBy(t, set, step, p2p.Direct)
	wants(t, "", errOf(x.Run(t.Context(), Options{Scheme: Ranks, Steps: 1})), ErrUnsuited, "must have at most 16 devices, got 17")
}

// A runner uses the path of the Cutting if the options leave it open.
func TestPathOfACutting(t *testing.T) {
	s := must(halo.Open(t.Context(), halo.Devices{Backend: streams.Host, Count: 2}))(t)
	defer s.Close()
	place := must(s.Cut(t.Context(), halo.Cutting{Size: []int{12, 10}, Path: p2p.Staged}))(t)
	u := newVariable(t, place, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}, 2)
	step := stepOf("path", u)
	for _, c := range []struct{ asked, want p2p.Path }{{"", p2p.Staged}, {p2p.Auto, p2p.Staged}, {p2p.Peer, p2p.Peer}} {
		x := must(New(t.Context(), s, step, Options{Scheme: TwoStream, Path: c.asked}))(t)
		if res, err := x.Steps(t.Context(), 1); err != nil || x.Plans()[0].Messages[0].Path != c.want {
			t.Errorf("path %q: %+v, %v: %q, want %q", c.asked, res, err, x.Plans()[0].Messages[0].Path, c.want)
		}
		succeeds(t, x.Close())
	}
	test.Is(t, test.ErrorOf(New(t.Context(), s, step, Options{Scheme: Fused})), ErrUnsuited)
}
