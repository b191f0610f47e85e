package solve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/faults"
	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/internal/progress"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/output"
	"github.com/halox/halox/results/trace"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// OpenSession opens devices. It writes messages for the user to notes: that no GPU was found, or that the cache cannot
// be written.
func OpenSession(ctx context.Context, devices halo.Devices, notes io.Writer) (*halo.Session, error) {
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

// BackendOf returns the backend that a config or a flag names, "" for auto.
func BackendOf(name string) streams.Backend {
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

// OpenConfig opens the devices of a config and plans on them. With ahead, it begins to compile the kernels of a run
// before links are measured. Notes for the user are written to notes, which also shows the progress of compilation if
// it is a status. Close closes the result.
func OpenConfig(
	ctx context.Context, c *configs.Run, p *mpi.Processes, notes io.Writer, ahead bool,
) (*solvers.Setup, error) {
	session, err := OpenSession(ctx, halo.Devices{
		Backend: BackendOf(c.Devices.Backend), Count: int(c.Devices.Count), IDs: c.Devices.IDs, Processes: p,
		Without: c.Devices.Without,
		Network: mpi.Network(c.Exchange.Network),
	}, notes)
	if err != nil {
		return nil, err
	}
	if show, ok := notes.(*progress.Status); ok && ahead {
		show.Compiler.Store(session.Compiler)
	}
	s, err := OpenOn(ctx, session, c, notes, ahead)
	if err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return s, nil
}

// OpenOn is OpenConfig on the devices of a session.
func OpenOn(
	ctx context.Context, s *halo.Session, c *configs.Run, notes io.Writer, ahead bool,
) (*solvers.Setup, error) {
	problem, err := c.Problem()
	if err != nil {
		return nil, err
	}
	o := solvers.OpenOptions{Options: solverOptions(c, problem), Ahead: ahead, TryGroups: c.Exchange.Steps == 0}
	o.Path = p2p.Path(c.Exchange.Path)
	o.Parts = c.Decomposition
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

// Close closes the devices and frees their memory.
func Close(s *solvers.Setup) error {
	s.Close()
	return s.Session.Close()
}

// CheckValues rejects an initial state, values of walls and an exact solution that are not finite.
func CheckValues(ctx context.Context, c *configs.Run, p *solvers.Problem) error {
	interrupt.During(ctx, "checking the config", nil)
	return errors.Join(command.As(command.Config, p.CheckValues(ctx)), checkExact(ctx, c, p))
}

// checkExact rejects exact solutions that are not finite after the last step; if a run may end before that, those that
// are not finite before the first step either.
func checkExact(ctx context.Context, c *configs.Run, p *solvers.Problem) error {
	for _, exact := range p.Exact {
		if exact == nil {
			continue
		}
		last := command.As(command.Config, p.CheckExact(ctx, exact, int64(c.Stop.Iterations)))
		if last == nil {
			continue
		}
		if c.Stop.Tolerance == 0 || !exact.Uses("t") {
			return last
		}
		if first := p.CheckExact(ctx, exact, 0); first != nil {
			return last
		}
		if context.Cause(ctx) != nil {
			return nil
		}
	}
	return nil
}

// OutputFiles returns the files that a config names, by their keys.
func OutputFiles(o configs.Output) []option.File {
	var all []option.File
	add := func(key string, files configs.Files) {
		for _, f := range files {
			all = append(all, option.File{Name: strings.TrimSuffix(key+"."+f.Field, "."), Path: f.Path})
		}
	}
	add("output.picture", o.Picture)
	add("output.field", o.Field)
	add("output.statistics", o.Statistics.Files())
	for i, p := range o.Probes {
		all = append(all, option.File{Name: fmt.Sprintf("output.probes.%d.file", i+1), Path: p.File})
	}
	return append(all, option.File{Name: "output.record", Path: o.Record})
}

// CheckConfig reports all errors that a run of a loaded config would find, as far as they do not depend on its devices:
// CPU devices represent them. The memory is checked only for CPU devices.
func CheckConfig(ctx context.Context, file string, c *configs.Run) error {
	p, err := c.Problem()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var errs []error
	for _, err := range []error{checkCut(ctx, c), p.CheckValues(ctx), checkExact(ctx, c, p)} {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
	}
	errs = append(errs, option.CheckFiles(OutputFiles(c.Output), option.File{Name: "the config", Path: file}))
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
	s, err := OpenOn(ctx, session, c, io.Discard, false)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Problem.CheckBoundary(s.Place.Decomposition); err != nil {
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

// Run is a config on open devices, ready to run.
type Run struct {
	*solvers.Setup
	config  *configs.Run
	from    *Restart        // nil for a run from the start
	child   *faults.Child   // nil unless the config has section faults
	earlier []results.Check // checks before the restart
	solver  *solvers.Solver
	tracing *tracing // nil without --trace
	outputs output.Files
	live    bool          // show pictures in the terminal
	also    func() string // shown with the progress, such as the last checkpoint; nil for nothing

	measures func(step int64) map[string]*float64 // by name, if they were taken at the step
}

// writes reports whether this process prints and writes the results: rank 0 does.
func (s *Run) writes() bool { return s.Place.Processes.Rank == 0 }

// ownDevices returns the devices of this process.
func (s *Run) ownDevices() []*streams.Device {
	return slices.DeleteFunc(slices.Clone(s.Place.Devices), func(d *streams.Device) bool { return d == nil })
}

// during begins a phase of the run. It cannot hang if there are only CPU devices of this process.
func (s *Run) during(ctx context.Context, doing string, keep func() string) {
	interrupt.During(ctx, doing, keep)
	s.limitWaits(ctx)
}

func (s *Run) limitWaits(ctx context.Context) {
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

// Grid is the attributes that describe the grid of a checkpoint.
type Grid struct {
	Config   any    `json:"config"`              // *configs.Run; decoded, a tree
	GridHash string `json:"grid_hash,omitempty"` // see gridHash; "" in older checkpoints
}

// savedRun is the attributes of the checkpoints of a run.
type savedRun struct {
	Grid
	Halox         results.Program     `json:"halox"`                    // the program
	Step          int64               `json:"step"`                     // steps completed
	Time          float64             `json:"time"`                     // simulated time; 0 for laplace
	Length        float64             `json:"length"`                   // of the last step; 0 for laplace
	StartMeasures map[string]*float64 `json:"start_measures,omitempty"` // before the first step
	History       []results.Check     `json:"history,omitempty"`        // checks so far
	Samples       int64               `json:"samples,omitempty"`        // of statistics
}

// Restart is the checkpoint from which a run continues; nil for a run from the start.
type Restart struct {
	*checkpoint.Checkpoint
	run savedRun
}

// log returns the log of --log json, of rank 0; one that writes nothing otherwise.
func (s *Run) log(ctx context.Context) *slog.Logger {
	if log := command.Of(ctx).Log(); log != nil && s.writes() {
		return log
	}
	return slog.New(slog.DiscardHandler)
}
