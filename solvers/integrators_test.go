package solvers

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
)

// deviationOf returns the largest difference of a run of an equation to an expression for its first field.
func deviationOf(t *testing.T, set *testdevices.Set, e *Equation, exact string) float64 {
	t.Helper()
	p := must(e.Problem())(t)
	h := how{scheme: scheme.TwoStream, path: p2p.Staged, parts: domain.Vec{2, 1, 1}}
	s, _ := solve(t, set, p, h, scheme.Options{Steps: p.Steps(e.Until)})
	return must(s.Deviation(t.Context(), 0, parse(t, exact)))(t).Max
}

// Integrators have their orders for systems that are not linear, and with walls that change with time: exp(x) is an
// eigenvector of the discrete Laplacian. Of walls that are linear in time no stage adds an error.
func TestOrderOfIntegrators(t *testing.T) {
	set := testdevices.Host(t, 2)
	const n = 7
	rate := 2 * (math.Cosh(1.0/(n+1)) - 1) * (n + 1) * (n + 1)
	for name, order := range map[Integrator]float64{Euler: 1, RK2: 2, SSPRK3: 3, RK4: 4} {
		t.Run(string(name), func(t *testing.T) {
			turning := func(dt float64) float64 {
				return deviationOf(t, set, &Equation{Size: []int{4, 3}, Element: domain.Float64, Integrator: name, Until: 1,
					TimeStep: dt, Fields: []EquationFor{
						{Name: "u", Rate: "1e-3*lap(u) - v*(u^2 + v^2)", Initial: "1", Boundary: conditionsOf("pppp", "")},
						{Name: "v", Rate: "1e-3*lap(v) + u*(u^2 + v^2)", Initial: "0", Boundary: conditionsOf("pppp", "")},
					}}, "cos(t)")
			}
			growing := func(dt float64) float64 {
				exact := fmt.Sprintf("exp(x + %v*t)", rate)
				return deviationOf(t, set, &Equation{Size: []int{n}, Element: domain.Float64, Integrator: name, Until: 0.2,
					TimeStep: dt, Fields: []EquationFor{
						{Name: "u", Rate: "lap(u)", Initial: "exp(x)", Boundary: conditionsOf("dd", exact)},
					}}, exact)
			}
			forced := func(dt float64) float64 {
				return deviationOf(t, set, &Equation{Size: []int{4, 3}, Element: domain.Float64, Integrator: name, Until: 1,
					TimeStep: dt, Fields: []EquationFor{
						{Name: "u", Rate: "1e-3*lap(u) - 2*t*u^2", Initial: "1", Boundary: conditionsOf("pppp", "")},
					}}, "1/(1 + t^2)")
			}
			reduced := func(n int) float64 {
				h := 1 / float64(n+1)
				exact := fmt.Sprintf("exp(3*x - 3 + %v*t)", 2*(math.Cosh(3*h)-1)/(h*h))
				return deviationOf(t, set, &Equation{Size: []int{n}, Element: domain.Float64, Integrator: name, Until: 0.05,
					Fields: []EquationFor{
						{Name: "u", Rate: "lap(u)", Initial: "exp(3*x - 3)", Boundary: conditionsOf("dd", exact)},
					}}, exact)
			}
			for _, c := range []struct {
				name string
				of   func(dt float64) float64
				dt   float64
			}{{"turning", turning, 1. / 80}, {"growing", growing, 1. / 640}, {"forced", forced, 1. / 160}} {
				first, second := c.of(c.dt), c.of(c.dt/2)
				if got := math.Log2(first / second); math.Abs(got-order) > 0.1 {
					t.Errorf("%s: errors %v and %v, of order %v, want %v", c.name, first, second, got, order)
				}
			}
			if name != Euler { // dt and the square of the spacing shrink together, and the order is 2
				first, second := reduced(15), reduced(31)
				if got := math.Log2(first/second) / 2; math.Abs(got-1.9) > 0.1 {
					t.Errorf("reduced: errors %v and %v, of order %v", first, second, got)
				}
			}
			linear := &Equation{Size: []int{n, 5}, Element: domain.Float64, Integrator: name, Until: 0.1,
				Fields: []EquationFor{{Name: "u", Rate: "lap(u)", Initial: "x^2/2", Boundary: conditionsOf("ddnn", "x^2/2 + t")}}}
			if e := deviationOf(t, set, linear, "x^2/2 + t"); e > 1e-14 {
				t.Errorf("walls linear in time: error %v", e)
			}
		})
	}
}

