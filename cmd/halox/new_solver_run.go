package main

import (
	"context"
	"errors"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/solvers"
)

// newSolverRun makes everything ready, with a trace where one is wanted, and shows how that goes.
func newSolverRun(ctx context.Context, c *configs.Run, processes *mpi.Processes, show *status, traced traceFlags) (*solverRun, error) {
	w, err := openSetup(ctx, c, processes, show, func(w *setup) {
		show.compiles(w.session.Compiler)
		w.begin(ctx)
	})
	if err != nil {
		return nil, err
	}
	during(ctx, "checking the config", nil)
	if err := w.place.Agree(ctx, "look at the exact solution", checkExact(ctx, c, w.problem)); err != nil {
		return nil, errors.Join(err, w.close())
	}
	during(ctx, "trying the schemes", nil)
	if err := w.choose(ctx, show); err != nil {
		return nil, errors.Join(err, w.close())
	}
	if err := w.place.Agree(ctx, "see whether the run fits", w.fits(ctx)); err != nil {
		return nil, errors.Join(err, w.close())
	}
	during(ctx, "filling the fields and compiling", nil)
	j := &solverRun{setup: w}
	if err := w.place.Agree(ctx, "trace the run", j.beginTrace(traced)); err != nil {
		return nil, errors.Join(err, w.close())
	}
	if j.solver, err = solvers.New(ctx, w.problem, w.plan, w.session.Compiler); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return j, nil
}
