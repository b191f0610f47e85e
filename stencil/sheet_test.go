package stencil

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
)

// newSheet returns a sheet with fields u and v, the number a and the constant c.
func newSheet(t testing.TB, spacing ...float64) *Sheet {
	g := Coordinates{Size: [3]int{8, 7, 6}}
	copy(g.Spacing[:], spacing)
	s := NewSheet(len(spacing), g)
	test.Check(t, s.Number("a", 3))
	test.Check(t, s.Variable("b", 2))
	test.Check(t, s.Let("c", "x*x", true))
	test.Check(t, s.Field("u"))
	test.Check(t, s.Field("v"))
	test.Check(t, s.Let("w", "u*v", false))
	return s
}

// around is a field as a function of offsets.
type around func(x, y, z int) float64

// value computes a formula of a sheet at the point (2, 3, 1), one operation at a time.
func value(t testing.TB, s *Sheet, text string, fields ...around) float64 {
	form := s.Form(test.Must(s.Formula(text))(t))
	values := make([]float64, len(form.Nodes))
	for i, n := range form.Nodes {
		o := n.Offset
		switch {
		case n.Op == "" && n.Read < 0:
			values[i] = n.Number
		case n.Op == "" && n.Read < len(fields):
			values[i] = fields[n.Read](o[0], o[1], o[2])
		case n.Op == "":
			values[i] = form.Given[n.Read-len(form.Fields)].NewEvaluator(s.grid).At(2+o[0], 3+o[1], 1+o[2])
		default:
			var args [3][]float64
			for k, a := range n.Args {
				args[k] = values[a : a+1]
			}
			operationNamed(n.Op, len(n.Args)).apply(values[i:i+1], args[0], args[1], args[2])
		}
	}
	return values[form.Results[0]]
}

func operationNamed(name string, operands int) *operation {
	if op, ok := functions[name]; ok {
		return op
	}
	if op, ok := comparisons[name]; ok {
		return op
	}
	if op, ok := unaryOperators[name]; ok && operands == 1 {
		return op
	}
	if name == choice.name {
		return choice
	}
	return binaryOperators[name]
}

