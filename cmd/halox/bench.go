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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/streams"
)

// benchFlags are the flags of every bench.
type benchFlags struct {
	files    bench.Files
	progress bool
	backend  string
	network  string // of messages to other processes
}

func (b *benchFlags) add(f *pflag.FlagSet) {
	f.StringVar(&b.files.Record, "record", "", "write the record to this JSON `file`, from time to time and at the end")
	f.StringVar(&b.files.Plot, "plot", "", "draw what was measured, as halox plot does, to this `file` (.png, .svg, "+
		".pdf)")
	f.StringVar(&b.files.Resume, "resume", "", "go on with this record `file` of the same bench, devices, halox and "+
		"settings: what it has is not measured again; without --record it is written over")
	f.BoolVar(&b.progress, "progress", false, "say how far it is and how long it will take, also where that is no "+
		"terminal")
	f.StringVar(&b.backend, "backend", "auto", "auto, cuda or host")
	f.StringVar(&b.network, "exchange-network", "auto", "by which messages go to other processes, as exchange.network "+
		"of a config")
}

// leaveOpen sets an option to its zero value unless its flag was given.
func leaveOpen[T any](f *pflag.FlagSet, flag string, option *T) {
	if !f.Changed(flag) {
		*option = *new(T)
	}
}

// openBench opens the devices that a bench measures, of this process where several measure together.
type openBench func(ctx context.Context, processes *mpi.Processes, notes io.Writer) (*halo.Session, error)

// check rejects unknown backends and networks.
func (b *benchFlags) check() error {
	if err := option.OneOf("backend", b.backend, configs.Auto, string(streams.CUDA), string(streams.Host)); err != nil {
		return err
	}
	return option.OneOf("exchange-network", b.network, append([]string{configs.Auto}, texts(mpi.Networks())...)...)
}

// count opens the first n devices, of each process, all where n is 0.
func (b *benchFlags) count(n int) openBench {
	return func(ctx context.Context, processes *mpi.Processes, notes io.Writer) (*halo.Session, error) {
		return openSession(ctx, configs.Devices{Backend: b.backend, Count: configs.Count(n)}, processes,
			mpi.Network(b.network), notes)
	}
}

// most opens n devices together, all where n is 0: so that of several processes each has as many as the others, or one
// less.
func (b *benchFlags) most(n int) openBench {
	return func(ctx context.Context, processes *mpi.Processes, notes io.Writer) (*halo.Session, error) {
		each := n
		if !processes.IsAlone() {
			each = n / processes.Size()
			if processes.Rank < n%processes.Size() {
				each++
			}
		}
		if n > 0 && each == 0 {
			each = 1
		}
		return b.count(each)(ctx, processes, notes)
	}
}

// named opens the devices that a flag names.
func (b *benchFlags) named(flag string, ids []int) openBench {
	return func(ctx context.Context, _ *mpi.Processes, notes io.Writer) (*halo.Session, error) {
		s, err := openSession(ctx, configs.Devices{Backend: b.backend, IDs: slices.Compact(slices.Clone(ids))}, nil, "",
			notes)
		if err != nil {
			return nil, fmt.Errorf("--backend %s --%s %s: %w", b.backend, flag, option.List(ids), err)
		}
		return s, nil
	}
}

// fewHostDevices is how many CPU devices are measured by default: they are all alike.
const fewHostDevices = 4

// some opens the devices that are named, or all GPUs, or a few CPU devices.
func (b *benchFlags) some(ids []int) openBench {
	return func(ctx context.Context, processes *mpi.Processes, notes io.Writer) (*halo.Session, error) {
		if !processes.IsAlone() && len(ids) > 0 {
			return nil, errors.New("--devices: of several processes each takes its first device: leave it out")
		}
		if !processes.IsAlone() {
			return b.tried(ctx, processes, notes)
		}
		s, err := openSession(ctx, configs.Devices{Backend: b.backend, IDs: ids}, nil, "", notes)
		if err != nil || !s.Devices[0].HostMemory || len(ids) > 0 {
			return s, err
		}
		if err := s.Close(); err != nil {
			return nil, err
		}
		return openSession(ctx, configs.Devices{Backend: string(s.Backend), Count: fewHostDevices}, nil, "", notes)
	}
}

