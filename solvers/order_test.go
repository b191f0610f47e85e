package solvers

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
)

// factors are factors of a periodic field with their derivatives, by axis, and a coefficient K with its own.
func factors() []Definition {
	return []Definition{
		{"X", "sin(2*pi*x + 1)"}, {"X1", "2*pi*cos(2*pi*x + 1)"}, {"X2", "-4*pi^2*X"},
		{"Y", "cos(4*pi*y + 0.3)"}, {"Y1", "-4*pi*sin(4*pi*y + 0.3)"}, {"Y2", "-16*pi^2*Y"},
		{"K", "2 + sin(2*pi*x)*cos(2*pi*y)"}, {"Kx", "2*pi*cos(2*pi*x)*cos(2*pi*y)"}, {"Ky", "-2*pi*sin(2*pi*x)*sin(2*pi*y)"},
	}
}

// after returns the field after some steps of an equation on one CPU device.
func after(t *testing.T, set *testdevices.Set, e *Equation, steps int64) []float64 {
	t.Helper()
	p := must(e.Problem())(t)
	s, _ := solve(t, set, p, how{scheme.Baseline, scheme.LeftRight, p2p.Auto, domain.Vec{1, 1, 1}}, scheme.Options{Steps: steps})
	return read(t, s)
}

// Each operator comes closer to the derivatives with the square of the spacing, and upwind with the spacing.
func TestOrderOfEachOperator(t *testing.T) {
	testdevices.Once(t)
	set := testdevices.Host(t, 1)
	type operator struct {
		formula, exact string // exact in terms of the factors, where Z is that of z
		order          float64
	}
	inPlane := []operator{
		{"dx(u)", "X1*Y*Z", 2}, {"dy(u)", "X*Y1*Z", 2}, {"dxx(u)", "X2*Y*Z", 2}, {"dyy(u)", "X*Y2*Z", 2}, {"dxy(u)", "X1*Y1*Z", 2},
		{"dx(dy(u))", "X1*Y1*Z", 2}, {"dx(K*u)", "Kx*X*Y*Z + K*X1*Y*Z", 2}, {"dy(u^2)", "2*X*Y*Z*X*Y1*Z", 2},
	}
	both := []operator{
		{"lap(u)", "LAP", 2}, {"grad2(u)", "GRAD", 2}, {"div(K, u)", "K*(LAP) + Kx*X1*Y*Z + Ky*X*Y1*Z", 2},
		{"div(K, u, harmonic)", "K*(LAP) + Kx*X1*Y*Z + Ky*X*Y1*Z", 2}, {"div(u, u)", "X*Y*Z*(LAP) + GRAD", 2},
		{"lap(u^2)", "2*X*Y*Z*(LAP) + 2*(GRAD)", 2}, {"lap(lap(u))", "LAPLAP", 2},
	}
	for dims, operators := range map[int][]operator{
		2: append(slices.Concat(inPlane, both), operator{"upwind(sin(4*pi*y), cos(2*pi*x), u)", "sin(4*pi*y)*X1*Y + cos(2*pi*x)*X*Y1", 1}),
		3: append(slices.Concat(inPlane[:1], both, []operator{{"dz(u)", "X*Y*Z1", 2}, {"dzz(u)", "X*Y*Z2", 2}, {"dxz(u)", "X1*Y*Z1", 2},
			{"dyz(u)", "X*Y1*Z1", 2}}), operator{"upwind(sin(4*pi*y), cos(2*pi*x), -0.5, u)", "sin(4*pi*y)*X1*Y*Z + cos(2*pi*x)*X*Y1*Z - 0.5*X*Y*Z1", 1}),
	} {
		constants := factors()
		names := strings.NewReplacer("LAPLAP", "-20*pi^2*(X2*Y + X*Y2)", "LAP", "X2*Y + X*Y2", "GRAD", "(X1*Y)^2 + (X*Y1)^2", "*Z", "")
		sizes := []int{64, 128}
		if dims == 3 {
			constants = append(constants, Definition{"Z", "sin(2*pi*z)"}, Definition{"Z1", "2*pi*cos(2*pi*z)"}, Definition{"Z2", "-4*pi^2*Z"})
			names = strings.NewReplacer("LAPLAP", "-24*pi^2*(X2*Y*Z + X*Y2*Z + X*Y*Z2)", "LAP", "X2*Y*Z + X*Y2*Z + X*Y*Z2",
				"GRAD", "(X1*Y*Z)^2 + (X*Y1*Z)^2 + (X*Y*Z1)^2")
			sizes = []int{40, 80}
		}
		for _, o := range operators {
			t.Run(fmt.Sprintf("dims=%d/%s", dims, o.formula), func(t *testing.T) {
				var errors []float64
				for _, n := range sizes {
					e := &Equation{Size: slices.Repeat([]int{n}, dims), Element: domain.Float64, Constants: constants,
						Fields: []EquationFor{{Name: "u", Update: o.formula + " - (" + names.Replace(o.exact) + ")", Initial: names.Replace("X*Y*Z"),
							Boundary: conditionsOf("pppppp", "")}}}
					worst := 0.0
					for _, v := range after(t, set, e, 1) {
						worst = max(worst, math.Abs(v))
					}
					errors = append(errors, worst)
				}
				if order := math.Log2(errors[0] / errors[1]); math.Abs(order-o.order) > 0.2 {
					t.Errorf("errors %v: order %v, want %v", errors, order, o.order)
				}
			})
		}
	}
}

