package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/output"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// runFlags are the flags of halox run.
type runFlags struct {
	set     []string
	record  string
	history bool
	trace   traceFlags
}

func newRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Solve the problem of a config file",
		Long: `Solve the problem of a config file, or of the standard input if FILE is -.

Every key of the file can be overridden by --set key=value and by a variable
HALOX_KEY, with dots as underscores (HALOX_GRID_SIZE=[64,64]); --set comes
first. Ctrl-C ends the run between two steps and keeps what it had.

docs/reference/norms.md explains the lines of the summary, and what change,
residual, field and error are.

Started by mpirun, all processes solve the problem of rank 0 together, which alone
prints and writes.`,
		Example: `  halox run heat3d.yaml
  halox run heat3d.yaml --set grid.size=[256,256,256] --set exchange.scheme=fused --record run.json
  halox config new heat3d - | halox run - --json
  mpirun -n 2 halox run heat3d.yaml`,
		Args: command.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.record != "" {
				f.set = append(f.set, "output.record="+f.record)
			}
			if f.history {
				f.set = append(f.set, "output.history=true")
			}
			return runTogether(cmd, func(g *processGroup, out, notes io.Writer) error {
				return f.run(cmd, args[0], g, out, notes)
			})
		},
	}
	addSet(cmd, &f.set)
	cmd.Flags().StringVar(&f.record, "record", "", "write the record to this JSON `file`")
	cmd.Flags().BoolVar(&f.history, "history", false, "store the norms of all checks in the record")
	f.trace.add(cmd.Flags())
	return cmd
}

// run is the command as one of a group of processes.
func (f *runFlags) run(cmd *cobra.Command, file string, g *processGroup, out, notes io.Writer) error {
	config, err := g.config(cmd.Context(), func() (*configs.Run, error) {
		config, err := loadConfig(cmd.Context(), g.Size(), file, f.set)
		if err != nil {
			return nil, err
		}
		written := append(outputFiles(config.Output), option.File{Name: "--trace", Path: f.trace.file})
		return config, errors.Join(command.As(command.Usage, f.trace.check(cmd.Flags())),
			command.As(command.Config, option.CheckFiles(written, option.File{Name: "the config", Path: file})))
	})
	if err != nil {
		return err
	}
	ctx, begin := cmd.Context(), time.Now()
	doing := func() string { return interrupt.Doing(ctx) }
	show := newStatus(notes, doing, isTerminal(notes) && !command.Of(ctx).Verbose)
	s, err := newSolverRun(ctx, config, g.Processes, show, f.trace)
	show.close()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if command.Of(ctx).Verbose && len(s.Trials) > 0 {
		fmt.Fprintf(notes, "trials of schemes, the shortest first: %v\n", s.Trials)
	}
	return errors.Join(s.run(ctx, begin, out, notes), closeSetup(s.Setup))
}

// newSolverRun prepares a run, with a trace if one is wanted, and shows its progress.
func newSolverRun(
	ctx context.Context, c *configs.Run, processes *mpi.Processes, show *status, traced traceFlags,
) (s *solverRun, err error) {
	setup, err := openConfig(ctx, c, processes, show, true)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeSetup(setup))
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
	s = &solverRun{Setup: setup, config: c}
	if err := setup.Place.Agree(ctx, "trace the run", s.beginTrace(traced)); err != nil {
		return nil, err
	}
	s.solver, err = setup.New(ctx)
	return s, inConfig(err)
}

