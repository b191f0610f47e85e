package solvers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
)

// OpenOptions say how a problem is opened on the devices of a session.
type OpenOptions struct {
	scheme.Options // of the run; Scheme and Path may be Auto

	Parts   domain.Vec // how the grid is cut, as halo.Cutting.Parts
	Devices int        // how many are used, as halo.Cutting.Devices

	TryGroups bool // Setup.Choose also tries numbers of steps between two exchanges, instead of taking Problem.Group
	Ahead     bool // what the run and its trials need is compiled in the background, before links are measured

	Trying func(name scheme.Scheme, path p2p.Path)            // see scheme.Search; may be nil
	Failed func(name scheme.Scheme, path p2p.Path, err error) // see scheme.Search; may be nil
}

// Setup is a problem on the devices of a session, cut and planned, that has no fields yet. Its methods lead to a run,
// in the order Choose, CheckMemory, New; Close ends what compiles in the background. Where processes share the grid all
// call them.
type Setup struct {
	Session *halo.Session
	Problem *Problem // a copy of what was opened, whose Group Choose sets
	Place   *halo.Placement
	Plan    *halo.Plan     // of the exchange in a step
	Scheme  scheme.Scheme  // never Auto
	Trials  []scheme.Trial // the shortest first, if they chose the scheme

	options OpenOptions
	plan    *scheme.Plan
	ahead   *kernels.Ahead
}

// PlanError is the error of Open where the grid can be cut but its messages cannot be sent.
type PlanError struct{ error }

// Unwrap returns the error of Problem.NewPlan.
func (p *PlanError) Unwrap() error { return p.error }

// Open cuts the grid of a problem over the devices of a session, chooses the scheme as scheme.Choose does where it is
// Auto, and plans the messages. The errors are those of halo.Session.Cut, a halo.OptionError of "Options.Scheme" where
// the scheme cannot take so many devices, and PlanError.
func Open(ctx context.Context, session *halo.Session, p *Problem, o OpenOptions) (*Setup, error) {
	of := *p
	s := &Setup{Session: session, Problem: &of, options: o}
	needs := o.Scheme.Needs() // none of Auto
	path := cmp.Or(o.Path, p2p.Auto)
	if path == p2p.Auto {
		path = cmp.Or(needs.Path, p2p.Auto)
	}
	cutting := halo.Cutting{
		Size: p.Grid.Size[:p.Grid.Dims], Periodic: p.Grid.Periodic, Fields: []halo.Spec{p.Field()},
		Parts: o.Parts, Devices: o.Devices, Path: path,
	}
	if o.Ahead {
		if draft, err := session.Draft(cutting); err == nil { // else Cut returns the error
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

// orFewerSteps adds to the error of a cut that fewer steps between two exchanges would do too, if they would.
func (s *Setup) orFewerSteps(c halo.Cutting, err error) error {
	o, ok := errors.AsType[*halo.OptionError](err)
	if !ok || s.Problem.Group <= 1 {
		return err
	}
	one := *s.Problem
	one.Group = 1
	c.Fields = []halo.Spec{one.Field()}
	if _, failed := s.Session.Draft(c); failed != nil {
		return err
	}
	o.Err = fmt.Errorf("%w, or fewer steps between two exchanges than %d", o.Err, s.Problem.Group)
	return err
}

// take plans the messages of a scheme.
func (s *Setup) take(name scheme.Scheme, path p2p.Path) (err error) {
	s.Scheme = name
	if s.plan, err = s.Problem.NewPlan(s.Place, s.Session.Links, path); err != nil {
		return &PlanError{err}
	}
	s.Plan = s.plan.Stages[0]
	return nil
}

func (s *Setup) search() scheme.Search {
	return scheme.Search{
		Links: s.Session.Links, Compiler: s.Session.Compiler, Driver: s.Session.DriverVersion(),
		Scheme: s.options.Scheme, Path: s.options.Path, Trying: s.options.Trying, Failed: s.options.Failed,
	}
}

// Choose takes the fastest of what the options leave open, on GPUs by trials, which are remembered, and says how long
// they took: 0 if there were none. CPU devices keep what Open chose.
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

// Recall takes the fastest of what the options leave open by remembered trials, if there are any.
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

// try returns the trials of what the options leave open; known asks for those that are remembered.
func (s *Setup) try(ctx context.Context, known bool) ([]scheme.Trial, bool, error) {
	search, o, try := s.search(), s.options.Options, Fastest
	if search.Known = known; known {
		try = recallTrials
	}
	search.Ahead, o.Order = s.ahead, cmp.Or(o.Order, scheme.LeftRight)
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

// Options returns the options of the run, by the scheme that was chosen. Where processes share the grid they have no
// limit of their own, so that the processes have time to find out which of them is late.
func (s *Setup) Options() scheme.Options {
	o := s.options.Options
	o.Scheme = s.Scheme
	if s.Place.Processes != nil {
		o.Limit = 0
	}
	return o
}

// Memory returns what a run holds on each device of this process, see DryRun.
func (s *Setup) Memory(ctx context.Context) ([]scheme.Memory, error) {
	return DryRun(ctx, s.Problem, s.plan, s.Session.Compiler, s.Options())
}

// CheckMemory returns an error if a run takes more memory than is free, streams.ErrOutOfMemory, or if the scheme cannot
// run the problem, scheme.ErrUnsuited.
func (s *Setup) CheckMemory(ctx context.Context) error {
	all, err := s.Memory(ctx)
	if err != nil {
		return err
	}
	return scheme.Fit(all)
}

// New makes the problem ready to run, see the function New.
func (s *Setup) New(ctx context.Context) (*Solver, error) {
	return New(ctx, s.Problem, s.plan, s.Session.Compiler)
}

// Close ends what compiles in the background.
func (s *Setup) Close() {
	if s.ahead != nil {
		s.ahead.Stop()
	}
}

// Counted says how many devices there are, for users: "4 cuda devices of 2 processes on one host".
func (s *Setup) Counted() string {
	if len(s.Place.Devices) == 1 {
		return fmt.Sprintf("1 %s device", s.Session.Backend)
	}
	text := fmt.Sprintf("%d %s devices", len(s.Place.Devices), s.Session.Backend)
	if p := s.Place.Processes; !p.IsAlone() {
		text += " of " + p.Counted()
	}
	return text
}

// Tried says how long trials took and what they found, for users.
func (s *Setup) Tried(took time.Duration) string {
	return fmt.Sprintf("tried the schemes for %.2f s: %v", took.Seconds(), s.Trials)
}
