package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/output"
	"github.com/halox/halox/results/trace"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// openSession opens devices. It writes messages for the user to notes: that no GPU was found, or that the cache cannot
// be written.
func openSession(ctx context.Context, devices halo.Devices, notes io.Writer) (*halo.Session, error) {
	if err := cmp.Or(cache.At("").Check(), cache.At("").Keeps()); err != nil {
		fmt.Fprintln(notes, err)
	}
	interrupt.During(ctx, "opening the devices", nil)
	s, err := halo.Open(ctx, devices)
	if err != nil {
		return nil, inConfig(err)
	}
	if s.Note != "" {
		fmt.Fprintln(notes, s.Note)
	}
	if s.NoGPU != nil && command.Of(ctx).Verbose {
		fmt.Fprintln(notes, s.NoGPU)
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
	o, ok := errors.AsType[*halo.OptionError](err)
	if errors.Is(err, solvers.ErrNotFinite) {
		return command.As(command.Config, err)
	}
	if !ok || optionKeys[o.Option] == "" {
		return err
	}
	err = fmt.Errorf("%s: %w", optionKeys[o.Option], o.Err)
	if o.Option == "Devices.Backend" { // a driver that does not start
		return err
	}
	return command.As(command.Config, err)
}

// openConfig opens the devices of a config and plans on them. With ahead, it begins to compile what a run needs before
// links are measured. Notes for the user go to notes, which also shows how compiling goes if it is a status. closeSetup
// closes what it returns.
func openConfig(
	ctx context.Context, c *configs.Run, p *mpi.Processes, notes io.Writer, ahead bool,
) (*solvers.Setup, error) {
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
	s, err := openOn(ctx, session, c, notes, ahead)
	if err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return s, nil
}

// openOn is openConfig on the devices of a session.
func openOn(
	ctx context.Context, s *halo.Session, c *configs.Run, notes io.Writer, ahead bool,
) (*solvers.Setup, error) {
	problem, err := newProblem(c)
	if err != nil {
		return nil, err
	}
	o := solvers.OpenOptions{Options: solverOptions(c, problem), Ahead: ahead, TryGroups: c.Exchange.Steps == 0}
	o.Path = p2p.Path(c.Exchange.Path)
	copy(o.Parts[:], c.Decomposition)
	o.Trying = func(name scheme.Scheme, path p2p.Path) {
		interrupt.During(ctx, fmt.Sprintf("trying scheme %s by %s", name, path), nil)
	}
	o.Failed = func(name scheme.Scheme, path p2p.Path, err error) {
		fmt.Fprintf(notes, "scheme %s by %s is left out: %v\n", name, path, err)
	}
	interrupt.During(ctx, "checking the links", nil)
	setup, err := solvers.Open(ctx, s, problem, o)
	return setup, inConfig(err)
}

// closeSetup closes the devices and frees their memory.
func closeSetup(s *solvers.Setup) error {
	s.Close()
	return s.Session.Close()
}

// checkValues rejects an initial state, values of walls and an exact solution that are not finite.
func checkValues(ctx context.Context, c *configs.Run, p *solvers.Problem) error {
	interrupt.During(ctx, "checking the config", nil)
	return errors.Join(command.As(command.Config, p.CheckValues(ctx)), checkExact(ctx, c, p))
}

// checkExact rejects an exact solution that is not finite after the last step; if a run may end before that, one that
// is not finite before the first step either.
func checkExact(ctx context.Context, c *configs.Run, p *solvers.Problem) error {
	if c.Exact == "" {
		return nil
	}
	exact, err := stencil.Parse(c.Exact)
	if err != nil {
		return err
	}
	last := command.As(command.Config, p.CheckExact(ctx, exact, int64(c.Stop.Iterations)))
	if last == nil || c.Stop.Tolerance == 0 || !exact.Uses("t") {
		return last
	}
	if first := p.CheckExact(ctx, exact, 0); first == nil || context.Cause(ctx) != nil {
		return first
	}
	return last
}

// outputFiles returns the files that a config names, by their keys.
func outputFiles(o configs.Output) []option.File {
	return []option.File{{Name: "output.picture", Path: o.Picture}, {Name: "output.field", Path: o.Field},
		{Name: "output.record", Path: o.Record}}
}

// checkConfig rejects, all at once, what a run of a config rejects after it was loaded, as far as that can be told
// without its devices: CPU devices stand for them. Whether the grid fits into memory is known of CPU devices only.
func checkConfig(ctx context.Context, file string, c *configs.Run) error {
	p, err := newProblem(c)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var errs []error
	for _, err := range []error{checkCut(ctx, c), p.CheckValues(ctx), checkExact(ctx, c, p)} {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
	}
	errs = append(errs, option.CheckFiles(outputFiles(c.Output), option.File{Name: "the config", Path: file}))
	return errors.Join(errs...)
}

func checkCut(ctx context.Context, c *configs.Run) (err error) {
	parts := domain.Vec{1, 1, 1}
	copy(parts[:], c.Decomposition)
	devices := max(int(c.Devices.Count), int(parts.Product()))
	session, err := halo.Open(ctx, halo.Devices{Backend: streams.Host, Count: devices})
	if err != nil {
		return inConfig(err)
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	s, err := openOn(ctx, session, c, io.Discard, false)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Problem.CheckWalls(s.Place.Decomposition); err != nil {
		return fmt.Errorf("boundary: %w", err)
	}
	if c.Devices.Backend != string(streams.Host) {
		return nil
	}
	if err := solvers.Fit(s.Problem, s.Place); err != nil {
		return fmt.Errorf("grid.size: %w", err)
	}
	return nil
}

// solverRun is a config on open devices, ready to run.
type solverRun struct {
	*solvers.Setup
	config  *configs.Run
	solver  *solvers.Solver
	tracing *tracing // nil without --trace
	outputs output.Files
}

// writes reports whether this process prints and writes the results: rank 0 does.
func (s *solverRun) writes() bool { return s.Place.Processes.Rank == 0 }

// ownDevices returns the devices of this process.
func (s *solverRun) ownDevices() []*streams.Device {
	return slices.DeleteFunc(slices.Clone(s.Place.Devices), func(d *streams.Device) bool { return d == nil })
}

// during says what the run does from now on. It cannot hang where there are only CPU devices of this process.
func (s *solverRun) during(ctx context.Context, doing string, keep func() string) {
	interrupt.During(ctx, doing, keep)
	s.limitWaits(ctx)
}

func (s *solverRun) limitWaits(ctx context.Context) {
	if s.Place.Processes.IsAlone() && s.Place.FirstDevice().HostMemory {
		interrupt.Limit(ctx, interrupt.None)
	} else {
		interrupt.Limit(ctx, 0)
	}
}

// tracing is the trace of a run; nil without --trace.
type tracing struct {
	file   string
	window streams.Window
	tracer *streams.Tracer
	found  *trace.Trace    // once the run is over
	output *results.Output // in the record
}