// What is in flux form keeps the sum of a field to rounding, between faces through which nothing flows.
func TestFluxFormKeepsSums(t *testing.T) {
	set := testdevices.Host(t, 1)
	for formula, kinds := range map[string]string{
		"lap(u)": "nnnn", "div(1 + u^2, u)": "nnpp", "div(K, u)": "ppnnnn", "div(K, u, harmonic)": "nnpp", "lap(u^3 - 0.01*lap(u))": "pppp",
		"dx(0.1*u^2) + dy(u)": "pppppp",
	} {
		t.Run(formula, func(t *testing.T) {
			dims := len(kinds) / 2
			e := &Equation{Size: []int{24, 17, 9}[:dims], Element: domain.Float64, Constants: factors(), TimeStep: 1e-5, Force: true,
				Spacing: slices.Repeat([]float64{0.05}, dims),
				Fields:  []EquationFor{{Name: "u", Rate: formula, Initial: "1 + 0.3*X*Y", Boundary: conditionsOf(kinds, "")}}}
			var sums [2]float64
			changed := 0.0
			start, end := after(t, set, e, 1), after(t, set, e, 200)
			for i := range start {
				sums[0], sums[1] = sums[0]+start[i], sums[1]+end[i]
				changed = max(changed, math.Abs(end[i]-start[i]))
			}
			if off := math.Abs(sums[1]/sums[0] - 1); off > 1e-14 || changed < 1e-4 {
				t.Errorf("the sum changes by %v, values by %v", off, changed)
			}
		})
	}
}