// Operators are the differences that docs/reference/equations.md gives, bit for bit.
func TestOperators(t *testing.T) {
	u := func(x, y, z int) float64 { return math.Sin(1 + float64(x) + 0.3*float64(y) - 0.7*float64(z)) }
	v := func(x, y, z int) float64 { return 1.5 + math.Cos(float64(2*x-y+3*z)) }
	const h, k, l = 0.5, 0.25, 2.0
	for name, c := range map[string]struct {
		spacing []float64
		want    float64
	}{
		"lap(u)": {[]float64{h}, -8*u(0, 0, 0) + 4*(u(1, 0, 0)+u(-1, 0, 0))},
		"dx(lap(u))": {[]float64{h}, (-8*u(1, 0, 0) + 4*(u(2, 0, 0)+u(0, 0, 0))) -
			(-8*u(-1, 0, 0) + 4*(u(0, 0, 0)+u(-2, 0, 0)))},
		"lap(v)": {[]float64{h, h}, -16*v(0, 0, 0) + 4*(v(1, 0, 0)+v(0, 1, 0)+v(-1, 0, 0)+v(0, -1, 0))},
		"lap(u) ": {[]float64{h, k, l}, -40.5*u(0, 0, 0) + 4*(u(1, 0, 0)+u(-1, 0, 0)) + 16*(u(0, 1, 0)+u(0, -1, 0)) +
			0.25*(u(0, 0, 1)+u(0, 0, -1))},
		"dy(u)":  {[]float64{h, k}, 2 * (u(0, 1, 0) - u(0, -1, 0))},
		"dzz(u)": {[]float64{h, k, l}, -0.5*u(0, 0, 0) + 0.25*(u(0, 0, 1)+u(0, 0, -1))},
		"dxy(u)": {[]float64{h, k}, 2 * ((u(1, 1, 0) + u(-1, -1, 0)) - (u(1, -1, 0) + u(-1, 1, 0)))},
		"grad2(u)": {[]float64{h, k}, (u(1, 0, 0)-u(-1, 0, 0))*(u(1, 0, 0)-u(-1, 0, 0)) +
			2*(u(0, 1, 0)-u(0, -1, 0))*(2*(u(0, 1, 0)-u(0, -1, 0)))},
		"div(v, u)": {[]float64{h}, 4 * (0.5*(v(0, 0, 0)+v(1, 0, 0))*(u(1, 0, 0)-u(0, 0, 0)) -
			0.5*(v(-1, 0, 0)+v(0, 0, 0))*(u(0, 0, 0)-u(-1, 0, 0)))},
		"div(v, u, harmonic)": {[]float64{h},
			4 * (2*(v(0, 0, 0)*v(1, 0, 0))/(v(0, 0, 0)+v(1, 0, 0))*(u(1, 0, 0)-u(0, 0, 0)) -
				2*(v(-1, 0, 0)*v(0, 0, 0))/(v(-1, 0, 0)+v(0, 0, 0))*(u(0, 0, 0)-u(-1, 0, 0)))},
		"upwind(a, -v, u)": {[]float64{h, k}, 2*(3*(u(0, 0, 0)-u(-1, 0, 0))+0*(u(1, 0, 0)-u(0, 0, 0))) +
			4*(0*(u(0, 0, 0)-u(0, -1, 0))+-v(0, 0, 0)*(u(0, 1, 0)-u(0, 0, 0)))},
		"at(u, 1, -2)":      {[]float64{h, k}, u(1, -2, 0)},
		"dx(w)":             {[]float64{h}, u(1, 0, 0)*v(1, 0, 0) - u(-1, 0, 0)*v(-1, 0, 0)},
		"dx(c)":             {[]float64{h}, 1.5*1.5 - 0.5*0.5},
		"u^3 - v^-2":        {[]float64{h}, u(0, 0, 0)*u(0, 0, 0)*u(0, 0, 0) - 1/(v(0, 0, 0)*v(0, 0, 0))},
		"a/4*u + x":         {[]float64{h}, 0.75*u(0, 0, 0) + 1},
		"y < 1 ? u : j - v": {[]float64{h, k}, u(0, 0, 0)},
	} {
		if got := value(t, newSheet(t, c.spacing...), name, u, v); got != c.want {
			t.Errorf("%s of spacing %v is %v, want %v", name, c.spacing, got, c.want)
		}
	}
}

// Coordinates are read, one array for each different formula of them, and what is written twice is computed once.
func TestFormShares(t *testing.T) {
	s := newSheet(t, 0.5, 0.25)
	f := s.Form(test.Must(s.Formula("div(1 + c*y, u) + (1 + c*y)*dx(u) + dx(u)"))(t))
	if len(f.Given) != 1 || len(f.Given[0].Reads) != 5 || len(f.Fields[0]) != 5 || len(f.Fields[1]) != 0 || len(f.Fields) != 2 {
		t.Errorf("given %v, fields %v", f.Given, f.Fields)
	}
	differences := 0
	for _, n := range f.Nodes {
		if n.Op == "-" {
			differences++
		}
	}
	if differences != 4+2+1 { // of neighbors, of fluxes, and of dx
		t.Errorf("%d differences", differences)
	}
}