// tried opens the first device of each process, and tries the networks between them.
func (b *benchFlags) tried(ctx context.Context, processes *mpi.Processes, notes io.Writer) (*halo.Session, error) {
	s, err := b.count(1)(ctx, processes, notes)
	if err != nil {
		return nil, err
	}
	if _, err := s.TryNetworks(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// checkDevice rejects a negative device number.
func checkDevice(id int) error {
	if id < 0 {
		return fmt.Errorf("--device %d: devices are counted from 0", id)
	}
	return nil
}

// checkDevices rejects lists with negative or repeated device numbers.
func checkDevices(ids []int) error {
	for i, id := range ids {
		if id < 0 || slices.Contains(ids[:i], id) {
			return fmt.Errorf("--devices %s: name each device once, counted from 0", option.List(ids))
		}
	}
	return nil
}

// benchRecord begins the record of a bench on the devices of all processes, with their links if they are given.
func benchRecord(
	ctx context.Context, s *halo.Session, p *mpi.Processes, kind results.Kind, settings any, links *p2p.Links,
) *results.Record {
	r := beginRecord(ctx, s, kind, settings)
	r.Devices = describeDevices(s, s.Devices, links, nil)
	if gatherDevices(r, p) == nil && !p.IsAlone() { // an error ends what comes next too, and is returned there
		r.Processes = p.Size()
	}
	return r
}

// settingsOf returns what the flags of a bench say, given or not, as JSON has it.
func settingsOf(flags *pflag.FlagSet) map[string]any {
	settings := map[string]any{}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			settings[f.Name] = settingOf(f.Value)
		}
	})
	return settings
}

// settingOf returns numbers, truths and lists as such, and all else as text.
func settingOf(v pflag.Value) any {
	text := v.String()
	switch list, isList := v.(pflag.SliceValue); {
	case isList:
		return list.GetSlice()
	case v.Type() == "bool":
		return text == "true"
	case v.Type() == "int" || v.Type() == "int64" || v.Type() == "float64":
		if n, err := strconv.ParseFloat(text, 64); err == nil && results.Number(n) != nil {
			return n
		}
	}
	return text
}

// benchmark is the options of a benchmark of internal/bench.
type benchmark interface {
	Check() error
	Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error
}

// benchOutput is what a bench leaves beside its record; without a function it is as that of any
// other record.
type benchOutput struct {
	table func(w io.Writer, r *results.Record) error
	chart func(r *results.Record) (plot.Chart, error)
	check func(g *processGroup) error // before anything is measured; nil: nothing is checked
	alone bool                        // it can be measured by one process only
}

// run runs a bench as one of the launched processes, which measure together unless leave.alone is set.
func (b *benchFlags) run(cmd *cobra.Command, what benchmark, open openBench, leave benchOutput) error {
	return runTogether(cmd, func(g *processGroup, out, notes io.Writer) error {
		if leave.alone {
			if err := g.checkAlone(cmd.CommandPath(), "start it without one"); err != nil {
				return err
			}
		}
		return b.measure(cmd, g, what, open, leave, out, notes)
	})
}

// measure checks the options, opens the devices, measures, and prints and keeps what came of it.
// Interrupted or failed, it keeps what it had.
func (b *benchFlags) measure(cmd *cobra.Command, g *processGroup, what benchmark, open openBench, leave benchOutput,
	out, notes io.Writer) (err error) {
	ctx := cmd.Context()
	to := &bench.Recorder{Files: b.files, Settings: settingsOf(cmd.Flags()), Notes: notes,
		Progress: b.showProgress(notes), Processes: g.Processes}
	if err := cmp.Or(b.check(), what.Check()); err != nil {
		return err
	}
	if err := to.Check(); err != nil {
		return err
	}
	if leave.check != nil {
		if err := leave.check(g); err != nil {
			return err
		}
	}
	on, err := open(ctx, g.Processes, notes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Close()) }() // with all that is on the devices
	to.New = func(kind results.Kind, settings any, links *p2p.Links) *results.Record {
		return benchRecord(ctx, on, g.Processes, kind, settings, links)
	}
	if leave.table == nil {
		leave.table = writeTable
	}
	during(ctx, "measuring", func() string { return keepPart(to, leave, out) })
	failure := what.Run(ctx, &bench.Machine{Session: on, Processes: g.Processes}, to)
	if failure = interruption(ctx, failure); !g.IsAlone() && errors.Is(failure, context.Canceled) {
		failure = errInterrupted // of another process
	}
	if to.Record == nil || !g.speaks() {
		during(ctx, "closing the devices", nil)
		return failure
	}
	during(ctx, "writing what was measured", func() string { return keepRecord(to.Record, to.Files.Record) })
	return errors.Join(failure, to.Keep(leave.chart), leave.table(out, to.Record))
}

