package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers"
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
	l, err := launch(cmd.Context())
	if err != nil {
		return err
	}
	return l.end(solveFile(cmd, file, f, l), cmd.ErrOrStderr())
}

// read loads the config of a run, and refuses what could not be written.
func (f *runFlags) read(cmd *cobra.Command, file string, processes int) (*configs.Run, error) {
	config, err := loadConfigOf(processes, file, f.set)
	if err != nil {
		return nil, err
	}
	return config, errors.Join(checkOutputs(file, config.Output, results.CheckWritable), f.trace.check(cmd.Flags(), file, config.Output))
}

// solveFile is the command as one of the launched processes.
func solveFile(cmd *cobra.Command, file string, f runFlags, l *launched) error {
	config, err := l.config(cmd.Context(), func() (*configs.Run, error) { return f.read(cmd, file, l.size()) })
	if err != nil {
		return err
	}
	out, notes := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if f.quiet || !l.speaks() {
		out, notes = io.Discard, io.Discard
	}
	begin := time.Now()
	ctx := cmd.Context()
	show := newStatus(notes, func() string { return doing(ctx) })
	j, err := newSolverRun(ctx, config, l.processes, show, f.trace)
	show.close()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	err = j.run(ctx, begin, out, notes)
	return errors.Join(err, j.close())
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
	options := solverOptions(j.config)
	options.Scheme = j.scheme
	options.Progress = bar.steps
	if !j.place.Processes.IsAlone() {
		options.Limit = 0 // which gives processes time to say who is late
	}
	keep := j.keeper(record, func(run *results.Run) {
		run.Iterations, run.Stopped = int(bar.done.Load()), results.StopInterrupted
	})
	during(ctx, "stepping", keep)
	kept := j.keepEarly(ctx, keep)
	result, err := j.solver.Run(ctx, options)
	kept()
	during(ctx, "", nil)
	record.outcome(j, result, setup)
	if err != nil {
		record.run.Iterations = max(record.run.Iterations, int(bar.done.Load())) // a run that fails returns none
	}
	during(ctx, "reading what came out", j.keeper(record.clone(), nil))
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
	for _, o := range outputs(j.config.Output) {
		fmt.Fprintln(out, "wrote", o.file)
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

// newSolverRun makes everything ready, with a trace where one is wanted, and shows how that goes.
func newSolverRun(ctx context.Context, c *configs.Run, processes *mpi.Processes, show *status, traced traceFlags) (*solverRun, error) {
	w, err := openSetup(ctx, c, processes, show, func(w *setup) {
		show.compiler.Store(w.session.Compiler)
		w.begin(ctx)
	})
	if err != nil {
		return nil, err
	}
	during(ctx, "checking the config", nil)
	if err := w.place.Agree(ctx, "look at the exact solution", checkExact(ctx, c, w.problem)); err != nil {
		return nil, errors.Join(err, w.close())
	}
	during(ctx, "trying the schemes", nil)
	if err := w.choose(ctx, show); err != nil {
		return nil, errors.Join(err, w.close())
	}
	if err := w.place.Agree(ctx, "see whether the run fits", w.fits(ctx)); err != nil {
		return nil, errors.Join(err, w.close())
	}
	during(ctx, "filling the fields and compiling", nil)
	j := &solverRun{setup: w}
	if err := w.place.Agree(ctx, "trace the run", j.beginTrace(traced)); err != nil {
		return nil, errors.Join(err, w.close())
	}
	if j.solver, err = solvers.New(ctx, w.problem, w.plan, w.session.Compiler); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return j, nil
}
