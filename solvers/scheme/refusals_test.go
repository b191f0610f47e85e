package scheme

import (
	"cmp"
	"errors"
	"math"
	"slices"
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

// openHost opens CPU devices, for New.
func openHost(t *testing.T, n int) (*halo.Session, *testdevices.Set) {
	t.Helper()
	t.Setenv("HALOX_CACHE", t.TempDir())
	session := must(halo.Open(t.Context(), halo.Devices{Backend: streams.Host, Count: n}))(t)
	t.Cleanup(func() { session.Close() })
	return session, &testdevices.Set{Devices: session.Devices, Links: session.Links, Compiler: session.Compiler}
}

// A step whose accesses would race, or are inconsistent, is rejected.
func TestInvalidAccesses(t *testing.T) {
	set := testdevices.Host(t, 1)
	step := newStep(t, set, 1, 16)
	u := step.Measured[0]
	w := newVariable(t, step.placement(), halo.Spec{Name: "w", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}, 1)
	k := newVariable(t, step.placement(), halo.Spec{Name: "k", Element: halo.Float64, Constant: []bool{false, true, true}}, 1)
	point := countingPoint()
	flat := *point
	flat.Dims = 2
	for name, c := range map[string]struct {
		stage Stage
		says  string
	}{
		"the newest level is written": {Stage{Reads: []Access{u.At(0, nil)}, Writes: []Access{u.At(0, nil)}, Point: point}, "level +1"},
		"an old level is written":     {Stage{Reads: []Access{u.At(0, nil)}, Writes: []Access{u.At(-1, nil)}, Point: point}, "level +1"},
		"one level, one name":         {Stage{Reads: []Access{w.At(0, nil)}, Writes: []Access{w.At(0, nil)}, Point: point}, ""},
		"one level, by +1":            {Stage{Reads: []Access{w.At(0, nil)}, Writes: []Access{w.At(1, nil)}, Point: point}, ""},
		"in place under two names":    {Stage{Reads: []Access{w.At(0, nil)}, Writes: []Access{w.At(1, nil).Named("next")}, Point: point}, "both accesses must have one name"},
		"a second name in place":      {Stage{Reads: []Access{w.At(0, nil), w.At(0, nil).Named("w2")}, Writes: []Access{w.At(0, nil)}, Point: point}, "both accesses must have one name"},
		"read twice":                  {Stage{Reads: []Access{w.At(0, nil), w.At(0, nil)}, Writes: []Access{w.At(0, nil)}, Point: point}, "must be read by only one access"},
		"in place by kernels":         {Stage{Reads: []Access{w.At(0, nil).Named("a")}, Writes: []Access{w.At(0, nil)}, Kernels: nothing}, ""},
		"around by kernels":           {Stage{Reads: []Access{w.At(0, stencil.Star(3, 1)).Named("a")}, Writes: []Access{w.At(0, nil)}, Kernels: nothing}, "add a level to the variable"},
		"a constant is written":       {Stage{Reads: []Access{u.At(0, nil)}, Writes: []Access{k.At(1, nil)}, Kernels: nothing}, "is constant along an axis, and must not be written"},
		"written twice":               {Stage{Writes: []Access{u.At(1, nil), u.At(1, nil).Named("u2")}, Kernels: nothing}, "must not be written twice"},
		"written twice in place":      {Stage{Writes: []Access{w.At(0, nil), w.At(1, nil)}, Kernels: nothing}, "must not be written twice"},
		"other dimensions":            {Stage{Reads: []Access{u.At(0, nil)}, Writes: []Access{u.At(1, nil).Named("next")}, Point: &flat}, "set Point.Dims"},
	} {
		err := (&Step{Stages: []Stage{c.stage}}).Check()
		wants(t, name, err, nil, c.says)
	}
}

// nothing makes launches that queue nothing.
func nothing(Region) (Launch, error) {
	return func(*streams.Stream, int64, float64) error { return nil }, nil
}

// Inconsistent options are rejected, by New and by Run, with a suggestion.
func TestInvalidOptions(t *testing.T) {
	session, set := openHost(t, 1)
	step := newStep(t, set, 1, 16)
	bare := *step
	bare.Measured = nil
	for name, c := range map[string]struct {
		step *Step
		o    Options
		says string
	}{
		"an unknown norm":            {step, Options{Norm: "l1", Tolerance: 1, CheckEvery: 1}, `Options.Norm must be "max" or "l2", got "l1"`},
		"an unknown unused norm":     {step, Options{Norm: "largest"}, `must be "max" or "l2"`},
		"a tolerance without norms":  {&bare, Options{Tolerance: 1, CheckEvery: 1}, "Step.Measured"},
		"a tolerance without checks": {step, Options{Tolerance: 1}, "Options.CheckEvery"},
		"a history of nothing":       {&bare, Options{History: true, CheckEvery: 1}, "Step.Measured"},
		"a negative tolerance":       {step, Options{Tolerance: -1, CheckEvery: 1}, "none), got -1"},
		"a tolerance of no number":   {step, Options{Tolerance: math.NaN(), CheckEvery: 1}, "none), got NaN"},
		"checks every -1 steps":      {step, Options{CheckEvery: -1}, "divergence), got -1"},
		"an order of another scheme": {step, Options{Scheme: Assisted, Order: Pairwise}, "order"},
		"no such order":              {step, Options{Scheme: TwoStream, Order: "random"}, `got "random"`},
		"no such scheme":             {step, Options{Scheme: "fastest"}, `got "fastest"`},
	} {
		wants(t, name+": New", errOf(New(t.Context(), session, c.step, c.o)), nil, c.says)
		x := runnerFor(t, set, c.step, TwoStream)
		c.o.Steps = 1
		if _, err := x.Run(t.Context(), c.o); c.o.Order == "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: Run: got %v, want %q", name, err, c.says)
		}
	}
	x := runnerFor(t, set, step, TwoStream)
	if _, err := x.Steps(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "must be at least 1, got 0") || strings.Contains(err.Error(), "tolerance") {
		t.Errorf("no steps: %v", err)
	}
	wants(t, "a negative limit", errOf(x.Run(t.Context(), Options{Steps: 1, Limit: -1})), nil, "Options.Limit")
}