// The leapfrog method is of second order from the first step on, also with rates and walls that change with time. What is
// quadratic in time has no error.
func TestOrderOfLeapfrog(t *testing.T) {
	set := testdevices.Host(t, 2)
	const n = 7
	grown, w := math.Sqrt(2*(math.Cosh(1.0/(n+1))-1))*(n+1), 2*math.Sin(math.Pi/2/(n+1))*(n+1)
	run := func(dt float64, rate, initial, initialRate, exact string) float64 {
		return deviationOf(t, set, &Equation{Size: []int{n}, Element: domain.Float64, TimeStep: dt, Until: 0.5,
			Fields: []EquationFor{{Name: "u", Acceleration: rate, Initial: initial, InitialRate: initialRate,
				Boundary: conditionsOf("dd", exact)}}}, exact)
	}
	for _, c := range []struct{ f, rate, initial, exact string }{
		{"lap(u)", "2*sin(pi*x)", "sin(pi*x)", fmt.Sprintf("sin(pi*x)*(cos(%v*t) + 2*sin(%[1]v*t)/%[1]v)", w)},
		{"lap(u)", fmt.Sprintf("%v*exp(x)", grown), "exp(x)", fmt.Sprintf("exp(x + %v*t)", grown)},
		{"lap(u) + 6*t*dt/dt", "0", "0", "t^3"},
	} {
		first, second := run(1./80, c.f, c.initial, c.rate, c.exact), run(1./160, c.f, c.initial, c.rate, c.exact)
		if got := math.Log2(first / second); math.Abs(got-2) > 0.05 {
			t.Errorf("%s: errors %v and %v, of order %v", c.exact, first, second, got)
		}
	}
	if e := run(0, "lap(u) + 1", "x^2/2", "x", "x^2/2 + x*t + t^2"); e > 1e-13 {
		t.Errorf("quadratic in time: error %v", e)
	}
}

// mixed has terms of all kinds, and is stable with the default step of its integrator only.
func mixed(name Integrator, moving bool) *Equation {
	wall := "x - y"
	if moving {
		wall = "x*t"
	}
	return &Equation{Size: []int{20, 17}, Element: domain.Float64, Integrator: name,
		Fields: []EquationFor{
			{Name: "u", Rate: "0.1*lap(u) - dx(u) + upwind(1, 0.5, u) + x*u*(1 - v)", Initial: "x*y", Boundary: conditionsOf("ppdn", wall)},
			{Name: "v", Rate: "0.2*lap(v) + u*v", Initial: "y", Boundary: conditionsOf("ppdn", "y")},
		}}
}

