package scheme

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// newStep returns a linear step over n devices in a row.
func newStep(t *testing.T, set *testdevices.Set, n, layers int) *Step {
	t.Helper()
	return newStepOf(t, set.Devices[:n], []int{12, 10, layers}, stencil.Kind{Points: 7, Shape: stencil.StarShape})
}

// newStepOf returns a linear step over devices in a row along the last axis.
func newStepOf(t *testing.T, devices []*streams.Device, size []int, kind stencil.Kind) *Step {
	t.Helper()
	parts := domain.Vec{1, 1, 1}
	parts[len(size)-1] = len(devices)
	place := placed(t, devices, size, [3]bool{}, parts)
	u := newVariable(t, place, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(len(size), 1)}, 2)
	u.Boundary = boundary.All(boundary.Condition{Kind: boundary.Neumann})
	s := must(stencil.HeatOf(kind, slices.Repeat([]float64{0.1}, len(size)), 1, 1e-3))(t)
	point, _, err := sweep.Linear(s, domain.Float64)
	succeeds(t, err)
	return &Step{
		Stages:   []Stage{{Name: "sweep", Reads: []Access{u.At(0, s.Footprint())}, Writes: []Access{u.At(1, nil).Named("next")}, Point: &point}},
		Measured: []*Variable{u},
	}
}

// A timing of every scheme takes about its budget, leaves nothing behind and reports unsuited schemes.
func TestAutotune(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		n := min(2, len(set.Devices))
		step := newStep(t, set, n, 16)
		for _, path := range []p2p.Path{p2p.Direct, p2p.Staged} {
			plan := must(step.Plan(set.Links, path))(t)
			for i, name := range All() {
				begin := time.Now()
				o := Options{Scheme: name, Limit: testLimit}
				if i%2 == 1 { // a tolerance that all steps satisfy
					o.Tolerance, o.CheckEvery = math.MaxFloat64, 3
				}
				took, err := autotune(t.Context(), t.Context(), step, plan, set.Compiler, o, 20*time.Millisecond)
				needs := name.Needs()
				unfit := n > 1 && needs.CheckPath(name, path) != nil
				if unfit != errors.Is(err, ErrUnsuited) || !unfit && (err != nil || took <= 0) {
					t.Errorf("%s by %s: %v, %v", name, path, took, err)
				}
				if took := time.Since(begin); took > time.Minute {
					t.Errorf("%s by %s: it took %v", name, path, took)
				}
			}
		}
	})
}

