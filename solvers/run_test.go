package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// Told to stop, a run stops between two steps: all devices at the same one,
// with norms and a field that belong to it.
func TestInterrupt(t *testing.T) {
	testdevices.Each(t, 3, func(t *testing.T, set *testdevices.Set) {
		for i, name := range scheme.All() {
			for j, every := range []int64{1, 7, 1 << 30} {
				if !testdevices.Turn(i+j, 1, 2) {
					continue
				}
				t.Run(fmt.Sprintf("scheme=%s/every=%d", name, every), func(t *testing.T) { interrupt(t, set, name, every) })
			}
		}
	})
}

func interrupt(t *testing.T, set *testdevices.Set, name Scheme, every int64) {
	p := problem(t, []int{7, 6, 8}, kernels.Float64, "dddddd")
	s := prepare(t, set, p, how{path: pathOf(name), parts: domain.Vec{1, 1, min(3, len(set.Devices))}})
	ctx, cancel := context.WithCancel(context.Background())
	o := how{scheme: name, order: Pairwise}.options(Options{Steps: 1 << 40})
	o.CheckEvery, o.History = every, true
	o.Progress = func(n int64) {
		if n > 50 {
			cancel()
		}
	}
	res, err := s.Run(ctx, o)
	if err != nil || res.Stopped != StoppedInterrupted || res.Steps <= 50 || res.Steps > 500 {
		t.Fatalf("stopped by %s at %d: %v", res.Stopped, res.Steps, err)
	}
	r := newOracle(p)
	norms, _ := r.run(Options{Steps: res.Steps, CheckEvery: res.Steps})
	compare(t, p.Grid, read(t, s), r.values())
	if res.Norms != norms[0] {
		t.Errorf("norms %+v, want %+v", res.Norms, norms[0])
	}
}

func TestDivergenceIsSeen(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := heat(t, unitBox(t, []int{8, 8}, Wall{Dirichlet, parse(t, "0")}, "sin(9*i)*cos(7*j)"), 5)
		h := how{TwoStream, LeftRight, p2p.Auto, domain.Vec{1, min(2, len(set.Devices)), 1}}
		_, res := solve(t, set, p, h, Options{Steps: 5000, Tolerance: 1e-30, Norm: MaxNorm, CheckEvery: 10})
		if res.Stopped != StoppedDiverged || res.Steps >= 5000 {
			t.Errorf("stopped by %s at %d with %+v", res.Stopped, res.Steps, res.Norms)
		}
	})
}

// A thousand steps cost no allocation. Go's runtime allocates what a goroutine needs to block, and keeps it by processor:
// with many it takes long until all have some.
func TestAStepAllocatesNothing(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0))))
	for _, name := range scheme.All() {
		t.Run(string(name), func(t *testing.T) { allocatesNothing(t, name, 1) })
		if groups(name) {
			t.Run(string(name)+"/group=4", func(t *testing.T) { allocatesNothing(t, name, 4) })
		}
	}
}

// allocatesNothing fails the test if steps allocate, with so many between two exchanges. What begins a run does, and how
// much depends on the moment: a look at the memory of the host serves for a second.
func allocatesNothing(t *testing.T, name Scheme, group int) {
	set := testdevices.Host(t, 2)
	h := how{name, LeftRight, pathOf(name), domain.Vec{2, 1, 1}}
	s := prepare(t, set, inGroupsOf(problem(t, []int{8, 7, 6}, kernels.Float64, "ppnndd"), group), h)
	intervals := []int64{100, 1000, 0}
	var before, after runtime.MemStats
	o := Options{Steps: 1 << 40, CheckEvery: 10, Tolerance: 1e-300, Interval: func(int64, time.Duration) int64 {
		before = after
		runtime.ReadMemStats(&after)
		next := intervals[0]
		intervals = intervals[1:]
		return next
	}}
	if _, err := s.Run(context.Background(), h.options(o)); err != nil {
		t.Fatal(err)
	}
	if made := after.Mallocs - before.Mallocs; before.Mallocs == 0 || made > 100 {
		t.Errorf("1000 steps made %d allocations", made)
	}
}

// What a solver made is gone when it is closed.
func TestCloseFreesAll(t *testing.T) {
	for _, name := range []Scheme{Assisted, Graph} {
		t.Run(string(name), func(t *testing.T) { closeFreesAll(t, name) })
	}
}