// Bad formulas say where and why.
func TestFormulasThatAreWrong(t *testing.T) {
	for text, says := range map[string]string{
		"lap(q)":            `column 5: unknown name "q": the variables are a, b, c, dt, step, u, v, w, x, y, z`,
		"lapl(u)":           `unknown function "lapl", did you mean lap?`,
		"lap":               "the operator lap needs its arguments in parentheses",
		"lap(u, v)":         "lap takes 1 argument on a grid of 2 dimensions, got 2 arguments",
		"upwind(a, u)":      "upwind takes a velocity per axis and u on a grid of 2 dimensions, got 2 arguments",
		"dz(u)":             "dz cannot be used on a grid of 2 dimensions",
		"z*u":               "z cannot be used on a grid of 2 dimensions",
		"div(a, u, mean)":   "the third argument of div must be the word harmonic",
		"at(u, 0.5, 0)":     "the offsets of at must be whole numbers from -2 to 2",
		"at(u, x, 0)":       "the offsets of at must be whole numbers from -2 to 2",
		"lap(lap(lap(u)))":  "operators must reach at most 2 points from the point, and here reach 3",
		"u + noise(t)":      "noise takes one argument, its seed: a whole number",
		"at(u, step, 0)":    "the offsets of at must be whole numbers from -2 to 2",
		"u < v":             "the result must be a number, not a condition",
		"lap(u < v)":        "an argument of lap must be a number, not a condition",
		"u/0 + 1/0":         "must not contain a non-finite number",
		"u +":               "the expression ends too early",
		"previous(u)":       "previous can be used in update only",
		"lap(u) + max(u, )": "an argument expected",
	} {
		if _, err := newSheet(t, 1, 1).Formula(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s gives %v, want %q", text, err, says)
		}
	}
	for name, says := range map[string]string{
		"": "must be named with letters", "2u": "must be named with letters", "u-v": "must be named with letters",
		"lap": "has a meaning", "sin": "has a meaning", "x": "has a meaning", "if": "has a meaning",
		"noise": "has a meaning", "harmonic": "has a meaning", "a": "the name of something else",
	} {
		if err := newSheet(t, 1).Field(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the name %q gives %v, want %q", name, err, says)
		}
	}
	s := newSheet(t, 1)
	_, initial := s.Expression("1 + w")
	_, operator := s.Expression("lap(x)")
	_, length := s.Expression("sin(dt)")
	_, changing := s.Expression("t + b")
	for _, c := range []struct {
		err  error
		says string
	}{
		{s.Let("k", "1 + u", true), "must not depend on fields"}, {s.Number("n", math.Inf(1)), "must be finite"},
		{initial, "w depends on fields"}, {operator, "can be used in equations only"},
		{s.Variable("n", math.NaN()), "must be finite"}, {s.Variable("u", 1), "the name of something else"},
		{s.Let("k", "x + t", true), "must not depend on t, which changes"},
		{s.Let("k", "b*x", true), "must not depend on b, which changes"},
		{length, "dt"}, {changing, "must not depend on b, which changes"}, {s.Let("now", "step + noise(1)", false), ""},
	} {
		if (c.err != nil) != (c.says != "") || c.err != nil && !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("got %v, want %q", c.err, c.says)
		}
	}
}

