package boundary_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

const newKind = `solver: heat
grid: {size: [12, 9], spacing: 0.5}
boundary: {x: symmetric, y: {dirichlet: 1}}
initial: "sin(i) + j*j"
heat: {dt: 0.05}
`

// A kind that no other file knows is one that a config can name, and that all schemes solve with, bit by bit alike. A
// kind that is not known at all is an error.
func TestNewKind(t *testing.T) {
	_, err := configs.Parse("new.yaml", []byte(newKind), configs.Options{})
	if err == nil || !strings.Contains(err.Error(), `boundary.x: must be periodic, {dirichlet: `) {
		t.Errorf("got %v", err)
	}
	if _, err := boundary.Kind("symmetric").Distance(); err == nil {
		t.Error("a kind that is not known has a place")
	}
	t.Cleanup(boundary.RegisterSymmetric())
	c, err := configs.Parse("new.yaml", []byte(newKind), configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := symmetricHeat(c)
	testdevices.EachKernel(t, 2, func(t *testing.T, set *testdevices.Set) {
		var first []float64
		for _, name := range scheme.All() {
			got, err := solved(t, c, set, name)
			if name == scheme.Blocked && errors.Is(err, scheme.ErrUnsuited) {
				continue // its passes have kinds of their own
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
			if math.Abs(v-want[i]) > 1e-12*math.Abs(want[i]) {
				t.Fatalf("point %d is %v, want %v", i, v, want[i])
			}
		}
	})
}

const newKindSteps = 7

// symmetricHeat solves the config in the plainest way.
func symmetricHeat(c *configs.Run) []float64 {
	nx, ny := c.Grid.Size[0], c.Grid.Size[1]
	u := make([]float64, nx*ny)
	for i := range u {
		u[i] = math.Sin(float64(i%nx)) + float64(i/nx*(i/nx))
	}
	for range newKindSteps {
		old := slices.Clone(u)
		at := func(x, y int) float64 {
			if y < 0 || y >= ny {
				return 1
			}
			x = max(x, -x)
			x = min(x, 2*(nx-1)-x)
			return old[y*nx+x]
		}
		for i := range u {
			x, y := i%nx, i/nx
			sum := at(x-1, y) + at(x+1, y) + at(x, y-1) + at(x, y+1) - 4*at(x, y)
			u[i] += c.TimeStep() / 0.25 * sum
		}
	}
	return u
}

// solved runs some steps of the config under a scheme.
func solved(t *testing.T, c *configs.Run, set *testdevices.Set, name scheme.Scheme) ([]float64, error) {
	t.Helper()
	grid, err1 := domain.NewGrid(c.Grid.Size, [3]bool{})
	cut, err2 := domain.Decompose(grid, domain.Vec{2, 1, 1})
	initial, err3 := stencil.Parse(c.Initial)
	heat, err4 := stencil.HeatOf(stencil.Kind{Points: 5, Shape: stencil.StarShape}, c.Spacing(), 1, c.TimeStep())
	one, err5 := stencil.Parse("1")
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	place, err := halo.Place(cut, set.Devices)
	if err != nil {
		t.Fatal(err)
	}
	p := &solvers.Problem{
		Grid: grid, Spacing: c.Spacing(), Real: kernels.Float64, TimeStep: c.TimeStep(), Stencil: heat, Initial: initial,
	}
	for i, face := range domain.Faces(2) {
		p.Walls[i].Kind = boundary.Kind(c.Boundary.Face(face.Axis(), i%2).Kind)
		if p.Walls[i].Kind.HasValues() {
			p.Walls[i].Value = one
		}
	}
	path := p2p.Staged
	if paths := name.Needs().Paths; len(paths) > 0 {
		path = paths[0]
	}
	plan, err := p.NewPlan(place, set.Links, path)
	if err != nil {
		t.Fatal(err)
	}
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
