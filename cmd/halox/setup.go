package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results/trace"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// openSession opens devices. Notes for the user, such as that there is no GPU, or that the cache cannot be written, go
// to notes.
func openSession(ctx context.Context, devices halo.Devices, notes io.Writer) (*halo.Session, error) {
	if err := cmp.Or(cache.At("").Check(), cache.At("").Keeps()); err != nil {
		fmt.Fprintln(notes, err)
	}
	during(ctx, "opening the devices", nil)
	s, err := halo.Open(ctx, devices)
	if err != nil {
		return nil, inConfig(err)
	}
	if s.Note != "" {
		fmt.Fprintln(notes, s.Note)
	}
	return s, nil
}

// backendOf returns the backend that a config or a flag names, "" for auto.
func backendOf(name string) streams.Backend {
	if name == configs.Auto {
		return ""
	}
	return streams.Backend(name)
}

// optionKeys are the keys of a config that set the options of a session.
var optionKeys = map[string]string{
	"Devices.Backend": "devices.backend", "Devices.Count": "devices.count", "Devices.IDs": "devices.ids",
	"Devices.Network": "exchange.network", "Cutting.Size": "grid.size", "Cutting.Parts": "decomposition",
	"Cutting.Devices": "devices.count", "Options.Scheme": "exchange.scheme",
}

// inConfig names the key of a config instead of the option that is wrong.
func inConfig(err error) error {
	if o, ok := errors.AsType[*halo.OptionError](err); ok && optionKeys[o.Option] != "" {
		return fmt.Errorf("%s: %w", optionKeys[o.Option], o.Err)
	}
	return err
}

// setup is a config with what it leads to on the devices of a session.
type setup struct {
	*solvers.Setup
	config *configs.Run
}

// newSetup opens the devices of a config and plans on them. With ahead, it begins to compile what a run needs before
// links are measured. Notes for the user go to notes, which also shows how compiling goes if it is a status.
func newSetup(ctx context.Context, c *configs.Run, p *mpi.Processes, notes io.Writer, ahead bool) (*setup, error) {
	session, err := openSession(ctx, halo.Devices{
		Backend: backendOf(c.Devices.Backend), Count: int(c.Devices.Count), IDs: c.Devices.IDs, Processes: p,
		Network: mpi.Network(c.Exchange.Network),
	}, notes)
	if err != nil {
		return nil, err
	}
	if show, ok := notes.(*status); ok && ahead {
		show.compiler.Store(session.Compiler)
	}
	w, err := newSetupOn(ctx, session, c, notes, ahead)
	if err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return w, nil
}

// newSetupOn is newSetup on the devices of a session that was opened for the config.
func newSetupOn(ctx context.Context, s *halo.Session, c *configs.Run, notes io.Writer, ahead bool) (*setup, error) {
	problem, err := newProblem(c)
	if err != nil {
		return nil, err
	}
	o := solvers.OpenOptions{Options: solverOptions(c), Ahead: ahead, TryGroups: c.Exchange.Steps == 0}
	o.Path = p2p.Path(c.Exchange.Path)
	copy(o.Parts[:], c.Decomposition)
	o.Trying = func(name scheme.Scheme, path p2p.Path) {
		during(ctx, fmt.Sprintf("trying scheme %s by %s", name, path), nil)
	}
	o.Failed = func(name scheme.Scheme, path p2p.Path, err error) {
		fmt.Fprintf(notes, "scheme %s by %s is left out: %v\n", name, path, err)
	}
	during(ctx, "looking at the links", nil)
	opened, err := solvers.Open(ctx, s, problem, o)
	if err != nil {
		return nil, openError(c, problem, err)
	}
	return &setup{opened, c}, nil
}

// openError names the key of the config that an error of solvers.Open is about. If a cut lacks layers for several steps
// between two exchanges, it says that fewer would do too.
func openError(c *configs.Run, p *solvers.Problem, err error) error {
	o, ok := errors.AsType[*halo.OptionError](err)
	switch {
	case ok && c.Decomposition != nil && p.Group > 1:
		return cmp.Or(checkCut(c, p), inConfig(err))
	case ok && o.Option == "Devices.Count":
		return wide(p, inConfig(err))
	}
	return inConfig(err)
}

// close frees the devices and what is on them.
func (w *setup) close() error {
	w.Close()
	return w.Session.Close()
}

// writes reports whether this process prints and writes the results: rank 0 does.
func (w *setup) writes() bool { return w.Place.Processes.Rank == 0 }

// choose finds what the config leaves open, on GPUs by trials.
func (w *setup) choose(ctx context.Context, notes io.Writer) error {
	took, err := w.Choose(ctx)
	if took > 0 && err == nil {
		fmt.Fprintln(notes, w.Tried(took))
	}
	return err
}

// solverRun is a setup with its solver, ready to run.
type solverRun struct {
	*setup
	solver  *solvers.Solver
	tracing *tracing // nil without --trace
}

// tracing is the trace of a run; nil without --trace.
type tracing struct {
	file   string
	window streams.Window
	tracer *streams.Tracer
	found  *trace.Trace // once the run is over
}
