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
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the run stops between two steps; the next one ends
	// the program at once.
	context.AfterFunc(ctx, release)
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	switch err := root.ExecuteContext(ctx); {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted):
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
		Version:       fmt.Sprintf("%s (%s)", version, builtFrom()),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newRunCommand(), newDevicesCommand(), newConfigCommand())
	return root
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
