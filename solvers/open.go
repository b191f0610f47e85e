package solvers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
)

// OpenOptions configures how a problem is opened on the devices of a session.
type OpenOptions struct {
	scheme.Options // options of the run; Scheme and Path may be Auto

	Parts   []int // subdomains per axis, see halo.Cutting.Parts
	Devices int   // number of devices, see halo.Cutting.Devices

	TryGroups bool // Setup.Choose also tries the exchange interval instead of using Problem.Group; default false
	Ahead     bool // compile for the run and its trials in the background, before links are measured; default false

	Trying func(name scheme.Scheme, path p2p.Path)            // see scheme.Search; may be nil
	Failed func(name scheme.Scheme, path p2p.Path, err error) // see scheme.Search; may be nil
}

// Setup is a problem that is decomposed and planned on the devices of a session, but has no fields yet. To prepare a
// run, call Choose, CheckMemory and New, in this order. Close stops background compilation. If processes share the
// grid, all of them must call the methods.
type Setup struct {
	Session *halo.Session   // devices of the run
	Problem *Problem        // a copy of the opened problem; Choose sets its Group
	Place   *halo.Placement // placement of the subdomains
	Plan    *halo.Plan      // first exchange of a step
	Scheme  scheme.Scheme   // scheme of the run, never Auto
	Trials  []scheme.Trial  // trials by which the scheme was chosen, fastest first

	options OpenOptions
	plan    *scheme.Plan
	ahead   *kernels.Ahead
}

// PlanError is the error of Open if the grid can be decomposed but its messages cannot be sent.
type PlanError struct{ error }

// Unwrap returns the error of Problem.NewPlan.
func (p *PlanError) Unwrap() error { return p.error }

