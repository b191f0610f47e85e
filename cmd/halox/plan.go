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
)

func newPlanCommand() *cobra.Command {
	var set []string
	var dot bool
	var hosts hostsFlags
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "Show what a run of a config file would exchange, and whether it fits",
		Long: `Show what a run of a config file would exchange, and whether it fits.

Plan opens the devices and measures their links, and allocates no fields. It prints the
subdomains, the messages of one exchange with their paths and the reasons, the bytes per link,
the points that several steps between two exchanges sweep twice, the memory that a run needs
on each device and on the host, to the byte, with what is free, and the predicted time of an
exchange. It fails if a run would. Scheme auto is the one that earlier trials found, or what
run would take without trials.

Started by mpirun, it also shows which messages go to other processes and hosts, how and why,
and the memory of all processes.

--dot prints the same as a graph for graphviz: halox plan --dot FILE | dot -Tsvg

--hosts predicts steps on more and more hosts, up to so many, without opening a device. A model
is fitted to the steps of one host in the records that --measured names, and its error is
printed. --networks names the networks between the hosts, or files with latency_us,
bandwidth_gb_s, adapters and message_us. Steps of several hosts are used too, named with the
network that joined them: FILE@NETWORK. strong is the config's grid on all hosts, weak one that
grows with them. Schemes for a single process are left out.`,
		Example: `  halox plan heat3d.yaml
  halox bench schemes --record schemes.json
  halox plan heat3d.yaml --hosts 1024 --networks hdr200,ndr400x4 --measured schemes.json --plot hosts.svg`,
		Args: command.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runTogether(cmd, func(g *processGroup, out, notes io.Writer) error {
				if !cmd.Flags().Changed("hosts") {
					if err := hosts.unused(cmd.Flags()); err != nil {
						return command.As(command.Usage, err)
					}
					return planFile(cmd.Context(), g, out, notes, args[0], set, dot)
				}
				if err := g.checkAlone("plan --hosts", "it predicts steps of hosts that are not there, and needs no "+
					"launcher"); err != nil {
					return err
				}
				return planHosts(cmd.Context(), out, args[0], set, cmd.Flags(), &hosts)
			})
		},
	}
	addSet(cmd, &set)
	cmd.Flags().BoolVar(&dot, "dot", false, "print a graph for graphviz")
	hosts.add(cmd.Flags())
	command.Complete(cmd, "networks", forecast.Names())
	return cmd
}

// planFile is the command.
func planFile(ctx context.Context, g *processGroup, out, notes io.Writer, file string, set []string,
	dot bool) (err error) {
	config, err := g.config(ctx, func() (*configs.Run, error) {
		config, err := loadConfig(ctx, g.Size(), file, set)
		if err != nil {
			return nil, err
		}
		return config, command.As(command.Config,
			option.CheckFiles(outputFiles(config.Output), option.File{Name: "the config", Path: file}))
	})
	if err != nil {
		return err
	}
	w, err := openConfig(ctx, config, g.Processes, notes, false)
	if err == nil {
		defer func() { err = errors.Join(err, closeSetup(w)) }()
		err = w.Place.Agree(ctx, "check the config", checkValues(ctx, config, w.Problem))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if !dot {
		interrupt.During(ctx, "measuring the links", nil)
		if err := w.Place.Agree(ctx, "measure the links", w.Session.Measure(ctx)); err != nil {
			return err
		}
		if err := w.Recall(ctx); err != nil {
			return err
		}
	}
	p, err := plan.New(ctx, w, config.Solver, dot)
	if err != nil {
		return err
	}
	if dot {
		return p.WriteDot(out)
	}
	return errors.Join(command.As(command.Config, p.Print(out)), command.Of(ctx).PrintJSON(p))
}
