// Command halox solves Laplace and heat problems from a config file on all the
// GPUs of a host, or on CPU devices if there are none.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/interrupt"
)

func main() {
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := &checkedOutput{w: stdout}
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	err := interrupt.Catch(context.WithValue(ctx, argumentsKey{}, args), stderr).Run(root.ExecuteContext)
	if err == nil {
		err = out.failed()
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, interrupt.ErrInterrupted):
		if err.Error() != interrupt.ErrInterrupted.Error() { // what else went wrong
			fmt.Fprintln(stderr, err)
		}
		return exitInterrupted
	default:
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "halox",
		Short:         "Run stencils and exchange halos on all the GPUs of this host",
		Version:       fmt.Sprintf("%s (%s)", version, program().Commit),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return noEmptyFiles(cmd.Flags())
		},
	}
	root.SetFlagErrorFunc(flagError)
	cobra.AddTemplateFunc("plain", func(s string) string { return strings.ReplaceAll(s, "[=true|false]", "             ") })
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "FlagUsages", "FlagUsages | plain"))
	root.AddCommand(newRunCommand(), newDevicesCommand(), newConfigCommand(), newBenchCommand(), newPlanCommand(),
		newVerifyCommand(), newPlotCommand(), newResultsCommand(), newProbeCommand())
	return root
}