// Open decomposes the grid of a problem over the devices of a session, chooses the scheme with scheme.Choose if it is
// Auto, and plans the messages. It returns the errors of halo.Session.Cut, a halo.OptionError for "Options.Scheme" if
// the scheme does not support the number of devices, or a PlanError.
func Open(ctx context.Context, session *halo.Session, p *Problem, o OpenOptions) (*Setup, error) {
	of := *p
	s := &Setup{Session: session, Problem: &of, options: o}
	needs := o.Scheme.Needs() // Auto has no needs
	path := cmp.Or(o.Path, p2p.Auto)
	if path == p2p.Auto {
		path = cmp.Or(needs.Path, p2p.Auto)
	}
	parts := slices.Clone(o.Parts)
	for len(parts) > 0 && len(parts) < p.Grid.Dims && len(parts) == len(p.Spacing) {
		parts = append(parts, 1) // a grid of one dimension is a row in two dimensions
	}
	cutting := halo.Cutting{
		Size: p.Grid.Size[:p.Grid.Dims], Periodic: p.Grid.Periodic[:p.Grid.Dims], Fields: p.specs(),
		Parts: parts, Devices: o.Devices, Path: path,
	}
	if o.Ahead {
		if draft, err := session.Draft(cutting); err == nil { // if it fails, Cut returns the error
			search := s.search()
			search.Path = path
			s.ahead = Ahead(ctx, s.Problem, draft, search, o.Options)
		}
	}
	var err error
	if s.Place, err = session.Cut(ctx, cutting); err != nil {
		err = s.orFewerSteps(cutting, err)
	} else {
		if err = needs.CheckDevices(o.Scheme, len(s.Place.Devices)); err != nil {
			err = &halo.OptionError{Option: "Options.Scheme", Err: err}
		}
	}
	if err == nil {
		err = s.take(scheme.Choose(o.Scheme, s.Place), path)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// orFewerSteps adds a hint to the error of a decomposition if a shorter exchange interval would help.
func (s *Setup) orFewerSteps(c halo.Cutting, err error) error {
	o, ok := errors.AsType[*halo.OptionError](err)
	if !ok || s.Problem.Group <= 1 {
		return err
	}
	one := *s.Problem
	one.Group = 1
	c.Fields = one.specs()
	if _, failed := s.Session.Draft(c); failed != nil {
		return err
	}
	o.Err = fmt.Errorf("%w, or fewer than %d steps between two exchanges", o.Err, s.Problem.Group)
	return err
}

// take plans the messages of a scheme.
func (s *Setup) take(name scheme.Scheme, path p2p.Path) (err error) {
	s.Scheme = name
	if s.plan, err = s.Problem.NewPlan(s.Place, s.Session.Links, path); err != nil {
		return &PlanError{err}
	}
	s.Plan = firstPlan(s.plan.Stages)
	return nil
}

func (s *Setup) search() scheme.Search {
	return scheme.Search{
		Links: s.Session.Links, Compiler: s.Session.Compiler, Driver: s.Session.DriverVersion(),
		Scheme: s.options.Scheme, Path: s.options.Path, Trying: s.options.Trying, Failed: s.options.Failed,
	}
}

// Choose chooses the fastest combination of everything that the options leave open. On GPUs it runs trials, which are
// cached, and returns their duration: 0 without trials. On CPU devices it keeps the choice of Open.
func (s *Setup) Choose(ctx context.Context) (took time.Duration, err error) {
	if err := s.Recall(ctx); err != nil || len(s.Trials) > 0 || !s.isOpen() {
		return 0, err
	}
	begin := time.Now()
	trials, known, err := s.try(ctx, false)
	if err != nil {
		return 0, err
	}
	if len(trials) > 0 && !known {
		took = time.Since(begin)
	}
	return took, s.takeFastest(trials)
}

// Recall chooses the fastest combination of everything that the options leave open from cached trials, if there are
// any.
func (s *Setup) Recall(ctx context.Context) error {
	if !s.isOpen() {
		return nil
	}
	trials, known, err := s.try(ctx, true)
	if err != nil || !known {
		return err
	}
	return s.takeFastest(trials)
}

// try returns the trials of everything that the options leave open; known selects cached trials only.
func (s *Setup) try(ctx context.Context, known bool) ([]scheme.Trial, bool, error) {
	search, o, try := s.search(), s.options.Options, Fastest
	if search.Known = known; known {
		try = recallTrials
	}
	search.Ahead = s.ahead
	if s.options.TryGroups {
		return eachGroup(ctx, s.Problem, s.Place, search, o, try)
	}
	return try(ctx, s.Problem, s.Place, search, o)
}

// isOpen reports whether the options leave anything to trials.
func (s *Setup) isOpen() bool {
	return s.options.Scheme == scheme.Auto || s.options.Scheme == "" || s.options.TryGroups
}

func (s *Setup) takeFastest(trials []scheme.Trial) error {
	if len(trials) == 0 {
		return nil
	}
	s.Trials, s.Problem.Group = trials, max(1, trials[0].Group)
	return s.take(trials[0].Scheme, trials[0].Path)
}

// Options returns the options of the run with the chosen scheme. If processes share the grid, Limit is 0, so that the
// processes have time to detect which of them is late.
func (s *Setup) Options() scheme.Options {
	o := s.options.Options
	o.Scheme = s.Scheme
	if !s.Place.Processes.IsAlone() {
		o.Limit = 0
	}
	return o
}

// Memory returns the memory that a run needs on each device of this process, see DryRun.
func (s *Setup) Memory(ctx context.Context) ([]scheme.Memory, error) {
	return DryRun(ctx, s.Problem, s.plan, s.Session.Compiler, s.Options())
}

// CheckMemory returns streams.ErrOutOfMemory if a run needs more memory than is free, and scheme.ErrUnsuited if the
// scheme does not support the problem.
func (s *Setup) CheckMemory(ctx context.Context) error {
	all, err := s.Memory(ctx)
	if err != nil {
		return err
	}
	return scheme.Fit(all)
}

// New prepares the problem for a run, see the function New.
func (s *Setup) New(ctx context.Context) (*Solver, error) {
	return New(ctx, s.Problem, s.plan, s.Session.Compiler)
}

// Restore is New for a run that continues from a checkpoint of Solver.State, possibly with another decomposition,
// scheme or path. The following steps have the same results as if the run had not ended.
func (s *Setup) Restore(ctx context.Context, saved *checkpoint.Checkpoint) (*Solver, error) {
	return newSolver(ctx, s.Problem, s.plan, s.Session.Compiler, saved)
}

// Close stops background compilation.
func (s *Setup) Close() {
	if s.ahead != nil {
		s.ahead.Stop()
	}
}

// Counted describes the number of devices for users: "4 GPUs of 2 processes on one host".
func (s *Setup) Counted() string {
	text := fmt.Sprintf("%d %s", len(s.Place.Devices), s.Session.Devices[0].Noun)
	if len(s.Place.Devices) > 1 {
		text += "s"
	}
	if p := s.Place.Processes; !p.IsAlone() {
		text += " of " + p.Counted()
	}
	return text
}

// Tried describes the time and the results of trials for users.
func (s *Setup) Tried(took time.Duration) string {
	return fmt.Sprintf("tried the schemes for %.2f s: %v", took.Seconds(), s.Trials)
}