// run solves the problem and writes what was asked for. After a failure it
// writes the record of what there was.
func (s *solverRun) run(ctx context.Context, begin time.Time, out, notes io.Writer) error {
	record, err := s.newRecord(ctx, begin)
	if err != nil {
		return err
	}
	s.outputs.Add(output.Picture, s.config.Output.Picture)
	s.outputs.Add(output.Field, s.config.Output.Field)
	if s.tracing != nil {
		s.tracing.output = s.outputs.Add("trace", s.tracing.file)
	}
	record.Run.Outputs = s.outputs.All
	bar := newProgress(notes, s.config.Solver, "steps", int64(s.config.Stop.Iterations), command.Of(ctx).Verbose)
	setup := time.Since(begin)
	options := s.Options()
	options.Progress = func(steps int64) {
		bar.steps(steps)
		interrupt.Progress(ctx)
	}
	keep := s.recordWriter(record, func(run *results.Run) {
		run.Iterations, run.Stopped = int(bar.done.Load()), results.StopInterrupted
	})
	s.during(ctx, "stepping", keep)
	interrupt.Busy(ctx, func() bool { // norms of the last step may need kernels that no step has needed
		begun, done := s.Session.Compiler.Compiled()
		return begun != done && bar.done.Load() > 0
	})
	kept := s.writePartial(ctx, keep)
	result, err := s.solver.Run(ctx, options)
	kept()
	interrupt.During(ctx, "", nil)
	s.addResult(record, result, setup)
	if err != nil {
		record.Run.Iterations = max(record.Run.Iterations, int(bar.done.Load())) // a run that fails returns none
	}
	if !s.Place.Processes.IsAlone() {
		interrupt.Patience(ctx, waitLimit) // processes only wait for each other, which has limits of its own
	}
	s.during(ctx, "reading the results", s.recordWriter(record, nil))
	bar.close()
	if err == nil && result.Stopped == scheme.StoppedDiverged {
		err = command.As(command.Diverged, fmt.Errorf("the solution is no longer finite at step %d%s", result.Steps,
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
	s.during(ctx, "ending", nil) // all is kept
	if s.writes() {
		err = errors.Join(err, command.Of(ctx).PrintJSON(record))
	}
	if err != nil {
		return err
	}
	if err := record.Summary(out); err != nil {
		return err
	}
	s.tracing.report(out)
	for _, f := range outputFiles(s.config.Output) {
		if f.Path != "" {
			fmt.Fprintln(out, "wrote", f.Path)
		}
	}
	if result.Stopped == scheme.StoppedInterrupted {
		return interrupt.ErrInterrupted
	}
	return nil
}

// divergenceHint says what usually makes a heat problem diverge.
func divergenceHint(c *configs.Run) string {
	if c.Heat != nil && c.TimeStep() > c.StableStep() {
		return fmt.Sprintf(": heat.dt %v is beyond the stable %v", c.TimeStep(), c.StableStep())
	}
	return ""
}

// writeFields writes the files of the field that the config names, also after an interruption; commit gives them their
// names. If one file fails, the others are still written. Writing has no time limit; reading the field does.
func (s *solverRun) writeFields(ctx context.Context, r *results.Record, notes io.Writer) error {
	keep, p := s.recordWriter(r, nil), s.Place.Processes
	axis, index := s.config.Plane()
	bar := &progress{close: func() {}}
	ended := &output.Run{
		Record: r, Title: fmt.Sprintf("%s, step %d", s.config.Solver, r.Run.Iterations),
		Grid: s.Problem.Grid, Spacing: s.Problem.Spacing, Float32: s.config.Precision == "float32",
		Coordinate: s.Problem.Coordinate, Axis: axis, Index: index,
		Read: func(dst []float64, box domain.Box) error {
			s.limitWaits(ctx)
			defer interrupt.Limit(ctx, interrupt.None)
			defer bar.done.Add(box.Points())
			return s.solver.Gather(context.Background(), dst, box)
		},
	}
	s.outputs.Discard = !s.writes()
	s.outputs.Began = func(name string, points int64) {
		bar.close()
		bar = newProgress(notes, "writing "+name, "points", points, command.Of(ctx).Verbose)
		interrupt.During(ctx, "writing "+name, keep)
		interrupt.Limit(ctx, interrupt.None)
	}
	s.outputs.Failed = func(err error) error {
		if err != nil && !p.IsAlone() {
			return p.Fail(err) // the others stop waiting for this process
		}
		return err
	}
	defer func() { bar.close() }()
	err := s.outputs.Write(ended, p.Err)
	if p.Err() == nil {
		err = errors.Join(err, s.finish())
	}
	return err
}

// commit gives all completed outputs their names. Wherever the process is killed, no record claims a file of another
// run.
func (s *solverRun) commit(ctx context.Context, r *results.Record) (err error) {
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

// compare adds the distance from the exact solution to the record.
func (s *solverRun) compare(ctx context.Context, r *results.Record) error {
	if s.config.Exact == "" {
		return nil
	}
	interrupt.During(ctx, "comparing with the exact solution", s.recordWriter(r, nil))
	if s.Place.Processes.IsAlone() { // most of the time it computes
		interrupt.Limit(ctx, interrupt.None)
	}
	exact, err := stencil.Parse(s.config.Exact)
	if err != nil {
		return err
	}
	d, err := s.solver.Deviation(context.Background(), exact)
	if err == nil {
		r.Run.Error = &results.ErrorNorms{L2: results.Number(d.L2), Max: results.Number(d.Max)}
	}
	return err
}

// finish syncs the outputs to disk. If processes share the grid, rank 0 regularly tells the others that it is still
// writing, so that they do not report it as lost.
func (s *solverRun) finish() (err error) {
	finished := make(chan error, 1)
	go func() { finished <- s.outputs.Finish() }() // nothing on other ranks
	for done := false; !done && err == nil; {
		if s.writes() {
			select {
			case err = <-finished:
				done = true
			case <-time.After(waitLimit / 6):
			}
		}
		var failed error
		done, failed = mpi.Broadcast(context.Background(), s.Place.Processes, "write the outputs", done, 0)
		err = errors.Join(err, failed)
	}
	return err
}
