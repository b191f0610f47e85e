// Package solve runs the problem of a config: it opens devices, runs steps, writes checkpoints and outputs, and fills
// in the record.
package solve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/faults"
	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/internal/progress"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/output"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
)

// Children runs the command line of a context in child processes, see section faults of a config.
func Children(ctx context.Context, c *configs.Run) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	o := faults.Options{Restarts: c.Faults.Restarts, Config: text, Count: int(c.Devices.Count), IDs: c.Devices.IDs}
	o.Checkpoint = func() (int64, bool) {
		all, _ := checkpoint.List(c.Checkpoint.Folder) // none in a folder that is not there yet
		for _, e := range all {
			if e.Err == nil {
				return e.Step, true
			}
		}
		return 0, false
	}
	return faults.Run(ctx, o)
}

// Options say how to run a config.
type Options struct {
	Processes *mpi.Processes // that share the grid, see mpi.Join
	From      *Restart       // checkpoint from which the run continues; nil for a run from the start
	Child     *faults.Child  // this process, see Children; nil if it is not a child
	Live      bool           // show pictures of a field in the terminal
	Trace     Trace          // steps to trace
}

// Open prepares the run of a config, and shows its progress. Close closes the Setup of the result.
func Open(ctx context.Context, c *configs.Run, o Options, show *progress.Status) (s *Run, err error) {
	setup, err := openWorking(ctx, c, o, show)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, Close(setup))
		}
	}()
	interrupt.During(ctx, "checking the config", nil)
	if err := setup.Place.Agree(ctx, "look at the exact solution", checkExact(ctx, c, setup.Problem)); err != nil {
		return nil, err
	}
	interrupt.During(ctx, "trying the schemes", nil)
	took, err := setup.Choose(ctx)
	if err != nil {
		return nil, err
	}
	if took > 0 {
		fmt.Fprintln(show, setup.Tried(took))
	}
	if err := setup.Place.Agree(ctx, "see whether the run fits",
		command.As(command.Config, setup.CheckMemory(ctx))); err != nil {
		return nil, err
	}
	interrupt.During(ctx, "filling fields and compiling", nil)
	s = &Run{Setup: setup, config: c, from: o.From, child: o.Child, live: o.Live}
	if err := setup.Place.Agree(ctx, "trace the run", s.beginTrace(o.Trace)); err != nil {
		return nil, err
	}
	if from := o.From; from != nil {
		if s.solver, err = setup.Restore(ctx, from.Checkpoint); err == nil {
			s.earlier, err = from.run.History, s.solver.SetTime(from.run.Time, from.run.Length)
		}
		if err == nil && s.solver.Statistics != nil && from.run.Samples > 0 {
			err = s.solver.Statistics.Restore(ctx, from.Checkpoint, from.run.Samples)
		}
	} else {
		s.solver, err = setup.New(ctx)
	}
	return s, inConfig(err)
}

// openWorking opens the config on the devices that work: of a child process, see faults.Run, without those that were
// lost.
func openWorking(
	ctx context.Context, c *configs.Run, o Options, show *progress.Status,
) (*solvers.Setup, error) {
	step, child, fewer := int64(0), o.Child, false
	if o.From != nil {
		step = o.From.Step
	}
	if child != nil {
		c.Devices.Backend, c.Devices.Without = cmp.Or(child.Backend(), c.Devices.Backend), child.Without
		if fewer = child.Hidden; fewer { // all that are visible
			c.Devices.Count, c.Devices.IDs = 0, nil
		}
	}
	for {
		if (fewer || len(c.Devices.Without) > 0) && c.Decomposition != nil {
			fmt.Fprintln(show, "decomposition: now auto, because devices were left out")
			c.Decomposition = nil
		}
		setup, err := OpenConfig(ctx, c, o.Processes, show, true)
		if err != nil {
			return nil, err
		}
		lost := child.Opened(setup.Session, step)
		if lost == "" {
			return setup, nil
		}
		c.Devices.Without = append(c.Devices.Without, lost)
		if err := Close(setup); err != nil {
			return nil, err
		}
	}
}

