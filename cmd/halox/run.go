package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/faults"
	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/internal/progress"
	"github.com/halox/halox/internal/solve"
)

// runFlags are the flags of halox run.
type runFlags struct {
	set     []string
	record  string
	history bool
	restart string
	trace   traceFlags
	live    bool
}

func newRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Solve the problem of a config file",
		Long: `Solve the problem of a config file, or of the standard input if FILE is -.

Every key of the file can be overridden by --set key=value and by a variable
HALOX_KEY, with dots as underscores (HALOX_GRID_SIZE=[64,64]). --set overrides
variables. Ctrl-C ends the run between two steps, and the run writes its outputs.

--restart continues from the newest complete checkpoint, with the same results as if
the run had not ended. Only the sections stop, output, devices, decomposition,
exchange, checkpoint and faults of the config may have changed. Without a
checkpoint in the folder of the config, the run starts from the beginning.
SIGUSR1 writes a checkpoint. With faults.restarts in the config, the run
restarts automatically after a device or its process was lost.

docs/reference/norms.md explains the lines of the summary, and defines change,
residual, field and error.

Under mpirun, all processes solve the problem of rank 0 together. Only rank 0
prints and writes.`,
		Example: `  halox run heat3d.yaml
  halox run heat3d.yaml --set grid.size=[256,256,256] --set exchange.scheme=fused --record run.json
  halox config new heat3d - | halox run - --json
  halox run heat3d.yaml --set checkpoint.every.minutes=30 --restart
  mpirun -n 2 halox run heat3d.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && f.restart == solve.InFolder { // --restart FOLDER
				f.restart, args = args[1], args[:1]
			}
			return command.OneFile(cmd, args)
		},
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
	cmd.Flags().StringVar(&f.restart, "restart", "", "continue from the newest checkpoint in a `folder`, by default "+
		"that of the config")
	cmd.Flags().Lookup("restart").NoOptDefVal = solve.InFolder
	cmd.Flags().BoolVar(&f.live, "live", false, "show a small picture of a field in the terminal while steps run")
	f.trace.add(cmd.Flags())
	command.AddLog(cmd.Flags())
	return cmd
}

// run runs the command as one of a group of processes.
func (f *runFlags) run(cmd *cobra.Command, file string, g *processGroup, out, notes io.Writer) (err error) {
	ctx, begin := cmd.Context(), time.Now()
	child, err := faults.Join(ctx)
	if err != nil {
		return err
	}
	defer func() { child.Ended(err) }()
	if checked, err := child.Check(ctx); checked {
		return err
	}
	read := func(set ...string) (*configs.Run, error) {
		return g.config(ctx, func() (*configs.Run, error) {
			if child != nil {
				return configs.Parse(file, child.Config, configs.Options{Set: set})
			}
			config, err := solve.Load(ctx, g.Size(), file, slices.Concat(f.set, set))
			if err != nil {
				return nil, err
			}
			written := append(solve.OutputFiles(config.Output), option.File{Name: "--trace", Path: f.trace.File})
			return config, errors.Join(
				command.As(command.Usage, f.trace.check(cmd.Flags(), config.Exchange.Scheme)),
				command.As(command.Usage, solve.CheckLive(f.live, notes)),
				command.As(command.Config, option.CheckFiles(written, option.File{Name: "the config", Path: file})))
		})
	}
	config, err := read()
	if err != nil {
		return err
	}
	switch {
	case child == nil && config.Faults.Restarts > 0 && g.IsAlone():
		return solve.Children(ctx, config)
	case child != nil && child.Restart:
		f.restart = solve.InFolder
	case config.Faults.Restarts > 0 && child == nil && g.speaks():
		command.Of(ctx).Warn("faults.restarts: several processes are not started again: use a loop as in " +
			"docs/how-to/run-for-days.md")
	}
	from, config, err := solve.Restarted(ctx, f.restart, g.Processes, config, notes, read)
	if err != nil {
		return err
	}
	doing := func() string { return interrupt.Doing(ctx) }
	show := progress.NewStatus(notes, doing, progress.IsTerminal(notes) && !command.Of(ctx).Verbose)
	s, err := solve.Open(ctx, config, solve.Options{Processes: g.Processes, From: from, Child: child, Live: f.live,
		Trace: f.trace.Trace}, show)
	show.Close()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if command.Of(ctx).Verbose && len(s.Trials) > 0 {
		fmt.Fprintf(notes, "trials of schemes, the shortest first: %v\n", s.Trials)
	}
	err = s.Solve(ctx, begin, out, notes)
	child.Ended(err, s.Session.Devices...)
	return errors.Join(err, solve.Close(s.Setup))
}
