// Command halox solves Laplace and heat problems from a config file on all the
// GPUs of a host, or on host devices where there are none.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// version and commit are set by the linker; see the Makefile.
var (
	version = "dev"
	commit  = ""
)

// The exit codes.
const (
	exitFailed      = 1
	exitInterrupted = 130 // as a shell reports a program ended by Ctrl-C
)

// errInterrupted is the outcome of a run that was told to stop.
var errInterrupted = errors.New("interrupted")

func main() {
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// untilInterrupted returns a context that ends at the first signal to stop, for
// what can stop in good order. The next signal ends the program at once.
func untilInterrupted(parent context.Context) (ctx context.Context, release context.CancelFunc) {
	ctx, release = signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, release)
	return ctx, release
}

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	switch err := root.ExecuteContext(context.WithValue(ctx, argumentsKey{}, args)); {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted):
		if err.Error() != errInterrupted.Error() { // what else went wrong
			fmt.Fprintln(stderr, err)
		}
		return exitInterrupted
	default:
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
}

// argumentsKey is that of the command line in a command's context.
type argumentsKey struct{}

// arguments returns the command line of a command, as given.
func arguments(ctx context.Context) []string {
	args, _ := ctx.Value(argumentsKey{}).([]string)
	return args
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "halox",
		Short:         "Run stencils and exchange halos on all the GPUs of this host",
		Version:       fmt.Sprintf("%s (%s)", version, builtFrom()),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newRunCommand(), newDevicesCommand(), newConfigCommand(), newBenchCommand(), newPlanCommand(), newVerifyCommand(),
		newPlotCommand(), newResultsCommand())
	return root
}

// newGroup returns a command that only holds others: by itself it helps, and a
// name that it does not hold is an error.
func newGroup(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

// builtFrom returns the commit that the program was built from.
func builtFrom() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown commit"
}
