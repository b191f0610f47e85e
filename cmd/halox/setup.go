package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results/trace"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// openSession opens the devices that a config wants. What the user should know of it, that
// there is no GPU or that the cache is not to be trusted or cannot be written, goes to notes.
func openSession(ctx context.Context, c configs.Devices, notes io.Writer) (*halo.Session, error) {
	return openShared(ctx, c, shared{}, notes)
}

// shared is with whom a session shares grids.
type shared struct {
	processes *mpi.Processes // nil where this process is alone
	network   mpi.Network    // of messages to the others
}

// openShared is openSession where processes share grids.
func openShared(ctx context.Context, c configs.Devices, with shared, notes io.Writer) (*halo.Session, error) {
	if err := cmp.Or(cache.At("").Check(), cache.At("").Keeps()); err != nil {
		fmt.Fprintln(notes, err)
	}
	during(ctx, "opening the devices", nil)
	devices := devicesOf(c)
	devices.Processes, devices.Network = with.processes, with.network
	s, err := halo.Open(ctx, devices)
	if err != nil {
		return nil, inConfig(err)
	}
	if s.Note != "" {
		fmt.Fprintln(notes, s.Note)
	}
	return s, nil
}

// devicesOf translates the config.
func devicesOf(c configs.Devices) halo.Devices {
	d := halo.Devices{Backend: streams.Backend(c.Backend), Count: int(c.Count), IDs: c.IDs}
	if c.Backend == configs.Auto {
		d.Backend = ""
	}
	return d
}

// optionKeys are the keys of a config that set the options of a session.
var optionKeys = map[string]string{
	"Devices.Backend": "devices.backend", "Devices.Count": "devices.count", "Devices.IDs": "devices.ids",
	"Devices.Network": "exchange.network", "Cutting.Size": "grid.size", "Cutting.Parts": "decomposition", "Cutting.Devices": "devices.count",
}

// inConfig names the key of a config in place of the option that cannot be had.
func inConfig(err error) error {
	if o, ok := errors.AsType[*halo.OptionError](err); ok && optionKeys[o.Option] != "" {
		return fmt.Errorf("%s: %w", optionKeys[o.Option], o.Err)
	}
	return err
}

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
		Driver: w.session.DriverVersion(),
	}
}

// take takes the fastest.
func (w *setup) take(trials []scheme.Trial) (err error) {
	w.scheme, w.tried, w.problem.Group = trials[0].Scheme, trials, max(1, trials[0].Group)
	w.plan, err = halo.NewPlan(w.place, w.session.Links, trials[0].Path, w.problem.Field())
	return err
}

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

// What links subdomains of different processes is called.
const (
	linkOfHosts     = "network"
	linkOfProcesses = "processes"
)

// kindOf says what links two subdomains, as far as this process knows.
func (w *setup) kindOf(from, to int) string {
	if p := w.place.Processes; !p.IsAlone() {
		a, b := w.place.Owners[from], w.place.Owners[to]
		switch {
		case p.Nodes[a] != p.Nodes[b]:
			return linkOfHosts
		case a != b:
			return linkOfProcesses
		}
	}
	if link := w.session.Links.Between(w.place.Devices[from], w.place.Devices[to]); link != nil {
		return orDash(link.Kind)
	}
	return "itself"
}

// memory returns what a run holds on each device.
func (w *setup) memory(ctx context.Context) ([]scheme.Memory, error) {
	o := solverOptions(w.config)
	o.Scheme = w.scheme
	return solvers.DryRun(ctx, w.problem, w.plan, w.session.Compiler, o)
}

// tracing is the trace of a run under way; nil where none is wanted.
type tracing struct {
	file   string
	window streams.Window
	tracer *streams.Tracer
	found  *trace.Trace // once the run is over
}
