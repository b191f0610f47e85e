package main

import (
	"cmp"
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
	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/internal/forecast"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// hostsFlags are the flags of halox plan for hosts that are not there.
type hostsFlags struct {
	hosts, devices     int
	networks, measured []string
	record, plot       string
	given              *pflag.Flag // that of devices
}

func (f *hostsFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&f.hosts, "hosts", 0, "predict steps on up to so many hosts")
	flags.IntVar(&f.devices, "devices-per-host", 4, "with --hosts: devices of each, where the config does not say how "+
		"many a process has")
	f.given = flags.Lookup("devices-per-host")
	flags.StringSliceVar(&f.networks, "network", nil,
		"with --hosts: "+strings.Join(forecast.Names(), ", ")+", or files")
	flags.StringSliceVar(&f.measured, "measured", nil, "with --hosts: records of steps, of several hosts as "+
		"`FILE@NETWORK` with the network that joined them")
	flags.StringVar(&f.record, "record", "", "with --hosts: the JSON `file` to write what is predicted to")
	flags.StringVar(&f.plot, "plot", "", "with --hosts: the `file` to draw it into (.png, .svg, .pdf)")
}

// unused returns an error where one of the flags was given without --hosts.
func (f *hostsFlags) unused(flags *pflag.FlagSet) (err error) {
	mine := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(hostsFlags).add(mine)
	mine.VisitAll(func(one *pflag.Flag) {
		if err == nil && flags.Changed(one.Name) {
			err = fmt.Errorf("--%s: it goes with --hosts", one.Name)
		}
	})
	return err
}

// maxHosts and maxPerHost are how many hosts, and devices of each, can be planned for.
const (
	maxHosts   = 1 << 17
	maxPerHost = 64
)

// check rejects impossible values of flags.
func (f *hostsFlags) check() error {
	switch {
	case f.hosts < 1 || f.hosts > maxHosts:
		return fmt.Errorf("--hosts: %d; 1 to %d are possible", f.hosts, maxHosts)
	case f.devices < 1 || f.devices > maxPerHost:
		return fmt.Errorf("--devices-per-host: %d; 1 to %d are possible", f.devices, maxPerHost)
	case len(f.networks) == 0:
		return fmt.Errorf("--network: name one or several: %s, or files", strings.Join(forecast.Names(), ", "))
	case len(f.measured) == 0:
		return errors.New("--measured: name records of steps on one host, as halox bench schemes --record FILE makes " +
			"them")
	}
	var errs []error
	if f.record != "" {
		errs = append(errs, option.Recordable("--record", f.record))
	}
	if f.plot != "" {
		errs = append(errs, option.Drawable("--plot", f.plot))
	}
	return errors.Join(errs...)
}

// settle takes the number of devices per host from a config that has it per process: there is one process per host.
func (f *hostsFlags) settle(c *configs.Run) error {
	n, says := int(c.Devices.Count), "devices.count"
	if c.Decomposition != nil {
		says = fmt.Sprintf("decomposition %v over %d hosts", c.Decomposition, f.hosts)
	}
	switch {
	case n == 0:
		return nil
	case n > maxPerHost:
		return fmt.Errorf("%s: %d devices a host; 1 to %d are possible", says, n, maxPerHost)
	case f.given.Changed && f.devices != n:
		return fmt.Errorf("--devices-per-host: %d; by %s of the config there are %d, of one process on each host",
			f.devices, says, n)
	}
	f.devices = n
	return nil
}

// curve returns the numbers of hosts that steps are predicted for: 1, 2, 4 and so on, or, where the config says how the
// grid is cut, one and those that this cut is for.
func (f *hostsFlags) curve(c *configs.Run) []int {
	if c.Decomposition != nil {
		return slices.Compact([]int{1, f.hosts})
	}
	return forecast.Doubled(f.hosts)
}

// outputs returns the files that are written, with the flags that name them.
func (f *hostsFlags) outputs() []outputFile {
	all := []outputFile{{key: "--record", file: f.record}, {key: "--plot", file: f.plot}}
	return slices.DeleteFunc(all, func(o outputFile) bool { return o.file == "" })
}

// checkOutputs rejects files that could not be written, and those that are read.
func (f *hostsFlags) checkOutputs(config string) error {
	var errs []error
	for i, o := range f.outputs() {
		if what := f.reads(config, o.file); what != "" {
			errs = append(errs, fmt.Errorf("%s: %s is %s: name another file", o.key, o.file, what))
			continue
		}
		if i > 0 && files.Same(f.record, o.file) {
			errs = append(errs, fmt.Errorf("%s: %s is the record: name another file", o.key, o.file))
			continue
		}
		if err := possible(o.file); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.key, err))
		}
	}
	return errors.Join(errs...)
}

