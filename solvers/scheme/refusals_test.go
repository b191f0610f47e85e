package scheme

import (
	"cmp"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// openHost opens host devices, for New.
func openHost(t *testing.T, n int) (*halo.Session, *testdevices.Set) {
	t.Helper()
	t.Setenv("HALOX_CACHE", t.TempDir())
	session := must(halo.Open(t.Context(), halo.Devices{Backend: streams.Host, Count: n}))(t)
	t.Cleanup(func() { session.Close() })
	return session, &testdevices.Set{Devices: session.Devices, Links: session.Links, Compiler: session.Compiler}
}

// A step whose accesses would race, or mean something else than they say, is refused.
func TestAccessesThatMakeNoSense(t *testing.T) {
	set := testdevices.Host(t, 1)
	step := newStep(t, set, 1, 16)
	u := step.Measured[0]
	w := newVariable(t, step.placement(), halo.Spec{Name: "w", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}, 1)
	point := countingPoint()
	flat := *point
	flat.Dims = 2
	for name, c := range map[string]struct {
		stage Stage
		says  string
	}{
		"the newest level is written":   {Stage{Reads: []Access{u.At(0, nil)}, Writes: []Access{u.At(0, nil)}, Point: point}, "level +1"},
		"an old level is written":       {Stage{Reads: []Access{u.At(0, nil)}, Writes: []Access{u.At(-1, nil)}, Point: point}, "level +1"},
		"one level, one name":           {Stage{Reads: []Access{w.At(0, nil)}, Writes: []Access{w.At(0, nil)}, Point: point}, ""},
		"one level, by +1":              {Stage{Reads: []Access{w.At(0, nil)}, Writes: []Access{w.At(1, nil)}, Point: point}, ""},
		"in place under two names":      {Stage{Reads: []Access{w.At(0, nil)}, Writes: []Access{w.At(1, nil).Named("next")}, Point: point}, "give both accesses one name"},
		"a second name of what changes": {Stage{Reads: []Access{w.At(0, nil), w.At(0, nil).Named("w2")}, Writes: []Access{w.At(0, nil)}, Point: point}, "give both accesses one name"},
		"read twice":                    {Stage{Reads: []Access{w.At(0, nil), w.At(0, nil)}, Writes: []Access{w.At(0, nil)}, Point: point}, "read twice"},
		"in place by kernels":           {Stage{Reads: []Access{w.At(0, nil).Named("a")}, Writes: []Access{w.At(0, nil)}, Kernels: nothing}, ""},
		"around by kernels":             {Stage{Reads: []Access{w.At(0, stencil.Star(3, 1)).Named("a")}, Writes: []Access{w.At(0, nil)}, Kernels: nothing}, "one level more"},
		"written twice":                 {Stage{Writes: []Access{u.At(1, nil), u.At(1, nil).Named("u2")}, Kernels: nothing}, "written twice"},
		"written twice in place":        {Stage{Writes: []Access{w.At(0, nil), w.At(1, nil)}, Kernels: nothing}, "written twice"},
		"other dimensions":              {Stage{Reads: []Access{u.At(0, nil)}, Writes: []Access{u.At(1, nil).Named("next")}, Point: &flat}, "set Point.Dims"},
	} {
		err := (&Step{Stages: []Stage{c.stage}}).Check()
		wants(t, name, err, nil, c.says)
	}
}

// nothing makes launches that queue nothing.
func nothing(Region) (Launch, error) {
	return func(*streams.Stream, int64, float64) error { return nil }, nil
}

// Options that would be left aside are refused, by New and by Run, with what to set.
func TestOptionsThatMakeNoSense(t *testing.T) {
	session, set := openHost(t, 1)
	step := newStep(t, set, 1, 16)
	bare := *step
	bare.Measured = nil
	for name, c := range map[string]struct {
		step *Step
		o    Options
		says string
	}{
		"an unknown norm":            {step, Options{Norm: "l1", Tolerance: 1, CheckEvery: 1}, `Options.Norm "l1": it is "max" or "l2"`},
		"a norm nobody asks for":     {step, Options{Norm: "largest"}, `it is "max" or "l2"`},
		"a tolerance without norms":  {&bare, Options{Tolerance: 1, CheckEvery: 1}, "Step.Measured"},
		"a tolerance without looks":  {step, Options{Tolerance: 1}, "Options.CheckEvery"},
		"a history of nothing":       {&bare, Options{History: true, CheckEvery: 1}, "Step.Measured"},
		"a negative tolerance":       {step, Options{Tolerance: -1, CheckEvery: 1}, "Options.Tolerance is -1"},
		"a tolerance of no number":   {step, Options{Tolerance: math.NaN(), CheckEvery: 1}, "Options.Tolerance is NaN"},
		"looks every -1 steps":       {step, Options{CheckEvery: -1}, "Options.CheckEvery is -1"},
		"an order of another scheme": {step, Options{Scheme: Assisted, Order: Pairwise}, "no order"},
		"no such order":              {step, Options{Scheme: TwoStream, Order: "random"}, `no order "random"`},
		"no such scheme":             {step, Options{Scheme: "fastest"}, `"fastest" is no scheme`},
	} {
		wants(t, name+": New", errOf(New(t.Context(), session, c.step, c.o)), nil, c.says)
		x := runnerFor(t, set, c.step, TwoStream)
		c.o.Steps = 1
		if _, err := x.Run(t.Context(), c.o); c.o.Order == "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: Run: got %v, want %q", name, err, c.says)
		}
	}
	x := runnerFor(t, set, step, TwoStream)
	if _, err := x.Steps(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "a run of 0 steps") || strings.Contains(err.Error(), "tolerance") {
		t.Errorf("no steps: %v", err)
	}
	wants(t, "a negative limit", errOf(x.Run(t.Context(), Options{Steps: 1, Limit: -1})), nil, "Options.Limit")
}

