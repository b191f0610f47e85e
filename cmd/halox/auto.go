package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
)

// begin begins to compile what the run and, for scheme auto, the trials before it need.
func (w *setup) begin(ctx context.Context) {
	draft, err := w.session.Draft(w.cutting())
	if err != nil {
		return // who cuts says so
	}
	search := w.search()
	search.Path = w.path()
	w.ahead = solvers.Ahead(ctx, w.problem, draft, search, solverOptions(w.config))
}

// open reports whether the config leaves the scheme, or the number of steps between two exchanges, to trials.
func (w *setup) open() bool {
	return w.config.Exchange.Scheme == string(scheme.Auto) || w.config.Exchange.Steps == 0
}

// choose finds the scheme for scheme auto, and how many steps go between two exchanges for steps auto, on GPUs the fastest of all by
// trial, which is remembered, and plans its messages. Host devices keep what scheme.Choose says, and exchange after each step.
func (w *setup) choose(ctx context.Context, notes io.Writer) error {
	if !w.open() {
		return nil
	}
	if err := w.recall(ctx); err != nil || len(w.tried) > 0 {
		return err
	}
	begin, search := time.Now(), w.search()
	search.Ahead = w.ahead
	search.Trying = func(name scheme.Scheme, path p2p.Path) {
		during(ctx, fmt.Sprintf("trying scheme %s by %s", name, path), nil)
	}
	search.Failed = func(name scheme.Scheme, path p2p.Path, err error) {
		fmt.Fprintf(notes, "scheme %s by %s is left out: %v\n", name, path, err)
	}
	try := solvers.Fastest
	if w.config.Exchange.Steps == 0 {
		try = solvers.FastestGroup
	}
	trials, known, err := try(ctx, w.problem, w.place, search, solverOptions(w.config))
	if err != nil || len(trials) == 0 {
		return err
	}
	if !known {
		fmt.Fprintf(notes, "tried the schemes for %.2f s: %v\n", time.Since(begin).Seconds(), trials)
	}
	return w.take(trials)
}

// recall finds what the config leaves to trials by those that are remembered, if there are some.
func (w *setup) recall(ctx context.Context) error {
	if !w.open() {
		return nil
	}
	recall := solvers.Recall
	if w.config.Exchange.Steps == 0 {
		recall = solvers.RecallGroup
	}
	trials, err := recall(ctx, w.problem, w.place, w.search(), solverOptions(w.config))
	if err != nil || len(trials) == 0 {
		return err
	}
	return w.take(trials)
}

// search says how the fastest scheme is found.
func (w *setup) search() scheme.Search {
	return scheme.Search{
		Links: w.session.Links, Compiler: w.session.Compiler, Scheme: scheme.Scheme(w.config.Exchange.Scheme), Path: p2p.Path(w.config.Exchange.Path),
		Driver: w.session.DriverVersion(), Program: version + builtFrom(),
	}
}

// take takes the fastest.
func (w *setup) take(trials []scheme.Trial) (err error) {
	w.scheme, w.tried, w.problem.Group = trials[0].Scheme, trials, max(1, trials[0].Group)
	w.plan, err = halo.NewPlan(w.place, w.session.Links, trials[0].Path, w.problem.Field())
	return err
}