// Every scheme gives the bits of one device for steps of several stages, or says that it takes one stage.
func TestSchemesOfIntegrators(t *testing.T) {
	set := testdevices.Host(t, 4)
	waves := mixed(Leapfrog, false)
	for i, formula := range []string{"lap(u) + x*v - u^3", "0.5*lap(v) - u*v"} {
		f := &waves.Fields[i]
		f.Acceleration, f.Rate, f.InitialRate = formula, "", "x - 0.3*y"
	}
	stored := mixed(Euler, false)
	stored.Define = []Stored{{Definition{"w", "u*v + 0.1*lap(u)"}, conditionsOf("ppdn", "x")}, {Definition: Definition{"q", "dx(w)"}}}
	stored.TimeStep, stored.Fields[0].Rate, stored.Fields[1].Rate = 1e-3, "lap(w)", "dy(q) - w*v"
	staged := mixed(Euler, false)
	staged.Fields[0].Rate, staged.Fields[1].Rate = "", ""
	staged.Stages = [][]Definition{{{"u", "u + 0.1*lap(u)"}}, {{"v", "v + 0.1*dx(u)"}, {"u", "max(u, 0.2)"}}, {{"u", "v"}, {"v", "u"}}}
	paced := mixed(SSPRK3, false)
	paced.Fields[1].Rate += " + sin(9*t)*x"
	paced.Speed, paced.CFL, paced.Until = "0.5 + abs(u)*y + abs(dx(v))", 0.1, 0.02
	oneStage := func(name scheme.Scheme, _ int) bool { return name == scheme.Blocked || name == scheme.Ranks }
	for _, c := range []struct {
		name    Integrator
		e       *Equation
		real    domain.Element
		refuses func(name scheme.Scheme, group int) bool
	}{
		{RK2, mixed(RK2, true), domain.Float64, func(name scheme.Scheme, group int) bool {
			return oneStage(name, group) || name.Needs().Steady
		}},
		{SSPRK3, mixed(SSPRK3, false), domain.Float32, oneStage},
		{RK4, mixed(RK4, false), domain.Float64, oneStage},
		{"define", stored, domain.Float64, oneStage},
		{"stages", staged, domain.Float64, oneStage},
		{"speed", paced, domain.Float64, func(name scheme.Scheme, group int) bool {
			return oneStage(name, group) || group > 1 && (name == scheme.Fused || name == scheme.Resident)
		}},
		{Leapfrog, waves, domain.Float64, func(name scheme.Scheme, group int) bool { // levels -1 and 0 are exchanged
			return name == scheme.Blocked || group > 1 && (name == scheme.Fused || name == scheme.Resident)
		}},
	} {
		c.e.Element = c.real
		p := must(c.e.Problem())(t)
		o := scheme.Options{Steps: 7, CheckEvery: 3, History: true}
		one, want := solve(t, set, p, how{scheme: scheme.Baseline, path: p2p.Staged, parts: domain.Vec{1, 1, 1}}, o)
		for _, name := range scheme.All() {
			for _, group := range []int{1, 2} {
				if group > 1 && !groups(name) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/group=%d", c.name, name, group), func(t *testing.T) {
					h := how{scheme: name, order: scheme.LeftRight, path: pathOf(name), parts: domain.Vec{2, 2, 1}}
					s := prepare(t, set, inGroupsOf(p, group), h)
					got, err := s.Run(t.Context(), h.options(o))
					if c.refuses(name, group) {
						wants(t, err, scheme.ErrUnsuited, "")
						return
					}
					succeeds(t, err)
					compare(t, p.Grid, read(t, s), read(t, one))
					if fmt.Sprint(got.History) != fmt.Sprint(want.History) {
						t.Errorf("norms %v, want %v", got.History, want.History)
					}
				})
			}
		}
	}
}

// Steps by the bound of a coupled system are stable, and steps that are 15% longer than the bound are not.
func TestStableSystems(t *testing.T) {
	set := testdevices.Host(t, 1)
	for _, c := range []struct {
		name Integrator
		u, v string
	}{
		{RK4, "-0.5*lap(v) + 3*x*v", "0.5*lap(u) - 3*x*u"}, {SSPRK3, "dx(v)", "dx(u)"}, {Euler, "lap(u) + 0.5*lap(v)", "dxy(u) + lap(v)"},
		{Leapfrog, "lap(u) + 0.5*lap(v)", "0.5*lap(u) + 2*lap(v)"},
	} {
		e := &Equation{Size: []int{12, 8}, Element: domain.Float64, Integrator: c.name, Force: true, Fields: []EquationFor{
			{Name: "u", Rate: c.u, Initial: "noise(1)", Boundary: conditionsOf("pppp", "")},
			{Name: "v", Rate: c.v, Initial: "noise(2)", Boundary: conditionsOf("pppp", "")}}}
		for i := range e.Fields {
			if f := &e.Fields[i]; c.name == Leapfrog {
				f.Acceleration, f.Rate = f.Rate, ""
			}
		}
		for _, grows := range []bool{false, true} {
			if grows {
				e.TimeStep = must(e.Problem())(t).TimeStep / safety * 1.15
			}
			_, r := solve(t, set, must(e.Problem())(t), how{scheme: scheme.Baseline, path: p2p.Staged, parts: domain.Vec{1, 1, 1}}, scheme.Options{Steps: 500})
			if got := max(r.Norms[0].Max, r.Norms[1].Max); grows != !(got < 100) {
				t.Errorf("%s, %s by %s: after 500 steps of %v: at most %v", c.u, c.v, c.name, e.TimeStep, got)
			}
		}
	}
}