// What depends on the time, the step and variables alone is a value, which is computed in float64.
func TestValues(t *testing.T) {
	for text, c := range map[string]struct {
		values []float64
		given  int
		nodes  int // operations
		still  bool
	}{
		"u + 2*sin(t)":               {[]float64{2 * math.Sin(0.25)}, 0, 1, false},
		"b*lap(u) + b":               {[]float64{2}, 0, 8, true},
		"sin(x - t)*u + sqrt(t)":     {[]float64{0.25, 0.5}, 1, 4, false},
		"sin(x)*exp(-t) - u":         {[]float64{math.Exp(-0.25)}, 1, 2, false},
		"t < 1 and b > 1 ? u : dt":   {[]float64{1, 0.125}, 0, 2, false},
		"t < x ? u : step":           {[]float64{0.25, 7}, 1, 2, false},
		"u + dx(t*x) + dt - dt":      {[]float64{0.25, 0.125}, 1, 7, false},
		"noise(1)*step + dx(u)*2^b":  {[]float64{7, 4}, 0, 5, false},
		"u + noise(1) - at(u, 1, 0)": {nil, 0, 2, true},
	} {
		s := newSheet(t, 0.5, 0.5)
		f := s.Form(test.Must(s.Formula(text))(t))
		scalars, got, operations := f.NewScalars(s.grid), make([]float64, len(f.Values)), 0
		for name, value := range map[string]float64{"b": 2, "dt": 0.125, "step": 7} {
			scalars.Set(name, value)
		}
		scalars.Compute(got, 0.25)
		for _, n := range f.Nodes {
			if n.Op != "" {
				operations++
			}
		}
		if !slices.Equal(got, c.values) || len(f.Given) != c.given || operations != c.nodes || f.Changes() == c.still {
			t.Errorf("%s: values %v, %d given, %d operations, want %v", text, got, len(f.Given), operations, c)
		}
		if n := testing.AllocsPerRun(10, func() { scalars.Compute(got, 0.5) }); n > 0 {
			t.Errorf("%s allocates %v times", text, n)
		}
	}
}

// What is linear with constant coefficients is a stencil, and a multiple of the Laplacian that of Heat.
func TestLinear(t *testing.T) {
	one := func(spacing ...float64) *Sheet {
		g := Coordinates{}
		copy(g.Spacing[:], spacing)
		s := NewSheet(len(spacing), g)
		test.Check(t, s.Number("D", 0.7))
		test.Check(t, s.Field("u"))
		return s
	}
	for _, spacing := range [][]float64{{0.1}, {0.1, 0.1}, {0.1, 0.3}, {0.1, 0.1, 0.1}} {
		s := one(spacing...)
		got, ok := s.Linear(test.Must(s.Formula("D*lap(u)"))(t), 1e-3)
		want := test.Must(Heat(spacing, 0.7, 1e-3))(t)
		if star, isStar := got.AsStar(); !ok || star.Dims == 2 && (!isStar && len(spacing) > 1) ||
			got.Center != want.Center || got.Groups[0].Weight != want.Axis[0] {
			t.Errorf("spacing %v: %+v, want %+v", spacing, got, want)
		}
	}
	s := one(0.5, 0.5)
	got, ok := s.Linear(test.Must(s.Formula("-(D*lap(u)*-2 - dx(u)/4) + 3*u"))(t), 0.125)
	weights := map[domain.Vec]float64{}
	for _, g := range got.Groups {
		for _, o := range g.Offsets() {
			weights[o] = g.Weight
		}
	}
	const d = 1.4 * 0.125 / 0.25
	if want := (map[domain.Vec]float64{
		{1, 0, 0}: d + 0.125/4, {-1, 0, 0}: d - 0.125/4, {0, 1, 0}: d, {0, -1, 0}: d,
	}); !ok || len(weights) != 4 || math.Abs(got.Center-(1-4*d+0.375)) > 1e-15 {
		t.Errorf("got %+v, want %v", got, want)
	} else {
		for o, w := range want {
			if math.Abs(weights[o]-w) > 1e-15 {
				t.Errorf("weight %v at %v, want %v", weights[o], o, w)
			}
		}
	}
	for _, text := range []string{"lap(u) + 1", "u*lap(u)", "lap(u) + x", "lap(u*u)", "min(lap(u), 1)", "3*u"} {
		if got, ok := s.Linear(test.Must(s.Formula(text))(t), 0.1); ok {
			t.Errorf("%s is %+v", text, got)
		}
	}
}

var euler = Stability{Real: 2}

