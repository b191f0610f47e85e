package solvers

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// conditionsOf returns conditions of the kinds that letters name: periodic, neumann or dirichlet with a value.
func conditionsOf(kinds, value string) (all [6]ConditionText) {
	for i, k := range kinds {
		all[i].Kind = map[rune]BoundaryKind{'p': Periodic, 'n': Neumann, 'd': Dirichlet}[k]
		if k == 'd' {
			all[i].Value = value
		}
	}
	return all
}

func grayScott() *Equation {
	return &Equation{
		Size: []int{18, 13}, End: []float64{9, 6.5}, Element: domain.Float64, TimeStep: 0.25,
		Parameters: map[string]float64{"Du": 0.16, "Dv": 0.08, "feed": 0.035, "kill": 0.065},
		Constants:  []Definition{{"inside", "abs(x-4) < 2 && abs(y-3) < 2 ? 1 : 0"}},
		Let:        []Definition{{"made", "u*v^2"}},
		Fields: []EquationFor{
			{Name: "u", Rate: "Du*lap(u) - made + feed*(1 - u)", Initial: "1 - 0.5*inside", Boundary: conditionsOf("pppp", "")},
			{Name: "v", Rate: "Dv*lap(v) + made - (feed + kill)*v", Initial: "0.25*inside + 0.01*noise(7)",
				Boundary: conditionsOf("pppp", "")},
		},
	}
}

func heatWithSource(element domain.Element) *Equation {
	return &Equation{
		Size: []int{9, 8, 10}, Element: element, Constants: []Definition{{"kappa", "1 + x*y + z"}}, TimeStep: 1e-3, Force: true,
		Fields: []EquationFor{{Name: "u", Rate: "div(kappa, u) + sin(3*x)*u + (cos(y) - z)*u + (x - z)*u", Initial: "x*y - z",
			Boundary: conditionsOf("dnppnd", "x + z + 2*t")}},
	}
}

// handWritten steps an equation by loops: rate returns the new values at a point, where at reads a field at an offset.
func handWritten(t *testing.T, p *Problem, steps int, next func(at func(field, x, y, z int) float64, q [3]float64) []float64) (all []float64) {
	n := p.Grid.Size
	fields := len(p.Fields())
	index := func(q domain.Vec) int { return q[0] + n[0]*(q[1]+n[1]*q[2]) }
	values := make([][]float64, fields)
	each := func(f func(q domain.Vec)) {
		for z := range n[2] {
			for y := range n[1] {
				for x := range n[0] {
					f(domain.Vec{x, y, z})
				}
			}
		}
	}
	for i := range values {
		values[i] = make([]float64, p.Grid.Points())
		e := p.of(i).Initial.NewEvaluator(p.coordinates(0))
		each(func(q domain.Vec) { values[i][index(q)] = e.At(q[0], q[1], q[2]) })
	}
	for step := range steps {
		after := make([][]float64, fields)
		for i := range after {
			after[i] = make([]float64, p.Grid.Points())
		}
		each(func(q domain.Vec) {
			at := func(field, x, y, z int) float64 {
				to := q.Add(domain.Vec{x, y, z})
				for a := range p.Grid.Dims {
					walls := p.of(field).Boundary[2*a:]
					switch beyond := to[a] >= n[a]; {
					case to[a] >= 0 && !beyond:
					case walls[0].Kind == Periodic:
						to[a] = (to[a] + n[a]) % n[a]
					case beyond && walls[1].Kind == Neumann:
						to[a] = n[a] - 1
					case !beyond && walls[0].Kind == Neumann:
						to[a] = 0
					default:
						wall := walls[0]
						if beyond {
							wall = walls[1]
						}
						return wall.Value.NewEvaluator(p.coordinates(int64(step))).At(to[0], to[1], to[2])
					}
				}
				return values[field][index(to)]
			}
			var place [3]float64
			for a := range p.Spacing {
				place[a] = p.Coordinate(a, q[a])
			}
			for i, v := range next(at, place) {
				after[i][index(q)] = v
			}
		})
		values = after
	}
	for _, v := range values {
		all = append(all, v...)
	}
	return all
}

