package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/forecast"
	"github.com/halox/halox/internal/solve"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/solvers/scheme"
)

// hostsFlags are the flags of halox plan for hosts that are not available.
type hostsFlags struct {
	hosts, devices     int
	networks, measured []string
	record, plot       string
}

func (h *hostsFlags) add(f *pflag.FlagSet) {
	f.IntVar(&h.hosts, "hosts", 0, "predict steps on up to this many hosts")
	f.IntVar(&h.devices, "devices-per-host", 4, "with --hosts: number of devices of each host, if the config does "+
		"not set it")
	f.StringSliceVar(&h.networks, "networks", nil,
		"with --hosts: networks between the hosts: "+strings.Join(forecast.Names(), ", ")+", or files")
	f.StringSliceVar(&h.measured, "measured", nil, "with --hosts: records of measured steps; for several hosts "+
		"`FILE@NETWORK`")
	f.StringVar(&h.record, "record", "", "with --hosts: write the record to this JSON `file`")
	f.StringVar(&h.plot, "plot", "", "with --hosts: draw the forecast to this `file` (.png, .svg, .pdf)")
}

// unused returns an error if one of the flags was given without --hosts.
func (*hostsFlags) unused(f *pflag.FlagSet) error {
	for _, name := range []string{"devices-per-host", "networks", "measured", "record", "plot"} {
		if f.Changed(name) {
			return fmt.Errorf("--%s: needs --hosts", name)
		}
	}
	return nil
}

// maxHosts and maxPerHost are the maximum numbers of hosts and of devices per host.
const (
	maxHosts   = 1 << 17
	maxPerHost = 64
)

// check rejects impossible values of flags, and files that cannot be written.
func (h *hostsFlags) check(config string) error {
	switch {
	case h.hosts < 1 || h.hosts > maxHosts:
		return fmt.Errorf("--hosts: must be between 1 and %d, got %d", maxHosts, h.hosts)
	case h.devices < 1 || h.devices > maxPerHost:
		return fmt.Errorf("--devices-per-host: must be between 1 and %d, got %d", maxPerHost, h.devices)
	case len(h.networks) == 0:
		return fmt.Errorf("--networks: must name at least one of %s, or files", strings.Join(forecast.Names(), ", "))
	case len(h.measured) == 0:
		return errors.New("--measured: must name records of steps on one host, from halox bench schemes --record FILE")
	}
	read, networks := []option.File{{Name: "the config", Path: config}}, slices.Clone(h.networks)
	for _, name := range h.measured {
		measured, network, _ := forecast.CutLast(name, "@")
		read, networks = append(read, option.File{Name: "one of --measured", Path: measured}), append(networks, network)
	}
	for _, name := range networks {
		if !slices.Contains(forecast.Names(), name) {
			read = append(read, option.File{Name: "the file of a network", Path: name})
		}
	}
	written := []option.File{option.Record("--record", h.record), option.Drawing("--plot", h.plot)}
	return option.CheckFiles(written, read...)
}

// settle takes the number of devices per host from a config, which has it per process: there is one process per host.
func (h *hostsFlags) settle(c *configs.Run, given bool) error {
	n, says := int(c.Devices.Count), "devices.count"
	if c.Decomposition != nil {
		says = fmt.Sprintf("decomposition %v over %d hosts", c.Decomposition, h.hosts)
	}
	switch {
	case n == 0:
		return nil
	case n > maxPerHost:
		return fmt.Errorf("%s: %d devices per host; must be between 1 and %d", says, n, maxPerHost)
	case given && h.devices != n:
		return fmt.Errorf("--devices-per-host: must be %d with %s of the config, got %d", n, says, h.devices)
	}
	h.devices = n
	return nil
}

// planHosts runs the command for hosts that are not available.
func planHosts(ctx context.Context, out io.Writer, file string, set []string, f *pflag.FlagSet, h *hostsFlags) error {
	if err := h.check(file); err != nil {
		return command.As(command.Usage, err)
	}
	c, err := solve.Load(ctx, h.hosts, file, set) // one process on each
	if err != nil {
		return err
	}
	if err := h.settle(c, f.Changed("devices-per-host")); err != nil {
		return err
	}
	what, err := h.forecast(c)
	if err != nil {
		return err
	}
	measured, err := forecast.ReadMeasured(h.measured)
	if err != nil {
		return fmt.Errorf("--measured: %w", err)
	}
	r := &results.Record{
		Kind: results.KindForecast, Halox: solve.Program(), Command: command.Of(ctx).Args, Started: time.Now(),
		Host: measured[0].Host, Devices: measured[0].Devices,
		Settings: map[string]any{"hosts": h.hosts, "devices_per_host": h.devices, "networks": h.networks,
			"measured": h.measured},
	}
	if err := errors.Join(what.Predict(out, r, measured), command.Of(ctx).PrintJSON(r)); err != nil {
		return err
	}
	if h.record != "" {
		if err := r.Write(h.record); err != nil {
			return err
		}
		fmt.Fprintln(out, "wrote", h.record)
	}
	if h.plot == "" {
		return nil
	}
	chart, err := plot.New("", plot.Options{}, results.Source{Name: "forecast", Record: r})
	if err != nil {
		return err
	}
	if err := plot.Write(h.plot, chart); err != nil {
		return err
	}
	fmt.Fprintln(out, "wrote", h.plot)
	return nil
}

// forecast returns the forecast for a config: steps on 1, 2, 4 and more hosts or, if the config has a decomposition, on
// one host and the number of hosts of that.
func (h *hostsFlags) forecast(c *configs.Run) (f forecast.Forecast, err error) {
	if steps := int(c.Exchange.Steps); steps > 1 {
		return f, fmt.Errorf("exchange.steps: %d; models are of steps with an exchange after each", steps)
	}
	for _, name := range h.networks {
		n, err := forecast.FindNetwork(name)
		if err != nil {
			return f, fmt.Errorf("--networks: %w", err)
		}
		f.Networks = append(f.Networks, n)
	}
	problem, err := c.Problem()
	if err != nil {
		return f, err
	}
	f.Problem = forecast.Problem{Grid: problem.Grid, Width: problem.Field().Width, Element: problem.Element.Size()}
	f.Devices, f.Hosts = h.devices, forecast.Doubled(h.hosts)
	var name string
	for _, s := range option.Stencils(problem.Grid.Dims) {
		if s.Kind.Points == c.Stencil.Points && string(s.Kind.Shape) == c.Stencil.Shape {
			name = s.Name
		}
	}
	f.Wanted = forecast.Wanted{
		Scheme: c.Exchange.Scheme, Order: c.Exchange.Order, Path: string(c.Exchange.Path),
		Precision: string(c.Precision), Stencil: name, Dims: problem.Grid.Dims,
		OverProcesses: func(name string) bool { return scheme.Scheme(name).Needs().Processes },
	}
	if c.Decomposition == nil {
		return f, nil
	}
	f.Hosts, f.Problem.Parts = slices.Compact([]int{1, h.hosts}), domain.Vec{1, 1, 1}
	copy(f.Problem.Parts[:], c.Decomposition)
	if _, err := f.Problem.CutOver(h.hosts, h.devices); err != nil {
		return f, fmt.Errorf("decomposition: %w", err)
	}
	return f, nil
}