// The stable steps are those of explicit Euler, or of a method that is more stable.
func TestStableStep(t *testing.T) {
	for text, want := range map[string]float64{
		"a*lap(u) - u^2":             0.25 / (4 * 3),
		"dxx(u)/2 + dyy(u)":          1 / (0.5*2/0.25 + 2/0.25),
		"div(2, u) + 5*(1 - u)":      0.25 / 8,
		"-upwind(2, -1, u)":          1 / (2/0.5 + 1/0.5),
		"-(lap(u)*-1) - 6*dx(u)":     2.0 / 36,
		"upwind(1, 0, u) + lap(u)*2": 1 / (1/0.5 + 2*2*2/0.25),
		"u*(1 - u)":                  math.Inf(1),
	} {
		s := newSheet(t, 0.5, 0.5)
		got, _, err := s.StableStep(test.Must(s.Formula(text))(t), 0, euler)
		if err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v: %v", text, got, want, err)
		}
	}
	for text, want := range map[string]float64{ // of a method that is stable for steps of 2.5 and 1.5
		"lap(u)": 2.5 / (8 / 0.25), "dx(u) - dy(u)": 1.5 / 4, "upwind(2, -1, u)": 1 / (2/0.5 + 1/0.5),
		"lap(u) - 20*dx(u)": 1 / (8/2.5 + math.Hypot(8/2.5, 40/1.5) + 16/2.5),
	} {
		s := newSheet(t, 0.5, 0.5)
		got, _, err := s.StableStep(test.Must(s.Formula(text))(t), 0, Stability{2.5, 1.5})
		if err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v: %v", text, got, want, err)
		}
	}
	for text, want := range map[string]struct {
		damped  float64
		ignored string
	}{
		"a*lap(u) - 9*(u - 2) - x*u + sin(t)":      {1 / (48 + 4.5), "-(x * u)"},
		"lap(u) + 5*u - u^2/2 - 3*(v - exp(-u))/2": {1.0 / 16, "-0.5 * u^2, -1.5 * v, 1.5 * exp(-u)"},
		"-upwind(2, 0, u) - 6*u":                   {1 / (2/0.5 + 3), ""},
		"v - 6*u":                                  {2.0 / 6, "v"},
		"lap(u) - (1 + sin(x*y)^2 + 2*x + x*y)*u":  {1.0 / 16, "-((...) * u)"},
	} {
		s := newSheet(t, 0.5, 0.5)
		_, got, err := s.StableStep(test.Must(s.Formula(text))(t), 0, euler)
		slices.Sort(s.Ignored)
		if ignored := strings.Join(s.Ignored, ", "); err != nil || math.Abs(got-want.damped) > 1e-12 || ignored != want.ignored {
			t.Errorf("%s: %v, ignoring %q, want %+v: %v", text, got, ignored, want, err)
		}
	}
	for text, says := range map[string]string{
		"-lap(u)": "diffuses backward", "dx(u)": "write upwind(a, u)", "lap(v)": "time.dt must be a number",
		"div(v, u)": "time.dt must be a number", "lap(u^2)": "time.dt must be a number",
	} {
		s := newSheet(t, 0.5, 0.5)
		if _, _, err := s.StableStep(test.Must(s.Formula(text))(t), 0, euler); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// Eigenvalues are found for matrices on which the library fails, and a stable step has the same bits each time.
func TestEigenvalues(t *testing.T) {
	const a, b, e = 0x1.1126145e9ecd5p+03, 0x1.1126145e9ecd4p+03, 0x1.a62633145cp-56 // of -lap(v)/2 and lap(u)/2
	all := eigenvalues(mat.NewDense(4, 4, []float64{0, a, 0, e, -b, 0, e, 0, 0, -e, 0, a, -e, 0, -b, 0}))
	if len(all) != 4 {
		t.Fatalf("got %v", all)
	}
	for _, v := range all {
		if math.Abs(real(v)) > 1e-14*a || math.Abs(math.Abs(imag(v))-a) > 1e-14*a {
			t.Errorf("got %v", v)
		}
	}
	first := 0.0
	for i := range 100 {
		s := newSheet(t, 0.5, 0.5)
		rates := []int{test.Must(s.Formula("lap(u)/3 - lap(v)/2 - u"))(t), test.Must(s.Formula("lap(u)/2 + lap(v)/7"))(t)}
		got, _, err := s.StableSystem(rates, 4)
		test.Check(t, err)
		if i == 0 {
			first = got
		}
		if got != first {
			t.Fatalf("got %x, then %x", first, got)
		}
	}
}

// The stable steps of systems are those of the eigenvalues of their symbols. The largest Laplacian on the grid is -32.
func TestStableSystem(t *testing.T) {
	for _, c := range []struct {
		u, v  string
		order int
		want  float64
		says  string
	}{
		{"-lap(v)/2", "lap(u)/2", 4, math.Sqrt(8) / 16, ""}, // Schrodinger's equation
		{"-lap(v)/2 + u^2*v + x*v", "lap(u)/2 - v*u^2 - x*u", 4, math.Sqrt(8) / (16 + 3.5), ""},
		{"-lap(v)/2", "lap(u)/2", 3, math.Sqrt(3) / 16, ""},
		{"-lap(v)/2", "lap(u)/2", 2, 0, "use integrator ssprk3 or rk4"},
		{"v", "lap(u)", 4, math.Sqrt(8) / math.Sqrt(32), ""}, // a wave
		{"v", "-lap(u)", 4, 0, "unstable with any time step"},
		{"v", "lap(u)", 1, 0, "use integrator ssprk3 or rk4"},
		{"lap(u) + lap(v)/2", "lap(v) - v", 1, 2.0 / 33, ""},
		{"lap(u) + 0.9*lap(v)", "0.9*lap(u) + lap(v)", 2, 2 / (1.9 * 32), ""},
		{"dx(v)", "dx(u)", 4, math.Sqrt(8) / 2, ""},
		{"lap(u) + lap(v)/2", "lap(u)/2 + lap(v)", 0, 2 / math.Sqrt(1.5*32), ""}, // leapfrog
		{"lap(v)", "lap(u)", 0, 0, "unstable with any time step"},
		{"lap(u) - dx(v)", "lap(v) - dx(u)", 0, 0, "waves of the linear part must oscillate"},
		{"lap(v^2)", "lap(u)", 4, 0, "time.dt must be a number"},
		{"u", "t*lap(u)", 4, 0, "time.dt must be a number"},
		{"u^2", "u*v", 4, math.Inf(1), ""},
	} {
		s := newSheet(t, 0.5, 0.5)
		rates := []int{test.Must(s.Formula(c.u))(t), test.Must(s.Formula(c.v))(t)}
		got, failed, err := s.StableSystem(rates, c.order)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, %s by %d stages: %v, want %q", c.u, c.v, c.order, err, c.says)
		}
		if err == nil && (len(s.Ignored) > 0) != strings.Contains(c.u, "^2") {
			t.Errorf("%s, %s: ignored terms: %v", c.u, c.v, s.Ignored)
		}
		if err == nil && math.Abs(got-c.want) > 1e-5*c.want || failed != strings.Count(c.v, "t*") {
			t.Errorf("%s, %s by %d stages: %v, want %v; formula %d", c.u, c.v, c.order, got, c.want, failed)
		}
	}
}

