package boundary_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

const newKind = `solver: heat
grid: {size: [12, 9], spacing: 0.5}
boundary: %s
stencil: %s
initial: "sin(i) + j*j"
heat: {dt: 0.02}
exchange: {steps: %d}
`

// A kind that no other file mentions can be named in a config, and all schemes solve with it, with bitwise
// identical results. An unknown kind is an error.
func TestNewKind(t *testing.T) {
	symmetric := fmt.Sprintf(newKind, "{x: symmetric, y: {dirichlet: 1}}", "{points: 5}", 1)
	_, err := configs.Parse("new.yaml", []byte(symmetric), configs.Options{})
	test.Says(t, err, `boundary.x: must be periodic, {dirichlet: `)
	c := boundary.Condition{Kind: "symmetric"}
	if _, err := c.Distance(); err == nil {
		t.Error("a kind that is not known has a place")
	}
	t.Cleanup(boundary.Register())
	for name, text := range map[string]string{
		"symmetric": symmetric,
	} {
		t.Run(name, func(t *testing.T) {
			c := test.Must(configs.Parse("new.yaml", []byte(text), configs.Options{}))(t)
			testNewKind(t, c)
		})
	}
}

func testNewKind(t *testing.T, c *configs.Run) {
	want := newKindHeat(t, c)
	testdevices.EachKernel(t, 2, func(t *testing.T, set *testdevices.Set) {
		var first []float64
		for _, name := range scheme.All() {
			got, err := solved(t, c, set, name)
			if errors.Is(err, scheme.ErrUnsuited) && (name == scheme.Blocked || c.Exchange.Steps > 1) {
				continue // blocked supports other kinds in passes, and ranks exchanges after each step
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if first == nil {
				first = got
			}
			if !slices.Equal(got, first) {
				t.Errorf("%s differs from the first scheme", name)
			}
		}
		for i, v := range first {
			if math.Abs(v-want[i]) > 1e-12*max(1, math.Abs(want[i])) {
				t.Fatalf("point %d is %v, want %v", i, v, want[i])
			}
		}
	})
}

const newKindSteps = 7

// newKindHeat solves the config in the simplest way.
func newKindHeat(t *testing.T, c *configs.Run) []float64 {
	n := c.Grid.Size
	kind := stencil.Kind{Points: c.Stencil.Points, Shape: stencil.Shape(c.Stencil.Shape)}
	step := test.Must(stencil.HeatOf(kind, c.Spacing(), 1, c.TimeStep()))(t)
	u := make([]float64, n[0]*n[1])
	for i := range u {
		u[i] = math.Sin(float64(i%n[0])) + float64(i/n[0]*(i/n[0]))
	}
	for range newKindSteps {
		old := slices.Clone(u)
		var at func(p domain.Vec) float64
		at = func(p domain.Vec) float64 {
			for a := range n {
				layer, high := max(-1-p[a], p[a]-n[a]), 0
				if layer < 0 {
					continue
				}
				if p[a] >= n[a] {
					high = 1
				}
				inward := func(layer int) float64 {
					p[a] = layer + high*(n[a]-1-2*layer)
					return at(p)
				}
				switch c.Boundary.Face(a, high).Kind {
				case "symmetric":
					return inward(layer + 1)
				case solvers.Periodic:
					return inward(n[a] - 1 - layer)
				default: // dirichlet
					return 1
				}
			}
			return old[p[1]*n[0]+p[0]]
		}
		for i := range u {
			here := domain.Vec{i % n[0], i / n[0]}
			u[i] = step.Center * at(here)
			for _, g := range step.Groups {
				for _, o := range g.Offsets() {
					u[i] += g.Weight * at(here.Add(o))
				}
			}
		}
	}
	return u
}

// solved runs some steps of the config with a scheme.
func solved(t *testing.T, c *configs.Run, set *testdevices.Set, name scheme.Scheme) ([]float64, error) {
	t.Helper()
	grid, err1 := domain.NewGrid(c.Grid.Size, c.Periodic())
	cut, err2 := domain.Decompose(grid, domain.Vec{2, 1, 1})
	initial, err3 := stencil.Parse(c.Initial)
	kind := stencil.Kind{Points: c.Stencil.Points, Shape: stencil.Shape(c.Stencil.Shape)}
	heat, err4 := stencil.HeatOf(kind, c.Spacing(), 1, c.TimeStep())
	one, err5 := stencil.Parse("1")
	test.Check(t, errors.Join(err1, err2, err3, err4, err5))
	place := test.Must(halo.Place(cut, set.Devices))(t)
	p := &solvers.Problem{
		Grid: grid, Spacing: c.Spacing(), Element: domain.Float64, TimeStep: c.TimeStep(), Stencil: heat, Initial: initial,
		Group: int(c.Exchange.Steps),
	}
	for i, face := range domain.Faces(2) {
		p.Boundary[i].Kind = boundary.Kind(c.Boundary.Face(face.Axis(), i%2).Kind)
		if p.Boundary[i].Kind == boundary.Dirichlet {
			p.Boundary[i].Value = one
		}
	}
	path := p2p.Staged
	if paths := name.Needs().Paths; len(paths) > 0 {
		path = paths[0]
	}
	plan := test.Must(p.NewPlan(place, set.Links, path))(t)
	s, err := solvers.New(t.Context(), p, plan, set.Compiler)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	o := scheme.Options{Scheme: name, Steps: newKindSteps}
	if len(name.Needs().Orders) > 0 {
		o.Order = name.Needs().Orders[0]
	}
	if _, err := s.Run(t.Context(), o); err != nil {
		return nil, err
	}
	values := make([]float64, grid.Points())
	return values, s.Read(values, grid.Box())
}