// A diffusion with a coefficient and a source that change in place and time comes closer to a manufactured solution with
// the square of the spacing, between walls of each kind whose values change along them and with time.
func TestOrderOfEquationsBetweenWalls(t *testing.T) {
	testdevices.Once(t)
	set := testdevices.Host(t, 1)
	const end = 0.02
	for dims, sizes := range map[int][]int{2: {12, 24}, 3: {8, 16}} {
		for _, kinds := range []string{"dd", "hh", "gg", "ff", "rr", "dr", "gd"} {
			t.Run(fmt.Sprintf("dims=%d/%s", dims, kinds), func(t *testing.T) {
				var errs, spacings []float64
				for _, n := range sizes {
					along := []string{"sin(1.3*x + 0.4)", "cos(1.1*y + 0.2)", "sin(0.9*z + 0.5)"}[:dims]
					slopes := []string{"1.3*cos(1.3*x + 0.4)", "(-1.1*sin(1.1*y + 0.2))", "0.9*cos(0.9*z + 0.5)"}
					exact := "cos(3*t)*" + strings.Join(along, "*")
					slope := func(a int) string {
						all := slices.Clone(along)
						all[a] = slopes[a]
						return "cos(3*t)*" + strings.Join(all, "*")
					}
					squares := []float64{1.3 * 1.3, 1.1 * 1.1, 0.9 * 0.9}
					total := 0.0
					for _, s := range squares[:dims] {
						total += s
					}
					// K = 1 + x*y: the source is du/dt - K lap(u) - y du/dx - x du/dy
					source := fmt.Sprintf("(-3*sin(3*t)*%s + (1 + x*y)*%v*%s - y*%s - x*%s)", strings.Join(along, "*"), total, exact, slope(0), slope(1))
					f := EquationFor{Name: "u", Rate: "div(K, u) + " + source, Initial: strings.Join(along, "*")}
					for i, face := range domain.Faces(dims) {
						w, outward := &f.Boundary[i], fmt.Sprintf("%d*%s", face[face.Axis()], slope(face.Axis()))
						switch kinds[i%2] {
						case 'd', 'h':
							w.Kind, w.Value, w.Half = Dirichlet, exact, kinds[i%2] == 'h'
						case 'g':
							w.Kind, w.Value = Neumann, outward
						case 'f':
							w.Kind, w.Value, w.Diffusivity = "flux", outward, "1"
						case 'r':
							w.Kind, w.Value, w.Transfer, w.Diffusivity = "robin", exact+" + "+outward+"/2.5", "2.5", "1"
						}
					}
					e := &Equation{Size: slices.Repeat([]int{n}, dims), Element: domain.Float64, Constants: []Definition{{"K", "1 + x*y"}},
						Fields: []EquationFor{f}, TimeStep: 1, Force: true}
					h := must(e.Problem())(t).Spacing[0]
					steps := int64(math.Ceil(end / (0.05 * h * h)))
					e.TimeStep = end / float64(steps)
					p := must(e.Problem())(t)
					s, _ := solve(t, set, p, how{scheme.Baseline, scheme.LeftRight, p2p.Auto, domain.Vec{1, 1, 1}}, scheme.Options{Steps: steps})
					errs, spacings = append(errs, must(s.Deviation(t.Context(), 0, parse(t, exact)))(t).L2), append(spacings, h)
				}
				if order := math.Log(errs[0]/errs[1]) / math.Log(spacings[0]/spacings[1]); math.Abs(order-2) > 0.2 {
					t.Errorf("errors %v: order %v", errs, order)
				}
			})
		}
	}
}

// Fields may have different kinds of faces, which then lie half a spacing from the nearest point: both are of second
// order there, with the same bits on several devices.
func TestFacesThatDiffer(t *testing.T) {
	set := testdevices.Host(t, 3)
	var last [2]float64
	for _, n := range []int{16, 32} {
		e := &Equation{Size: []int{n, 6}, Element: domain.Float64, Integrator: RK4, Until: 0.05, Fields: []EquationFor{
			{Name: "u", Rate: "lap(u)", Initial: "1 + sin(pi*x)", Boundary: conditionsOf("ddpp", "1")},
			{Name: "v", Rate: "lap(v)", Initial: "cos(pi*x)", Boundary: conditionsOf("nnpp", "")},
			{Name: "w", Rate: "lap(w)", Initial: "cos(pi*x/2)", Boundary: conditionsOf("ndpp", "0")}}}
		p := must(e.Problem())(t)
		if at := p.Coordinate(0, 0); math.Abs(at-0.5/float64(n)) > 1e-15 {
			t.Fatalf("the first point is at %v", at)
		}
		one, _ := solve(t, set, p, how{scheme: scheme.Baseline, path: p2p.Staged, parts: domain.Vec{1, 1, 1}}, scheme.Options{Steps: p.Steps(e.Until)})
		many, _ := solve(t, set, p, how{scheme: scheme.Assisted, path: p2p.Direct, parts: domain.Vec{3, 1, 1}}, scheme.Options{Steps: p.Steps(e.Until)})
		compare(t, p.Grid, read(t, many), read(t, one))
		for i, exact := range []string{"1 + exp(-pi^2*t)*sin(pi*x)", "exp(-pi^2*t)*cos(pi*x)", "exp(-pi^2*t/4)*cos(pi*x/2)"} {
			d := must(one.Deviation(t.Context(), i, parse(t, exact)))(t).L2
			if i < 2 && n == 32 && math.Abs(math.Log2(last[i]/d)-2) > 0.1 || d > 0.01 {
				t.Errorf("field %d: errors %v and %v", i, last[i], d)
			}
			if i < 2 {
				last[i] = d
			}
		}
	}
}