// A run that diverges ends at the next check of its norms: a short run at its end, and without CheckEvery
// after some time.
func TestDivergence(t *testing.T) {
	set := testdevices.Host(t, 2)
	for _, name := range All() {
		for _, c := range []struct {
			o           Options
			first, last int64
		}{
			{Options{Steps: 40}, 40, 40}, {Options{Steps: 40, CheckEvery: 3}, 3, 3},
			{Options{Steps: 1 << 40, lookTime: 1}, lookSteps, 1 << 30},
		} {
			step := newStep(t, set, 2, 16)
			succeeds(t, halo.FillPoints(step.Measured[0].Level(0), func(domain.Vec) float64 { return math.NaN() }))
			c.o.Scheme, c.o.Limit = name, testLimit
			r, err := runnerFor(t, set, step, name).Run(t.Context(), c.o)
			if err != nil || r.Stopped != StoppedDiverged || len(r.Norms) != 1 ||
				r.Steps < c.first || r.Steps > c.last {
				t.Errorf("%+v: %d steps, stopped: %s: %v", c.o, r.Steps, r.Stopped, err)
			}
			if got := step.Measured[0].Newest(); int64(got) != r.Steps {
				t.Errorf("%s: after %d steps the variable holds step %d", name, r.Steps, got)
			}
		}
	}
}

