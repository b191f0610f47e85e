package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// Measures are named numbers, reduced on the devices from the fields of an Equation.
type Measures struct {
	Names   []string // in the order of the values
	problem *Problem // the fields, with the reductions as the only stage
	result  []func(total float64) float64
}

// reductions maps the functions of measures to the reduction of a formula and the computation of the result from the
// total on a grid.
var reductions = map[string]struct {
	by     sweep.Operation
	square bool
	result func(total, points, volume float64) float64
}{
	"sum":  {sweep.Sum, false, func(total, _, _ float64) float64 { return total }},
	"mean": {sweep.Sum, false, func(total, points, _ float64) float64 { return total / points }},
	"max":  {sweep.Max, false, func(total, _, _ float64) float64 { return total }},
	"min":  {sweep.Min, false, func(total, _, _ float64) float64 { return total }},
	"l2":   {sweep.Sum, true, func(total, _, volume float64) float64 { return math.Sqrt(volume * total) }},
}

// Measures parses definitions of measures: a formula in sum, mean, max, min or l2, where l2 is the square root of the
// sum of squares times the product of the spacings. Errors are PartErrors.
func (e *Equation) Measures(all []Definition) (*Measures, error) {
	r := &equationReader{Equation: e}
	if r.grid(); len(r.errors) == 0 {
		r.names()
	}
	if len(r.errors) > 0 {
		return nil, errors.Join(r.errors...)
	}
	r.p.Group = 0
	m := &Measures{problem: r.p}
	points, volume := float64(r.p.Grid.Points()), 1.0
	for _, h := range r.p.Spacing {
		volume *= h
	}
	var formulas []int
	var stage systemStage
	for _, d := range all {
		by, formula, err := r.sheet.Reduction(d.Formula, "sum", "mean", "max", "min", "l2")
		if err != nil {
			r.note("measure."+d.Name, err)
			continue
		}
		of := reductions[by]
		if of.square {
			formula = r.sheet.Square(formula)
		}
		m.Names, stage.by, formulas = append(m.Names, d.Name), append(stage.by, of.by), append(formulas, formula)
		m.result = append(m.result, func(total float64) float64 { return of.result(total, points, volume) })
	}
	s := r.p.system
	stage.form = r.sheet.Form(formulas...)
	for _, g := range stage.form.Given {
		s.given = append(s.given, g.Expression)
	}
	s.stages = []systemStage{stage}
	return m, errors.Join(r.errors...)
}

// Measurer computes the measures of the fields of a solver. Close frees its resources.
type Measurer struct {
	Values map[int64][]float64 // measures by step, in the order of Measures.Names

	solver    *Solver
	of        *Measures
	step      *scheme.Step
	runner    *scheme.Runner
	resources streams.Resources
}

// Measure prepares the measures of the fields of a solver of this setup. If processes share the grid, all of them must
// call it.
func (s *Setup) Measure(ctx context.Context, of *Solver, what *Measures) (m *Measurer, err error) {
	m = &Measurer{Values: map[int64][]float64{}, solver: of, of: what}
	defer func() {
		if err != nil {
			m, err = nil, errors.Join(err, m.Close())
		}
	}()
	p, variables := what.problem, of.variables[:len(what.problem.system.fields):len(what.problem.system.fields)]
	fillOne := fill[float64]
	if p.Element == domain.Float32 {
		fillOne = fill[float32]
	}
	for i := range p.system.given {
		given := p.of(len(p.system.fields) + i)
		v, err := scheme.NewVariable(s.Place, given.Field(), 1)
		if err == nil {
			m.resources.Add(v)
			v.Boundary, variables = given.boundary(), append(variables, v)
			err = fillOne(ctx, v.Level(0), given, false)
		}
		if err := s.Place.Agree(ctx, "fill what is measured", err); err != nil {
			return m, err
		}
	}
	stage := p.stage(&p.system.stages[0], variables)
	stage.Name = "measure"
	if len(stage.Reads) == 0 {
		return m, errors.New("solvers: measures must use a field")
	}
	m.step = &scheme.Step{
		Name: "measure", Stages: []scheme.Stage{stage}, Sums: p.Sums, Length: of.problem.TimeStep,
	}
	if err := m.step.Check(); err != nil {
		return m, fmt.Errorf("%w: measures must not read farther from a point than the equations do", err)
	}
	plan, err := m.step.Plan(s.Session.Links, p2p.Auto)
	if err != nil {
		return m, err
	}
	if m.runner, err = scheme.NewRunner(ctx, m.step, plan, s.Session.Compiler); err == nil {
		m.resources.Add(m.runner)
	}
	return m, err
}

// Take adds the measures of the current fields to Values.
func (m *Measurer) Take(ctx context.Context) error {
	if n := m.solver.Done(); n > 0 && m.solver.problem.courant != nil { // boundary values are those of the time
		m.step.Length = m.solver.Time() / float64(n)
	}
	result, err := m.runner.Run(ctx, scheme.Options{Scheme: scheme.Baseline, Steps: 1, Keep: true})
	if err != nil {
		return err
	}
	values := slices.Clone(result.Reduced)
	for i := range values {
		values[i] = m.of.result[i](values[i])
	}
	m.Values[m.solver.Done()] = values
	return nil
}

// Event returns an event that takes the measures every so many steps, 0 for never, in addition to Take.
func (m *Measurer) Event(every int64) *scheme.Event {
	e := &scheme.Event{Name: "measure", First: true, Do: func(ctx context.Context, _ scheme.Result) error {
		return m.Take(ctx)
	}}
	if every > 0 {
		e.Next = scheme.Every(every)
	}
	return e
}

// Close frees the resources of the measures.
func (m *Measurer) Close() error { return m.resources.Close() }