// The length of each step follows from the fields at its beginning, and the last step ends at the given time.
func TestSpeed(t *testing.T) {
	set := testdevices.Host(t, 2)
	const until, cfl, h = 0.7, 0.3, 0.1
	for name, orders := range map[Integrator][]float64{Euler: {1}, RK4: {1, 1. / 2, 1. / 6, 1. / 24}} {
		e := &Equation{Size: []int{10, 6}, Spacing: []float64{h, 2 * h}, Element: domain.Float64, Integrator: name, Until: until,
			Speed: "abs(u)", CFL: cfl, Fields: []EquationFor{
				{Name: "u", Rate: "-3*u + 0*lap(u)", Initial: "1 + x", Boundary: conditionsOf("ppnn", "")}}}
		factor, now, steps := 1.0, 0.0, int64(0)
		for now < until {
			dt := min(cfl*h/(1.9*factor), until-now)
			growth, power := 1.0, 1.0
			for _, o := range orders {
				power *= -3 * dt
				growth += o * power
			}
			factor, now, steps = factor*growth, now+dt, steps+1
		}
		s, r := solve(t, set, must(e.Problem())(t), how{scheme: scheme.Assisted, path: p2p.Direct, parts: domain.Vec{2, 1, 1}}, scheme.Options{Steps: 1 << 40})
		d := must(s.Deviation(t.Context(), 0, parse(t, fmt.Sprintf("%v*(1 + x) + t - %v", factor, until))))(t)
		if r.Steps != steps || r.Stopped != scheme.StoppedTime || r.Time != until || s.Time() != until || d.Max > 1e-13 {
			t.Errorf("%s: %d steps to %v, stopped: %s, want %d to %v; error %v", name, r.Steps, r.Time, r.Stopped, steps, until, d.Max)
		}
	}
	still := &Equation{Size: []int{10}, Element: domain.Float64, Speed: "abs(u)", CFL: 1,
		Fields: []EquationFor{{Name: "u", Rate: "lap(u)", Initial: "0", Boundary: conditionsOf("pp", "")}}}
	s := prepare(t, set, must(still.Problem())(t), how{scheme: scheme.TwoStream, path: p2p.Staged, parts: domain.Vec{2, 1, 1}})
	_, err := s.Run(t.Context(), scheme.Options{Scheme: scheme.TwoStream, Steps: 1})
	wants(t, err, nil, "the largest speed must be positive, got 0")
}

