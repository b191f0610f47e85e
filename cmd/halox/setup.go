package main

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
)

// setup is a config with the session, the placement and the plan that it leads to. It has
// no fields yet.
type setup struct {
	config  *configs.Run
	problem *solvers.Problem
	session *halo.Session
	place   *halo.Placement
	scheme  scheme.Scheme
	tried   []scheme.Trial // where the scheme is the fastest of some, these
	plan    *halo.Plan     // of the exchange in a step
	ahead   *kernels.Ahead // compiles what a run needs; nil where none is to follow
}

// newSetup opens the devices and plans. Notes for the user go to notes.
func newSetup(ctx context.Context, c *configs.Run, notes io.Writer) (*setup, error) {
	return openSetup(ctx, c, nil, notes, func(*setup) {})
}

// openSetup is newSetup of what is prepared with the session and the problem, before links are measured.
func openSetup(ctx context.Context, c *configs.Run, processes *mpi.Processes, notes io.Writer, prepare func(w *setup)) (*setup, error) {
	session, err := openShared(ctx, c.Devices, shared{processes, mpi.Network(c.Exchange.Network)}, notes)
	if err != nil {
		return nil, err
	}
	w := &setup{config: c, session: session}
	if w.problem, err = newProblem(c); err == nil {
		prepare(w)
		during(ctx, "looking at the links", nil)
		err = w.planned(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// setUp plans on the devices of a session, which was opened for the config.
func setUp(ctx context.Context, session *halo.Session, c *configs.Run) (w *setup, err error) {
	w = &setup{config: c, session: session}
	if w.problem, err = newProblem(c); err != nil {
		return nil, err
	}
	return w, w.planned(ctx)
}

// planned cuts the grid and plans.
func (w *setup) planned(ctx context.Context) (err error) {
	c, session := w.config, w.session
	if w.place, err = session.Cut(ctx, w.cutting()); err != nil {
		return w.tooWide(err)
	}
	if err := takesDevices(scheme.Scheme(c.Exchange.Scheme), len(w.place.Devices)); err != nil {
		return under("exchange.scheme", err)
	}
	w.scheme = scheme.Choose(scheme.Scheme(c.Exchange.Scheme), w.place)
	w.plan, err = halo.NewPlan(w.place, session.Links, w.path(), w.problem.Field())
	return err
}

// tooWide puts the error of a cut under the key of the config that it is of. Where several steps go between two exchanges, it says
// that fewer would do too, if the cut lacks layers.
func (w *setup) tooWide(err error) error {
	if w.config.Decomposition != nil && w.problem.Group > 1 {
		return cmp.Or(checkCut(w.config, w.problem), inConfig(err))
	}
	if o, ok := errors.AsType[*halo.OptionError](err); ok && o.Option == "Devices.Count" {
		return wide(w.problem, inConfig(err))
	}
	return inConfig(err)
}

// cutting translates the config.
func (w *setup) cutting() halo.Cutting {
	grid := w.problem.Grid
	c := halo.Cutting{Size: w.config.Grid.Size, Periodic: grid.Periodic, Fields: []halo.Spec{w.problem.Field()}, Path: w.path()}
	copy(c.Parts[:], w.config.Decomposition)
	return c
}

// path returns the path that is wanted: where the config leaves it open, that of the scheme.
func (w *setup) path() p2p.Path {
	path := p2p.Path(w.config.Exchange.Path)
	if path == p2p.Auto {
		path = cmp.Or(needsOf(scheme.Scheme(w.config.Exchange.Scheme)).Path, p2p.Auto)
	}
	return path
}

// close frees the devices and what is on them.
func (w *setup) close() error {
	if w.ahead != nil {
		w.ahead.Stop()
	}
	return w.session.Close()
}
