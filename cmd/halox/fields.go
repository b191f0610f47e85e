package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/output"
	"github.com/halox/halox/stencil"
)

// writeFields writes the files of the field that the config names, and adds the distance from the exact solution to the
// record. An error of one file does not keep the others from being written.
func (j *solverRun) writeFields(ctx context.Context, r *record) error {
	var errs []error
	keep := j.recordWriter(r.clone(), nil)
	for _, f := range []struct {
		file string
		kind output.Kind
	}{{j.config.Output.Picture, output.Picture}, {j.config.Output.Field, output.Field}} {
		if f.file == "" {
			continue
		}
		during(ctx, "writing "+f.file, keep)
		errs = append(errs, output.Write(f.file, f.kind, j.ended(r), output.Destination{
			Discard: !j.writes(), Failed: j.tell,
			Began: func(abort func()) {
				during(ctx, "writing "+f.file, func() string {
					abort()
					return keep()
				})
			},
		}))
		if p := j.Place.Processes; !p.IsAlone() && p.Err() != nil {
			return errors.Join(errs...) // nothing else comes from the others
		}
	}
	during(ctx, "reading what came out", keep)
	if j.config.Exact != "" {
		errs = append(errs, j.compare(r))
	}
	return errors.Join(errs...)
}

// ended describes the run for its output files.
func (j *solverRun) ended(r *record) *output.Run {
	axis, index := j.config.Plane()
	return &output.Run{
		Record: r.Record, Title: fmt.Sprintf("%s, step %d", j.config.Solver, r.run.Iterations),
		Grid: j.Problem.Grid, Spacing: j.Problem.Spacing, Float32: j.config.Precision == "float32",
		Coordinate: j.Problem.Coordinate, Axis: axis, Index: index, Read: j.gather,
	}
}

// compare adds the errors to the record.
func (j *solverRun) compare(r *record) error {
	exact, err := stencil.Parse(j.config.Exact)
	if err != nil {
		return err
	}
	d, err := j.solver.Deviation(context.Background(), exact) // also of a run that was interrupted
	if err != nil {
		return err
	}
	r.run.Error = &results.ErrorNorms{L2: results.Number(d.L2), Max: results.Number(d.Max)}
	return nil
}

// gather reads points of all processes into those of rank 0, see solvers.Solver.Gather.
func (j *solverRun) gather(dst []float64, box domain.Box) error {
	return j.solver.Gather(context.Background(), dst, box) // also of a run that was interrupted
}

// tell has other processes, where there are some, told of an error of this one: they wait for it no longer.
func (j *solverRun) tell(err error) error {
	if err != nil && !j.Place.Processes.IsAlone() {
		return j.Place.Processes.Fail(err)
	}
	return err
}