// Kernels of GPUs choose the lengths of many steps per launch with the bits of the host, over several runs, whether a
// run ends at a time, at a step or because a speed is NaN. What they cannot compute exactly takes a launch per step.
func TestSpeedOnDevices(t *testing.T) {
	testdevices.InTurn(t, 1, 4)
	const until = 0.3
	equation := func(element domain.Element, rate, speed string) *Problem {
		e := &Equation{Size: []int{12, 9}, Spacing: []float64{0.1, 0.2}, Element: element, Integrator: RK2, Until: until,
			Speed: speed, CFL: 0.3, Parameters: map[string]float64{"a": 0.5}, Variable: []string{"a"}, Fields: []EquationFor{
				{Name: "u", Rate: rate, Initial: "1 + x*y", Boundary: conditionsOf("ppnn", "")},
				{Name: "v", Rate: "dx(u) - a*v", Initial: "x", Boundary: conditionsOf("ppdd", "1")}}}
		return must(e.Problem())(t)
	}
	const exact, speed = "-a*dx(u) + max(t, 0.1*dt)*v + (t > 0.1 ? sqrt(t) : -step)*u/100", "abs(u) + 0.5"
	every := func(t *testing.T, set *testdevices.Set) {
		for name, p := range map[string]*Problem{
			"float64": equation(domain.Float64, exact, speed), "float32": equation(domain.Float32, exact, speed),
			"not exact": equation(domain.Float64, exact+"*cos(t)", speed),
			"NaN":       equation(domain.Float64, "-a*u", "sqrt(u - 0.9)"), // u falls below 0.9
		} {
			t.Run(name, func(t *testing.T) {
				n := min(2, len(set.Devices))
				h := how{scheme: scheme.Resident, path: p2p.Direct, parts: domain.Vec{n, 1, 1}}
				got := prepare(t, set, p, h)
				_ = must(DryRun(t.Context(), p, planFor(t, set, p, h), set.Compiler, scheme.Options{Scheme: h.scheme, Steps: 99}))(t)
				want := prepare(t, testdevices.Host(t, 1), p, how{scheme: scheme.Baseline, path: p2p.Staged, parts: domain.Vec{1, 1, 1}})
				most := int64(0)
				for run, steps := range []int64{1, 9, 1 << 40} {
					o, last := scheme.Options{Steps: steps, CheckEvery: 4, History: true}, int64(0)
					if run == 2 {
						o.CheckEvery = 0
						succeeds(t, errors.Join(got.SetParameters(map[string]float64{"a": 0.75}), want.SetParameters(map[string]float64{"a": 0.75})))
					}
					o.Scheme = scheme.Baseline
					expected := must(want.Run(t.Context(), o))(t)
					o.Scheme, o.Progress = scheme.Resident, func(n int64) { most, last = max(most, n-last), n }
					r := must(got.Run(t.Context(), o))(t)
					if r.Steps != expected.Steps || r.Stopped != expected.Stopped || r.Time != expected.Time || r.Length != expected.Length ||
						!slices.Equal(r.Reduced, expected.Reduced) && name != "NaN" || got.Time() != want.Time() {
						t.Errorf("run %d: got %d steps to %v by %v, %s, reduced %v, want %d to %v by %v, %s, %v", run, r.Steps, r.Time, r.Length,
							r.Stopped, r.Reduced, expected.Steps, expected.Time, expected.Length, expected.Stopped, expected.Reduced)
					}
					if !reflect.DeepEqual(r.History, expected.History) && name != "NaN" {
						t.Errorf("run %d: history %+v, want %+v", run, r.History, expected.History)
					}
					compare(t, p.Grid, read(t, got), read(t, want))
				}
				if devices := set.Devices[0]; !devices.GoKernels && (most > 1) == (name == "not exact") {
					t.Errorf("at most %d steps per launch", most)
				}
			})
		}
	}
	t.Run("backend=cuda-on-cpu", func(t *testing.T) { every(t, testdevices.CPU(t, 2)) })
	testdevices.Each(t, 1, every)
}

