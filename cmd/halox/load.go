package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
)

// loadConfig loads the config of a number of processes, with overrides and the environment. File - is the standard
// input.
func loadConfig(ctx context.Context, processes int, file string, set []string) (c *configs.Run, err error) {
	o := configs.Options{
		Processes: processes, Set: set, Environ: os.Environ(),
		Warn: func(p configs.Problem) { command.Of(ctx).Warn(p) },
	}
	if file != "-" {
		c, err = configs.Load(file, o)
		return c, command.As(command.Config, err)
	}
	text, err := command.Of(ctx).Stdin()
	if err == nil {
		c, err = configs.Parse("standard input", text, o)
	}
	return c, command.As(command.Config, err)
}

// addSet adds the flag --set to a command, with completion of keys and values.
func addSet(cmd *cobra.Command, set *[]string) {
	cmd.Flags().StringArrayVar(set, "set", nil, "override a key of the config, as `key=value`; may be repeated")
	complete := func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return configs.Complete(begun),
			cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc("set", complete); err != nil {
		panic(err) // the flag was added above
	}
}

// waitLimit is how long a run waits for a device or a thread that makes no
// progress.
const waitLimit = 60 * time.Second

// solverOptions translates the config of a problem.
func solverOptions(c *configs.Run, p *solvers.Problem) scheme.Options {
	o := scheme.Options{
		Scheme:    scheme.Scheme(c.Exchange.Scheme),
		Order:     scheme.Order(c.Exchange.Order),
		Steps:     int64(c.Stop.Iterations),
		Tolerance: c.Stop.Tolerance,
		Norm:      scheme.Norm(c.Stop.Norm),
		History:   c.Output.History,
		Limit:     waitLimit,
	}
	if o.Norm == configs.NormResidual {
		o.Norm, o.Tolerance = scheme.MaxNorm, o.Tolerance/p.ResidualScale()
	}
	if o.Tolerance > 0 || o.History {
		o.CheckEvery = int64(c.Stop.CheckEvery)
	}
	return o
}