func closeFreesAll(t *testing.T, name Scheme) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		used := func() (n int64) {
			for _, d := range set.Devices {
				now := d.Held()
				n += now.Memory + now.Pinned
				if d.HostMemory {
					continue
				}
				free, total, err := d.MemoryInfo()
				if err != nil {
					t.Fatal(err)
				}
				n += total - free
			}
			return n
		}
		h := how{name, LeftRight, p2p.Staged, domain.Vec{1, 1, min(2, len(set.Devices))}}
		once := func() {
			s := prepare(t, set, problem(t, []int{70, 60, 80}, kernels.Float64, "ppnndd"), h)
			if _, err := s.Run(context.Background(), h.options(Options{Steps: 3})); err != nil {
				t.Fatal(err)
			}
			succeeds(t, s.Close())
		}
		once() // what the driver itself keeps
		before := used()
		for range testdevices.Again(1, testdevices.Numbers(3)) {
			once()
		}
		if after := used(); after > before {
			t.Errorf("%d bytes in use before, %d after", before, after)
		}
	})
}

// What makes no sense is an error that says so.
func TestRefusals(t *testing.T) {
	set := testdevices.Host(t, 1)
	p := problem(t, []int{7, 6, 8}, kernels.Float64, "dddddd")
	h := how{TwoStream, LeftRight, p2p.Auto, domain.Vec{1, 1, 1}}
	for name, c := range map[string]struct {
		change func(o *Options)
		says   string
	}{
		"no iterations":      {func(o *Options) { o.Steps = 0 }, "a run of 0 steps"},
		"negative tolerance": {func(o *Options) { o.Tolerance = -1 }, "Tolerance is -1"},
		"no number":          {func(o *Options) { o.Tolerance = math.NaN() }, "Tolerance is NaN"},
		"negative limit":     {func(o *Options) { o.Limit = -1 }, "Limit is -1ns"},
		"no such scheme":     {func(o *Options) { o.Scheme = "fastest" }, `"fastest" is no scheme`},
		"no such order":      {func(o *Options) { o.Order = "random" }, `no order "random"`},
	} {
		t.Run(name, func(t *testing.T) {
			o := h.options(Options{Steps: 1})
			c.change(&o)
			_, err := prepare(t, set, p, h).Run(t.Context(), o)
			wants(t, err, nil, c.says)
		})
	}
	beside := of(t, problem(t, []int{8, 8}, kernels.Float64, "tddd"), stencil.Kind{Points: 9, Shape: stencil.BoxShape})
	made := func(p *Problem, plan *scheme.Plan) error {
		_, err := New(t.Context(), p, plan, set.Compiler)
		return err
	}
	tried := func(p *Problem) error {
		_, _, err := Fastest(t.Context(), p, nil, scheme.Search{}, Options{})
		return err
	}
	wants(t, made(beside, planFor(t, set, beside, h)), nil, "changes with time")
	wants(t, made(nil, nil), nil, "is nil")
	wants(t, made(&Problem{}, nil), nil, "is nil")
	wants(t, tried(nil), nil, "is nil")
	wants(t, tried(&Problem{}), nil, "is nil")
}

// The field is compared until the context ends.
func TestDeviationLooksAtTheContext(t *testing.T) {
	p := problem(t, []int{8, 8}, kernels.Float64, "dddd")
	s := prepare(t, testdevices.Host(t, 1), p, how{Baseline, LeftRight, p2p.Auto, domain.Vec{1, 1, 1}})
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := s.Deviation(ended, p.Initial); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A run ends where the options say, in the middle of an interval too, and with one step where no
// interval is wanted.
func TestIntervalsEndWithTheRun(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := problem(t, []int{7, 6, 8}, kernels.Float64, "dddddd")
	h := how{Assisted, LeftRight, p2p.Peer, domain.Vec{1, 1, 2}}
	for _, tc := range []struct {
		interval, iterations, want int64
	}{{10, 25, 25}, {10, 20, 20}, {0, 20, 1}} {
		calls := int64(0)
		_, res := solve(t, set, p, h, Options{Steps: tc.iterations, Interval: func(int64, time.Duration) int64 {
			calls++
			return tc.interval
		}})
		if res.Steps != tc.want || res.Stopped != StoppedSteps {
			t.Errorf("%+v: %d steps, stopped by %s", tc, res.Steps, res.Stopped)
		}
		if tc.interval > 0 && calls != 1+tc.iterations/tc.interval {
			t.Errorf("%+v: %d calls", tc, calls)
		}
	}
}

// Told to stop, a run does not wait for the end of an interval.
func TestIntervalsAreInterrupted(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := problem(t, []int{7, 6, 8}, kernels.Float64, "dddddd")
	h := how{TwoStream, LeftRight, p2p.Peer, domain.Vec{1, 1, 2}}
	ctx, cancel := context.WithCancel(context.Background())
	o := h.options(Options{Steps: 1 << 40, CheckEvery: 1 << 30})
	o.Interval = func(int64, time.Duration) int64 { return 1 << 39 }
	o.Progress = func(steps int64) {
		if steps > 50 {
			cancel()
		}
	}
	res, err := prepare(t, set, p, h).Run(ctx, o)
	if err != nil || res.Stopped != StoppedInterrupted {
		t.Errorf("stopped by %s: %v", res.Stopped, err)
	}
}
