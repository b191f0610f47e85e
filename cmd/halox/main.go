// Command halox solves Laplace and heat problems from a config file on all the
// GPUs of a host, or on CPU devices if there are none.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/drawing"
	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/internal/solve"
)

func main() {
	code := execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	files.End() // a command that was ended by force may still be writing
	os.Exit(code)
}

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return int(command.Execute(ctx, newRoot(), args, stdout, stderr))
}

func newRoot() *cobra.Command {
	root := command.NewGroup("halox", "Run stencils and exchange halos on GPUs, on one host or many",
		newRunCommand(), newDevicesCommand(), newConfigCommand(), newBenchCommand(), newPlanCommand(),
		newVerifyCommand(), drawing.NewPlotCommand(), drawing.NewResultsCommand(), newCheckpointCommand(),
		newVersionCommand(), newProbeCommand())
	root.Version = fmt.Sprintf("%s (%s)", solve.Version, solve.Program().Commit)
	var codes strings.Builder
	all, means := command.Codes()
	for _, c := range all {
		fmt.Fprintf(&codes, "\n  %3d  %s", c, means[c])
	}
	root.Long = root.Short + ".\n\nExit codes:\n" + codes.String()
	root.Example = "  halox config new heat3d\n  halox run heat3d.yaml"
	command.Setup(root)
	return root
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version, the commit and the Go version", Args: cobra.NoArgs,
		Example: "  halox version\n  halox version --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, platform := solve.Program(), runtime.GOOS+"/"+runtime.GOARCH
			fmt.Fprintf(cmd.OutOrStdout(), "halox %s (%s), %s, %s\n", p.Version, p.Commit, runtime.Version(), platform)
			return command.Of(cmd.Context()).PrintJSON(map[string]string{"version": p.Version, "commit": p.Commit,
				"go": runtime.Version(), "platform": platform})
		},
	}
}