// A run that has diverged ends at the next look at its norms, and without looks it is told at its end.
func TestARunThatDivergesIsTold(t *testing.T) {
	set := testdevices.Host(t, 2)
	for _, name := range All() {
		for every, steps := range map[int64]int64{0: 40, 3: 3} {
			step := newStep(t, set, 2, 16)
			succeeds(t, halo.FillPoints(step.Measured[0].Level(0), func(domain.Vec) float64 { return math.NaN() }))
			r, err := runnerFor(t, set, step, name).Run(t.Context(), Options{Scheme: name, Steps: 40, CheckEvery: every, Limit: testLimit})
			if err != nil || r.Stopped != StoppedDiverged || r.Steps != steps {
				t.Errorf("%s, looks every %d steps: %d steps, stopped: %s: %v", name, every, r.Steps, r.Stopped, err)
			}
		}
	}
}

// A runner that is closed, or whose variables are, runs no step, under any scheme, on one device or two.
func TestWhatIsClosedMakesNoStep(t *testing.T) {
	for n := 1; n <= 2; n++ {
		set := testdevices.Host(t, n)
		for _, name := range All() {
			step := newStep(t, set, n, 16)
			x, y := runnerFor(t, set, step, name), runnerFor(t, set, step, name)
			succeeds(t, x.Close())
			wants(t, string(name), errOf(x.Run(t.Context(), Options{Scheme: name, Steps: 1, Limit: testLimit})), nil, "the runner is closed")
			succeeds(t, step.Measured[0].Close())
			wants(t, string(name), errOf(y.Run(t.Context(), Options{Scheme: name, Steps: 1, Limit: testLimit})), nil, `field "u" is closed`)
		}
	}
}

// A session that is closed says so.
func TestAClosedSession(t *testing.T) {
	session, set := openHost(t, 2)
	step := newStep(t, set, 2, 16)
	succeeds(t, session.Close())
	wants(t, "New", errOf(New(t.Context(), session, step, Options{})), nil, "the session is closed")
	wants(t, "Cut", errOf(session.Cut(t.Context(), halo.Cutting{Size: []int{8, 8}})), nil, "the session is closed")
}