// Every scheme, with one step and with several between exchanges, gives the bits of loops written by hand; those that
// cannot take an equation say so.
func TestEquations(t *testing.T) {
	gray, heat := must(grayScott().Problem())(t), must(heatWithSource(domain.Float64).Problem())(t)
	lap := func(at func(field, x, y, z int) float64, f int) float64 {
		return -16*at(f, 0, 0, 0) + 4*(at(f, 1, 0, 0)+at(f, 0, 1, 0)+at(f, -1, 0, 0)+at(f, 0, -1, 0))
	}
	for _, c := range []struct {
		name    string
		problem *Problem
		cut     domain.Vec
		moving  bool
		want    []float64
	}{
		{"gray-scott", gray, domain.Vec{2, 2, 1}, false, handWritten(t, gray, 7,
			func(at func(field, x, y, z int) float64, _ [3]float64) []float64 {
				u, v := at(0, 0, 0, 0), at(1, 0, 0, 0)
				made := u * float64(v*v)
				du := float64(0.16*lap(at, 0)) - made + float64(0.035*(1-u))
				dv := float64(0.08*lap(at, 1)) + made - float64((0.035+0.065)*v)
				return []float64{u + float64(0.25*du), v + float64(0.25*dv)}
			})},
		{"heat with a source", heat, domain.Vec{1, 2, 2}, true, handWritten(t, heat, 7,
			func(at func(field, x, y, z int) float64, q [3]float64) []float64 {
				u, rate := at(0, 0, 0, 0), 0.0
				for a, h := range heat.Spacing {
					k := func(n int) float64 { // of a point, which is the next one on a periodic axis
						o := q
						o[a] += float64(n) * h
						if a == 1 { // which is periodic
							o[a] = math.Mod(o[a]+1, 1)
						}
						return 1 + float64(o[0]*o[1]) + o[2]
					}
					var d [3]int
					d[a] = 1
					up, down := at(0, d[0], d[1], d[2])-u, u-at(0, -d[0], -d[1], -d[2])
					flux := float64(0.5*(k(0)+k(1))*up) - float64(0.5*(k(-1)+k(0))*down)
					rate += float64(1 / (h * h) * flux)
				}
				rate += float64(math.Sin(3*q[0]) * u)
				rate += float64((math.Cos(q[1])-q[2])*u) + float64((q[0]-q[2])*u)
				return []float64{u + float64(1e-3*rate)}
			})},
	} {
		set, first := testdevices.Host(t, 4), []float64(nil)
		for _, name := range scheme.All() {
			for _, group := range []int{1, 2} {
				h := how{scheme: name, order: scheme.LeftRight, path: pathOf(name), parts: c.cut}
				p := inGroupsOf(c.problem, group)
				if group > 1 && !groups(name) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/group=%d", c.name, name, group), func(t *testing.T) {
					s := prepare(t, set, p, h)
					_, err := s.Run(t.Context(), h.options(scheme.Options{Steps: 7}))
					if c.moving && (name.Needs().Steady || name == scheme.Blocked) {
						wants(t, err, scheme.ErrUnsuited, "")
						return
					}
					succeeds(t, err)
					got := make([]float64, len(c.want))
					for i := range p.Fields() {
						n := int(p.Grid.Points())
						succeeds(t, s.Gather(t.Context(), i, got[i*n:(i+1)*n], p.Grid.Box()))
					}
					for i, want := range c.want {
						if math.Abs(got[i]-want) > 1e-13 { // coordinates are rounded otherwise
							t.Fatalf("value %d is %v, want %v", i, got[i], want)
						}
					}
					if first == nil {
						first = got
					}
					if !slices.Equal(got, first) {
						t.Error("other schemes give other bits")
					}
				})
			}
		}
	}
}