// Formulas that share what they are made of take time by what there is, not by how often it is used.
func TestSharedFormulas(t *testing.T) {
	s := newSheet(t, 0.5, 0.5)
	test.Check(t, s.Let("l0", "lap(u)", false))
	for i := range 60 {
		test.Check(t, s.Let(fmt.Sprintf("l%d", i+1), fmt.Sprintf("l%d/2 + l%d/2", i, i), false))
	}
	formula := test.Must(s.Formula("l60"))(t)
	if got, _, err := s.StableStep(formula, 0, euler); err != nil || got != 0.25/4 {
		t.Errorf("the stable step is %v, want %v: %v", got, 0.25/4, err)
	}
	if _, ok := s.Linear(formula, 0.01); ok {
		t.Error("formulas of two fields are a stencil")
	}
	alone := NewSheet(2, Coordinates{Size: [3]int{8, 8, 1}, Spacing: [3]float64{0.5, 0.5, 1}})
	test.Check(t, alone.Field("u"))
	test.Check(t, alone.Let("l0", "lap(u)", false))
	for i := range 60 {
		test.Check(t, alone.Let(fmt.Sprintf("l%d", i+1), fmt.Sprintf("l%d/2 + l%d/2", i, i), false))
	}
	if _, ok := alone.Linear(test.Must(alone.Formula("l60"))(t), 0.01); !ok {
		t.Error("a Laplacian in parts is not a stencil")
	}
}