// reads returns what a file is read as, "" if it is not read.
func (f *hostsFlags) reads(config, file string) string {
	if files.Same(config, file) {
		return "the config"
	}
	networks := slices.Clone(f.networks)
	for _, name := range f.measured {
		measured, network, _ := forecast.CutLast(name, "@")
		if files.Same(measured, file) {
			return "one of --measured"
		}
		networks = append(networks, network)
	}
	if slices.ContainsFunc(networks, func(n string) bool {
		return n != "" && !slices.Contains(forecast.Names(), n) &&
			files.Same(n, file)
	}) {
		return "the file of a network"
	}
	return ""
}

// found returns the networks.
func (f *hostsFlags) found() (all []forecast.Network, err error) {
	for _, name := range f.networks {
		n, err := forecast.FindNetwork(name)
		if err != nil {
			return nil, fmt.Errorf("--network: %w", err)
		}
		all = append(all, n)
	}
	return all, nil
}

// planHostsOf is the command for hosts that are not there.
func planHostsOf(ctx context.Context, out io.Writer, file string, set []string, f *hostsFlags) error {
	if err := errors.Join(f.check(), f.checkOutputs(file)); err != nil {
		return err
	}
	c, err := loadConfig(f.hosts, file, set) // one process on each
	if err != nil {
		return err
	}
	if err := f.settle(c); err != nil {
		return err
	}
	return planHosts(ctx, out, c, f)
}

// planHosts predicts steps of a config.
func planHosts(ctx context.Context, out io.Writer, c *configs.Run, f *hostsFlags) error {
	if steps := int(c.Exchange.Steps); steps > 1 {
		return fmt.Errorf("exchange.steps: %d; models are of steps with an exchange after each", steps)
	}
	networks, err := f.found()
	if err != nil {
		return err
	}
	problem, err := newProblem(c)
	if err != nil {
		return err
	}
	field := problem.Field()
	p := forecast.Problem{Grid: problem.Grid, Width: field.Width, Element: problem.Real.Size(), Parts: partsIn(c)}
	if c.Decomposition != nil {
		if _, err := p.CutOver(f.hosts, f.devices); err != nil {
			return fmt.Errorf("decomposition: %w", err)
		}
	}
	all, err := forecast.ReadMeasured(f.measured)
	if err != nil {
		return fmt.Errorf("--measured: %w", err)
	}
	record := forecastRecord(ctx, f, all)
	by, err := fitted(out, record, p, wanted(c).Samples(p, all), f.devices)
	if err != nil {
		return fmt.Errorf("--measured: %w", err)
	}
	for _, n := range networks {
		if err := printHosts(out, record, p, forecast.Machine{Devices: f.devices, Network: n}, f.curve(c),
			by); err != nil {
			return err
		}
	}
	return f.keep(record)
}

// partsIn returns the parts of a config's decomposition, 0 where it has none.
func partsIn(c *configs.Run) domain.Vec {
	if c.Decomposition == nil {
		return domain.Vec{}
	}
	parts := domain.Vec{1, 1, 1}
	copy(parts[:], c.Decomposition)
	return parts
}

// keep writes what was predicted, and draws it.
func (f *hostsFlags) keep(r *results.Record) error {
	if f.record != "" {
		if err := r.Write(f.record); err != nil {
			return err
		}
	}
	if f.plot == "" {
		return nil
	}
	chart, err := plot.New("", plot.Options{}, results.Source{Name: "forecast", Record: r})
	if err != nil {
		return err
	}
	return plot.Write(f.plot, chart)
}

// forecastRecord begins the record, of the machine that the steps were measured on.
func forecastRecord(ctx context.Context, f *hostsFlags, all []forecast.MeasuredFile) *results.Record {
	return &results.Record{
		Kind: results.KindForecast, Halox: program(), Command: arguments(ctx), Started: time.Now(),
		Host: all[0].Host, Devices: all[0].Devices,
		Settings: map[string]any{"hosts": f.hosts, "devices_per_host": f.devices, "networks": f.networks,
			"measured": f.measured},
	}
}

