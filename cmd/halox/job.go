package main

import (
	"context"
	"errors"
	"io"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/solvers"
)

// job is a config with all that runs it.
type job struct {
	*wiring
	solver  *solvers.Solver
	tracing *tracing // nil where none is wanted
}

// newJob makes everything ready. Notes for the user go to notes.
func newJob(ctx context.Context, c *configs.Run, notes io.Writer) (*job, error) {
	w, err := newWiring(c, notes)
	if err != nil {
		return nil, err
	}
	if err := w.choose(ctx, notes); err != nil {
		return nil, errors.Join(err, w.close())
	}
	solver, err := solvers.New(w.problem, w.plan, w.compiler)
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return &job{wiring: w, solver: solver}, nil
}