// The vectors are those of Random123, the library of the paper.
func TestPhilox(t *testing.T) {
	const all = math.MaxUint32
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{all, all, all, all}, [2]uint32{all, all}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(c.counter, c.key); got != c.want {
			t.Errorf("%x of key %x is %x, want %x", c.counter, c.key, got, c.want)
		}
	}
	e := test.Must(newSheet(t, 1, 1).Expression("noise(7)"))(t).NewEvaluator(Coordinates{Spacing: [3]float64{1, 1, 1}})
	row, sum := make([]float64, 1000), 0.0
	e.Row(row, 5, 3, 0)
	for i, v := range row {
		if sum += v; v < 0 || v >= 1 || v != e.At(5+i, 3, 0) {
			t.Fatalf("noise is %v at %d, and %v alone", v, i, e.At(5+i, 3, 0))
		}
	}
	if sum < 470 || sum > 530 || e.At(5, 4, 0) == row[0] {
		t.Errorf("the sum of 1000 is %v", sum)
	}
}

// Numbers of which one is -0 are two.
func TestNegativeZero(t *testing.T) {
	s := NewSheet(1, Coordinates{Size: [3]int{4, 1, 1}, Spacing: [3]float64{1, 1, 1}})
	for _, src := range []string{"0", "-0", "0"} {
		e := test.Must(s.Expression(src))(t)
		if got := e.NewEvaluator(Coordinates{Size: [3]int{4, 1, 1}}).At(1, 0, 0); math.Signbit(got) != (src == "-0") {
			t.Errorf("%s is %v", src, got)
		}
	}
}

// Parts of formulas have a text, which ends early where it would be long.
func TestTextOfParts(t *testing.T) {
	s := newSheet(t, 0.5, 0.5)
	test.Check(t, s.Let("l0", "sin(t)", false))
	test.Check(t, s.Let("noisy", "noise(7)*y", true))
	for i := range 60 {
		test.Check(t, s.Let(fmt.Sprintf("l%d", i+1), fmt.Sprintf("l%d/2 + l%d/2", i, i), false))
	}
	for text, want := range map[string]string{
		"u*(-(t + b)/3 - max(t^3, dt*(step + 1)))":       "(-(t + b) / 3) - max(t^2 * t, dt * (step + 1))",
		"u + (t < 1 and not b == 2 ? exp(t + 1) : pi*b)": "((t < 1) and not (b == 2)) ? exp(t + 1) : (3.141592653589793 * b)",
		"u + 1/at(cos(x)*noisy, 1, 0)":                   "1 / (cos(x) * (noise(7) * y))",
	} {
		f := s.Form(test.Must(s.Formula(text))(t))
		parts := f.Values
		for _, g := range f.Given {
			parts = append(parts, g.Expression)
		}
		if len(parts) != 1 || parts[0].Text() != want {
			t.Errorf("%s has %d parts, %s", text, len(parts), parts[0].Text())
		}
	}
	if got := s.Form(test.Must(s.Formula("u + l60"))(t)).Values[0].Text(); len(got) > 10000 || !strings.Contains(got, "...") {
		t.Errorf("a long text has %d bytes", len(got))
	}
}
