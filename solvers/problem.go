// Package solvers solves Laplace and heat problems on a grid that is cut over several
// devices, step after step, until it has done its iterations, the change is small
// enough, or it is told to stop.
//
// A Problem says what is solved. New makes of it a step of one stage, which runs under
// any scheme of package scheme. Whatever the scheme, the path of the messages and the
// number of devices, the fields are the same to the last bit.
package solvers

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// Problem is a discretised equation: the field at step 0 and the stencil that
// leads from one step to the next.
type Problem struct {
	Grid     domain.Grid
	Spacing  []float64 // an axis each; of a grid of one dimension, which is one row of points, that of x
	Stencil  stencil.Stencil
	Real     kernels.Real
	Walls    [6]Wall             // x-, x+, y-, y+, z-, z+; those beyond Grid.Dims are not used
	Initial  *stencil.Expression // at t = 0
	TimeStep float64             // length of a step; 0 where there is no time
	Sums     sums.Mode           // how the sums of norms are taken
	Group    int                 // steps between two exchanges, 0 for 1, see scheme.Step
}

var errNoPlan = errors.New("solvers: the problem or its plan is nil")

// NewPlan plans the exchanges of the problem's step over a path. The errors are those of halo.NewPlan.
func (p *Problem) NewPlan(place *halo.Placement, links *p2p.Links, path p2p.Path) (*scheme.Plan, error) {
	plan, err := halo.NewPlan(place, links, path, p.Field())
	if err != nil {
		return nil, err
	}
	return &scheme.Plan{Stages: []*halo.Plan{plan}}, nil
}

// fits returns an error unless the plan is one of the problem's step.
func (p *Problem) fits(plan *scheme.Plan) error {
	if p == nil {
		return errNoPlan
	}
	if specs := plan.Stages[0].Specs; len(specs) != 1 || !specs[0].Covers(p.Field()) {
		return errors.New("solvers: the plan is for another field than the problem's")
	}
	return nil
}

// check returns an error if the parts of the problem, and the placement, do not fit
// together.
func (p *Problem) check(place *halo.Placement) error {
	if p == nil || place == nil || place.Decomposition == nil {
		return errors.New("solvers: the problem or its placement is nil")
	}
	if place.Grid != p.Grid {
		return fmt.Errorf("solvers: the placement is of another grid than the problem's")
	}
	return p.checkParts()
}

// MaxGroup is how many steps may be made between two exchanges, so that steps of two levels have no more phases than
// package scheme makes ready.
const MaxGroup = 16

// checkParts returns an error if the parts of the problem do not fit together.
func (p *Problem) checkParts() error {
	dims := p.Grid.Dims
	if p.Group < 0 || p.Group > MaxGroup {
		return fmt.Errorf("solvers: %d steps between two exchanges; must be between 1 and %d", p.Group, MaxGroup)
	}
	row := len(p.Spacing) == 1 && dims == 2 && p.Grid.Size[1] == 1
	if len(p.Spacing) != dims && !row || p.Stencil.Dims != dims {
		return fmt.Errorf("solvers: a grid of %d dimensions with %d spacings and a stencil of %d",
			dims, len(p.Spacing), p.Stencil.Dims)
	}
	if p.Real.Size() == 0 || p.Initial == nil {
		return fmt.Errorf("solvers: a problem of type %q, initial field %v", p.Real, p.Initial)
	}
	for i, face := range domain.Faces(dims) {
		w := p.Walls[i]
		if (w.Kind == Periodic) != p.Grid.Periodic[face.Axis()] {
			return fmt.Errorf("solvers: face %v and its axis disagree about being periodic", face)
		}
		if w.Kind != Periodic && !slices.Contains(boundary.Kinds(), w.Kind) {
			return fmt.Errorf("solvers: the kind of face %v must be one of %q, or periodic, got %q",
				face, boundary.Kinds(), w.Kind)
		}
		if w.Kind.HasValues() && w.Value == nil {
			return fmt.Errorf("solvers: the wall %v has no value", face)
		}
		if p.corners() > halo.Faces && w.moves() {
			return fmt.Errorf("solvers: the value at face %v changes with time: stencils must lie along the axes, "+
				"and this one has %d points", face, p.Stencil.Points())
		}
		if p.radius(face.Axis()) > 2 {
			return fmt.Errorf("solvers: the stencil must reach at most 2 points along %c, got %d",
				"xyz"[face.Axis()], p.radius(face.Axis()))
		}
	}
	return nil
}

