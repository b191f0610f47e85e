package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/datatypes"
	"github.com/halox/halox/internal/bench/exchange"
	"github.com/halox/halox/internal/bench/links"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/bench/ranks"
	"github.com/halox/halox/internal/bench/steps"
	"github.com/halox/halox/internal/bench/sweep"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/internal/progress"
	"github.com/halox/halox/internal/solve"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

func newBenchCommand() *cobra.Command {
	cmd := command.NewGroup("bench", "Measure devices, links, schemes and scaling")
	cmd.Example = "  halox bench schemes --record schemes.json\n  halox bench links --help"
	for _, c := range []bench.Command{
		exchange.Command(), datatypes.PackCommand(), datatypes.PingPongCommand(), links.Command(),
		links.LatencyCommand(), ranks.Command(), sweep.Command(), steps.SchemesCommand(), steps.ScalingCommand(),
		steps.CheckpointCommand(),
	} {
		cmd.AddCommand(newBench(c).command())
	}
	return cmd
}

// benchCommand is a benchmark with the flags of every bench.
type benchCommand struct {
	bench.Command
	files   bench.Files
	backend string
	network string // of messages to other processes
}

func newBench(c bench.Command) *benchCommand {
	if c.Table == nil {
		c.Table = bench.WriteTable
	}
	return &benchCommand{Command: c, backend: configs.Auto, network: configs.Auto}
}

func (b *benchCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: b.Name, Short: b.Short, Example: b.Example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := option.Settle(cmd.Flags(), b.flags()); err != nil {
				return command.As(command.Usage, err)
			}
			if b.List != nil {
				if listed, err := b.List(cmd.OutOrStdout()); listed != nil {
					return errors.Join(command.As(command.Usage, err), command.Of(cmd.Context()).PrintJSON(listed))
				}
			}
			return runTogether(cmd, func(g *processGroup, out, notes io.Writer) error {
				if b.Alone {
					if err := g.checkAlone(cmd.CommandPath(), "start it without one"); err != nil {
						return err
					}
				}
				return b.measure(cmd, g, out, notes)
			})
		},
	}
	if b.About != "" {
		cmd.Long = b.Short + ".\n\n" + b.About
	}
	option.Add(cmd.Flags(), b.flags())
	for _, f := range b.flags() {
		if f.Choices != nil {
			command.Complete(cmd, f.Name, f.Choices)
		}
	}
	return cmd
}

func (b *benchCommand) flags() []option.Flag {
	flags := append(b.Options.Flags(), []option.Flag{
		{Name: "record", Value: &b.files.Record, Help: "write the record to this JSON `file`"},
		{Name: "plot", Value: &b.files.Plot, Help: "draw the measurements to this `file` (.png, .svg, .pdf)"},
		{Name: "resume", Value: &b.files.Resume, Help: "continue this record `file` of the same bench, " +
			"devices, version and settings"},
		{Name: "backend", Value: &b.backend, Help: "backend: {}",
			Choices: []string{configs.Auto, string(streams.CUDA), string(streams.Host)}},
	}...)
	if b.Alone || b.Pair {
		return flags
	}
	return append(flags, option.Flag{Name: "exchange-network", Value: &b.network, Help: "network for messages to " +
		"other processes: {}", Choices: append([]string{configs.Auto}, option.Texts(mpi.Networks())...)})
}

// fewDevices is the number of CPU devices that are measured by default: they are identical.
const fewDevices = 4

// open opens the devices that are measured.
func (b *benchCommand) open(ctx context.Context, w bench.Wanted, p *mpi.Processes, notes io.Writer) (*halo.Session,
	error) {
	ids := slices.Compact(slices.Clone(w.IDs))
	devices := halo.Devices{Backend: solve.BackendOf(b.backend), Count: w.Count, IDs: ids, Processes: p,
		Network: mpi.Network(b.network)}
	s, err := solve.OpenSession(ctx, devices, notes)
	if err == nil && w.Few && len(ids) == 0 && s.Devices[0].HostMemory {
		if err := s.Close(); err != nil {
			return nil, err
		}
		devices.Backend, devices.Count = s.Backend, fewDevices
		return solve.OpenSession(ctx, devices, notes)
	}
	if command.CodeOf(err) == command.Config {
		err = command.As(command.Usage, err)
	}
	if err != nil && len(ids) > 0 {
		err = fmt.Errorf("--backend %s --device-ids %s: %w", b.backend, option.List(ids), err)
	}
	return s, err
}