// Solve solves the problem and writes the outputs. It prints a summary to out, and progress and messages to notes.
// After a failure it writes a record of the completed steps. begin is when the command began.
func (s *Run) Solve(ctx context.Context, begin time.Time, out, notes io.Writer) error {
	record, err := s.newRecord(ctx, begin)
	if err != nil {
		return err
	}
	for _, f := range s.config.Output.Picture {
		s.outputs.Add(output.Picture, f.Path)
	}
	for _, f := range slices.Concat(s.config.Output.Field, s.config.Output.Statistics.Files()) {
		s.outputs.Add(output.Field, f.Path)
	}
	if s.tracing != nil {
		s.tracing.output = s.outputs.Add("trace", s.tracing.file)
	}
	record.Run.Outputs = s.outputs.All
	all := int64(s.config.Stop.Iterations)
	if all == configs.AnySteps {
		all = -1
	}
	log := s.log(ctx)
	log.Info("begin", "solver", s.config.Solver, "size", s.config.Grid.Size, "precision", s.config.Precision,
		"scheme", s.Scheme, "path", record.Run.Path, "devices", len(s.Place.Devices), "steps", all)
	saves, err := s.newSaver(ctx, record)
	if err != nil {
		return errors.Join(err, s.solver.Close())
	}
	bar := s.newBar(ctx, notes, s.config.Solver, "steps", all)
	setup := time.Since(begin)
	options, begun := s.Options(), s.solver.Done()
	options.Steps -= begun
	bar.Set(begun)
	options.Progress = func(steps int64) {
		bar.Set(steps)
		s.child.At(steps)
		interrupt.Progress(ctx)
	}
	live, err := s.openOutputs(ctx, record.Run)
	if err != nil {
		return errors.Join(err, live.close(record.Run))
	}
	keep := s.recordWriter(record, func(run *results.Run) {
		run.Iterations, run.Stopped = int(bar.Done()), results.StopInterrupted
	})
	s.during(ctx, "stepping", keep)
	interrupt.Busy(ctx, func() bool { // norms of the last step may need kernels that no step has needed
		begun, done := s.Session.Compiler.Compiled()
		return begun != done && bar.Done() > 0
	})
	kept := s.writePartial(ctx, keep)
	limited, end, limit := ctx, func() {}, s.config.Stop.Limit()
	if limit > 0 && s.writes() { // the clock of rank 0 decides
		if s.child != nil {
			limit = max(1, limit-s.child.Spent)
		}
		limited, end = context.WithTimeout(ctx, limit)
	}
	events, endLive := s.withLive(bar, append(live.events, saves.events()...))
	result, err := s.measured(limited, options, record.Run, events...)
	if err == nil {
		err = endLive(ctx, result)
	}
	if limit > 0 && result.Stopped == scheme.StoppedInterrupted {
		late, failed := mpi.Broadcast(context.Background(), s.Place.Processes, "agree on why the run stops",
			limited.Err() != nil && ctx.Err() == nil, 0)
		if err = errors.Join(err, failed); late {
			result.Stopped = scheme.Stopped(results.StopWallTime)
		}
	}
	end()
	kept()
	interrupt.During(ctx, "", nil)
	s.addResult(record, result, setup)
	err = errors.Join(err, live.close(record.Run))
	if err != nil {
		record.Run.Iterations = max(record.Run.Iterations, int(bar.Done())) // a run that fails returns none
	} else if result.Stopped != scheme.StoppedDiverged {
		err = saves.last(ctx, result)
	}
	if err == nil {
		err = saves.close(ctx)
	}
	if !s.Place.Processes.IsAlone() {
		interrupt.Patience(ctx, WaitLimit) // processes only wait for each other, which has limits of its own
	}
	s.during(ctx, "reading the results", s.recordWriter(record, nil))
	bar.Close()
	if err == nil && result.Stopped == scheme.StoppedDiverged {
		err = command.As(command.Diverged, fmt.Errorf("the solution has non-finite values at step %d%s", result.Steps,
			divergenceHint(s.config)))
	}
	solved := err == nil
	traced := s.endTrace(ctx, record, err)
	if solved {
		err = s.writeFields(ctx, record, notes)
	}
	if err = errors.Join(err, traced, s.commit(ctx, record)); solved && s.Place.Processes.Err() == nil {
		err = errors.Join(err, s.compare(ctx, record))
	}
	if record.End(err); err != nil && result.Stopped != scheme.StoppedDiverged {
		record.Run.Stopped = results.StopError
	}
	record.Add(record.RunRow())
	if name := s.config.Output.Record; name != "" && s.writes() {
		interrupt.Limit(ctx, interrupt.None)
		err = errors.Join(err, record.Write(name))
	}
	s.during(ctx, "ending", nil) // all outputs are complete
	for _, o := range record.Run.Outputs {
		if log := log.With("kind", o.Kind, "file", o.File); o.Missing == "" {
			log.Info("output")
		} else {
			log.Warn("output", "missing", o.Missing)
		}
	}
	log.Info("end", "stopped", record.Run.Stopped, "steps", record.Run.Iterations, "seconds", record.Run.LoopSeconds,
		"updates_per_second", record.Run.UpdatesPerSecond, "record", s.config.Output.Record)
	if s.writes() {
		err = errors.Join(err, command.Of(ctx).PrintJSON(record))
	}
	if err != nil {
		return err
	}
	if err := record.Summary(out); err != nil {
		return err
	}
	s.tracing.report(out, int64(record.Run.Iterations))
	for _, f := range OutputFiles(s.config.Output) {
		if f.Path != "" {
			fmt.Fprintln(out, "wrote", f.Path)
		}
	}
	if result.Stopped == scheme.StoppedInterrupted {
		return interrupt.ErrInterrupted
	}
	return nil
}