// boundary returns the conditions at the faces of the grid. Values that do not change with time are
// there from the beginning, see fill.
func (p *Problem) boundary() (all boundary.Faces) {
	for i, face := range domain.Faces(p.Grid.Dims) {
		c := &all[i]
		w := p.Walls[i]
		if w.Kind == Periodic {
			continue
		}
		if c.Kind = w.Kind; w.Kind.HasValues() {
			c.Odd = p.radius(face.Axis()) > 1
			if w.moves() {
				c.Profile, c.Uniform = p.profile(w.Value), !w.Value.Varies()
			}
		}
	}
	return all
}

// profile returns the values of an expression along a face.
func (p *Problem) profile(e *stencil.Expression) func() boundary.Profile {
	return func() boundary.Profile {
		ev := e.NewEvaluator(p.coordinates(0))
		return func(values []float64, at domain.Vec, t float64) {
			ev.SetTime(t)
			ev.Row(values, at[0], at[1], at[2])
		}
	}
}

// step returns what a time step computes of a variable.
func (p *Problem) step(u *scheme.Variable) (*scheme.Step, error) {
	point, accesses, err := sweep.Linear(p.Stencil, p.Real)
	if err != nil {
		return nil, err
	}
	return &scheme.Step{
		Stages: []scheme.Stage{{
			Name:   "sweep",
			Reads:  []scheme.Access{u.At(0, p.Stencil.Footprint()).Named(accesses[0].Name)},
			Writes: []scheme.Access{u.At(1, nil).Named(accesses[1].Name)},
			Point:  &point,
		}},
		Length: p.TimeStep, Measured: []*scheme.Variable{u}, Sums: p.Sums, Group: p.Group,
	}, nil
}

// ResidualScale returns the residual at a point over the change that a step makes there. The residual of the Laplace
// equation is the Laplacian of the field before the step, that of the heat equation its rate of change.
func (p *Problem) ResidualScale() float64 {
	if p.TimeStep > 0 {
		return 1 / p.TimeStep
	}
	return 1 / p.Stencil.Rate(p.Spacing)
}

// Width returns the width of the ghosts: as far as the stencil reaches, once for each step between two exchanges.
func (p *Problem) Width() domain.Radius {
	w, group := p.Stencil.Radius(), max(1, p.Group)
	for a := range 3 {
		w.Minus[a], w.Plus[a] = group*w.Minus[a], group*w.Plus[a]
	}
	return w
}

// CheckWalls returns an error unless all subdomains of a cut have the layers that Neumann walls beside them mirror.
func (p *Problem) CheckWalls(cut *domain.Decomposition) error {
	r := p.Stencil.Radius()
	for _, side := range domain.Faces(p.Grid.Dims) {
		a := side.Axis()
		wall, layers := p.Walls[2*a], r.Minus[a]
		if side.Positive() {
			wall, layers = p.Walls[2*a+1], r.Plus[a]
		}
		if err := boundary.CheckMirror(cut, side, wall.Kind, layers); err != nil {
			return fmt.Errorf("face %v: %w", side, err)
		}
	}
	return nil
}

// Field describes the field that a solver sweeps. Ghosts that are swept have edges and corners.
func (p *Problem) Field() halo.Spec {
	s := halo.Spec{Name: "u", Element: halo.Element(p.Real), Width: p.Width(), Connectivity: p.corners()}
	if p.Group > 1 {
		s.Connectivity = halo.Corners
	}
	return s
}