// All schemes are tried, over the available paths, and the fastest comes first.
func TestTrials(t *testing.T) {
	set := testdevices.Host(t, 2)
	step := newStep(t, set, 2, 16)
	for path, fewest := range map[p2p.Path]int{p2p.Auto: 2*len(candidates()) - 5, p2p.Staged: len(candidates()) - 3} {
		s := Search{Links: set.Links, Compiler: set.Compiler, Path: path, clock: noTime}
		f, err := s.try(t.Context(), step, Options{}, nil)
		trials := f.Trials
		if err != nil || len(trials) < fewest || !slices.IsSortedFunc(trials, faster) || trials[0].Step <= 0 {
			t.Errorf("path %s: %v, %v", path, trials, err)
		}
		if path == p2p.Staged && slices.ContainsFunc(trials, func(s Trial) bool { return s.Path != p2p.Staged || s.Scheme == Fused }) {
			t.Errorf("path %s: %v", path, trials)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (Search{Links: set.Links, Compiler: set.Compiler}).try(ctx, step, Options{}, nil); err == nil {
		t.Error("an interrupted search succeeded")
	}
	plan := must(step.Plan(set.Links, p2p.Auto))(t)
	_, err := autotune(ctx, ctx, step, plan, set.Compiler, Options{Scheme: TwoStream}, time.Hour)
	test.Is(t, err, context.Canceled)
}

// standing is a clock that stands still. Waits of up to a duration end immediately, and longer ones never.
func standing(passes time.Duration) clock {
	past := make(chan time.Time)
	close(past)
	return clock{func() time.Time { return time.Unix(1, 0) }, func(d time.Duration) <-chan time.Time {
		if d <= passes {
			return past
		}
		return nil
	}}
}

// noTime is the clock of searches that may take any time, so that the load of the host does not affect what
// is tried.
var noTime = standing(0)

// A search that reaches its limit stops the trial in progress, whose steps until then count, and tries
// nothing else, even if it has found nothing.
func TestSlowStepsEndWithTheSearch(t *testing.T) {
	set := testdevices.Host(t, 1)
	limited, end := context.WithCancel(t.Context())
	sweeps := 0
	x := newRunner(t, set, 1, func(int) {
		if sweeps++; sweeps == 3 {
			end()
		}
	})
	plan := must(x.step.Plan(set.Links, p2p.Staged))(t)
	o := Options{Scheme: Baseline, Limit: testLimit}
	took, err := autotune(t.Context(), limited, x.step, plan, set.Compiler, o, time.Hour)
	if err != nil || took <= 0 || sweeps > 2*fewestSteps {
		t.Errorf("%v after %d steps, %v", took, sweeps, err)
	}
	s := Search{Links: set.Links, Compiler: set.Compiler, Path: p2p.Staged, clock: standing(searchLimit)}
	o.Scheme = Auto
	f, err := s.try(t.Context(), x.step, o, nil)
	if err != nil || len(f.Trials) == 0 || sweeps > 4*fewestSteps*len(candidates()) {
		t.Errorf("%+v after %d steps, %v", f, sweeps, err)
	}
	s.Begun = s.clock.now().Add(-searchLimit)
	if f, err := s.try(t.Context(), x.step, Options{Limit: testLimit}, nil); err != nil || len(f.Trials) > 0 {
		t.Errorf("late: %+v, %v", f, err)
	}
}

// Rank 0 may end a trial of slow steps at any time.
func TestTrialEndedByAnotherProcess(t *testing.T) {
	timer := stepTimer{budget: time.Second}
	for _, took := range []time.Duration{0, 1, 1} {
		timer.interval(8, took)
	}
	if took := timer.median(); took != 0 {
		t.Errorf("%v", took)
	}
}

// Intervals of trials are whole groups, at least eight steps, and have their share of norms; slow steps have
// one.
func TestIntervalsOfTrials(t *testing.T) {
	for name, c := range map[string]struct {
		timer stepTimer
		each  time.Duration
		want  []int64
	}{
		"fast":          {stepTimer{}, 10 * time.Microsecond, []int64{8, 24, 1000, 1000, 1000, 0}},
		"groups":        {stepTimer{group: 3}, 10 * time.Microsecond, []int64{9, 24, 1002, 1002, 1002, 0}},
		"norms":         {stepTimer{group: 4, every: 10}, time.Millisecond / 2, []int64{8, 20, 20, 20, 20, 0}},
		"rarer norms":   {stepTimer{every: 100}, time.Millisecond, []int64{8, 10, 10, 10, 10, 0}},
		"slow":          {stepTimer{group: 4, every: 7}, 8 * time.Millisecond, []int64{8, 8, 0}},
		"not so slow":   {stepTimer{}, 2 * time.Millisecond, []int64{8, 8, 8, 8, 8, 0}},
		"in no time":    {stepTimer{}, 0, []int64{8, 24, 240e6, 240e6, 240e6, 0}},
		"a large group": {stepTimer{group: 16}, 5 * time.Millisecond, []int64{16, 16, 0}},
	} {
		c.timer.budget = 30 * time.Millisecond
		var got []int64
		steps := c.timer.interval(0, 0)
		for got = append(got, steps); steps > 0 && len(got) < 20; got = append(got, steps) {
			steps = c.timer.interval(steps, time.Duration(steps)*c.each)
		}
		if took := c.timer.median(); !slices.Equal(got, c.want) || took != max(1, c.each) {
			t.Errorf("%s: %v, not %v; %v", name, got, c.want, took)
		}
	}
}

// On CPU devices nothing is tried.
func TestNoTrialsOnCPUDevices(t *testing.T) {
	set := testdevices.Host(t, 2)
	if trials, known, err := Fastest(t.Context(), newStep(t, set, 2, 16), Search{Links: set.Links, Compiler: set.Compiler}, Options{}); trials != nil || known || err != nil {
		t.Errorf("%v, %v, %v", trials, known, err)
	}
}

// Trials are cached for equal steps on equal devices, and not for others.
func TestTrialsAreCached(t *testing.T) {
	t.Setenv("HALOX_CACHE", filepath.Join(t.TempDir(), "cache"))
	set := testdevices.Host(t, 2)
	s := Search{Links: set.Links, Compiler: set.Compiler}
	step, other := newStep(t, set, 2, 16), newStep(t, set, 2, 18)
	trials := []Trial{{Fused, p2p.Direct, 5 * time.Microsecond, 4}, {Assisted, p2p.Peer, 17 * time.Microsecond, 0}}
	recalled := func(s Search, step *Step, o Options) []Trial {
		got, _ := s.memory(step, o).Get()
		return got.Trials
	}
	if got := recalled(s, step, Options{}); got != nil {
		t.Fatalf("%v is cached", got)
	}
	succeeds(t, s.memory(step, Options{}).Put(found{Trials: trials}))
	if got := recalled(s, newStep(t, set, 2, 16), Options{}); !slices.Equal(got, trials) {
		t.Errorf("of a step that does the same: %v", got)
	}
	moving := newStep(t, set, 2, 16)
	moving.Stages[0].Reads[0].Variable.Boundary[0] = boundary.Condition{Kind: boundary.Dirichlet}
	for name, got := range map[string][]Trial{
		"another grid":     recalled(s, other, Options{}),
		"another boundary": recalled(s, moving, Options{}),
		"norms more often": recalled(s, step, Options{Tolerance: 1, CheckEvery: 3}),
		"another path":     recalled(Search{Links: set.Links, Path: p2p.Staged}, step, Options{}),
		"another driver":   recalled(Search{Links: set.Links, Driver: "999"}, step, Options{}),
		"user kernels":     recalled(s, &Step{Stages: []Stage{{Reads: step.Stages[0].Reads, Writes: step.Stages[0].Writes, Kernels: func(Region) (Launch, error) { return nil, nil }}}}, Options{}),
	} {
		if got != nil {
			t.Errorf("of %s: %v", name, got)
		}
	}
	succeeds(t, s.memory(other, Options{}).Put(found{Trials: trials[:1]}))
	if got := recalled(s, step, Options{}); !slices.Equal(got, trials) {
		t.Errorf("with those of another grid: %v", got)
	}
}

// A cache entry that is damaged, or cannot have been measured, is ignored.
func TestDamagedTrials(t *testing.T) {
	t.Setenv("HALOX_CACHE", filepath.Join(t.TempDir(), "cache"))
	set := testdevices.Host(t, 2)
	step := newStep(t, set, 2, 16)
	s := Search{Links: set.Links, Compiler: set.Compiler}
	m := s.memory(step, Options{})
	succeeds(t, m.Put(found{Trials: []Trial{{Assisted, p2p.Direct, 5000, 0}, {Fused, p2p.Direct, 17000, 0}}}))
	file := m.Path()
	good := must(os.ReadFile(file))(t)
	for name, change := range map[string][2]string{
		"no times":        {"[{", `[], "x": [{`},
		"no such scheme":  {`"assisted"`, `"steam"`},
		"no such path":    {`"direct"`, `"tunnel"`},
		"path to choose":  {`"direct"`, `"auto"`},
		"a path of none":  {`"fused","path":"direct"`, `"fused","path":"peer"`},
		"a negative time": {`:5000`, `:-5000`},
		"no time":         {`:5000`, `:0`},
		"not in order":    {`:5000`, `:50000`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(string(good), change[0], change[1], 1)
			if text == string(good) {
				t.Fatalf("%q is not in %s", change[0], good)
			}
			succeeds(t, os.WriteFile(file, []byte(text), 0o644))
			if trials, err := m.Get(); err == nil {
				t.Errorf("%v is read", trials)
			}
		})
	}
}