// newBar shows the progress of a phase.
func (s *Run) newBar(ctx context.Context, notes io.Writer, what, unit string, all int64) *progress.Bar {
	o := progress.Options{What: what, Unit: unit, All: all, Lines: command.Of(ctx).Verbose, Also: s.also}
	if s.writes() {
		o.Log = command.Of(ctx).Log()
	}
	if unit == "steps" {
		o.From = s.solver.Done()
	}
	return progress.NewBar(notes, o)
}

// measured runs the solver with what the config measures.
func (s *Run) measured(
	ctx context.Context, o scheme.Options, r *results.Run, events ...*scheme.Event,
) (res scheme.Result, err error) {
	run := func() (res scheme.Result, err error) {
		if o.Steps <= 0 { // after a restart
			return scheme.Result{Scheme: s.Scheme, Stopped: scheme.StoppedSteps}, nil
		}
		return s.solver.RunEvents(ctx, o, events...)
	}
	e := s.config.Measured()
	if e == nil {
		return run()
	}
	e.Element, e.Sums = s.Problem.Element, s.Problem.Sums
	what, err := e.Measures(s.config.Measure)
	if err != nil {
		return res, err
	}
	m, err := s.Measure(context.WithoutCancel(ctx), s.solver, what)
	if err != nil {
		return res, command.As(command.Config, err)
	}
	s.measures = func(step int64) map[string]*float64 {
		all := map[string]*float64{}
		for i, v := range m.Values[step] {
			all[what.Names[i]] = results.Number(v)
		}
		return all
	}
	if err = m.Take(ctx); err == nil {
		if r.StartMeasures = s.measures(s.solver.Done()); s.from != nil {
			r.StartMeasures = s.from.run.StartMeasures
		}
		if o.History {
			events = append([]*scheme.Event{m.Event(o.CheckEvery)}, events...)
		}
		res, err = run()
	}
	if err == nil {
		err = m.Take(ctx)
		r.Measures = s.measures(s.solver.Done())
	}
	return res, errors.Join(err, m.Close())
}

// divergenceHint describes the usual cause of divergence of a heat problem.
func divergenceHint(c *configs.Run) string {
	if c.Heat != nil && c.StableStep() > 0 && c.TimeStep() > c.StableStep() {
		return fmt.Sprintf(": heat.dt %v is beyond the stable %v", c.TimeStep(), c.StableStep())
	}
	return ""
}