// Kernels of GPUs that the CPU emulates give the bits of CPU devices.
func TestEquationsOnCPU(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	along := heatWithSource(domain.Float64) // with coefficients that are constant along some axes
	along.Fields[0].Boundary = conditionsOf("dnppnd", "x + z")
	for _, c := range []struct {
		name     string
		equation *Equation
		schemes  []scheme.Scheme
	}{
		{"gray-scott", grayScott(), []scheme.Scheme{scheme.TwoStream, scheme.Fused, scheme.Graph, scheme.Ranks, scheme.Resident}},
		{"heat with a source", along, []scheme.Scheme{scheme.TwoStream, scheme.Fused, scheme.Ranks, scheme.Resident}},
	} {
		p := must(c.equation.Problem())(t)
		first := how{scheme: scheme.Baseline, path: p2p.Staged, parts: domain.Vec{1, 1, 1}}
		want, _ := solve(t, testdevices.Host(t, 1), p, first, scheme.Options{Steps: 6})
		for _, name := range c.schemes {
			t.Run(c.name+"/"+string(name), func(t *testing.T) {
				h := how{scheme: name, order: scheme.LeftRight, path: pathOf(name), parts: domain.Vec{1, 2, 1}}
				got, _ := solve(t, testdevices.CPU(t, 2), p, h, scheme.Options{Steps: 6})
				compare(t, p.Grid, read(t, got), read(t, want))
			})
		}
	}
}

// A multiple of the Laplacian is the problem of the heat equation.
func TestEquationOfHeat(t *testing.T) {
	e := Equation{Size: []int{7, 6}, Element: domain.Float64, TimeStep: 1e-4, Parameters: map[string]float64{"D": 0.7},
		Fields: []EquationFor{{Name: "heat", Rate: "D*lap(heat)", Initial: "x", Boundary: conditionsOf("dnpp", "y")}}}
	p := must(e.Problem())(t)
	want := must(stencil.HeatOf(stencil.Kinds(2)[0], p.Spacing, 0.7, 1e-4))(t)
	if _, ok := p.Stencil.AsStar(); !ok || fmt.Sprint(p.Stencil) != fmt.Sprint(want) || p.Field().Name != "heat" {
		t.Errorf("got %+v, want %+v", p.Stencil, want)
	}
	e.TimeStep, e.Until = 0, 0.1
	p = must(e.Problem())(t)
	limit := stencil.Kinds(2)[0].StableStep(p.Spacing, 0.7)
	if n := float64(p.Steps(0.1)); p.TimeStep > safety*limit || p.TimeStep < 0.8*limit || math.Abs(n*p.TimeStep-0.1) > 1e-15 {
		t.Errorf("%v steps of %v, stable %v", n, p.TimeStep, limit)
	}
}

