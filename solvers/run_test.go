package solvers

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// An interrupted run stops between two steps: all devices at the same one, with norms and a field of that
// step, without waiting for the end of an interval.
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

func interrupt(t *testing.T, set *testdevices.Set, name scheme.Scheme, every int64) {
	p := problem(t, []int{7, 6, 8}, domain.Float64, "dddddd")
	s := prepare(t, set, p, how{path: pathOf(name), parts: domain.Vec{1, 1, min(3, len(set.Devices))}})
	ctx, cancel := context.WithCancel(context.Background())
	o := how{scheme: name, order: scheme.Pairwise}.options(scheme.Options{Steps: 1 << 40})
	o.CheckEvery, o.History = every, true
	if every == 7 {
		o.Interval = func(int64, time.Duration) int64 { return 1 << 39 }
	}
	o.Progress = func(n int64) {
		if n > 50 {
			cancel()
		}
	}
	res, err := s.Run(ctx, o)
	if err != nil || res.Stopped != scheme.StoppedInterrupted || res.Steps <= 50 || res.Steps > 500 {
		t.Fatalf("stopped by %s at %d: %v", res.Stopped, res.Steps, err)
	}
	newOracle(p).stoppedAt(t, s, res)
}

// A thousand steps allocate nothing. Go's runtime allocates what a goroutine needs to block, and caches it by
// processor: with many processors it takes long until all have some.
func TestStepAllocatesNothing(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0))))
	for _, name := range scheme.All() {
		t.Run(string(name), func(t *testing.T) { allocatesNothing(t, name, 1) })
		if groups(name) {
			t.Run(string(name)+"/group=4", func(t *testing.T) { allocatesNothing(t, name, 4) })
		}
	}
}

// allocatesNothing fails the test if steps allocate, with a number of steps between two exchanges. The start
// of a run allocates an amount that varies: the memory of the host is checked once per second.
func allocatesNothing(t *testing.T, name scheme.Scheme, group int) {
	set := testdevices.Host(t, 2)
	h := how{name, scheme.LeftRight, pathOf(name), domain.Vec{2, 1, 1}}
	s := prepare(t, set, inGroupsOf(problem(t, []int{8, 7, 6}, domain.Float64, "ppnndd"), group), h)
	intervals := []int64{100, 1000, 0}
	var before, after runtime.MemStats
	o := scheme.Options{Steps: 1 << 40, CheckEvery: 10, Tolerance: 1e-300, Interval: func(int64, time.Duration) int64 {
		before = after
		runtime.ReadMemStats(&after)
		next := intervals[0]
		intervals = intervals[1:]
		return next
	}}
	must(s.Run(context.Background(), h.options(o)))(t)
	if made := after.Mallocs - before.Mallocs; before.Mallocs == 0 || made > 100 {
		t.Errorf("1000 steps made %d allocations", made)
	}
}

// Closing a solver frees everything.
func TestCloseFreesAll(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		used := func() (n int64) {
			for _, d := range set.Devices {
				now := d.Held()
				n += now.Memory + now.Pinned
				if d.HostMemory {
					continue
				}
				free, total, err := d.MemoryInfo()
				succeeds(t, err)
				n += total - free
			}
			return n
		}
		once := func() {
			for _, name := range []scheme.Scheme{scheme.Assisted, scheme.Graph} {
				h := how{name, scheme.LeftRight, p2p.Staged, domain.Vec{1, 1, min(2, len(set.Devices))}}
				s, _ := solve(t, set, problem(t, []int{70, 60, 80}, domain.Float64, "ppnndd"), h, scheme.Options{Steps: 3})
				succeeds(t, s.Close())
			}
		}
		once() // memory that the driver keeps
		before := used()
		for range testdevices.Again(1, testdevices.Numbers(3)) {
			once()
		}
		if after := used(); after > before {
			t.Errorf("%d bytes in use before, %d after", before, after)
		}
	})
}

// A nil problem, or unsupported boundary conditions for the stencil, return an error that names the cause.
func TestErrors(t *testing.T) {
	set, h := testdevices.Host(t, 1), how{path: p2p.Auto, parts: domain.Vec{1, 1, 1}}
	beside := of(t, problem(t, []int{8, 8}, domain.Float64, "tddd"), stencil.Kind{Points: 9, Shape: stencil.BoxShape})
	_, err := New(t.Context(), beside, planFor(t, set, beside, h), set.Compiler)
	wants(t, err, nil, "varies in time")
	for _, p := range []*Problem{nil, {}} {
		_, err := New(t.Context(), p, nil, set.Compiler)
		wants(t, err, nil, "is nil")
		_, _, err = Fastest(t.Context(), p, nil, scheme.Search{}, scheme.Options{})
		wants(t, err, nil, "is nil")
	}
}

// A change whose square underflows is not 0 and does not end the run; one whose square overflows has a norm.
func TestNormsBeyondSquares(t *testing.T) {
	h := how{scheme.Baseline, scheme.LeftRight, p2p.Auto, domain.Vec{1, 1, 1}}
	for _, size := range []string{"1e-170", "1e170"} {
		p := problem(t, []int{8, 8}, domain.Float64, "dddd")
		p.Initial = must(stencil.Parse(size))(t)
		for i := range 4 {
			p.Boundary[i].Value = must(stencil.Parse("0"))(t)
		}
		s, res := solve(t, testdevices.Host(t, 1), p, h,
			scheme.Options{Steps: 4, CheckEvery: 1, Norm: scheme.L2Norm, Tolerance: 1e-200})
		n, mean := res.Norms[0], 0.0
		for _, x := range read(t, s) {
			mean += (x / n.Max) * (x / n.Max)
		}
		if res.Stopped != scheme.StoppedSteps || !(n.L2Change >= n.MaxChange && n.L2Change <= 8*n.MaxChange) ||
			math.Abs(n.L2/(n.Max*math.Sqrt(mean/64))-1) > 1e-14 {
			t.Errorf("%s: stopped by %s with %+v", size, res.Stopped, n)
		}
		d := must(s.Deviation(t.Context(), 0, must(stencil.Parse("0"))(t)))(t)
		if d.Max != n.Max || !(d.L2 > d.Max/9 && d.L2 < 9*d.Max) {
			t.Errorf("%s: deviation %+v of a field of at most %v", size, d, n.Max)
		}
	}
}

// The comparison of the field stops when the context ends.
func TestDeviationChecksContext(t *testing.T) {
	p := problem(t, []int{8, 8}, domain.Float64, "dddd")
	s := prepare(t, testdevices.Host(t, 1), p, how{scheme.Baseline, scheme.LeftRight, p2p.Auto, domain.Vec{1, 1, 1}})
	ended, end := context.WithCancel(t.Context())
	end()
	test.Is(t, test.ErrorOf(s.Deviation(ended, 0, p.Initial)), context.Canceled)
}

// A run in one process keeps the limit of its options; processes that share a grid have limits of their own.
func TestSetupKeepsTheLimit(t *testing.T) {
	s := &Setup{Place: &halo.Placement{Processes: mpi.Alone()}, options: OpenOptions{Options: scheme.Options{Limit: time.Second}}}
	if got := s.Options().Limit; got != time.Second {
		t.Errorf("the limit is %v, want 1s", got)
	}
}