// writeFields writes the files of the field that the config names, also after an interruption; commit gives them their
// names. If one file fails, the others are still written. Writing has no time limit; reading the field does.
func (s *Run) writeFields(ctx context.Context, r *results.Record, notes io.Writer) error {
	keep, p := s.recordWriter(r, nil), s.Place.Processes
	bar, field := &progress.Bar{Close: func() {}}, 0
	read := func(dst []float64, box domain.Box) error {
		s.limitWaits(ctx)
		defer interrupt.Limit(ctx, interrupt.None)
		defer bar.Add(box.Points())
		return s.solver.Gather(context.Background(), field, dst, box)
	}
	ended := &output.Run{Record: r, Element: s.Problem.Element, Options: s.config.Output.View(),
		Field: s.config.View(s.Problem, 0, int64(r.Run.Iterations), r.Run.Time)}
	s.outputs.Discard = !s.writes()
	s.outputs.Began = func(name string, points int64) {
		bar.Close()
		field = s.fieldOf(name)
		ended.Field = s.config.View(s.Problem, min(field, len(s.Problem.Fields())-1), int64(r.Run.Iterations), r.Run.Time)
		ended.Read = read
		bar = s.newBar(ctx, notes, "writing "+name, "points", points)
		interrupt.During(ctx, "writing "+name, keep)
		interrupt.Limit(ctx, interrupt.None)
	}
	s.outputs.Failed = func(err error) error {
		if err != nil && !p.IsAlone() {
			return p.Fail(err) // the others stop waiting for this process
		}
		return err
	}
	defer func() { bar.Close() }()
	err := s.outputs.Write(ended, p.Err)
	if p.Err() == nil {
		err = errors.Join(err, s.finish())
	}
	return err
}

// fieldNames returns the names of the fields and the statistics.
func (s *Run) fieldNames() []string {
	if s.solver.Statistics == nil {
		return s.Problem.Fields()
	}
	return slices.Concat(s.Problem.Fields(), s.solver.Statistics.Names)
}

// fieldOf returns the number of the field that a file shows.
func (s *Run) fieldOf(path string) int {
	o := s.config.Output
	for _, f := range slices.Concat(o.Picture, o.Field, o.Statistics.Files()) {
		if f.Path == path {
			return max(0, slices.Index(s.fieldNames(), f.Field))
		}
	}
	return 0
}

// commit gives all completed outputs their names. Wherever the process is killed, no record claims a file of another
// run.
func (s *Run) commit(ctx context.Context, r *results.Record) (err error) {
	if len(s.outputs.All) == 0 {
		return nil
	}
	keep := s.recordWriter(r, nil)
	interrupt.Whole(ctx, func() {
		keep()
		err = s.outputs.Commit()
		keep()
	})
	return err
}

// compare adds the distances from the exact solutions to the record: the largest one, the root of the sum of the
// squares of the l2 norms and, if there are several fields, those of each.
func (s *Run) compare(ctx context.Context, r *results.Record) error {
	var all solvers.Deviation
	for field, exact := range s.Problem.Exact {
		if exact == nil {
			continue
		}
		interrupt.During(ctx, "comparing with the exact solution", s.recordWriter(r, nil))
		if s.Place.Processes.IsAlone() { // most of the time it computes
			interrupt.Limit(ctx, interrupt.None)
		}
		d, err := s.solver.Deviation(context.Background(), field, exact)
		if err != nil {
			return err
		}
		all.Max, all.L2 = max(all.Max, d.Max), math.Hypot(all.L2, d.L2)
		r.Run.Error = &results.ErrorNorms{L2: results.Number(all.L2), Max: results.Number(all.Max)}
		if names := s.Problem.Fields(); len(names) > 1 {
			if r.Run.Errors == nil {
				r.Run.Errors = map[string]*results.ErrorNorms{}
			}
			r.Run.Errors[names[field]] = &results.ErrorNorms{L2: results.Number(d.L2), Max: results.Number(d.Max)}
		}
	}
	return nil
}

// finish syncs the outputs to disk. If processes share the grid, rank 0 regularly tells the others that it is still
// writing, so that they do not report it as lost.
func (s *Run) finish() (err error) {
	finished := make(chan error, 1)
	go func() { finished <- s.outputs.Finish() }() // nothing on other ranks
	for done := false; !done && err == nil; {
		if s.writes() {
			select {
			case err = <-finished:
				done = true
			case <-time.After(WaitLimit / 6):
			}
		}
		var failed error
		done, failed = mpi.Broadcast(context.Background(), s.Place.Processes, "write the outputs", done, 0)
		err = errors.Join(err, failed)
	}
	return err
}