// A closed runner, or one with closed variables, does not run, with any scheme, on one device or two.
func TestClosedRunners(t *testing.T) {
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

// Methods of a closed session return an error.
func TestAClosedSession(t *testing.T) {
	session, set := openHost(t, 2)
	step := newStep(t, set, 2, 16)
	succeeds(t, session.Close())
	wants(t, "New", errOf(New(t.Context(), session, step, Options{})), nil, "the session is closed")
	wants(t, "Cut", errOf(session.Cut(t.Context(), halo.Cutting{Size: []int{8, 8}})), nil, "the session is closed")
}

// Errors of callbacks, panics or nil results, name the callback.
func TestCallbacksThatFail(t *testing.T) {
	set := testdevices.Host(t, 2)
	type parameters struct{ A float64 }
	swept := func(change func(st *Stage)) func(s *Step) {
		return func(s *Step) { change(&s.Stages[0]) }
	}
	given := func(f func(sweep.Moment, any) error) func(s *Step) {
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
		"no launch":      {swept(func(st *Stage) { st.Kernels = func(Region) (Launch, error) { return nil, nil } }), Options{}, "must not return nil, got nil for", true},
		"Kernels panics": {swept(func(st *Stage) { st.Kernels = func(Region) (Launch, error) { panic("mine") } }), Options{}, `Stage.Kernels of stage "sweep" panicked: mine`, true},
		"a launch panics": {swept(func(st *Stage) {
			st.Kernels = func(Region) (Launch, error) {
				return func(*streams.Stream, int64, float64) error { panic("mine") }, nil
			}
		}), Options{}, `a launch of Stage.Kernels of stage "sweep" panicked: mine`, true},
		"parameters fail": {given(func(m sweep.Moment, _ any) error {
			if m.Step < 3 {
				return nil
			}
			return errors.New("mine")
		}), Options{}, `Stage.Parameters of stage "sweep", step 3: mine`, false},
		"parameters panic":        {given(func(sweep.Moment, any) error { panic("mine") }), Options{}, `Stage.Parameters of stage "sweep" panicked: mine`, false},
		"no profile":              {wall(boundary.Condition{Kind: boundary.Dirichlet, Profile: func() boundary.Profile { return nil }}), Options{}, "returned a nil Profile", false},
		"making a profile panics": {wall(boundary.Condition{Kind: boundary.Dirichlet, Profile: func() boundary.Profile { panic("mine") }}), Options{}, "Condition.Profile at face", false},
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

// An error after the last step does not mention later steps.
func TestRoundString(t *testing.T) {
	for want, r := range map[string]round{"in steps 3 to 5": {first: 3, last: 5}, "in step 3": {first: 3, last: 3}, "after step 1": {first: 2, last: 1}} {
		if r.String() != want {
			t.Errorf("got %q, want %q", r, want)
		}
	}
}

// New rejects steps that its scheme does not support.
func TestNewChecksScheme(t *testing.T) {
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
		"changing launches, graph": {Graph, func(s *Step) { own(s); s.Stages[0].Changing = true }},
		"a face's kernel, fused":   {Fused, custom},
		"a profile, ranks":         {Ranks, profile},
		"a profile, resident":      {Resident, profile},
	} {
		step := newStep(t, set, 2, 16)
		c.change(step)
		if _, err := New(t.Context(), session, step, Options{Scheme: c.scheme}); !errors.Is(err, ErrUnsuited) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// untuned is scheme blocked with passes that are not timed: all count as faster than sweeps. Exchanges
// overlap the interior if possible.
const untuned Scheme = "untuned"

// overlaps counts subdomains over all runs: those that overlap exchanges with the interior, those with a
// kernel for a last pass that stores ghosts of neighbors, and those whose passes do.
type overlaps struct{ overlapped, Kernels, Stores int }

// addUntuned adds it for a test, and returns how its subdomains exchange.
func addUntuned(t testing.TB) *overlaps {
	found := &overlaps{}
	before := schemes
	schemes = append(slices.Clone(schemes), func() *definition {
		d := blockedScheme()
		d.name = untuned
		d.make = func(x *run, o Options) ([]worker, error) {
			workers, err := newBlockedWithin(x, o, blockedLimits{})
			if err != nil {
				return nil, err
			}
			for _, p := range workers[0].(*blockedPart).parts {
				if p.made != nil && p.made.StoresGhosts(p.lastDepth(), p.owned(), p.sides) {
					found.Kernels++
				}
				if p.overlap != nil {
					found.overlapped++
				}
				if p.stores != nil {
					found.Stores++
				}
			}
			return workers, nil
		}
		return d
	})
	t.Cleanup(func() { schemes = before })
	return found
}

// passStep is a step that scheme blocked supports, over a variable of some levels and a coefficient.
func passStep(t *testing.T, set *testdevices.Set, levels int, stagger ...bool) (step *Step, u, c *Variable) {
	t.Helper()
	place := placed(t, set.Devices, []int{20, 17, 13}, [3]bool{}, domain.Vec{1, 1, 1})
	width := domain.UniformRadius(3, 2)
	u = newVariable(t, place, halo.Spec{Name: "u", Element: halo.Float64, Width: width, Stagger: stagger}, levels)
	c = newVariable(t, place, halo.Spec{Name: "c", Element: halo.Float64, Width: width}, 1)
	for _, v := range []*Variable{u, c} {
		v.Boundary = boundary.All(boundary.Condition{Kind: boundary.Neumann})
		for _, f := range v.levels {
			succeeds(t, halo.FillPoints(f, func(at domain.Vec) float64 { return float64(at[0]%3 + at[1]%5 + at[2]%7) }))
		}
	}
	return &Step{Name: "passes", Stages: []Stage{{
		Name: "spread", Reads: []Access{u.At(0, stencil.Star(3, 1)), c.At(0, nil)}, Writes: []Access{u.At(1, nil).Named("next")}, Point: spreading(),
	}}}, u, c
}

// spreading reads a variable around a point, times a coefficient.
func spreading() *sweep.Point {
	return &sweep.Point{
		Name: "spreading", Dims: 3,
		CUDA: `template <typename P> __device__ __forceinline__ void spreading(P &p) {
	p.set(next, p.at(u) + 0.01 * p.at(c) * (p.at(u, 1, 0, 0) + p.at(u, 0, 1, 0) + p.at(u, 0, 0, 1) - 3 * p.at(u)));
}`,
		Go: func(r *sweep.Row) {
			u, c, next := sweep.At[float64](r, "u", 0, 0, 0), sweep.At[float64](r, "c", 0, 0, 0), sweep.At[float64](r, "next", 0, 0, 0)
			x, y, z := sweep.At[float64](r, "u", 1, 0, 0), sweep.At[float64](r, "u", 0, 1, 0), sweep.At[float64](r, "u", 0, 0, 1)
			for i := range next {
				next[i] = u[i] + float64(float64(0.01*c[i])*(x[i]+y[i]+z[i]-float64(3*u[i])))
			}
		},
	}
}

// Scheme blocked names the part of a step that it does not support.
func TestStepsNotSuitedToBlocked(t *testing.T) {
	set := testdevices.Host(t, 1)
	for name, c := range map[string]struct {
		levels  int
		stagger []bool
		change  func(s *Step, u, c *Variable)
		says    string
	}{
		"valid":                {2, nil, func(*Step, *Variable, *Variable) {}, ""},
		"two stages":           {2, nil, func(s *Step, _, _ *Variable) { s.Stages = append(s.Stages, s.Stages[0]) }, "runs steps of one stage, got 2"},
		"three levels":         {3, nil, func(*Step, *Variable, *Variable) {}, `got 3 for "u"`},
		"a staggered variable": {2, []bool{true, false, false}, func(*Step, *Variable, *Variable) {}, `staggered variables such as "u"`},
		"written and not read": {2, nil, func(s *Step, u, c *Variable) { s.Stages[0].Reads = []Access{c.At(0, nil).Named("u"), c.At(0, nil)} }, "must read \"u\", which it writes"},
		"the level before":     {2, nil, func(s *Step, u, c *Variable) { s.Stages[0].Reads[1] = u.At(-1, nil).Named("next") }, `must read level 0 of "u", got -1`},
		"in place":             {2, nil, func(s *Step, u, c *Variable) { s.Stages[0].Writes = append(s.Stages[0].Writes, c.At(0, nil)) }, `"c" must have two levels, got one`},
		"a user boundary": {2, nil, func(_ *Step, u, _ *Variable) {
			u.Boundary[0] = boundary.Condition{Kind: boundary.Custom, Kernel: noKernel}
		}, `blocked does not support user kernels at boundaries, as "u" has`},
		"a coefficient of levels": {2, nil, func(s *Step, u, c *Variable) { c.levels = append(c.levels, c.levels[0]) }, "must have one level, got 2"},
	} {
		t.Run(name, func(t *testing.T) {
			step, u, v := passStep(t, set, c.levels, c.stagger...)
			step.Stages[0].Point.CUDA = "" // a compiler would reject it where names change
			c.change(step, u, v)
			_, err := runnerBy(t, set, step, p2p.Staged).Run(t.Context(), Options{Scheme: Blocked, Steps: 1, Limit: testLimit})
			wants(t, name, err, map[bool]error{true: ErrUnsuited}[c.says != ""], c.says)
		})
	}
}

func noKernel(boundary.Slab) (*streams.Kernel, error) { return nil, nil }

// groupStep is a step in groups of three over two devices, with the ghosts that it needs except for what
// change does.
func groupStep(t *testing.T, set *testdevices.Set, periodic bool, change func(*halo.Spec, *Step)) *Step {
	t.Helper()
	place := placed(t, set.Devices, []int{12, 10, 16}, [3]bool{periodic}, domain.Vec{1, 1, 2})
	wide := must(halo.NewWideHalo(place.Decomposition, domain.UniformRadius(3, 1), 3))(t)
	spec := wide.Spec(halo.Spec{Name: "u", Element: halo.Float64})
	step := &Step{Group: 3}
	change(&spec, step)
	u := newVariable(t, place, spec, 2)
	u.Boundary = boundary.All(boundary.Condition{Kind: boundary.Neumann})
	if len(step.Stages) == 0 {
		step.Stages = []Stage{{Kernels: nothing}}
	}
	step.Stages[0].Reads, step.Stages[0].Writes = []Access{u.At(0, stencil.Star(3, 1))}, []Access{u.At(1, nil).Named("next")}
	return step
}

// A step whose ghosts cannot be swept is rejected, with the missing ghosts.
func TestInvalidGroups(t *testing.T) {
	set := testdevices.Host(t, 2)
	placed := sweep.Point{
		Name: "placed", Dims: 3, CUDA: "template <typename P> __device__ __forceinline__ void placed(P &p) { p.set(next, p.at(u) + p.i()); }", Go: func(*sweep.Row) {},
	}
	beside := placed
	beside.CUDA = strings.ReplaceAll(placed.CUDA, "p.i()", "p.j() + p.z()")
	for name, c := range map[string]struct {
		periodic bool
		change   func(*halo.Spec, *Step)
		says     string
	}{
		"valid":             {false, func(*halo.Spec, *Step) {}, ""},
		"a negative number": {false, func(_ *halo.Spec, s *Step) { s.Group = -1 }, "must be at least 0, got -1"},
		"too long a group":  {false, func(_ *halo.Spec, s *Step) { s.Group = 34 }, "must be at most 32, got 34"},
		"narrow ghosts":     {false, func(s *halo.Spec, _ *Step) { s.Width.Plus[2] = 2 }, "2 layers of ghosts in z+, must have 3 (3 times the radius of a step)"},
		"no edges":          {false, func(s *halo.Spec, _ *Step) { s.Connectivity = halo.Faces }, "must have ghosts in edges and corners"},
		"staggered":         {false, func(s *halo.Spec, _ *Step) { s.Stagger = []bool{false, true, false} }, "staggered"},
		"ghosts by component": {false, func(s *halo.Spec, _ *Step) {
			s.Components, s.SoA, s.Widths = 2, true, []domain.Radius{s.Width, s.Width}
		}, "equal ghosts for all components"},
		"a position between boundaries":  {false, func(_ *halo.Spec, s *Step) { s.Stages = []Stage{{Point: &placed}} }, ""},
		"a position across periodic end": {true, func(_ *halo.Spec, s *Step) { s.Stages = []Stage{{Point: &placed}} }, `stage 0 "placed" uses the position of a point along x, which is periodic`},
		"a position along other axes":    {true, func(_ *halo.Spec, s *Step) { s.Stages = []Stage{{Point: &beside}} }, ""},
	} {
		err := groupStep(t, set, c.periodic, c.change).Check()
		wants(t, name, err, nil, c.says)
	}
}

// Schemes that exchange after each step reject groups, and user kernels at boundaries do not support them.
func TestUnsuitedGroups(t *testing.T) {
	set := testdevices.Host(t, 2)
	step := groupStep(t, set, false, func(*halo.Spec, *Step) {})
	_, err := runnerBy(t, set, step, p2p.Direct).Run(t.Context(), Options{Scheme: Ranks, Steps: 1})
	wants(t, "ranks", err, ErrUnsuited, "exchanges after each step")
	step.variables()[0].Boundary[0] = boundary.Condition{Kind: boundary.Custom, Kernel: func(boundary.Slab) (*streams.Kernel, error) { return nil, nil }}
	_, err = NewRunner(t.Context(), step, must(step.Plan(set.Links, p2p.Direct))(t), set.Compiler)
	wants(t, "a boundary with a user kernel", err, nil, "do not set ghosts next to those of neighbors")
}
