package solvers

import (
	"math"
	"strings"
	"testing"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// An explanation counts reads, bytes and operations by hand, and has the texts with which schemes reject a run.
func TestExplain(t *testing.T) {
	moving := heatWithSource("float64")
	heat := &Equation{Size: []int{7, 6}, Element: "float32", Fields: []EquationFor{{Name: "u", Rate: "0.5*lap(u)", Initial: "x",
		Boundary: conditionsOf("dnpp", "y")}}}
	tables := &Equation{Size: []int{7, 6, 5}, Element: "float64", TimeStep: 1e-3, Fields: []EquationFor{{Name: "u", Initial: "x", Boundary: conditionsOf("dnppnn", "y"),
		Rate: "lap(u) + (1 + y)*u + (1 + z)*u + y*z*u + x*y*z*u"}}}
	row := &Equation{Size: []int{7}, Element: "float64", TimeStep: 1e-3, Fields: []EquationFor{{Name: "u", Initial: "x", Boundary: conditionsOf("pp", ""),
		Rate: "sin(x)*lap(u)"}}}
	schrodinger := &Equation{Size: []int{7, 6}, Element: "float64", Integrator: RK4, Fields: []EquationFor{
		{Name: "u", Rate: "-lap(v)", Initial: "x", Boundary: conditionsOf("pppp", "")},
		{Name: "v", Rate: "lap(u) + u^2", Initial: "x", Boundary: conditionsOf("pppp", "")}}}
	for _, c := range []struct {
		name     string
		equation *Equation
		bytes    int
		multiply int // products per point
		reads    string
		refused  map[scheme.Scheme]string // "": no scheme
		step     string                   // how the time step was chosen
	}{
		{"coupled", schrodinger, 32, 9, "u 5, v 5", map[scheme.Scheme]string{scheme.Blocked: "blocked runs steps of one stage", scheme.Ranks: "ranks runs steps of one stage"}, ", ignoring u^2"},
		{"stencil", heat, 8, 3, "u 5", nil, "0.0097561, stable up to 0.0108401"},
		{"tables", tables, 24, 9, "u 7, given0 1 y, given1 1 z, given2 1 yz, given3 1 xyz", nil, "0.001, stable up to 0.00426439, ignoring ((x * y) * z) * u, (y * z) * u"},
		{"row", row, 24, 4, "u 3, given0 1 x", nil, "0.001, stable up to "},
		{"system", grayScott(), 32, 12, "u 5, v 5", nil, "0.25, stable up to 0.390625, ignoring -(u * v^2), u * v^2"},
		{"source", moving, 24, 19, "u 7, given0 7 xyz, given1 1 x, given2 1 yz, given3 1 xz", map[scheme.Scheme]string{
			scheme.Graph: "graph runs steps without the host", scheme.Blocked: "blocked needs a linear stencil",
			scheme.Ranks: "ranks runs steps without", scheme.Resident: "resident runs steps without"}, "0.001, stable up to "},
	} {
		t.Run(c.name, func(t *testing.T) {
			session := must(halo.Open(t.Context(), halo.Devices{Backend: streams.Host, Count: 2}))(t)
			defer session.Close()
			setup := must(Open(t.Context(), session, must(c.equation.Problem())(t), OpenOptions{}))(t)
			defer setup.Close()
			e := must(setup.Explain(t.Context()))(t)
			stage, reads, sum := e.Stages[0], []string{}, 0.0
			for _, r := range stage.Reads {
				reads = append(reads, r.Variable+" "+string(rune('0'+len(r.Points))))
				for _, p := range e.Parts {
					if p.Name == r.Variable {
						reads[len(reads)-1] += " " + p.Along
					}
				}
			}
			for _, w := range e.Weights {
				sum += w.Weight
			}
			if got := strings.Join(reads, ", "); stage.Bytes != c.bytes || got != c.reads || stage.Operations["*"] != c.multiply ||
				(c.name == "stencil") != (len(e.Weights) == 5 && math.Abs(sum-1) < 1e-15) || !strings.Contains(stage.CUDA, "p.set(") {
				t.Errorf("got %d bytes, reads %s, %+v, weights %v", stage.Bytes, got, stage.Operations, e.Weights)
			}
			if len(e.Exchanged) == 0 || len(e.Schemes) != len(scheme.All()) {
				t.Errorf("got exchanges %v and schemes %v", e.Exchanged, e.Schemes)
			}
			if !strings.Contains(e.TimeStep, c.step) {
				t.Errorf("got the time step %q, want %q", e.TimeStep, c.step)
			}
			for _, s := range e.Schemes {
				if want := c.refused[s.Scheme]; (want == "") != (s.Refusal == "") || !strings.HasPrefix(s.Refusal, want) {
					t.Errorf("%s: %q, want %q", s.Scheme, s.Refusal, want)
				}
			}
		})
	}
}

// On GPUs an explanation compiles nothing, and says what dry runs with compiled kernels say.
func TestExplainWithoutCompiling(t *testing.T) {
	set := testdevices.CPUBesideThreads(t, 2)
	session := &halo.Session{Backend: streams.CUDA, Devices: set.Devices, Links: set.Links, Compiler: set.Compiler}
	setup := must(Open(t.Context(), session, must(heatWithSource("float64").Problem())(t), OpenOptions{Devices: 2}))(t)
	defer setup.Close()
	before, _ := set.Compiler.Compiled()
	e := must(setup.Explain(t.Context()))(t)
	if after, _ := set.Compiler.Compiled(); after != before {
		t.Errorf("%d programs were compiled", after-before)
	}
	for _, s := range e.Schemes {
		err := setup.suits(t.Context(), s.Scheme, set.Compiler)
		if (err == nil) != (s.Refusal == "") || err != nil && !strings.HasSuffix(err.Error(), s.Refusal) {
			t.Errorf("%s: %q, and with compiled kernels %v", s.Scheme, s.Refusal, err)
		}
	}
}
