package configs

import (
	"errors"
	"math"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/results/view"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/stencil"
)

// Problem returns the problem of a run.
func (r *Run) Problem() (*solvers.Problem, error) {
	p, err := r.problem()
	if err == nil {
		p.Statistics = r.Output.Statistics.list()
	}
	return p, err
}

func (r *Run) problem() (*solvers.Problem, error) {
	if e := r.Equation(); e != nil {
		e.Element, e.Sums = domain.Element(r.Precision), sums.Mode(r.Stop.Sums)
		return e.Problem()
	}
	grid, err := domain.NewGrid(r.Grid.Size, r.Periodic())
	if err != nil {
		return nil, err
	}
	p := &solvers.Problem{
		Grid: grid, Spacing: r.Spacing(), Element: domain.Element(r.Precision), TimeStep: r.TimeStep(),
		Sums: sums.Mode(r.Stop.Sums), Group: max(1, int(r.Exchange.Steps)), Stable: r.StableStep()}
	kind := stencil.Kind{Points: r.Stencil.Points, Shape: stencil.Shape(r.Stencil.Shape)}
	if r.Heat != nil {
		p.Diffusivity, _ = r.Heat.Diffusivity.Number()
		p.Stencil, err = stencil.HeatOf(kind, p.Spacing, p.Diffusivity, p.TimeStep)
	} else {
		p.Stencil, err = stencil.LaplaceOf(kind, p.Spacing)
	}
	if err != nil {
		return nil, err
	}
	if p.Initial, err = stencil.Parse(r.Initial); err != nil {
		return nil, err
	}
	if exact := r.Exact.of(onlyField); exact != "" {
		one, err := stencil.Parse(exact)
		if err != nil {
			return nil, err
		}
		p.Exact = append(p.Exact, one)
	}
	for i, face := range domain.Faces(grid.Dims) {
		if face.Axis() >= r.Dims() {
			p.Boundary[i].Kind = solvers.Neumann // of a row of points, which no stencil looks across
			continue
		}
		if p.Boundary[i], err = newCondition(r.Boundary.Face(face.Axis(), i%2)); err != nil {
			return nil, err
		}
		p.Boundary[i].Half = r.Grid.Kind == Cells
	}
	return p, nil
}

func newCondition(f Face) (solvers.Condition, error) {
	if f.Value == "" {
		return solvers.Condition{Kind: f.Kind}, nil
	}
	c := solvers.Condition{Kind: f.Kind}
	var err, other error
	if c.Value, err = stencil.Parse(f.Value); f.Transfer != "" {
		c.Transfer, other = stencil.Parse(f.Transfer)
	}
	return c, errors.Join(err, other)
}

// View returns how pictures are drawn.
func (o *Output) View() view.Options {
	all := view.Options{Slice: o.Slice, Colors: o.Colors}
	if len(o.Range) == 2 {
		all.Range = &plot.Range{Lo: o.Range[0], Hi: o.Range[1]}
	}
	return all
}

// UnitOf returns the unit of a field; "" if it has none.
func (r *Run) UnitOf(field string) string { return r.Unit.of(field) }

// View describes a field of the run's problem after a step, less than 0 if unknown, to be drawn. It has no values. The
// time may be nil: it is known for steps of equal length.
func (r *Run) View(p *solvers.Problem, field int, step int64, at *float64) view.Field {
	name := p.Fields()[field]
	f := view.Field{
		Subject: r.Solver, Name: name, Label: name, Unit: r.UnitOf(name), Grid: p.Grid, Spacing: p.Spacing, Coordinate: p.Coordinate}
	if r.Solver == SolverEquation {
		f.Subject = f.Label
	}
	for _, label := range r.Output.Label {
		if label.Field == "" || label.Field == f.Label {
			f.Label = label.Path
			break
		}
	}
	t := math.NaN()
	if at != nil {
		t = *at
	} else if step >= 0 && p.TimeStep > 0 && r.TimeStep() > 0 {
		t = float64(step) * p.TimeStep
	}
	f.Moment = view.Moment(step, t)
	f.Wall = func(axis, end int) (func(domain.Vec) float64, float64) { return p.Wall(field, 2*axis+end, t) }
	return f
}