// fitted fits a model to each way to make steps, and prints how far it is from them, also into the record.
func fitted(out io.Writer, r *results.Record, p forecast.Problem, steps map[string][]forecast.Sample,
	devices int) (by []forecast.Candidate, err error) {
	type fit struct {
		forecast.Candidate
		seen, unseen forecast.Errors
	}
	var all []fit
	for name, samples := range steps {
		if devices > 1 && forecast.Alone(samples) {
			err = fmt.Errorf("%s: no steps of several devices of a host were measured: --devices-per-host 1", name)
			continue
		}
		m, failed := forecast.Fit(p, samples)
		if failed != nil {
			err = failed
			continue
		}
		f := fit{forecast.Candidate{Name: name, Model: m}, m.ErrorsOf(p, samples), forecast.ErrorsOfUnseen(p, samples)}
		f.Fewest = forecast.FewestPoints(samples)
		all = append(all, f)
	}
	if len(all) == 0 {
		return nil, errors.Join(errors.New("no steps of this stencil, precision, scheme and path that a model can be "+
			"fitted to; halox bench schemes --record FILE makes some"), err)
	}
	slices.SortFunc(all, func(a, b fit) int {
		return cmp.Or(cmp.Compare(a.seen.Worst, b.seen.Worst), cmp.Compare(a.Name, b.Name))
	})
	title := "models of a step, and how far they are from measured ones: in the median and at worst; and of sizes " +
		"between that a fit had not seen"
	table(out, title, "scheme\tmeasured\tmedian\tworst\tunseen\tmedian\tworst\t", func(t io.Writer) {
		for i, f := range all {
			note := ""
			if i == 0 || f.seen.Worst <= believed {
				by = append(by, f.Candidate)
			} else {
				note = "not used"
			}
			for _, e := range []struct {
				of string
				forecast.Errors
			}{{"fitted", f.seen}, {"unseen", f.unseen}} {
				if e.Samples > 0 {
					r.Add(results.NewRow().Label("scheme", f.Name).Label("error_of", e.of).Label("steps", e.Samples).
						Number(results.ModelError, e.Median).Number(results.WorstError, e.Worst))
				}
			}
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%d\t%s\t%s\t%s\n", f.Name, f.seen.Samples, percent(f.seen.Median),
				percent(f.seen.Worst),
				f.unseen.Samples, percent(f.unseen.Median), percent(f.unseen.Worst), note)
		}
	})
	return by, nil
}

// believed is the largest error at which a model is used; the best one always is.
const believed = 0.15

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// printHosts prints the steps over a network, strong and weak, and adds them to the record.
func printHosts(out io.Writer, r *results.Record, p forecast.Problem, on forecast.Machine, hosts []int,
	by []forecast.Candidate) error {
	n := on.Network
	for _, mode := range []struct {
		name, about string
		steps       func(forecast.Problem, forecast.Machine, []int, []forecast.Candidate) ([]forecast.Step, error)
	}{
		{"strong", "one grid on all hosts", forecast.Strong},
		{"weak", "a grid that grows with the hosts", forecast.Weak},
	} {
		steps, err := mode.steps(p, on, hosts, by)
		if len(steps) == 0 {
			return err
		}
		title := fmt.Sprintf("%s: %s, %d devices a host, %d x %.3g GB/s between hosts, latency %s, %s a message",
			n.Name, mode.about, on.Devices, n.Adapters, n.Bandwidth/1e9, p2p.Microseconds(n.Latency),
			p2p.Microseconds(n.Message))
		table(out, title, "hosts\tdevices\tcut over hosts\tpoints a device\tfrom a "+
			"host\tstep\tsweep\tefficiency\tscheme", func(t io.Writer) {
			for _, s := range steps {
				beyond := ""
				if s.Beyond {
					beyond = ", fewer points than any that was measured"
				}
				fmt.Fprintf(t, "%d\t%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s%s\n", s.Hosts, s.Devices,
					times(s.Cut.Hosts[:p.Grid.Dims]), s.Points, streams.Size(s.Bytes),
					p2p.Microseconds(s.Time), p2p.Microseconds(s.Sweep), percent(s.Efficiency), s.By, beyond)
				r.Add(results.NewRow().Label("network", n.Name).Label("mode", mode.name).Label("hosts",
					s.Hosts).Label("devices", s.Devices).Label("scheme", s.By).
					Number(results.Step, s.Time.Seconds()*1e6).Number(results.Efficiency, s.Efficiency))
			}
		})
		if at, found := forecast.Below(steps, 0.9); found {
			r.Add(results.NewRow().Label("network", n.Name).Label("mode", mode.name).Number(results.HostsAt90,
				float64(at)))
			fmt.Fprintf(out, "the efficiency falls below 90%% at about %d hosts\n", at)
		} else {
			fmt.Fprintf(out, "the efficiency is 90%% or more on up to %d hosts\n", steps[len(steps)-1].Hosts)
		}
		if err != nil {
			fmt.Fprintf(out, "no more hosts: %v\n", err)
		}
	}
	return nil
}

// wanted says which measured steps are like those of a config.
func wanted(c *configs.Run) forecast.Wanted {
	return forecast.Wanted{
		Scheme: c.Exchange.Scheme, Order: c.Exchange.Order, Path: string(c.Exchange.Path),
		Precision: string(c.Precision), StencilPoints: c.Stencil.Points, Dims: c.Dims(),
		OverProcesses: func(name string) bool { return scheme.Scheme(name).Needs().Processes },
	}
}
