package solve

import (
	"context"
	"errors"
	"fmt"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/series"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
)

// liveOutputs are outputs that are written while a run goes on.
type liveOutputs struct {
	probes []*series.Probes
	writer *series.Writer // nil without series
	events []*scheme.Event
}

// Outputs returns the description of a setup for outputs that are written while a run goes on.
func Outputs(s *solvers.Setup) *series.Run {
	return &series.Run{Place: s.Place, Element: s.Problem.Element, Spacing: s.Problem.Spacing,
		Coordinate: s.Problem.Coordinate}
}

// Series returns the series of a config, by default of some fields.
func Series(c *configs.Run, fields []string) (all []series.SeriesSpec) {
	for _, one := range c.Output.Series {
		spec := series.SeriesSpec{Every: everyOf(one.Every), Format: one.Format, Folder: one.Folder, Name: one.Name,
			Fields: one.Fields, Ranges: map[int][2]float64{}, Coarsen: one.Coarsen,
			Element: domain.Element(one.Precision), Attributes: map[string]any{"halox": Program(), "config": c}}
		if spec.Fields == nil {
			spec.Fields = fields
		}
		for axis, name := range []string{"x", "y", "z"} {
			if at, ok := one.Slice[name]; ok {
				spec.Ranges[axis] = [2]float64{at, at}
			} else if ends, ok := one.Box[name]; ok {
				spec.Ranges[axis] = [2]float64(ends)
			}
		}
		all = append(all, spec)
	}
	return all
}

// openOutputs prepares the outputs that are written while the run goes on; close ends them. Their failures go to the
// record.
func (s *Run) openOutputs(ctx context.Context, r *results.Run) (o *liveOutputs, err error) {
	o = &liveOutputs{}
	config := s.config.Output
	run := Outputs(s.Setup)
	run.Warn = func(e error) {
		command.Of(ctx).Warn(e)
		r.Warnings = append(r.Warnings, e.Error())
	}
	run.Failed = func(output string, e error) error {
		e = fmt.Errorf("%s: %w", output, e)
		if config.OnError == configs.OnErrorStop {
			return e
		}
		run.Warn(e)
		return nil
	}
	if s.config.TimeStep() > 0 {
		run.Length = s.Problem.TimeStep
	}
	if s.paced() || run.Length > 0 {
		run.Time = s.solver.Time
	}
	fields := s.Problem.Fields()
	for i, name := range fields {
		run.Fields = append(run.Fields, series.Field{Name: name, Unit: s.config.UnitOf(name),
			Now: func() *halo.Field { return s.solver.Fields()[i] }})
	}
	if all := s.solver.Statistics; all != nil {
		r.Samples = all.Samples() // after a restart
		for i, name := range all.Names {
			run.Fields = append(run.Fields, series.Field{Name: name, Now: func() *halo.Field { return all.Fields()[i] }})
		}
		o.events = append(o.events, &scheme.Event{Name: "accumulate statistics",
			Next: everyOf(config.Statistics.Every).After(everyOf(config.Statistics.From), run.Length),
			Do: func(ctx context.Context, _ scheme.Result) error {
				err := all.Take(ctx)
				r.Samples = all.Samples()
				return err
			}})
	}
	for _, p := range config.Probes {
		spec := series.ProbeSpec{File: p.File, Every: everyOf(p.Every), Fields: p.Fields, At: p.At,
			KeepRows: config.History}
		if spec.Fields == nil {
			spec.Fields = fields
		}
		if p.Line != nil {
			spec.Line, spec.Points = [][]float64{p.Line.From, p.Line.To}, p.Line.Points
		}
		probes, err := series.NewProbes(run, spec)
		if err != nil {
			return o, err
		}
		o.probes, o.events = append(o.probes, probes), append(o.events, probes.Event())
	}
	for _, p := range o.probes {
		if err := p.Start(ctx, s.solver.Done()); err != nil {
			return o, err
		}
	}
	if len(config.Series) == 0 {
		return o, nil
	}
	if o.writer, err = series.NewWriter(ctx, run, Series(s.config, fields)); err != nil {
		return o, err
	}
	if !o.writer.InBackground() && s.writes() {
		command.Of(ctx).Warn("output.series: there is no memory for a copy of the fields: " +
			"steps wait while series are written")
	}
	o.events = append(o.events, o.writer.Event())
	return o, o.writer.Start(ctx, s.solver.Done())
}

func everyOf(e configs.Every) series.Every { return series.Every{Steps: int64(e.Steps), Time: e.Time} }

// close ends the outputs, and adds the values of probes to the history.
func (o *liveOutputs) close(r *results.Run) (err error) {
	if o.writer != nil {
		err = o.writer.Close()
		r.SeriesWaited = results.Number(o.writer.Waited().Seconds())
		r.Series = o.writer.Results()
	}
	for _, p := range o.probes {
		err = errors.Join(err, p.Close())
		for i := range r.History {
			for column, v := range p.Values(int64(r.History[i].Iteration)) {
				if r.History[i].Probes == nil {
					r.History[i].Probes = map[string]*float64{}
				}
				r.History[i].Probes[p.Columns[column]] = results.Number(v)
			}
		}
	}
	return err
}
