// Command halox solves Laplace and heat problems from a config file on all the
// GPUs of a host, or on CPU devices if there are none.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/drawing"
	"github.com/halox/halox/internal/files"
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
	root.Version = fmt.Sprintf("%s (%s)", version, program().Commit)
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