// radius returns how far the stencil reaches along an axis.
func (p *Problem) radius(axis int) int { return p.Stencil.AxisRadius(axis) }

// corners returns which neighbours the stencil needs points of.
func (p *Problem) corners() halo.Connectivity {
	all := halo.Faces
	for _, o := range p.Stencil.Offsets() {
		axes := 0
		for _, d := range o {
			if d != 0 {
				axes++
			}
		}
		all = max(all, halo.Faces+halo.Connectivity(axes-1))
	}
	return all
}

// coordinates returns how expressions see the grid at step n, see Axis.
func (p *Problem) coordinates(n int64) stencil.Coordinates {
	c := stencil.Coordinates{Size: p.Grid.Size, Time: float64(n) * p.TimeStep}
	for a, h := range p.Spacing {
		c.Spacing[a], c.Shift[a] = h, p.axis(a).shift()
	}
	return c
}

// axis returns an axis of the grid.
func (p *Problem) axis(a int) Axis {
	return Axis{p.Grid.Size[a], [2]WallKind{p.Walls[2*a].Kind, p.Walls[2*a+1].Kind}}
}

// Coordinate returns where the points of an index lie on an axis.
func (p *Problem) Coordinate(axis, index int) float64 {
	c := p.coordinates(0)
	return c.At(axis, index)
}

// Wall is the boundary condition of one face of the grid.
type Wall struct {
	Kind  WallKind
	Value *stencil.Expression // of a kind that has values; may use t
}

// WallKind is a kind of boundary condition: one of boundary.Kinds, or Periodic.
type WallKind = boundary.Kind

// The kinds of walls; Axis says where they lie. A Dirichlet wall lies where the first ghosts do: these have its value
// at their own place and, where that changes with time, at the time of the field that they belong to. Where the stencil
// reaches two points, ghosts of the second layer are twice the first less the owned point before it, as of a field that
// is odd about the wall. Behind a Neumann wall ghosts are the owned points as far from it as they are, so that nothing
// flows through and sums are kept. Behind a Periodic face lies the other end of the grid.
//
// Stencils of second order keep it between all of them. Those of fourth order keep it at Neumann walls, and at
// Dirichlet walls across which the second derivative of the field is 0, as it is where the wall's value is a constant.
// At other Dirichlet walls they are of second order.
//
// In edges and corners, periodic axes are followed first, then Neumann ones; of several Dirichlet walls that of the
// last axis counts.
const (
	Dirichlet          = boundary.Dirichlet
	Neumann            = boundary.Neumann
	Periodic  WallKind = "periodic"
)

// moves reports whether the wall's value changes with time.
func (w Wall) moves() bool { return w.Kind.HasValues() && w.Value.Uses("t") }

// distance returns how many spacings an end of an axis lies beyond the nearest point. Problem.check finds kinds that
// are not known.
func distance(k WallKind, end int) float64 {
	if k == Periodic {
		return float64(end)
	}
	d, err := k.Distance()
	if err != nil {
		return math.NaN()
	}
	return d
}

// Axis is the points of one axis of a grid, with what lies behind its two ends. It runs from its end 0, at coordinate
// 0, to its end 1. Behind a Dirichlet wall the first ghosts have the wall's own value, so that the wall lies one
// spacing from the nearest point; a Neumann wall lies half a spacing from it, midway between that point and the ghost
// that repeats it. A periodic axis begins at its first point, and ends where that comes again.
type Axis struct {
	Points int
	Ends   [2]WallKind
}

// UnitSpacing returns the distance between points with which the axis is 1 long.
func (a Axis) UnitSpacing() float64 {
	return 1 / (a.shift() + float64(a.Points-1) + distance(a.Ends[1], 1))
}

// shift returns how many spacings the first point lies from end 0.
func (a Axis) shift() float64 { return distance(a.Ends[0], 0) }
