package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/results"
)

// packBench is what halox bench pack is asked for.
type packBench struct {
	layoutBench
	device  int
	engines []string
	to      string
	unpack  bool
}

// The values of --to and --engines that are not an engine.
const (
	toDevice   = "device"
	toPinned   = "pinned"
	allEngines = "all"
)

func newBenchPackCommand() *cobra.Command {
	var b packBench
	cmd := &cobra.Command{
		Use:   "pack",
		Short: "Time the engines that pack MPI datatypes, on the layouts of benchmarks and papers",
		Long: `Time the engines that pack MPI datatypes, on the layouts of benchmarks and papers.

Every engine that suits a layout packs it on one device, beside a contiguous copy
of as many bytes by the driver, and the driver's own copies in 2-D and 3-D of the
same layout (engine copies, always among the engines). Times are of the device,
from one job to the next of some that follow each other: the median of batches.
The same buffers are packed again and again, as in the papers, so that caches are
warm alike for all; what fits into them never comes from memory. Rates count
packed bytes. What an engine writes is first compared with what the host packs,
once for each layout that spans no more than 64 MiB.

Ctrl-C ends the bench between two measurements and keeps what it had.`,
		Example: `  halox bench pack --suites ddtbench --unpack --record ddtbench.json
  halox bench pack --match tempi/2d-vector/bytes=4194304 --over block --plot tempi.png
  halox bench pack --figure list
  halox bench pack --figure wu-8 --to pinned --plot wu-8.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, release := untilInterrupted(cmd.Context())
			defer release()
			b.settings = settingsOf(cmd.Flags())
			return b.start(ctx, cmd)
		},
	}
	b.addFlags(cmd)
	return cmd
}

func (b *packBench) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	b.layoutBench.addFlags(f)
	f.IntVar(&b.device, "device", 0, "the device, counted from 0")
	f.StringSliceVar(&b.engines, "engines", []string{allEngines, string(packing.Auto)}, "engines: all, auto or the name of one")
	f.BoolVar(&b.unpack, "unpack", false, "time unpacking too, of what the layout's receiver has")
	f.StringVar(&b.to, "to", toDevice, "where the packed bytes go, and are unpacked from: device memory, or pinned host memory mapped into it (zero copy)")
	f.BoolVar(&b.noCheck, "no-check", false, "do not compare what engines write with what the host packs")
	f.Lookup("plot").Usage = "draw bandwidth of packing over packed size, the median of layouts of one size, or the figure, to this `file` (.png, .svg, .pdf)"
}

// start does what the flags say.
func (b *packBench) start(ctx context.Context, cmd *cobra.Command) error {
	if b.figure == "list" {
		return listFigures(cmd.OutOrStdout(), figures())
	}
	figure, err := b.check(cmd)
	if err != nil {
		return err
	}
	work, err := b.workloads(figure.shows)
	if err != nil {
		return err
	}
	if b.list {
		return listWorkloads(cmd.OutOrStdout(), work)
	}
	if err := b.hasAxis(&figure.axes, work); err != nil {
		return err
	}
	return b.run(ctx, figure, work, cmd.OutOrStdout(), cmd.ErrOrStderr())
}

// check refuses flags that make no sense, and returns the figure that they ask
// for: without --figure that of bandwidth over packed size.
func (b *packBench) check(cmd *cobra.Command) (*packFigure, error) {
	for _, wrong := range []error{
		b.layoutBench.check(),
		oneOf("to", b.to, toDevice, toPinned),
		eachOf("engines", b.engines, engineNames()...),
	} {
		if wrong != nil {
			return nil, wrong
		}
	}
	if b.device < 0 {
		return nil, fmt.Errorf("--device %d: devices are counted from 0", b.device)
	}
	if b.figure == "" {
		return b.generalFigure(), nil
	}
	f, err := findFigure(figures(), b.figure)
	if err != nil {
		return nil, err
	}
	if err := b.fixed(&f.axes, cmd.Flags(), "engines", "unpack"); err != nil {
		return nil, err
	}
	b.unpack = f.roundTrip
	if f.pinned && !cmd.Flags().Changed("to") {
		b.to = toPinned
	}
	return f, nil
}

func engineNames() []string {
	names := []string{allEngines, string(packing.Auto)}
	for _, e := range packing.Engines() {
		names = append(names, string(e))
	}
	return names
}

// contender is an engine, told how to work.
type contender struct {
	engine  packing.Engine
	variant string // the name of the options, if they are not the engine's own
	options packing.Options
}

// String names it as results do.
func (c contender) String() string {
	return c.row().Contender()
}

// row begins the row of a contender.
func (c contender) row() results.Row {
	return results.NewRow().Label("engine", c.engine).Label("variant", c.variant)
}

// contenders returns the engines to be measured, the driver's copies always.
func (b *packBench) contenders() (all []contender) {
	for _, e := range chosenEngines(append([]string{string(packing.Copies)}, b.engines...)) {
		all = append(all, contender{engine: e})
	}
	return all
}

// chosenEngines returns those that the names of engineNames choose, auto last.
func chosenEngines(names []string) (all []packing.Engine) {
	for _, e := range append(packing.Engines(), packing.Auto) {
		if slices.Contains(names, string(e)) || e != packing.Auto && slices.Contains(names, allEngines) {
			all = append(all, e)
		}
	}
	return all
}

// run measures and prints the table. Interrupted or failed, it keeps what it had.
func (b *packBench) run(ctx context.Context, figure *packFigure, work []workloads.Workload, out, notes io.Writer) (err error) {
	m, err := openDevices(configs.Devices{Backend: b.backend, IDs: []int{b.device}}, notes)
	if err != nil {
		return fmt.Errorf("--backend %s --device %d: %w", b.backend, b.device, err)
	}
	defer func() { err = errors.Join(err, m.close()) }()
	r := &packRun{
		device: m.devices[0], compiler: kernels.CompilerFromEnv(), contenders: figure.contenders(),
		pinned: b.to == toPinned, check: !b.noCheck, budget: b.budget,
		options: packing.Options{Blocks: b.blocks},
	}
	contenders := names(r.contenders)
	b.settings["contenders"] = contenders
	record := m.benchRecord(ctx, results.KindPack, b.settings, nil)
	if err := b.begin(record); err != nil {
		return err
	}
	failure := b.measureAll(ctx, record, r.tasks(work, b.unpack), notes)
	return errors.Join(failure, record.WriteComparison(out, contenders), b.keep(record, figure, notes))
}

// keep writes the record and the plot that are wanted.
func (b *packBench) keep(p *results.Record, figure *packFigure, notes io.Writer) error {
	var err error
	if b.record != "" {
		err = p.Write(b.record)
	}
	return errors.Join(err, b.draw(figure.draw(p), notes))
}
