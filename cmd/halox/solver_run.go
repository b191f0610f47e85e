package main

import (
	"context"

	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
)

// solverRun is a setup with its solver, ready to run.
type solverRun struct {
	*setup
	solver  *solvers.Solver
	tracing *tracing // nil where none is wanted
}

// writes reports whether this process prints and writes what comes of the run: one does.
func (w *setup) writes() bool { return w.place.Processes.IsAlone() || w.place.Processes.Rank == 0 }

// fits returns an error if a run takes more memory than is free, or the scheme does not suit the problem.
func (w *setup) fits(ctx context.Context) error {
	memory, err := w.memory(ctx)
	if err != nil {
		return err
	}
	return scheme.Fit(memory)
}
