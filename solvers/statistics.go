package solvers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// kindsOfStatistics are all kinds with the formula of the next value, from the field u and its number of samples n,
// including this one.
var kindsOfStatistics = []struct {
	kind    StatisticKind
	name    string // of the value in formulas
	formula string
}{
	{Mean, "average", "next"},
	{Variance, "variance", "variance + ((u - average)*(u - next) - variance)/n"},
	{Min, "low", "n < 2 ? u : min(u, low)"},
	{Max, "high", "n < 2 ? u : max(u, high)"},
}

// Statistics accumulates the statistics of Problem.Statistics on the devices.
type Statistics struct {
	Names []string // of Fields: "mean_u"

	samples   int64
	variables []*scheme.Variable
	values    []*sweep.Values // by stage
	runner    *scheme.Runner
	resources streams.Resources
}

// Samples returns the number of samples.
func (s *Statistics) Samples() int64 { return s.samples }

// Fields returns the statistics, in the order of Names. Before the first sample they are zero.
func (s *Statistics) Fields() (all []*halo.Field) {
	for _, v := range s.variables {
		all = append(all, v.Level(0))
	}
	return all
}

// newStatistics allocates the statistics of a problem with some variables. One stage per field updates all of its kinds
// in place.
func newStatistics(
	ctx context.Context, p *Problem, variables []*scheme.Variable, c *kernels.Compiler,
) (s *Statistics, err error) {
	s = &Statistics{}
	step := &scheme.Step{Name: "statistics"}
	names := p.Fields()
	for i, name := range names {
		var kinds []StatisticKind
		for _, one := range p.Statistics {
			if !slices.Contains(names, one.Field) {
				return s, fmt.Errorf("solvers: statistics: must be of the fields %q, got %q", names, one.Field)
			}
			if one.Field == name {
				kinds = append(kinds, one.Kind)
			}
		}
		if len(kinds) == 0 {
			continue
		}
		stage, err := s.stage(p, i, variables[i], kinds)
		if err != nil {
			return s, err
		}
		step.Stages = append(step.Stages, stage)
	}
	plan := &scheme.Plan{Stages: make([]*halo.Plan, len(step.Stages))} // points read only themselves
	if s.runner, err = scheme.NewRunner(ctx, step, plan, c); err == nil {
		s.resources.Add(s.runner)
	}
	return s, err
}

// stage allocates the statistics of a field, and returns the stage that updates them.
func (s *Statistics) stage(
	of *Problem, field int, variable *scheme.Variable, kinds []StatisticKind,
) (stage scheme.Stage, err error) {
	place, p := variable.Level(0).Placement, *of
	p.system = &system{fields: []systemField{{walls: of.of(field).Boundary}}, arrays: []array{{}}}
	sheet := stencil.NewSheet(len(p.Spacing), of.coordinates(0))
	declare := func(declared error) { err = errors.Join(err, declared) }
	declare(sheet.Field("u"))
	declare(sheet.Variable("n", 1))
	variables := []*scheme.Variable{variable}
	var formulas []string
	form := systemStage{}
	for _, k := range kindsOfStatistics {
		if !slices.Contains(kinds, k.kind) && (k.kind != Mean || !slices.Contains(kinds, Variance)) {
			continue
		}
		one := Statistic{k.kind, of.Fields()[field]}
		v, failed := scheme.NewVariable(place, halo.Spec{Name: one.Name(), Element: p.Element}, 1)
		if failed == nil {
			s.resources.Add(v)
			s.Names, s.variables = append(s.Names, one.Name()), append(s.variables, v)
			variables, formulas = append(variables, v), append(formulas, k.formula)
			failed = clearField(v.Level(0))
		}
		if err := place.Agree(context.Background(), "allocate statistics", failed, streams.ErrOutOfMemory); err != nil {
			return stage, err
		}
		declare(sheet.Field(k.name))
		form.writes = append(form.writes, len(p.system.arrays))
		p.system.arrays = append(p.system.arrays, array{len(p.system.fields), 0})
		p.system.fields = append(p.system.fields, systemField{name: one.Name()})
	}
	if slices.Contains(formulas, "next") {
		declare(sheet.Let("next", "average + (u - average)/n", false))
	}
	var numbers []int
	for _, f := range formulas {
		number, failed := sheet.Formula(f)
		declare(failed)
		numbers = append(numbers, number)
	}
	if err != nil {
		return stage, err
	}
	form.form = sheet.Form(numbers...)
	form.form.InPlace = form.writes
	stage = p.stage(&form, variables)
	stage.Name = "statistics of " + of.Fields()[field]
	s.values = append(s.values, p.valuesOf(&form))
	return stage, nil
}

// clearField sets a field to zero.
func clearField(f *halo.Field) error {
	if f.Spec.Element == domain.Float32 {
		return halo.Fill(f, func(int) halo.Row[float32] { return zeroRow[float32] })
	}
	return halo.Fill(f, func(int) halo.Row[float64] { return zeroRow[float64] })
}

func zeroRow[T float32 | float64](values []T, _ domain.Vec) { clear(values) }

// Take adds a sample: the fields after the last step of the solver. If processes share the grid, all of them must call
// it. It must not be called during a run, except by its events.
func (s *Statistics) Take(ctx context.Context) error {
	for stage, values := range s.values {
		n := map[string]float64{"n": float64(s.samples + 1)}
		if err := s.runner.SetParameters(stage, values.Parameters(n)); err != nil {
			return err
		}
	}
	_, err := s.runner.Run(ctx, scheme.Options{Scheme: scheme.Baseline, Steps: 1, Keep: true})
	if err == nil {
		s.samples++
	}
	return err
}

// Restore reads the statistics of a number of samples from a checkpoint of Solver.State. If the checkpoint lacks one of
// them, all begin again, without samples.
func (s *Statistics) Restore(ctx context.Context, saved *checkpoint.Checkpoint, samples int64) error {
	all, err := saved.Arrays()
	for _, name := range s.Names {
		if !slices.ContainsFunc(all, func(a checkpoint.ArrayInfo) bool { return a.Name == name }) {
			return err
		}
	}
	for i, f := range s.Fields() {
		if err == nil {
			err = saved.Read(ctx, s.Names[i], f)
		}
	}
	s.samples = samples
	return err
}
