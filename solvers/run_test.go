package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// A run ends with the very step whose change is small enough, and its field is
// that of this step, although the devices were given more to do.
func TestToleranceEndsAtItsStep(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := problem(t, []int{7, 6, 8}, kernels.Float64, "dddddd")
		ref := newReference[float64](p)
		var changes []kernels.Norms
		for range 40 {
			ref.step()
			changes = append(changes, ref.norms)
		}
		for _, norm := range []Norm{MaxNorm, L2Norm} {
			for _, every := range []int64{1, 2, 7, 20, 40} {
				for _, scheme := range Schemes() {
					t.Run(fmt.Sprintf("norm=%s/every=%d/scheme=%s", norm, every, scheme), func(t *testing.T) {
						const aim = 20 // the step whose change is the tolerance
						tolerance := changes[aim-1].MaxChange
						if norm == L2Norm {
							tolerance = math.Sqrt(changes[aim-1].SumChange2) * (1 + 1e-12)
						}
						end := (aim + every - 1) / every * every
						want, _ := expected(p, int(end))
						h := how{scheme, LeftRight, pathOf(scheme), domain.Vec{1, 1, min(2, len(set.Devices))}}
						s, res := solve(t, set, p, h, Options{Iterations: 40, Tolerance: tolerance, Norm: norm, CheckEvery: every})
						if res.Iterations != end || res.Stopped != StoppedTolerance {
							t.Fatalf("stopped by %s at %d, want %d", res.Stopped, res.Iterations, end)
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
		for _, scheme := range Schemes() {
			for _, every := range []int64{1, 7, 1 << 30} {
				t.Run(fmt.Sprintf("scheme=%s/every=%d", scheme, every), func(t *testing.T) { interrupt(t, set, scheme, every) })
			}
		}
	})
}

func interrupt(t *testing.T, set *testdevices.Set, scheme Scheme, every int64) {
	p := problem(t, []int{7, 6, 8}, kernels.Float64, "dddddd")
	s := prepare(t, set, p, how{path: pathOf(scheme), parts: domain.Vec{1, 1, min(3, len(set.Devices))}})
	ctx, cancel := context.WithCancel(context.Background())
	o := how{scheme: scheme, order: Pairwise}.options(Options{Iterations: 1 << 40})
	o.CheckEvery, o.History = every, true
	o.Progress = func(n int64) {
		if n > 50 {
			cancel()
		}
	}
	res, err := s.Run(ctx, o)
	if err != nil || res.Stopped != StoppedInterrupted || res.Iterations <= 50 || res.Iterations > 500 {
		t.Fatalf("stopped by %s at %d: %v", res.Stopped, res.Iterations, err)
	}
	want, norms := expected(p, int(res.Iterations))
	compare(t, p.Grid, read(t, s), want)
	if res.Norms.MaxChange != norms.MaxChange {
		t.Errorf("change %v, want %v", res.Norms.MaxChange, norms.MaxChange)
	}
}

// pathOf returns a path that the scheme has.
func pathOf(s Scheme) p2p.Path {
	if s == Fused || s == Resident {
		return p2p.Direct
	}
	return p2p.Staged
}

// spoil replaces a launch of one part by f.
func spoil(t *testing.T, s *Solver, rank int, f func()) {
	t.Helper()
	p := s.parts[rank]
	k, err := p.device.NewKernel(streams.KernelSpec{Name: "spoiled", Run: f})
	if err != nil {
		t.Fatal(err)
	}
	for to := range 2 {
		for _, s := range []*sweeps{&p.plain, &p.measured} {
			s.whole[to], s.interior[to] = k, k
		}
	}
}

// A device that dies ends the run on all devices, with an error that names it.
func TestADyingDeviceEndsTheRun(t *testing.T) {
	for _, scheme := range []Scheme{Baseline, TwoStream, Assisted, Graph} {
		t.Run(string(scheme), func(t *testing.T) {
			set := testdevices.Host(t, 4)
			h := how{scheme, LeftRight, p2p.Peer, domain.Vec{1, 1, 4}}
			s := prepare(t, set, problem(t, []int{7, 6, 16}, kernels.Float64, "dddddd"), h)
			var launches atomic.Int64
			spoil(t, s, 2, func() {
				if launches.Add(1) == 30 {
					panic("bad cell")
				}
			})
			_, err := s.Run(context.Background(), h.options(Options{Iterations: 1 << 40, CheckEvery: 1 << 30}))
			if e := (*streams.Error)(nil); !errors.As(err, &e) || e.Device != "host 2" || !strings.Contains(err.Error(), "bad cell") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A device that hangs ends the run within the limit, and is named.
func TestAHangingDeviceEndsTheRun(t *testing.T) {
	const late = 5000 // launches: rounds are long by then
	for _, scheme := range []Scheme{Baseline, TwoStream, Assisted, Graph} {
		t.Run(string(scheme), func(t *testing.T) {
			var launches atomic.Int64
			set := testdevices.Host(t, 3)
			h := how{scheme, LeftRight, p2p.Peer, domain.Vec{1, 1, 3}}
			s := prepare(t, set, problem(t, []int{7, 6, 16}, kernels.Float64, "dddddd"), h)
			release := make(chan struct{})
			t.Cleanup(func() { close(release) })
			spoil(t, s, 1, func() {
				if launches.Add(1) == late {
					<-release
				}
			})
			o := h.options(Options{Iterations: 1 << 40, CheckEvery: 1 << 30})
			o.Limit = 500 * time.Millisecond
			start := time.Now()
			_, err := s.Run(context.Background(), o)
			if err == nil || time.Since(start) > 5*time.Second {
				t.Fatalf("after %v: %v", time.Since(start), err)
			}
			if !strings.Contains(err.Error(), "not done after") && !strings.Contains(err.Error(), "waited") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDivergenceIsSeen(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := heat(t, unitBox(t, []int{8, 8}, Wall{Dirichlet, parse(t, "0")}, "sin(9*i)*cos(7*j)"), 5)
		h := how{TwoStream, LeftRight, p2p.Auto, domain.Vec{1, min(2, len(set.Devices)), 1}}
		_, res := solve(t, set, p, h, Options{Iterations: 5000, Tolerance: 1e-30, Norm: MaxNorm, CheckEvery: 10})
		if res.Stopped != StoppedDiverged || res.Iterations >= 5000 {
			t.Errorf("stopped by %s at %d with %+v", res.Stopped, res.Iterations, res.Norms)
		}
	})
}

// Thousands of steps more cost no allocation more.
func TestAStepAllocatesNothing(t *testing.T) {
	for _, scheme := range Schemes() {
		t.Run(string(scheme), func(t *testing.T) {
			set := testdevices.Host(t, 2)
			h := how{scheme, LeftRight, pathOf(scheme), domain.Vec{2, 1, 1}}
			allocations := func(steps int64) uint64 {
				s := prepare(t, set, problem(t, []int{8, 7, 6}, kernels.Float64, "ppnndd"), h)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				if _, err := s.Run(context.Background(), h.options(Options{Iterations: steps, CheckEvery: 10, Tolerance: 1e-300})); err != nil {
					t.Fatal(err)
				}
				runtime.ReadMemStats(&after)
				return after.Mallocs - before.Mallocs
			}
			allocations(10)
			few, many := allocations(100), allocations(1100)
			if many > few+100 {
				t.Errorf("100 steps made %d allocations, 1100 made %d", few, many)
			}
		})
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
			if _, err := s.Run(context.Background(), h.options(Options{Iterations: 3})); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		once() // what the driver itself keeps
		before := used()
		for range 3 {
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
		"no iterations":      func(o *Options) { o.Iterations = 0 },
		"no checks":          func(o *Options) { o.CheckEvery = 0 },
		"negative tolerance": func(o *Options) { o.Tolerance = -1 },
		"no number":          func(o *Options) { o.Tolerance = math.NaN() },
		"no limit":           func(o *Options) { o.Limit = 0 },
		"no such scheme":     func(o *Options) { o.Scheme = "fastest" },
		"no such order":      func(o *Options) { o.Order = "random" },
	} {
		o := good.options(Options{Iterations: 1})
		change(&o)
		if _, err := prepare(t, set, p, good).Run(context.Background(), o); err == nil {
			t.Errorf("%s: it ran", name)
		}
	}
	s := prepare(t, set, p, good)
	if _, err := s.Run(context.Background(), good.options(Options{Iterations: 1})); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(context.Background(), good.options(Options{Iterations: 1})); err == nil {
		t.Error("a solver ran twice")
	}
}