// keepPart writes the record of a bench that is ended by force, and prints what it has.
func keepPart(to *bench.Recorder, leave benchOutput, out io.Writer) string {
	part := to.Part()
	if part == nil || to.Processes.Rank > 0 {
		return ""
	}
	said := keepRecord(part, to.Files.Record)
	if err := leave.table(out, part); err != nil {
		said += fmt.Sprintf("; the table is not whole: %v", err)
	}
	return said
}

// keepRecord writes a record, if a name is given, and says so; the bench may be writing it too.
func keepRecord(r *results.Record, name string) string {
	if name == "" {
		return ""
	}
	if err := r.Write(name); err != nil {
		return fmt.Sprintf("; there is no record: %v", err)
	}
	return fmt.Sprintf("; %s has the %d rows until then", name, len(r.Rows))
}

// writeTable prints a record as halox results does.
func writeTable(w io.Writer, r *results.Record) error {
	return results.WriteTable(w, "text", results.Source{Record: r})
}

// showProgress shows how many parts are done: by a bar on a terminal, elsewhere by a line from time
// to time if that is wanted.
func (b *benchFlags) showProgress(w io.Writer) func(what string, parts int64) (func(int64), func()) {
	return func(what string, parts int64) (func(int64), func()) {
		p := newProgress(w, what, "parts", parts, b.progress)
		return p.steps, p.close
	}
}

// withNetwork prints the table of a bench of links, and writes what it says of the network to a file, if one is named.
func withNetwork(file *string) benchOutput {
	check := func(g *processGroup) error {
		if *file == "" {
			return nil
		}
		if g.IsAlone() || slices.Max(g.Nodes) == 0 {
			return errors.New("--network: there is none between processes of one host: start some on several")
		}
		if !g.speaks() {
			return nil
		}
		return option.CheckFiles([]option.File{{Name: "--network", Path: *file}})
	}
	return benchOutput{check: check, table: func(w io.Writer, r *results.Record) error {
		if err := writeTable(w, r); err != nil || *file == "" {
			return err
		}
		text, err := networkOf(r)
		if err != nil {
			return fmt.Errorf("--network: %w", err)
		}
		if err := files.Write(*file, []byte(text)); err != nil {
			return fmt.Errorf("--network: %w", err)
		}
		_, err = fmt.Fprintln(w, "wrote", *file)
		return err
	}}
}

// networkOf returns the file for halox plan --network of the links between hosts that were measured, by the worst of
// them: the time of the smallest message to and fro, the rate of the largest one way, or that of one where both go at
// once and each is slower then, by MPI alone, and what halox adds to the first. In an exchange messages go both ways at
// once.
func networkOf(r *results.Record) (string, error) {
	smallest, largest := math.Inf(1), 0.
	for _, row := range r.Rows {
		if bytes, ok := row.Float("bytes"); ok && row.Text("link") == "network" {
			smallest, largest = min(smallest, bytes), max(largest, bytes)
		}
	}
	latency, message, rate := 0., 0., math.Inf(1)
	for _, row := range r.Rows {
		bytes, _ := row.Float("bytes")
		if row.Text("link") != "network" {
			continue
		}
		switch took := row.Median(results.Time); {
		case row.Text("mode") == "ping-pong" && bytes == smallest && row.Text("path") == "wire":
			latency = max(latency, took)
		case row.Text("mode") == "ping-pong" && bytes == smallest:
			message = max(message, took)
		case row.Text("mode") == "one-way" && bytes == largest && row.Text("path") == "wire":
			rate = min(rate, row.Median(results.Rate))
		case row.Text("mode") == "both-ways" && bytes == largest && row.Text("path") == "wire":
			rate = min(rate, row.Median(results.Rate)/2)
		}
	}
	if latency == 0 || math.IsInf(rate, 1) {
		return "", errors.New("no messages between hosts were measured one way: start processes on several, with " +
			"--modes one-way among others")
	}
	return fmt.Sprintf("# %s bytes to and fro, %s bytes one way\nlatency_us: %.4g\nbandwidth_gb_s: %.4g\nadapters: "+
		"1\nmessage_us: %.4g\n",
		fmt.Sprint(smallest), fmt.Sprintf("%.0f", largest), latency, rate, max(0, message-latency)), nil
}
