package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/internal/plan"
	"github.com/halox/halox/internal/solve"
	"github.com/halox/halox/solvers"
)

func newConfigCommand() *cobra.Command {
	cmd := command.NewGroup("config", "Write sample configs, check and explain configs", newConfigNewCommand(),
		newConfigCheckCommand(), newConfigExplainCommand())
	cmd.Example = "  halox config new heat3d\n  halox config check heat3d.yaml\n  halox config explain heat3d.yaml"
	return cmd
}

func newConfigNewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "new NAME [FILE]",
		Short: "Write a sample config: " + strings.Join(configs.Samples(), ", "),
		Long: "Write the sample config NAME, with comments, to FILE (default NAME.yaml; - is the standard " +
			"output).\nAn existing file is not overwritten. Samples: " + strings.Join(configs.Samples(), ", ") +
			".",
		Example: "  halox config new heat3d\n  halox config new heat3d - | halox run -",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return fmt.Errorf("NAME: must be one of %s, got none", strings.Join(configs.Samples(), ", "))
			case len(args) > 2:
				return fmt.Errorf("FILE: must be at most one file, got %d", len(args)-1)
			}
			return nil
		},
		ValidArgs: configs.Samples(),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := configs.Sample(args[0])
			if err != nil {
				return command.As(command.Usage, err)
			}
			file := args[0] + ".yaml"
			if len(args) == 2 {
				file = args[1]
			}
			if file == "-" {
				_, err := cmd.OutOrStdout().Write(text)
				return err
			}
			if _, err := os.Lstat(file); err == nil {
				return fmt.Errorf("%s already exists; name another file: halox config new NAME FILE", file)
			}
			if err := files.Write(file, text); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s; run it with: halox run %s\n", file, file)
			return command.Of(cmd.Context()).PrintJSON(map[string]string{"wrote": file})
		},
	}
}

func newConfigCheckCommand() *cobra.Command {
	var set []string
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a config file and print all errors",
		Args:  command.OneFile,
		Example: `  halox config check heat3d.yaml
  halox config check heat3d.yaml --set grid.size=[64,64,64]`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := solve.Load(cmd.Context(), 1, args[0], set)
			if err != nil {
				return err
			}
			if err := solve.CheckConfig(cmd.Context(), args[0], c); err != nil {
				return command.As(command.Config, err)
			}
			call := command.Of(cmd.Context())
			p, err := c.Problem()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(call.Verdicts(out), "ok    %s: %s on %v points in %s\n", args[0], c.Solver, c.Grid.Size, c.Precision)
			first := p.First()
			for a, h := range p.Spacing {
				fmt.Fprintf(out, "grid  %c from %.6g to %.6g in steps of %.6g\n", "xyz"[a], first[a],
					p.Coordinate(a, p.Grid.Size[a]-1), h)
			}
			if c.Solver != configs.SolverLaplace {
				fmt.Fprintln(out, "dt    "+p.StepText())
			}
			return call.PrintJSON(map[string]any{"file": args[0], "config": c, "origin": first, "spacing": p.Spacing,
				"time_step": p.StepText()})
		},
	}
	addSet(cmd, &set)
	return cmd
}

func newConfigExplainCommand() *cobra.Command {
	var set []string
	cmd := &cobra.Command{
		Use:   "explain FILE",
		Short: "Show what a step of a config file computes, and which schemes run it",
		Long: "Show what a step of a config file computes, and which schemes run it.\n\nExplain prints what each " +
			"stage reads, its bytes and operations per point, the weights\nof a linear stencil, the exchanges, and the CUDA " +
			"source. It also prints which schemes run\nthe step, and why the others do not.",
		Example: "  halox config explain grayscott.yaml\n  halox config explain heat3d.yaml --json",
		Args:    command.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSetup(cmd, args[0], set, func(out io.Writer, w *solvers.Setup, c *configs.Run) error {
				e, err := plan.Explain(cmd.Context(), w, c.Solver, out)
				if err != nil {
					return err
				}
				return command.Of(cmd.Context()).PrintJSON(e)
			})
		},
	}
	addSet(cmd, &set)
	return cmd
}
