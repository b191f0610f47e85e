package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// setup is a case with its placement on the first of the devices, and how it came to its scheme and
// its path.
type setup struct {
	stepCase
	*bench.Machine
	problem *solvers.Problem
	place   *halo.Placement
	chosen  scheme.Scheme // Auto resolved
	plan    *halo.Plan    // of the exchange in a step
}

// newSetup plans a case.
func newSetup(ctx context.Context, on *bench.Machine, c stepCase, slabs bool) (s *setup, err error) {
	s = &setup{stepCase: c, Machine: on}
	if s.problem, err = c.problem(); err != nil {
		return nil, err
	}
	if err := s.cut(ctx, slabs); err != nil {
		return nil, err
	}
	s.chosen = scheme.Choose(c.scheme, s.place)
	if s.plan, err = halo.NewPlan(s.place, s.Links, s.wanted(), s.problem.Field()); err != nil {
		return nil, leftOut{err} // the links have no such path, or a subdomain is too large
	}
	return s, s.left(solvers.Fit(s.problem, s.place))
}

// left says of a case that does not fit into memory that it is left out.
func (s *setup) left(err error) error {
	if errors.Is(err, streams.ErrOutOfMemory) {
		return leftOut{err}
	}
	return err
}

// fits returns an error if the steps take more memory than is free, or the scheme does not suit them.
func (s *setup) fits(ctx context.Context) error {
	memory, err := solvers.DryRun(ctx, s.problem, s.plan, s.Compiler, s.options())
	if errors.Is(err, scheme.ErrUnsuited) {
		return leftOut{err}
	}
	if err != nil {
		return err
	}
	return s.left(scheme.Fit(memory))
}

// cut cuts the grid over the first of the devices, which get their subdomains as in a run.
func (s *setup) cut(ctx context.Context, slabs bool) (err error) {
	grid := s.problem.Grid
	c := halo.Cutting{
		Size: s.size, Periodic: grid.Periodic, Fields: []halo.Spec{s.problem.Field()}, Parts: s.parts, Devices: s.devices, Path: s.wanted(),
	}
	if !s.Processes.IsAlone() {
		c.Devices = 0 // all take part
	}
	if slabs && c.Parts == (domain.Vec{}) {
		c.Parts = bench.Slabs(grid.Dims, s.devices)
	}
	s.place, err = s.Cut(ctx, c)
	if _, refused := errors.AsType[*halo.OptionError](err); refused {
		return leftOut{err}
	}
	return err
}

// wanted returns the path that is wanted: where that is open, the scheme's.
func (s *setup) wanted() p2p.Path {
	if s.path != p2p.Auto {
		return s.path
	}
	return cmp.Or(needsOf(s.scheme).Path, p2p.Auto)
}

// options say how the steps are made.
func (s *setup) options() scheme.Options {
	o := scheme.Options{
		Scheme: s.chosen, Order: s.order, Steps: 1 << 50, Norm: scheme.MaxNorm, Limit: timing.Limit,
		CheckEvery: int64(s.norms), History: s.norms > 0,
	}
	if !s.Processes.IsAlone() {
		o.Limit = 0 // theirs
	}
	return o
}

// choose finds the scheme for scheme auto, on GPUs the fastest of all by trial.
func (s *setup) choose(ctx context.Context, notes io.Writer) error {
	if s.scheme != scheme.Auto {
		return nil
	}
	search := scheme.Search{Links: s.Links, Compiler: s.Compiler, Path: s.path, Driver: s.DriverVersion(), Program: s.Program}
	options := s.options()
	options.Order = scheme.LeftRight // as in a run
	begin := time.Now()
	trials, known, err := solvers.Fastest(ctx, s.problem, s.place, search, options)
	if err != nil || len(trials) == 0 {
		return err
	}
	if !known {
		fmt.Fprintf(notes, "tried the schemes for %.2f s: %v\n", time.Since(begin).Seconds(), trials)
	}
	return s.take(trials[0])
}

// take takes the fastest.
func (s *setup) take(fastest scheme.Trial) (err error) {
	s.chosen = fastest.Scheme
	s.plan, err = halo.NewPlan(s.place, s.Links, fastest.Path, s.problem.Field())
	return err
}

// note says what the scheme and the path came to, where halox chose them.
func (s *setup) note() string {
	var all []string
	if s.scheme == scheme.Auto {
		all = append(all, fmt.Sprintf("scheme auto is %s", s.chosen))
	}
	if scheme.SweepsInstead(s.chosen, s.Devices[0]) {
		all = append(all, fmt.Sprintf("%s ran sweeps: its kernels are for GPUs", s.chosen))
	}
	if s.path == p2p.Auto && len(s.plan.Messages) > 0 {
		all = append(all, fmt.Sprintf("path auto is %s", s.plan.Path()))
	}
	return strings.Join(all, ", ")
}