// The D of flux and Robin faces is that of the equation, as if the face stated it, or an error says that there is none.
func TestDiffusivityOfWalls(t *testing.T) {
	for rate, d := range map[string]string{
		"lap(u)": "1", "0.01*lap(u) - u^2": "0.01", "x*u - div(-q, u)*2 + v": "2*q", "lap(u)*q/4 - upwind(1, x, u)": "q/4", "2*dxx(u) + q*dyy(u)": "2",
		"0.3*lap(u) - u*dx(u) - dx(v*u)": "0.3", "-(div(q, u, harmonic) - 1)": "-q", "u*lap(u)": "", "lap(u) + 0.1*dxx(u)": "", "div(1 + u, u)": "",
		"lap(u) + lap(v)": "", "at(u, 1, 0) - u": "", "lap(u) - lap(lap(u))": "", "noise(1)*lap(u)": "", "dyy(u)": "", "dx(dx(u))": "", "u +": "",
	} {
		walls := func(d string) (*Problem, error) {
			e := &Equation{Size: []int{7, 6}, Element: domain.Float64, TimeStep: 1e-4, Force: true, Constants: []Definition{{"q", "1 + x*y"}}, Fields: []EquationFor{
				{Name: "u", Rate: rate, Initial: "x", Boundary: conditionsOf("nnnn", "")}, {Name: "v", Rate: "lap(v)", Initial: "1", Boundary: conditionsOf("nnnn", "")}}}
			e.Fields[0].Boundary[0] = ConditionText{Kind: boundary.Flux, Value: "sin(y)", Diffusivity: d}
			e.Fields[0].Boundary[1] = ConditionText{Kind: boundary.Robin, Value: "y", Transfer: "cos(y)", Diffusivity: d}
			return e.Problem()
		}
		p, err := walls("")
		if says := "no single D*lap(u)"; d == "" {
			if rate == "u +" {
				says = "ends too early"
			}
			if err == nil || !strings.Contains(err.Error(), says) || strings.Count(err.Error(), "\n") > 1 {
				t.Errorf("%s: %v", rate, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", rate, err)
			continue
		}
		got, want := p.of(0).Boundary, must(walls(d))(t).of(0).Boundary
		for _, e := range [][2]*stencil.Expression{{got[0].Value, want[0].Value}, {got[1].Value, want[1].Value}, {got[1].Transfer, want[1].Transfer}} {
			if g, w := e[0].NewEvaluator(p.coordinates(0)).At(-1, 3, 0), e[1].NewEvaluator(p.coordinates(0)).At(-1, 3, 0); math.Abs(g-w) > 1e-15 {
				t.Errorf("%s: %s is %v, want that of %s, %v", rate, e[0], g, e[1], w)
			}
		}
		if got[0].Kind != want[0].Kind {
			t.Errorf("%s: %s, want %s", rate, got[0].Kind, want[0].Kind)
		}
	}
}

// Each error names the part of the equation.
func TestEquationsThatAreWrong(t *testing.T) {
	for says, change := range map[string]func(e *Equation){
		"equations.u: column 8: unknown name \"q\"":          func(e *Equation) { e.Fields[0].Rate = "lap(u)+q" },
		"fields.v.initial: column 1: unknown name \"q\"":     func(e *Equation) { e.Fields[1].Initial = "q" },
		"fields.u.initial: column 1: made depends on fields": func(e *Equation) { e.Fields[0].Initial = "made" },
		"parameters.lap: must not be named lap":              func(e *Equation) { e.Parameters["lap"] = 1 },
		"constants.inside: column 1: unknown name":           func(e *Equation) { e.Constants[0].Formula = "u" },
		"let.made: must not be named made":                   func(e *Equation) { e.Let = append(e.Let, e.Let[0]) },
		"time.dt: must be a number: formulas of stages use dt": func(e *Equation) {
			e.TimeStep, e.Fields[0].Rate, e.Fields[1].Rate = 0, "", ""
			e.Stages = [][]Definition{{{"u", "lap(u)"}}, {{"v", "v + dt*u"}}}
		},
		"fields: must have at least one":                     func(e *Equation) { e.Fields = nil },
		"fields.v.boundary: must have the periodic faces":    func(e *Equation) { e.Fields[1].Boundary = conditionsOf("nnpp", "") },
		"time.dt: must be at most 0.390625":                  func(e *Equation) { e.TimeStep = 0.4 },
		"equations: must use an operator":                    func(e *Equation) { e.Fields[0].Rate, e.Fields[1].Rate = "1 - u", "-v" },
		"grid.end: end: must have 2 entries, one per axis":   func(e *Equation) { e.End = []float64{9} },
		"grid.end: must be beyond the start":                 func(e *Equation) { e.Start = []float64{9, 0} },
		"equations.v: has differences for which no stable":   func(e *Equation) { e.TimeStep, e.Fields[1].Rate = 0, "lap(u^2)" },
		"equations.v: is unstable with centered differences": func(e *Equation) { e.TimeStep, e.Fields[1].Rate = 0, "dx(v)" },
		"equations.v: is unstable with any time step":        func(e *Equation) { e.TimeStep, e.Fields[1].Rate = 0, "-lap(v)" },
		"parameters.q: must be set: Equation.Variable":       func(e *Equation) { e.Variable = []string{"q"} },
		"parameters.Du: must be finite":                      func(e *Equation) { e.Variable, e.Parameters["Du"] = []string{"Du"}, math.NaN() },
		"constants.inside: must not depend on t, which":      func(e *Equation) { e.Constants[0].Formula = "sin(t)" },
		"fields.u.initial: must not depend on feed, which": func(e *Equation) {
			e.Variable, e.Fields[0].Initial = []string{"feed"}, "feed"
		},
		"equations: must have at most 128 different expressions": func(e *Equation) {
			e.Fields[0].Rate = "0.1*lap(u)"
			for i := range 129 {
				e.Fields[0].Rate += fmt.Sprintf("+(t<%d?u:1)", i)
			}
		},
		"equations.u: column 3: the result must be a number": func(e *Equation) { e.Fields[0].Rate = "u < v" },
	} {
		e := grayScott()
		change(e)
		_, err := e.Problem()
		if part, ok := errors.AsType[*PartError](err); !ok || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v (%v), want %q", err, part, says)
		}
	}
}

// Parts of formulas that are not finite are found before a run.
func TestPartsThatAreNotFinite(t *testing.T) {
	e := grayScott()
	e.Fields[0].Rate += " + u*log(x - 1)"
	err := must(e.Problem())(t).CheckValues(t.Context())
	wants(t, err, ErrNotFinite, "a part of the formulas that depends on coordinates alone, is NaN at point [0 0 0]")
}

// Rules use the value one step before, under every scheme, with several steps between exchanges too.
func TestRulesWithPrevious(t *testing.T) {
	e := &Equation{Size: []int{12, 9}, Element: domain.Float64, Fields: []EquationFor{
		{Name: "u", Update: "2*u - previous(u) + 0.25*(at(u, 1, 0) + at(u, -1, 0) - 2*u) + at(previous(v), 0, 1)",
			Initial: "x*y", Previous: "y - x", Boundary: conditionsOf("ppnd", "1")},
		{Name: "v", Update: "0.5*u", Initial: "y", Boundary: conditionsOf("ppnd", "x")},
	}}
	p := must(e.Problem())(t)
	n, points := p.Grid.Size, int(p.Grid.Points())
	x, y := func(i int) float64 { return float64(i) * p.Spacing[0] }, func(j int) float64 { return p.Coordinate(1, j) }
	var u, v, oldU, oldV [12][9]float64
	for i := range n[0] {
		for j := range n[1] {
			u[i][j], oldU[i][j], v[i][j], oldV[i][j] = x(i)*y(j), y(j)-x(i), y(j), y(j)
		}
	}
	for range 7 {
		nextU, nextV := u, v
		for i := range n[0] {
			for j := range n[1] {
				up := x(i)
				if j+1 < n[1] {
					up = oldV[i][j+1]
				}
				nextU[i][j] = float64(2*u[i][j]) - oldU[i][j] +
					float64(0.25*(u[(i+1)%n[0]][j]+u[(i+n[0]-1)%n[0]][j]-float64(2*u[i][j]))) + up
				nextV[i][j] = 0.5 * u[i][j]
			}
		}
		u, v, oldU, oldV = nextU, nextV, u, v
	}
	for _, name := range scheme.All() {
		for _, group := range []int{1, 2} {
			if group > 1 && !groups(name) {
				continue
			}
			t.Run(fmt.Sprintf("%s/group=%d", name, group), func(t *testing.T) {
				h := how{scheme: name, order: scheme.LeftRight, path: pathOf(name), parts: domain.Vec{2, 2, 1}}
				s := prepare(t, testdevices.Host(t, 4), inGroupsOf(p, group), h)
				_, err := s.Run(t.Context(), h.options(scheme.Options{Steps: 7}))
				if name == scheme.Blocked || group > 1 && (name == scheme.Fused || name == scheme.Resident) {
					wants(t, err, scheme.ErrUnsuited, "level") // which take variables of two levels
					return
				}
				succeeds(t, err)
				got := make([]float64, 2*points)
				succeeds(t, errors.Join(s.Gather(t.Context(), 0, got[:points], p.Grid.Box()),
					s.Gather(t.Context(), 1, got[points:], p.Grid.Box())))
				for k := range points {
					i, j := k%n[0], k/n[0]
					if got[k] != u[i][j] || got[points+k] != v[i][j] {
						t.Fatalf("at (%d, %d): %v and %v, want %v and %v", i, j, got[k], got[points+k], u[i][j], v[i][j])
					}
				}
			})
		}
	}
	e.Fields[0].Update = "u + at(u, 1, 0)"
	if _, err := e.Problem(); err == nil || !strings.Contains(err.Error(), "no rule uses previous(u)") {
		t.Errorf("got %v", err)
	}
}