// Stored formulas and stages give the bits of one formula with the same operations. Boundary values of stored formulas
// are of the time of the fields that they read.
func TestStoredFormulasAndStages(t *testing.T) {
	set := testdevices.Host(t, 2)
	h := how{scheme: scheme.TwoStream, path: p2p.Staged, parts: domain.Vec{2, 1, 1}}
	base := func() *Equation {
		return &Equation{Size: []int{10, 9}, Element: domain.Float64, TimeStep: 1e-5, Fields: []EquationFor{
			{Name: "u", Initial: "sin(6*x)*y", Boundary: conditionsOf("pppp", "")},
			{Name: "v", Initial: "x - y", Boundary: conditionsOf("pppp", "")}}}
	}
	for _, form := range []string{"Euler", "RK4", "leapfrog", "update"} {
		one, other := base(), base()
		one.Let = []Definition{{"mu", "u^3 - u - 0.01*lap(u)"}, {"q", "mu*v"}}
		for i, l := range one.Let {
			other.Define = append(other.Define, Stored{Definition: l})
			for _, e := range []*Equation{one, other} {
				formula := []string{"lap(mu) - v", "dx(q) + mu"}[i]
				switch f := &e.Fields[i]; form {
				case "leapfrog":
					f.Acceleration, f.InitialRate = formula, "y"
				case "update":
					f.Update = "u + 1e-4*(" + formula + ")"
				default:
					f.Rate, e.Integrator = formula, map[string]Integrator{"Euler": Euler, "RK4": RK4}[form]
				}
			}
		}
		want, _ := solve(t, set, must(one.Problem())(t), h, scheme.Options{Steps: 3})
		got, _ := solve(t, set, must(other.Problem())(t), h, scheme.Options{Steps: 3})
		t.Run(form, func(t *testing.T) { compare(t, got.problem.Grid, read(t, got), read(t, want)) })
	}
	one, other := base(), base()
	one.Let = []Definition{{"a", "u + 0.1*lap(u)"}, {"b", "v + 0.1*dx(a)"}}
	one.Fields[0].Update, one.Fields[1].Update = "b", "max(a, 0.2) + 0*b"
	other.Stages = [][]Definition{{{"u", "u + 0.1*lap(u)"}}, {{"v", "v + 0.1*dx(u)"}, {"u", "max(u, 0.2)"}}, {{"u", "v"}, {"v", "u + 0*v"}}}
	want, _ := solve(t, set, must(one.Problem())(t), h, scheme.Options{Steps: 3})
	got, _ := solve(t, set, must(other.Problem())(t), h, scheme.Options{Steps: 3})
	compare(t, got.problem.Grid, read(t, got), read(t, want))
	for _, name := range []Integrator{Euler, SSPRK3, RK4} {
		const exact = "x^2/2 + t"
		e := deviationOf(t, set, &Equation{Size: []int{7, 5}, Element: domain.Float64, Integrator: name, Until: 0.1, TimeStep: 1e-3,
			Define: []Stored{{Definition{"w", "u"}, conditionsOf("ddnn", exact)}},
			Fields: []EquationFor{{Name: "u", Rate: "lap(w)", Initial: "x^2/2", Boundary: conditionsOf("ddnn", exact)}}}, exact)
		if e > 1e-13 {
			t.Errorf("%s: walls of stored formulas: error %v", name, e)
		}
	}
}

// Kernels of GPUs give the bits of CPU devices for stages that update in place, and for stored formulas.
func TestIntegratorsOnCPU(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	for _, c := range []struct {
		e       EquationFor
		schemes []scheme.Scheme
	}{
		{EquationFor{Rate: "lap(u) + u^2"}, []scheme.Scheme{scheme.TwoStream, scheme.Fused}},
		{EquationFor{Acceleration: "lap(w) - u^3"}, []scheme.Scheme{scheme.Graph, scheme.Resident}},
	} {
		c.e.Name, c.e.Initial, c.e.Boundary = "u", "x*y", conditionsOf("dnpp", "x")
		e := &Equation{Size: []int{9, 8}, Element: domain.Float64, TimeStep: 1e-4, Fields: []EquationFor{c.e}}
		if c.e.Rate != "" {
			e.Integrator = RK4
		} else {
			e.Define = []Stored{{Definition: Definition{"w", "u + 0.1*u^2"}}}
		}
		p := must(e.Problem())(t)
		want, _ := solve(t, testdevices.Host(t, 1), p,
			how{scheme: scheme.Baseline, path: p2p.Staged, parts: domain.Vec{1, 1, 1}}, scheme.Options{Steps: 3})
		for _, name := range c.schemes {
			h := how{scheme: name, order: scheme.LeftRight, path: pathOf(name), parts: domain.Vec{1, 2, 1}}
			got, _ := solve(t, testdevices.CPU(t, 2), p, h, scheme.Options{Steps: 3})
			compare(t, p.Grid, read(t, got), read(t, want))
		}
	}
}
