package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/forecast"
	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/internal/plan"
	"github.com/halox/halox/internal/solve"
	"github.com/halox/halox/solvers"
)

func newPlanCommand() *cobra.Command {
	var set []string
	var dot bool
	var hosts hostsFlags
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "Show the messages and the memory of a run of a config file",
		Long: `Show the messages and the memory of a run of a config file.

Plan prints the subdomains, the messages of one exchange with their paths and the
reasons, the memory of each device and the host, and the predicted time of an
exchange. It opens the devices and measures their links, allocates no fields, and
fails if the run would not fit. Under mpirun, it also shows messages between
processes, and tests their networks.

--hosts predicts steps on increasing numbers of hosts from measured records, and opens
no device: see docs/how-to/predict-scaling.md.`,
		Example: `  halox plan heat3d.yaml
  halox plan heat3d.yaml --dot | dot -Tsvg > messages.svg
  halox bench schemes --record schemes.json
  halox plan heat3d.yaml --hosts 1024 --networks hdr200,ndr400x4 --measured schemes.json --plot hosts.svg`,
		Args: command.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("hosts") {
				return runTogether(cmd, func(g *processGroup, out, _ io.Writer) error {
					if err := g.checkAlone("plan --hosts", "it opens no devices, and needs no launcher"); err != nil {
						return err
					}
					return planHosts(cmd.Context(), out, args[0], set, cmd.Flags(), &hosts)
				})
			}
			if err := hosts.unused(cmd.Flags()); err != nil {
				return command.As(command.Usage, err)
			}
			return withSetup(cmd, args[0], set, func(out io.Writer, w *solvers.Setup, c *configs.Run) error {
				return showPlan(cmd.Context(), out, w, c, dot)
			})
		},
	}
	addSet(cmd, &set)
	cmd.Flags().BoolVar(&dot, "dot", false, "print a graph for graphviz")
	hosts.add(cmd.Flags())
	command.Complete(cmd, "networks", forecast.Names())
	return cmd
}

// withSetup opens the devices of a config, and shows something of its setup, without fields.
func withSetup(
	cmd *cobra.Command, file string, set []string, show func(out io.Writer, w *solvers.Setup, c *configs.Run) error,
) error {
	ctx := cmd.Context()
	return runTogether(cmd, func(g *processGroup, out, notes io.Writer) (err error) {
		config, err := g.config(ctx, func() (*configs.Run, error) {
			config, err := solve.Load(ctx, g.Size(), file, set)
			if err != nil {
				return nil, err
			}
			return config, command.As(command.Config,
				option.CheckFiles(solve.OutputFiles(config.Output), option.File{Name: "the config", Path: file}))
		})
		if err != nil {
			return err
		}
		w, err := solve.OpenConfig(ctx, config, g.Processes, notes, false)
		if err == nil {
			defer func() { err = errors.Join(err, solve.Close(w)) }()
			err = w.Place.Agree(ctx, "check the config", solve.CheckValues(ctx, config, w.Problem))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		return show(out, w, config)
	})
}

// showPlan prints the plan of a setup.
func showPlan(ctx context.Context, out io.Writer, w *solvers.Setup, c *configs.Run, dot bool) error {
	if !dot {
		interrupt.During(ctx, "measuring the links", nil)
		if err := w.Place.Agree(ctx, "measure the links", w.Session.Measure(ctx)); err != nil {
			return err
		}
		if err := w.Recall(ctx); err != nil {
			return err
		}
	}
	all := solve.Series(c, w.Problem.Fields())
	p, err := plan.New(ctx, w, c.Solver, solve.Outputs(w).Copied(all), dot)
	if err != nil {
		return err
	}
	if dot {
		return p.WriteDot(out)
	}
	return errors.Join(command.As(command.Config, p.Print(out)), command.Of(ctx).PrintJSON(p))
}