// settingsOf returns the values of all flags of a bench, for JSON.
func settingsOf(flags *pflag.FlagSet) map[string]any {
	settings := map[string]any{}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			settings[f.Name] = settingOf(f.Value)
		}
	})
	return settings
}

// settingOf returns numbers, booleans and lists unchanged, and other values as text.
func settingOf(v pflag.Value) any {
	text := v.String()
	switch list, isList := v.(pflag.SliceValue); {
	case isList:
		return list.GetSlice()
	case v.Type() == "bool":
		return text == "true"
	case v.Type() == "int" || v.Type() == "bytes" || v.Type() == "float64":
		if n, err := strconv.ParseFloat(text, 64); err == nil && results.Number(n) != nil {
			return n
		}
	}
	return text
}

// measure checks the options, opens the devices, measures, and prints and writes the results, partial ones after an
// interruption or a failure.
func (b *benchCommand) measure(cmd *cobra.Command, g *processGroup, out, notes io.Writer) (err error) {
	ctx := cmd.Context()
	to := &bench.Recorder{Files: b.files, Settings: settingsOf(cmd.LocalFlags()), Notes: notes, Processes: g.Processes}
	to.Progress = func(what string, parts int64) (func(int64), func()) {
		p := progress.NewBar(notes, progress.Options{
			What: what, Unit: "parts", All: parts, Lines: command.Of(ctx).Verbose})
		return p.Set, p.Close
	}
	if err := cmp.Or(b.Options.Check(), to.Check()); err != nil {
		return command.As(command.Usage, err)
	}
	wanted, err := b.Options.Wants(g.Processes)
	if err != nil {
		return command.As(command.Usage, err)
	}
	on, err := b.open(ctx, wanted, g.Processes, notes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Close()) }() // with everything on the devices
	to.New = func(kind results.Kind, settings any, links *p2p.Links) *results.Record {
		r := solve.BeginRecord(ctx, kind, settings)
		err := bench.Describe(r, on, g.Processes, on.Devices, links, nil)
		if err == nil && !g.IsAlone() { // an error also ends the next call, and is returned there
			r.Processes = g.Size()
		}
		return r
	}
	interrupt.During(ctx, "measuring", func() string { return b.keepPart(to, out) })
	failure := b.Options.Run(ctx, &bench.Machine{Session: on, Processes: g.Processes}, to)
	if failure = interrupt.Outcome(ctx, failure); !g.IsAlone() && errors.Is(failure, context.Canceled) {
		failure = interrupt.ErrInterrupted // of another process
	}
	if to.Record == nil || !g.speaks() {
		interrupt.During(ctx, "closing the devices", nil)
		return failure
	}
	interrupt.During(ctx, "writing the record", func() string { return keepRecord(to.Record, to.Files.Record) })
	interrupt.Limit(ctx, interrupt.None)
	failure = errors.Join(failure, to.Keep(b.Chart), b.Table(out, to.Record), command.Of(ctx).PrintJSON(to.Record))
	for _, file := range to.Wrote {
		fmt.Fprintln(out, "wrote", file)
	}
	if errors.Is(failure, bench.ErrCorrupts) {
		return command.As(command.CheckFailed, failure)
	}
	return failure
}

// keepPart writes the record of a bench that is ended by force, and prints its rows.
func (b *benchCommand) keepPart(to *bench.Recorder, out io.Writer) string {
	part := to.Part()
	if part == nil || to.Processes.Rank > 0 {
		return ""
	}
	said := keepRecord(part, to.Files.Record)
	if err := b.Table(out, part); err != nil {
		said += fmt.Sprintf("; the table is not complete: %v", err)
	}
	return said
}

// keepRecord writes a record, if a name is given, and returns a text that describes it; the bench may be writing it
// too.
func keepRecord(r *results.Record, name string) string {
	if name == "" {
		return ""
	}
	if err := r.Write(name); err != nil {
		return fmt.Sprintf("; there is no record: %v", err)
	}
	return fmt.Sprintf("; %s has the %d rows until then", name, len(r.Rows))
}
