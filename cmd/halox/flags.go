package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/solve"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// traceFlags are the flags of halox run that ask for a trace.
type traceFlags struct{ solve.Trace }

// add adds the flags to a command's.
func (f *traceFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.File, "trace", "",
		"write a trace of all streams to this JSON `file`, for Perfetto and halox plot")
	flags.Int64Var(&f.Steps, "trace-steps", 20, "number of traced steps")
	flags.Int64Var(&f.Skip, "trace-skip", 5, "number of steps before the traced steps; fewer in short runs")
}

// check rejects invalid values, and a scheme that cannot be traced.
func (f *traceFlags) check(flags *pflag.FlagSet, s string) error {
	switch {
	case f.File == "" && flags.Changed("trace-steps"):
		return errors.New("--trace-steps: needs --trace")
	case f.File == "" && flags.Changed("trace-skip"):
		return errors.New("--trace-skip: needs --trace")
	case f.Steps < 1 || f.Steps > streams.MaxTracedSteps:
		return fmt.Errorf("--trace-steps: must be between 1 and %d, got %d", streams.MaxTracedSteps, f.Steps)
	case f.Skip < 0:
		return fmt.Errorf("--trace-skip: must be at least 0, got %d", f.Skip)
	case f.File != "" && s == string(scheme.Ranks):
		return fmt.Errorf("--trace: must not be set with exchange.scheme %s: its steps run inside kernels", s)
	}
	return nil
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
