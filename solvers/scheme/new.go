package scheme

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// New prepares a step on the devices of a session: it plans the exchanges, chooses the scheme if the options
// say Auto, compiles, and allocates everything that steps need. The content of the variables does not change.
// If a device or the host has too little memory, see DryRun, the error is streams.ErrOutOfMemory, and nothing
// is allocated. Close frees what New made, but not the variables.
//
// If processes share the grid, all of them call it, and errors about memory and compilation are the same on
// all.
//
// On GPUs Auto is the fastest scheme by trial, see Fastest; the trials step copies of the variables, and if
// there is no memory for these Choose decides. The options are those of Steps. If the requested scheme cannot
// run the step, the error is ErrUnsuited.
func New(ctx context.Context, s *halo.Session, step *Step, o Options) (*Runner, error) {
	if err := step.Check(); err != nil {
		return nil, err
	}
	place := step.placement()
	if err := agree(place, "begin to make a step ready",
		errors.Join(live(ctx), s.Suits(place), o.checkNorms(step))); err != nil {
		return nil, err
	}
	if o.Path == p2p.Auto {
		o.Path = place.Path // like exchanges of the session
	}
	o.Path, o.Scheme = cmp.Or(o.Path, place.Path, p2p.Auto), cmp.Or(o.Scheme, Auto)
	search := Search{Links: s.Links, Compiler: s.Compiler, Path: o.Path, Driver: s.DriverVersion()}
	search.Ahead = Ahead(ctx, step, search, o)
	defer search.Ahead.Stop()
	o, plan, err := o.plan(ctx, s, search, step)
	if err = agree(place, "see whether a run fits", err); err != nil {
		return nil, err
	}
	x, err := NewRunner(ctx, step, plan, s.Compiler)
	if err != nil {
		return nil, err
	}
	x.options = o
	return x, nil
}

// plan returns the options with a scheme, and its plan of a step, if the run fits.
func (o Options) plan(ctx context.Context, s *halo.Session, search Search, step *Step) (Options, *Plan, error) {
	if len(localRanks(step.placement())) > 1 {
		if err := s.Measure(ctx); err != nil {
			return o, nil, err
		}
	}
	o, err := o.choose(ctx, search, step)
	if err != nil {
		return o, nil, err
	}
	plan, err := step.Plan(s.Links, o.Path)
	if err != nil {
		return o, nil, err
	}
	return o, plan, fits(ctx, step, plan, s.Compiler, o)
}

// choose returns the options with a scheme and its path.
func (o Options) choose(ctx context.Context, s Search, step *Step) (Options, error) {
	named := o.Scheme != Auto
	if !named {
		trials, err := tryCopy(ctx, s, step, o)
		if err != nil {
			return o, err
		}
		if len(trials) > 0 {
			o.Scheme, o.Path, o.trials = trials[0].Scheme, trials[0].Path, trials
			return o, nil
		}
		o.Scheme = Choose(Auto, step.placement())
	}
	d, err := find(o.Scheme)
	if err != nil {
		return o, err
	}
	if o.Path == p2p.Auto && d.needs.Path != "" {
		o.Path = d.needs.Path
	}
	if named && o.Order != "" && !slices.Contains(d.needs.Orders, o.Order) {
		err = fmt.Errorf("scheme: %w: Options.Order must be an order of scheme %s, one of %q, got %q", ErrUnsuited,
			d.name, d.needs.Orders, o.Order)
	}
	return o, errors.Join(d.needs.CheckPath(o.Scheme, o.Path), err)
}

// tryCopy tries the schemes with copies of the step's variables, if there is memory for these.
func tryCopy(ctx context.Context, s Search, step *Step, o Options) (trials []Trial, err error) {
	place := step.placement()
	if place.FirstDevice().HostCores || !place.Processes.IsAlone() {
		return nil, nil // nothing is tried on CPU devices
	}
	scratch, variables, err := step.copy(place)
	if errors.Is(err, streams.ErrOutOfMemory) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for v, u := range variables {
		err = errors.Join(err, v.copyTo(u))
	}
	if err == nil {
		trials, _, err = Fastest(ctx, scratch, s, o) // leaves nothing queued
	}
	for _, u := range variables {
		err = errors.Join(err, u.Close())
	}
	return trials, err
}

// copyTo copies all levels to another variable of the same placement: a point function may be slow on values
// that do not occur in runs, such as NaN.
func (v *Variable) copyTo(u *Variable) (err error) {
	var all streams.Resources
	defer func() { err = errors.Join(err, all.Close()) }()
	count, _ := v.Spec.Arrays()
	for level, f := range v.levels {
		for _, rank := range localRanks(f.Placement) {
			s := all.NewStream(f.Placement.Devices[rank], streams.Normal)
			if err := all.Err(); err != nil {
				return err
			}
			for c := range count {
				if err := s.Copy(u.levels[level].Array(rank, c).Data, f.Array(rank, c).Data); err != nil {
					return err
				}
			}
			if err := s.Sync(defaultLimit); err != nil {
				return err
			}
		}
	}
	return nil
}

// Trials returns the trials that chose the scheme, the fastest first, or none if the options named the
// scheme.
func (r *Runner) Trials() []Trial {
	if r == nil {
		return nil
	}
	return r.options.trials
}

// Steps runs n steps with the options passed to New, see Run.
func (r *Runner) Steps(ctx context.Context, n int64) (Result, error) {
	if r == nil {
		return Result{}, errNoRunner
	}
	o := r.options
	o.Steps = n
	return r.Run(ctx, o)
}