// What a callback does wrong, by panic or by returning nothing, is an error that says whose it was.
func TestCallbacksThatFail(t *testing.T) {
	set := testdevices.Host(t, 2)
	type parameters struct{ A float64 }
	swept := func(change func(st *Stage)) func(s *Step) {
		return func(s *Step) { change(&s.Stages[0]) }
	}
	given := func(f func(step int64) any) func(s *Step) {
		return swept(func(st *Stage) {
			st.Point.Parameters, st.Parameters = parameters{1}, f
		})
	}
	wall := func(c boundary.Condition) func(s *Step) {
		return func(s *Step) { s.Measured[0].Boundary[0] = c }
	}
	for name, c := range map[string]struct {
		change  func(s *Step)
		options Options
		says    string
		kernels bool
	}{
		"no launch":      {swept(func(st *Stage) { st.Kernels = func(Region) (Launch, error) { return nil, nil } }), Options{}, "returned no launch (nil)", true},
		"Kernels panics": {swept(func(st *Stage) { st.Kernels = func(Region) (Launch, error) { panic("mine") } }), Options{}, `Stage.Kernels of stage "sweep" panicked: mine`, true},
		"a launch panics": {swept(func(st *Stage) {
			st.Kernels = func(Region) (Launch, error) {
				return func(*streams.Stream, int64, float64) error { panic("mine") }, nil
			}
		}), Options{}, `a launch of Stage.Kernels of stage "sweep" panicked: mine`, true},
		"no parameters":               {given(func(int64) any { return nil }), Options{}, "returned nil for step 1", false},
		"no parameters later":         {given(func(step int64) any { return map[bool]any{true: &parameters{2}}[step < 3] }), Options{}, "returned nil for step 3", false},
		"a nil pointer of parameters": {given(func(int64) any { return (*parameters)(nil) }), Options{}, "is nil", false},
		"parameters panic":            {given(func(int64) any { panic("mine") }), Options{}, `Stage.Parameters of stage "sweep" panicked: mine`, false},
		"no profile":                  {wall(boundary.Condition{Kind: boundary.Dirichlet, Profile: func() boundary.Profile { return nil }}), Options{}, "returned no profile", false},
		"making a profile panics":     {wall(boundary.Condition{Kind: boundary.Dirichlet, Profile: func() boundary.Profile { panic("mine") }}), Options{}, "Condition.Profile at face", false},
		"a profile panics": {wall(boundary.Condition{Kind: boundary.Dirichlet, Profile: func() boundary.Profile {
			return func([]float64, domain.Vec, float64) { panic("mine") }
		}}), Options{}, `of field "u" panicked: mine`, false},
		"a face's kernel panics": {wall(boundary.Condition{Kind: boundary.Custom, Kernel: func(boundary.Slab) (*streams.Kernel, error) { panic("mine") }}), Options{}, `Condition.Kernel of field "u" panicked: mine`, false},
		"an interval panics":     {func(*Step) {}, Options{Interval: func(int64, time.Duration) int64 { panic("mine") }}, `Options.Interval of step "" panicked: mine`, false},
	} {
		for _, scheme := range All() {
			if scheme.Needs().Swept && c.kernels {
				continue
			}
			step := countingStep(t, set, 2)
			step.Name, step.Stages[0].Name = "", "sweep"
			if c.kernels {
				step.Stages[0].Point = nil
			}
			c.change(step)
			plan := must(step.Plan(set.Links, cmp.Or(scheme.Needs().Path, p2p.Auto)))(t)
			x, err := NewRunner(t.Context(), step, plan, set.Compiler)
			if err == nil {
				c.options.Scheme, c.options.Steps, c.options.Limit = scheme, 4, testLimit
				_, err = x.Run(t.Context(), c.options)
				x.Close()
			}
			if errors.Is(err, ErrUnsuited) {
				continue
			}
			wants(t, name+", "+string(scheme), err, nil, c.says)
		}
	}
}

// An error after the last step does not speak of steps that there are not.
func TestRoundsSayTheirSteps(t *testing.T) {
	for want, r := range map[string]round{"in steps 3 to 5": {first: 3, last: 5}, "in step 3": {first: 3, last: 3}, "after step 1": {first: 2, last: 1}} {
		if r.String() != want {
			t.Errorf("got %q, want %q", r, want)
		}
	}
}

// New refuses the step that its scheme cannot run.
func TestNewRefusesWhatDoesNotSuit(t *testing.T) {
	custom := func(s *Step) { s.Measured[0].Boundary[0] = boundary.Condition{Kind: boundary.Custom, Kernel: noKernel} }
	profile := func(s *Step) {
		s.Measured[0].Boundary[0] = boundary.Condition{Kind: boundary.Dirichlet, Profile: func() boundary.Profile { return func([]float64, domain.Vec, float64) {} }}
	}
	own := func(s *Step) { s.Stages[0].Point, s.Stages[0].Kernels = nil, nothing }
	session, set := openHost(t, 2)
	for name, c := range map[string]struct {
		scheme Scheme
		change func(s *Step)
	}{
		"fused, kernels":           {Fused, own},
		"resident, kernels":        {Resident, own},
		"ranks, kernels":           {Ranks, own},
		"ranks, two stages":        {Ranks, func(s *Step) { s.Stages = append(s.Stages, s.Stages[0]) }},
		"what changes, in a graph": {Graph, func(s *Step) { own(s); s.Stages[0].Changing = true }},
		"the step's number, in graph": {Graph, func(s *Step) {
			s.Stages[0].Point = &sweep.Point{Name: "f", Dims: 3, CUDA: "f() p.step()", Go: func(*sweep.Row) {}}
		}},
		"a face's kernel, fused": {Fused, custom},
		"a profile, ranks":       {Ranks, profile},
		"a profile, resident":    {Resident, profile},
	} {
		step := newStep(t, set, 2, 16)
		c.change(step)
		if _, err := New(t.Context(), session, step, Options{Scheme: c.scheme}); !errors.Is(err, ErrUnsuited) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
