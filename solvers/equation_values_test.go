package solvers

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// forced has everything that changes from step to step: the time, with and without coordinates, the step, its length,
// noise, and a parameter that changes between runs.
func forced() *Equation {
	return &Equation{
		Size: []int{12, 10}, Start: []float64{0, 1}, End: []float64{1, 2}, Element: domain.Float64, TimeStep: 1e-3,
		Parameters: map[string]float64{"D": 0.7, "A": 2}, Variable: []string{"A"},
		Let: []Definition{{"force", "A*sin(700*t)"}},
		Fields: []EquationFor{
			{Name: "u", Rate: "D*lap(u) + force*x - (t < 0.004 ? v : A) + floor(9*x - 900*t)", Initial: "x*y",
				Boundary: conditionsOf("ppdn", "x")},
			{Name: "v", Rate: "A*dx(u)*noise(5) + sqrt(dt)*(at(noise(5), -1, 0) - noise(6)) + step", Initial: "y",
				Boundary: conditionsOf("ppdn", "x")},
		},
	}
}

// The time, the step, noise and parameters that change reach equations under every scheme, with one step and with
// several between exchanges, and in a second run too: as loops written by hand compute them.
func TestValuesOfEquations(t *testing.T) {
	p := must(forced().Problem())(t)
	n, h := p.Grid.Size, p.Spacing
	calls, runs := 0, []int{3, 4}
	want := handWritten(t, p, 7, func(at func(field, x, y, z int) float64, q [3]float64) []float64 {
		step := calls/(n[0]*n[1]) + 1
		now, amplitude := 1e-3*float64(step-1), 2.0
		if step > runs[0] {
			amplitude = -1
		}
		noise := func(seed float64, x int) float64 {
			place := domain.Vec{(calls%n[0] + x + n[0]) % n[0], calls / n[0] % n[1]}
			return stencil.Uniform[float64](p.system.stages[0].form.Noise(seed, int64(step), place))
		}
		u, v := at(0, 0, 0, 0), at(1, 0, 0, 0)
		du := 0.7*((at(0, 1, 0, 0)-2*u+at(0, -1, 0, 0))/(h[0]*h[0])+(at(0, 0, 1, 0)-2*u+at(0, 0, -1, 0))/(h[1]*h[1])) +
			amplitude*math.Sin(700*now)*q[0] + math.Floor(9*q[0]-900*now)
		if du -= v; step > 4 {
			du += v - amplitude
		}
		dv := amplitude*(at(0, 1, 0, 0)-at(0, -1, 0, 0))/(2*h[0])*noise(5, 0) +
			math.Sqrt(1e-3)*(noise(5, -1)-noise(6, 0)) + float64(step)
		calls++
		return []float64{u + 1e-3*du, v + 1e-3*dv}
	})
	check := func(t *testing.T, set *testdevices.Set, name scheme.Scheme, group int, cut domain.Vec, first *[]float64) {
		h := how{scheme: name, order: scheme.LeftRight, path: pathOf(name), parts: cut}
		s := prepare(t, set, inGroupsOf(p, group), h)
		for i, steps := range runs {
			succeeds(t, s.SetParameters(map[string]float64{"A": []float64{2, -1}[i]}))
			must(s.Run(t.Context(), h.options(scheme.Options{Steps: int64(steps)})))(t)
		}
		got, half := make([]float64, len(want)), len(want)/2
		succeeds(t, errors.Join(s.Gather(t.Context(), 0, got[:half], p.Grid.Box()),
			s.Gather(t.Context(), 1, got[half:], p.Grid.Box())))
		for i, w := range want {
			if math.Abs(got[i]-w) > 1e-12 { // differences are added in another order
				t.Fatalf("value %d is %v, want %v", i, got[i], w)
			}
		}
		if *first == nil {
			*first = got
		}
		if !slices.Equal(got, *first) {
			t.Error("other schemes give other bits")
		}
	}
	var first []float64
	for _, cut := range []domain.Vec{{1, 1, 1}, {3, 1, 1}, {2, 2, 1}} {
		for _, name := range scheme.All() {
			for _, group := range []int{1, 2, 3} {
				if group == 1 || groups(name) && (cut[0] > 1 || name.Needs().LocalGroups) {
					t.Run(fmt.Sprintf("parts=%v/%s/group=%d", cut, name, group), func(t *testing.T) {
						check(t, testdevices.Host(t, 4), name, group, cut, &first)
					})
				}
			}
		}
	}
	t.Run("backend=cuda-on-cpu", func(t *testing.T) {
		for i, name := range scheme.All() {
			if testdevices.Turn(i, 5, 8) {
				t.Run(string(name), func(t *testing.T) {
					check(t, testdevices.CPU(t, 2), name, 1, domain.Vec{2, 1, 1}, &first)
				})
			}
		}
		t.Run("groups", func(t *testing.T) {
			testdevices.InTurn(t, 6, 8)
			check(t, testdevices.CPU(t, 2), scheme.TwoStream, 2, domain.Vec{2, 1, 1}, &first)
		})
	})
}

// SetParameters takes parameters that may change.
func TestSetParametersOfSolver(t *testing.T) {
	p := must(forced().Problem())(t)
	s := prepare(t, testdevices.Host(t, 1), p, how{scheme: scheme.Baseline, path: pathOf(scheme.Baseline), parts: domain.Vec{1, 1, 1}})
	for says, values := range map[string]map[string]float64{
		`parameter D must be one of Equation.Variable, ["A"]`: {"A": 1, "D": 2},
		"parameter A must be finite, got +Inf":                {"A": math.Inf(1)},
	} {
		wants(t, s.SetParameters(values), nil, says)
	}
	succeeds(t, s.SetParameters(nil))
	succeeds(t, s.Close())
	wants(t, s.SetParameters(map[string]float64{"A": 1}), nil, "closed")
}

// A source f(x, t) gives the manufactured solution: errors fall with the square of the spacing.
func TestSourceOfTimeAndPlace(t *testing.T) {
	var errors []float64
	for _, n := range []int{15, 31} {
		e := &Equation{Size: []int{n, n}, Element: domain.Float64, Parameters: map[string]float64{"D": 0.5}, Until: 0.2,
			Fields: []EquationFor{{Name: "u", Rate: "D*lap(u) + sin(pi*x)*cos(pi*y)*(2*pi^2*D*cos(3*t) - 3*sin(3*t)) + y*cos(t)",
				Initial: "sin(pi*x)*cos(pi*y)", Boundary: conditionsOf("dddd", "sin(pi*x)*cos(pi*y)*cos(3*t) + y*sin(t)")}}}
		p := must(e.Problem())(t)
		s, _ := solve(t, testdevices.Host(t, 2), p, how{scheme: scheme.Baseline, order: scheme.LeftRight,
			path: pathOf(scheme.Baseline), parts: domain.Vec{1, 2, 1}}, scheme.Options{Steps: p.Steps(e.Until)})
		d := must(s.Deviation(t.Context(), 0, parse(t, "sin(pi*x)*cos(pi*y)*cos(3*t) + y*sin(t)")))(t)
		errors = append(errors, d.Max)
	}
	if ratio := errors[0] / errors[1]; ratio < 3.6 || ratio > 4.4 {
		t.Errorf("errors %v, ratio %v, want 4", errors, ratio)
	}
}
