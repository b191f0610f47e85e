package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
)

// runFlags are the flags of halox run.
type runFlags struct {
	set     []string
	record  string
	history bool
	quiet   bool
	trace   traceFlags
}

func newRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Solve the problem of a config file",
		Long: `Solve the problem of a config file.

Every key of the file can be overridden by --set key=value and by a variable
HALOX_KEY, with dots as underscores (HALOX_GRID_SIZE=[64,64]); --set comes
first. Ctrl-C ends the run between two steps and keeps what it had.

Started by mpirun, all processes solve the problem of rank 0 together, which alone
prints and writes.`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runFile(cmd, args[0], f)
		},
	}
	addSet(cmd, &f.set)
	cmd.Flags().StringVar(&f.record, "record", "", "write the record of the run to this JSON `file`")
	cmd.Flags().BoolVar(&f.history, "history", false, "put the norms of every check into the record")
	f.trace.add(cmd.Flags())
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but errors")
	return cmd
}

// runFile is the command.
func runFile(cmd *cobra.Command, file string, f runFlags) error {
	if f.record != "" {
		f.set = append(f.set, "output.record="+f.record)
	}
	if f.history {
		f.set = append(f.set, "output.history=true")
	}
	return runTogether(cmd, func(g *processGroup, out, notes io.Writer) error {
		if f.quiet {
			out, notes = io.Discard, io.Discard
		}
		return solveFile(cmd, file, f, g, out, notes)
	})
}

// read loads the config of a run and checks that its outputs can be written.
func (f *runFlags) read(cmd *cobra.Command, file string, processes int) (*configs.Run, error) {
	config, err := loadConfig(processes, file, f.set)
	if err != nil {
		return nil, err
	}
	written := append(outputFiles(config.Output), option.File{Name: "--trace", Path: f.trace.file})
	return config, errors.Join(f.trace.check(cmd.Flags()),
		option.CheckFiles(written, option.File{Name: "the config", Path: file}))
}

// solveFile is the command as one of a group of processes.
func solveFile(cmd *cobra.Command, file string, f runFlags, g *processGroup, out, notes io.Writer) error {
	config, err := g.config(cmd.Context(), func() (*configs.Run, error) { return f.read(cmd, file, g.Size()) })
	if err != nil {
		return err
	}
	ctx, begin := cmd.Context(), time.Now()
	show := newStatus(notes, func() string { return doing(ctx) })
	j, err := newSolverRun(ctx, config, g.Processes, show, f.trace)
	show.close()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return errors.Join(j.run(ctx, begin, out, notes), j.close())
}

// run solves the problem and writes what was asked for. After a failure it
// writes the record of what there was.
func (j *solverRun) run(ctx context.Context, begin time.Time, out, notes io.Writer) error {
	record, err := newRecord(ctx, j, begin)
	if err != nil {
		return err
	}
	bar := newProgress(notes, j.config.Solver, "steps", int64(j.config.Stop.Iterations), false)
	setup := time.Since(begin)
	options := j.Options()
	options.Progress = bar.steps
	keep := j.recordWriter(record, func(run *results.Run) {
		run.Iterations, run.Stopped = int(bar.done.Load()), results.StopInterrupted
	})
	during(ctx, "stepping", keep)
	kept := j.writePartial(ctx, keep)
	result, err := j.solver.Run(ctx, options)
	kept()
	during(ctx, "", nil)
	record.outcome(j, result, setup)
	if err != nil {
		record.run.Iterations = max(record.run.Iterations, int(bar.done.Load())) // a run that fails returns none
	}
	during(ctx, "reading what came out", j.recordWriter(record.clone(), nil))
	if !j.writes() {
		waitingForAnother(ctx)
	}
	bar.close()
	if err == nil && result.Stopped == scheme.StoppedDiverged {
		err = fmt.Errorf("the solution is no longer finite at step %d%s", result.Steps, divergenceHint(j.config))
	}
	traced := j.endTrace(record, err)
	if err == nil {
		err = j.writeFields(ctx, record)
	}
	err = errors.Join(err, traced)
	record.end(err)
	if name := j.config.Output.Record; name != "" && j.writes() {
		err = errors.Join(err, record.Write(name))
	}
	during(ctx, "ending", nil) // all is kept
	if err != nil {
		return err
	}
	if err := record.Summary(out); err != nil {
		return err
	}
	j.tracing.report(out)
	for _, f := range outputFiles(j.config.Output) {
		if f.Path != "" {
			fmt.Fprintln(out, "wrote", f.Path)
		}
	}
	if result.Stopped == scheme.StoppedInterrupted {
		return errInterrupted
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

// newSolverRun makes a run ready, with a trace if one is wanted, and shows how that goes.
func newSolverRun(
	ctx context.Context, c *configs.Run, processes *mpi.Processes, show *status, traced traceFlags,
) (j *solverRun, err error) {
	w, err := newSetup(ctx, c, processes, show, true)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	during(ctx, "checking the config", nil)
	if err := w.Place.Agree(ctx, "look at the exact solution", checkExact(ctx, c, w.Problem)); err != nil {
		return nil, err
	}
	during(ctx, "trying the schemes", nil)
	if err := w.choose(ctx, show); err != nil {
		return nil, err
	}
	if err := w.Place.Agree(ctx, "see whether the run fits", w.CheckMemory(ctx)); err != nil {
		return nil, err
	}
	during(ctx, "filling the fields and compiling", nil)
	j = &solverRun{setup: w}
	if err := w.Place.Agree(ctx, "trace the run", j.beginTrace(traced)); err != nil {
		return nil, err
	}
	j.solver, err = w.New(ctx)
	return j, err
}
