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
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/p2p"
)

// A run ends with the very step whose change is small enough, and its field is
// that of this step, although the devices were given more to do.
func TestToleranceEndsAtItsStep(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := problem(t, []int{7, 6, 8}, kernels.Float64, "dddddd")
		ref := newReference[float64](p)
		var changes []reduce.Norms
		for range 40 {
			ref.step()
			changes = append(changes, ref.norms)
		}
		for _, norm := range []Norm{MaxNorm, L2Norm} {
			for i, every := range []int64{1, 2, 7, 20, 40} {
				for j, scheme := range Schemes() {
					if !testdevices.Turn(i+j, 1, 4) {
						continue
					}
					t.Run(fmt.Sprintf("norm=%s/every=%d/scheme=%s", norm, every, scheme), func(t *testing.T) {
						const aim = 20 // the step whose change is the tolerance
						tolerance := changes[aim-1].MaxChange
						if norm == L2Norm {
							tolerance = math.Sqrt(changes[aim-1].SumChange2.Value())
						}
						end := (aim + every - 1) / every * every
						want, _ := expected(p, int(end))
						h := how{scheme, LeftRight, pathOf(scheme), domain.Vec{1, 1, min(2, len(set.Devices))}}
						s, res := solve(t, set, p, h, Options{Steps: 40, Tolerance: tolerance, Norm: norm, CheckEvery: every})
						if res.Steps != end || res.Stopped != StoppedTolerance {
							t.Fatalf("stopped by %s at %d, want %d", res.Stopped, res.Steps, end)
						}
						compare(t, p.Grid, read(t, s), want)
					})
				}
			}
		}
	})
}

// Told to stop, a run stops between two steps: all devices at the same one,
// with norms and a field that belong to it.
func TestInterrupt(t *testing.T) {
	testdevices.Each(t, 3, func(t *testing.T, set *testdevices.Set) {
		for i, scheme := range Schemes() {
			for j, every := range []int64{1, 7, 1 << 30} {
				if !testdevices.Turn(i+j, 1, 2) {
					continue
				}
				t.Run(fmt.Sprintf("scheme=%s/every=%d", scheme, every), func(t *testing.T) { interrupt(t, set, scheme, every) })
			}
		}
	})
}

func interrupt(t *testing.T, set *testdevices.Set, scheme Scheme, every int64) {
	p := problem(t, []int{7, 6, 8}, kernels.Float64, "dddddd")
	s := prepare(t, set, p, how{path: pathOf(scheme), parts: domain.Vec{1, 1, min(3, len(set.Devices))}})
	ctx, cancel := context.WithCancel(context.Background())
	o := how{scheme: scheme, order: Pairwise}.options(Options{Steps: 1 << 40})
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
	want, norms := expected(p, int(res.Steps))
	compare(t, p.Grid, read(t, s), want)
	if res.Norms.MaxChange != norms.MaxChange {
		t.Errorf("change %v, want %v", res.Norms.MaxChange, norms.MaxChange)
	}
}

// pathOf returns a path that the scheme has.
func pathOf(s Scheme) p2p.Path {
	if s == Fused || s == Ranks || s == Resident {
		return p2p.Direct
	}
	return p2p.Staged
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

// A thousand steps cost no allocation. Go's runtime allocates what a goroutine needs to block, and keeps it by processor: with many it takes long
// until all have some.
func TestAStepAllocatesNothing(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0))))
	for _, scheme := range Schemes() {
		t.Run(string(scheme), func(t *testing.T) { allocatesNothing(t, scheme, 1) })
		if groups(scheme) {
			t.Run(string(scheme)+"/group=4", func(t *testing.T) { allocatesNothing(t, scheme, 4) })
		}
	}
}

// allocatesNothing fails the test if steps allocate, with so many between two exchanges. What begins a run does, and how much
// depends on the moment: a look at the memory of the host serves for a second.
func allocatesNothing(t *testing.T, scheme Scheme, group int) {
	set := testdevices.Host(t, 2)
	h := how{scheme, LeftRight, pathOf(scheme), domain.Vec{2, 1, 1}}
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
	for _, scheme := range []Scheme{Assisted, Graph} {
		t.Run(string(scheme), func(t *testing.T) { closeFreesAll(t, scheme) })
	}
}

func closeFreesAll(t *testing.T, scheme Scheme) {
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
		h := how{scheme, LeftRight, p2p.Staged, domain.Vec{1, 1, min(2, len(set.Devices))}}
		once := func() {
			s := prepare(t, set, problem(t, []int{70, 60, 80}, kernels.Float64, "ppnndd"), h)
			if _, err := s.Run(context.Background(), h.options(Options{Steps: 3})); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
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

func TestRefusedRuns(t *testing.T) {
	set := testdevices.Host(t, 1)
	p := problem(t, []int{7, 6, 8}, kernels.Float64, "dddddd")
	good := how{TwoStream, LeftRight, p2p.Auto, domain.Vec{1, 1, 1}}
	for name, change := range map[string]func(o *Options){
		"no iterations":      func(o *Options) { o.Steps = 0 },
		"negative tolerance": func(o *Options) { o.Tolerance = -1 },
		"no number":          func(o *Options) { o.Tolerance = math.NaN() },
		"negative limit":     func(o *Options) { o.Limit = -1 },
		"no such scheme":     func(o *Options) { o.Scheme = "fastest" },
		"no such order":      func(o *Options) { o.Order = "random" },
	} {
		o := good.options(Options{Steps: 1})
		change(&o)
		if _, err := prepare(t, set, p, good).Run(context.Background(), o); err == nil {
			t.Errorf("%s: it ran", name)
		}
	}
}

// Runs that follow each other, by any schemes, give what one run of all their steps gives.
func TestRunsFollowEachOther(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := problem(t, []int{7, 6, 8}, kernels.Float64, "ddnnpp")
		s := prepare(t, set, p, how{path: p2p.Direct, parts: domain.Vec{1, 1, min(2, len(set.Devices))}})
		done := int64(0)
		schemes := Schemes()[1:] // the baseline goes through the host
		for i, name := range append(schemes, schemes...) {
			steps := int64(1 + i%3)
			res, err := s.Run(context.Background(), how{scheme: name, order: Pairwise}.options(Options{Steps: steps}))
			if err != nil {
				t.Fatal(err)
			}
			done += steps
			want, norms := expected(p, int(done))
			compare(t, p.Grid, read(t, s), want)
			checkNorms(t, res, norms, p.Grid.Points(), steps)
		}
	})
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
