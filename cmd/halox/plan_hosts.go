package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
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

// check refuses flags that make no sense.
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

// settle takes the devices of a host from a config that says how many each process has: there is one on each host.
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

// checkOutputs refuses files that could not be written, and those that are read.
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

// reads says which of the files that are read one is, "" where it is none.
func (f *hostsFlags) reads(config, file string) string {
	if files.Same(config, file) {
		return "the config"
	}
	networks := slices.Clone(f.networks)
	for _, name := range f.measured {
		measured, network, _ := cutLast(name, "@")
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
	all, err := readMeasured(f.measured)
	if err != nil {
		return fmt.Errorf("--measured: %w", err)
	}
	record := forecastRecord(ctx, f, all)
	by, err := fitted(out, record, p, measuredSteps(c, p, all), f.devices)
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
func forecastRecord(ctx context.Context, f *hostsFlags, all []measuredFile) *results.Record {
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

// believed is how far a model may be from any measured step to be used, beside the best one.
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

// measuredFile is a record of steps, with the network that joined its hosts, where these are several.
type measuredFile struct {
	results.Source
	network forecast.Network
	hosts   []int // by device: the number of its host
	share   int   // devices of the first process, where there are several; else 0
}

// readMeasured reads records: FILE, or FILE@NETWORK of several hosts.
func readMeasured(names []string) (all []measuredFile, err error) {
	for _, name := range names {
		file, network, joined := cutLast(name, "@")
		sources, err := results.ReadAll(file)
		if err != nil {
			return nil, err
		}
		for _, source := range sources {
			m := measuredFile{Source: source}
			m.count()
			if hosts := slices.Max(append(m.hosts, 0)) + 1; (hosts > 1) != joined {
				return nil, fmt.Errorf("%s: name the network of a record of several hosts, and of no other, as "+
					"FILE@NETWORK: the number of its hosts is %d", name, hosts)
			}
			if joined {
				if m.network, err = forecast.FindNetwork(network); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
			}
			all = append(all, m)
		}
	}
	return all, nil
}

// cutLast cuts around the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// count numbers the hosts of the record's devices.
func (m *measuredFile) count() {
	known := map[string]int{}
	for _, d := range m.Devices {
		if _, ok := known[d.Host]; !ok {
			known[d.Host] = len(known)
		}
		m.hosts = append(m.hosts, known[d.Host])
		if m.Processes > 1 && d.Process == 0 {
			m.share++
		}
	}
}

// measuredSteps returns the steps of the config's stencil and precision in some records, by how they were made. Of
// several measurements of one step the shortest counts: others were disturbed.
func measuredSteps(c *configs.Run, p forecast.Problem, all []measuredFile) (steps map[string][]forecast.Sample) {
	steps = map[string][]forecast.Sample{}
	alone := map[string][]forecast.Sample{} // by scheme: a device alone sends nothing by any path
	for _, m := range all {
		for _, row := range m.Rows {
			s, ok := m.stepOf(c, p, row)
			if !ok {
				continue
			}
			if s.Cut.Hosts.Product()*s.Cut.Devices.Product() == 1 {
				alone[row.Text("scheme")] = append(alone[row.Text("scheme")], s)
				continue
			}
			if c.Exchange.Scheme != string(scheme.Auto) && c.Exchange.Order != row.Text("order") {
				continue
			}
			by := strings.TrimSpace(row.Text("scheme")+" "+row.Text("order")) + " by " + m.pathsOf(row)
			steps[by] = append(steps[by], s)
		}
	}
	for by := range steps {
		scheme, _, _ := strings.Cut(by, " ")
		steps[by] = shortest(append(slices.Clone(alone[scheme]), steps[by]...))
	}
	return steps
}

// shortest returns the shortest of all samples of one step.
func shortest(all []forecast.Sample) (some []forecast.Sample) {
	for _, s := range all {
		alike := func(t forecast.Sample) bool { return t.Grid == s.Grid && t.Cut == s.Cut && t.Network == s.Network }
		if i := slices.IndexFunc(some, alike); i >= 0 {
			some[i].Step = min(some[i].Step, s.Step)
			continue
		}
		some = append(some, s)
	}
	return some
}

// pathsOf says by which paths the messages of a row went.
func (m *measuredFile) pathsOf(row results.Row) string {
	devices, _ := row.Float("devices")
	switch {
	case m.share == 0 || int(devices) <= m.share:
		return row.Text("path")
	case m.share == 1:
		return "mpi"
	}
	return row.Text("path") + " and mpi"
}

// stepOf returns the step that a row has, if it is of the config's stencil and precision, without norms, of a scheme
// that runs over processes and that the config allows.
func (m *measuredFile) stepOf(c *configs.Run, p forecast.Problem, row results.Row) (s forecast.Sample, ok bool) {
	took, measured := row.Get(results.Step)
	name := row.Text("scheme")
	wanted := c.Exchange.Scheme == string(scheme.Auto) || c.Exchange.Scheme == name
	if !measured || row.Unit(results.Step) != "us" || !wanted || !overProcesses(name) || row.Text("norms") != "" ||
		row.Text("steps_an_exchange") != "" ||
		row.Text("precision") != string(c.Precision) ||
		row.Text("stencil") != fmt.Sprintf("%d-point", c.Stencil.Points) {
		return s, false
	}
	if path := c.Exchange.Path; path != "auto" && row.Text("path") != "" && row.Text("path") != string(path) &&
		m.pathsOf(row) != "mpi" {
		return s, false
	}
	points, known := row.Float("points")
	parts, err := partsOf(row.Text("parts"))
	if err != nil || !known || points < 1 || points > math.MaxInt32 {
		return s, false
	}
	size := make([]int, c.Dims())
	for a := range size {
		size[a] = int(points)
		if row.Text("mode") == "weak" {
			size[a] *= parts[a]
		}
	}
	s.Network, s.Step = m.network, time.Duration(took.Median*1e3)
	if s.Grid, err = domain.NewGrid(size, [3]bool{}); err != nil {
		return s, false
	}
	if s.Cut, ok = m.cutOf(p, s.Grid, parts); s.Cut.Hosts.Product() == 1 {
		s.Network = forecast.Network{}
	}
	return s, ok
}

// cutOf returns over which hosts, and over which devices of each, a grid was cut into these parts: over one, or as
// processes cut it, and nothing where they have cut it in another way.
func (m *measuredFile) cutOf(p forecast.Problem, grid domain.Grid, parts domain.Vec) (forecast.Cut, bool) {
	devices, hosts := int(parts.Product()), 1
	if devices <= len(m.hosts) {
		hosts = 1 + slices.Max(m.hosts[:devices])
	}
	if hosts == 1 {
		return forecast.Cut{Hosts: domain.Vec{1, 1, 1}, Devices: parts}, true
	}
	p.Grid, p.Parts = grid, domain.Vec{}
	c, err := p.CutOver(hosts, devices/hosts)
	for a := range parts {
		if err != nil || c.Hosts[a]*c.Devices[a] != parts[a] {
			return c, false
		}
	}
	return c, true
}

// maxParts is how many parts along an axis a cut of a record has at most.
const maxParts = 1 << 17

// partsOf reads a cut, such as 1 x 2 x 2.
func partsOf(text string) (parts domain.Vec, err error) {
	parts = domain.Vec{1, 1, 1}
	fields := strings.Split(text, " x ")
	if len(fields) > len(parts) {
		return parts, fmt.Errorf("a cut %q", text)
	}
	for a, f := range fields {
		if parts[a], err = strconv.Atoi(f); err != nil || parts[a] < 1 || parts[a] > maxParts {
			return parts, fmt.Errorf("a cut %q", text)
		}
	}
	return parts, nil
}

// overProcesses reports whether a scheme runs over several processes, as hosts take.
func overProcesses(name string) bool {
	needs, err := scheme.NeedsOf(scheme.Scheme(name))
	return err == nil && needs.Processes
}
