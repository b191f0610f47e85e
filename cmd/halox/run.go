package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// waitLimit is how long a run waits for a device or a thread that makes no
// progress.
const waitLimit = 60 * time.Second

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
first. Ctrl-C ends the run between two steps and keeps what it had.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runFile(cmd, args[0], f)
		},
	}
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "override a key of the config, as `key=value`; may be repeated")
	cmd.Flags().StringVar(&f.record, "record", "", "write the record of the run to this JSON `file`")
	cmd.Flags().BoolVar(&f.history, "history", false, "put the norms of every check into the record")
	f.trace.add(cmd.Flags())
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but errors")
	return cmd
}

// loadConfig loads a config with overrides and the environment.
func loadConfig(file string, set []string) (*configs.Run, error) {
	return configs.Load(file, configs.Options{
		Set:             set,
		Environ:         os.Environ(),
		CheckExpression: checkExpression,
		Schemes:         configSchemes(),
		Paths:           texts(p2p.Paths()),
	})
}

// configSchemes tells the config what the schemes can take.
func configSchemes() (all []configs.Scheme) {
	for _, name := range scheme.All() {
		n := needsOf(name)
		all = append(all, configs.Scheme{Name: string(name), Orders: texts(n.Orders), Paths: texts(n.Paths), Steady: n.Steady})
	}
	return all
}

// needsOf returns what a scheme needs; nothing of one that there is not.
func needsOf(s scheme.Scheme) scheme.Needs {
	needs, _ := scheme.NeedsOf(s)
	return needs
}

// texts returns names as a config has them.
func texts[T ~string](names []T) (all []string) {
	for _, name := range names {
		all = append(all, string(name))
	}
	return all
}

// checkExpression parses an expression of a config.
func checkExpression(src string) (uses func(variable string) bool, err error) {
	e, err := stencil.Parse(src)
	if err != nil {
		return nil, err
	}
	return e.Uses, nil
}

// runFile is the command.
func runFile(cmd *cobra.Command, file string, f runFlags) error {
	if f.record != "" {
		f.set = append(f.set, "output.record="+f.record)
	}
	if f.history {
		f.set = append(f.set, "output.history=true")
	}
	config, err := loadConfig(file, f.set)
	if err != nil {
		return err
	}
	if err := errors.Join(checkOutputs(file, config.Output), f.trace.check(cmd.Flags(), file, config.Output)); err != nil {
		return err
	}
	out, notes := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if f.quiet {
		out, notes = io.Discard, io.Discard
	}
	begin := time.Now()
	ctx, release := untilInterrupted(cmd.Context())
	defer release()
	j, err := newSolverRun(ctx, config, notes)
	if errors.Is(err, context.Canceled) {
		return errInterrupted
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := j.beginTrace(f.trace); err != nil {
		return errors.Join(err, j.close())
	}
	err = j.run(ctx, begin, out, notes)
	return errors.Join(err, j.close())
}

// output is a file that a run leaves, with the key that names it.
type output struct{ key, file string }

// outputs returns the files that the config wants.
func outputs(o configs.Output) []output {
	all := []output{{"output.picture", o.Picture}, {"output.field", o.Field}, {"output.record", o.Record}}
	return slices.DeleteFunc(all, func(o output) bool { return o.file == "" })
}

// checkOutputs refuses files that could not be written, and the config itself,
// before a run is spent on them. It makes their folders.
func checkOutputs(config string, c configs.Output) error {
	var errs []error
	for _, o := range outputs(c) {
		if sameFile(config, o.file) {
			errs = append(errs, fmt.Errorf("%s: %s is the config: name another file", o.key, o.file))
			continue
		}
		if err := results.CheckWritable(o.file); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.key, err))
		}
	}
	return errors.Join(errs...)
}

// samePath reports whether two names are of one file, which need not be there yet.
func samePath(a, b string) bool {
	x, err1 := filepath.Abs(a)
	y, err2 := filepath.Abs(b)
	return err1 == nil && err2 == nil && x == y || sameFile(a, b)
}

func sameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// run solves the problem and writes what was asked for. After a failure it
// writes the record of what there was.
func (j *solverRun) run(ctx context.Context, begin time.Time, out, notes io.Writer) error {
	record := newRecord(ctx, j, begin)
	bar := newProgress(notes, j.config)
	setup := time.Since(begin)
	options := solverOptions(j.config)
	options.Scheme = j.scheme
	options.Progress = bar.steps
	result, err := j.solver.Run(ctx, options)
	bar.close()
	if err == nil && result.Stopped == scheme.StoppedDiverged {
		err = fmt.Errorf("the solution is no longer finite at step %d%s", result.Steps, divergenceHint(j.config))
	}
	traced := j.endTrace(record, err)
	record.outcome(j, result, setup)
	if err == nil {
		err = j.writeFields(record)
	}
	err = errors.Join(err, traced)
	record.end(err)
	if name := j.config.Output.Record; name != "" {
		err = errors.Join(err, record.Write(name))
	}
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

// solverOptions translates the config.
func solverOptions(c *configs.Run) scheme.Options {
	return scheme.Options{
		Scheme:     scheme.Scheme(c.Exchange.Scheme),
		Order:      cmp.Or(scheme.Order(c.Exchange.Order), scheme.LeftRight),
		Steps:      int64(c.Stop.Iterations),
		Tolerance:  c.Stop.Tolerance,
		Norm:       scheme.Norm(c.Stop.Norm),
		CheckEvery: int64(c.Stop.CheckEvery),
		History:    c.Output.History,
		Limit:      waitLimit,
	}
}
