package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/results"
)

// packBench is what halox bench pack is asked for.
type packBench struct {
	backend               string
	device, blocks        int
	suites, engines       []string
	match, to, over       string
	least, most           int64 // packed bytes; 0 for no limit
	budget                time.Duration
	unpack, noCheck, list bool
	record, plot, figure  string
}

// The values of --to and --engines that are not an engine.
const (
	toDevice   = "device"
	toPinned   = "pinned"
	allEngines = "all"
)

// packedBytes is the value of --over that every layout has.
const packedBytes = "bytes"

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
			return b.start(ctx, cmd)
		},
	}
	b.addFlags(cmd)
	return cmd
}

func (b *packBench) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&b.backend, "backend", configs.Auto, "auto, cuda or host")
	f.IntVar(&b.device, "device", 0, "the device, counted from 0")
	f.StringSliceVar(&b.suites, "suites", suiteNames(), "suites of layouts")
	f.StringVar(&b.match, "match", "", "only layouts whose name, suite/name/parameters, matches this `regexp`")
	f.Int64Var(&b.least, "least", 0, "only layouts of at least so many packed `bytes`")
	f.Int64Var(&b.most, "most", 0, "only layouts of at most so many packed `bytes`; 0 for no limit")
	f.BoolVar(&b.list, "list", false, "list the layouts, with their packed bytes, and measure nothing")
	f.StringSliceVar(&b.engines, "engines", []string{allEngines, string(packing.Auto)}, "engines: all, auto or the name of one")
	f.IntVar(&b.blocks, "blocks", 0, "most thread blocks that a kernel may take; 0 for as many as suit")
	f.BoolVar(&b.unpack, "unpack", false, "time unpacking too, of what the layout's receiver has")
	f.StringVar(&b.to, "to", toDevice, "where the packed bytes go, and are unpacked from: device memory, or pinned host memory mapped into it (zero copy)")
	f.DurationVar(&b.budget, "budget", 20*time.Millisecond, "how long to measure each engine on each layout")
	f.BoolVar(&b.noCheck, "no-check", false, "do not compare what engines write with what the host packs")
	f.StringVar(&b.record, "record", "", "write the record to this JSON `file`")
	f.StringVar(&b.plot, "plot", "", "draw bandwidth of packing over packed size, the median of layouts of one size, or the figure, to this `file` (.png, .svg, .pdf)")
	f.StringVar(&b.over, "over", packedBytes, "draw over this `parameter` of the layouts, such as block")
	f.StringVar(&b.figure, "figure", "", "measure and draw what a paper's figure shows, by its `name`; list prints the names")
}

// start does what the flags say.
func (b *packBench) start(ctx context.Context, cmd *cobra.Command) error {
	if b.figure == "list" {
		return listFigures(cmd.OutOrStdout())
	}
	figure, err := b.check(cmd)
	if err != nil {
		return err
	}
	work, err := b.workloads(figure)
	if err != nil {
		return err
	}
	if b.list {
		return listWorkloads(cmd.OutOrStdout(), work)
	}
	if !slices.ContainsFunc(work, func(w workloads.Workload) bool { return figure.has(w) }) {
		return fmt.Errorf("--over %s: the layouts have no such parameter: `halox bench pack --list` prints them", b.over)
	}
	return b.run(ctx, figure, work, cmd.OutOrStdout(), cmd.ErrOrStderr())
}

// check refuses flags that make no sense, and returns the figure that they ask
// for: without --figure that of bandwidth over packed size.
func (b *packBench) check(cmd *cobra.Command) (*packFigure, error) {
	for _, wrong := range []error{
		oneOf("backend", b.backend, configs.Auto, "cuda", "host"),
		oneOf("to", b.to, toDevice, toPinned),
		eachOf("suites", b.suites, suiteNames()...),
		eachOf("engines", b.engines, engineNames()...),
		b.checkNumbers(),
		b.checkFiles(),
	} {
		if wrong != nil {
			return nil, wrong
		}
	}
	if b.figure == "" {
		return b.generalFigure(), nil
	}
	f, err := findFigure(b.figure)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"suites", "engines", "unpack", "over"} {
		if cmd.Flags().Changed(name) {
			return nil, fmt.Errorf("--figure %s has its own --%s: leave --%s out", f.name, name, name)
		}
	}
	b.suites, b.unpack = []string{f.suite}, f.roundTrip
	if f.pinned && !cmd.Flags().Changed("to") {
		b.to = toPinned
	}
	return f, nil
}

func (b *packBench) checkNumbers() error {
	switch {
	case b.device < 0:
		return fmt.Errorf("--device %d: devices are counted from 0", b.device)
	case b.blocks < 0:
		return fmt.Errorf("--blocks %d: give a positive number, or 0 for as many as suit", b.blocks)
	case b.budget <= 0:
		return fmt.Errorf("--budget %v: give a positive time, such as 20ms", b.budget)
	case b.least < 0 || b.most < 0:
		return fmt.Errorf("--least %d --most %d: give positive numbers of bytes, or 0 for no limit", b.least, b.most)
	case b.most > 0 && b.least > b.most:
		return fmt.Errorf("--least %d is more than --most %d: no layout has so many bytes", b.least, b.most)
	}
	return nil
}

// checkFiles makes sure, before anything is measured, that it can be kept.
func (b *packBench) checkFiles() error {
	if b.plot != "" {
		if ext := strings.ToLower(filepath.Ext(b.plot)); !slices.Contains([]string{".png", ".svg", ".pdf"}, ext) {
			return fmt.Errorf("--plot %s: the name must end in .png, .svg or .pdf", b.plot)
		}
	}
	for _, file := range []string{b.record, b.plot} {
		if file == "" || b.list {
			continue
		}
		if err := results.CheckWritable(file); err != nil {
			return err
		}
	}
	return nil
}

// oneOf returns an error unless the value of a flag is one of some.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("--%s: there is no %q: take %s", flag, value, strings.Join(allowed, ", "))
}

func eachOf(flag string, values []string, allowed ...string) error {
	if len(values) == 0 {
		return fmt.Errorf("--%s names none: take %s", flag, strings.Join(allowed, ", "))
	}
	for _, v := range values {
		if err := oneOf(flag, v, allowed...); err != nil {
			return err
		}
	}
	return nil
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
	return results.Pack{Engine: string(c.engine), Variant: c.variant}.Contender()
}

// contenders returns the engines to be measured, auto last.
func (b *packBench) contenders() (all []contender) {
	chosen := func(e packing.Engine) bool { return slices.Contains(b.engines, string(e)) }
	for _, e := range packing.Engines() {
		if chosen(e) || e == packing.Copies || slices.Contains(b.engines, allEngines) {
			all = append(all, contender{engine: e})
		}
	}
	if chosen(packing.Auto) {
		all = append(all, contender{engine: packing.Auto})
	}
	return all
}

// suite is a source of workloads.
type suite struct {
	name string
	make func() ([]workloads.Workload, error)
}

func suites() []suite {
	return []suite{
		{"ddtbench", workloads.DDTBench}, {"tempi", workloads.TEMPI}, {"jenkins", workloads.Jenkins}, {"hand", workloads.HAND},
		{"wu", workloads.Wu}, {"shoc", workloads.SHOC}, {"hacc", workloads.HACC},
	}
}

func suiteNames() (names []string) {
	for _, s := range suites() {
		names = append(names, s.name)
	}
	return names
}

// workloads returns those that the flags and the figure choose. It is an error if
// there are none.
func (b *packBench) workloads(figure *packFigure) (chosen []workloads.Workload, err error) {
	wanted, err := regexp.Compile(b.match)
	if err != nil {
		return nil, fmt.Errorf("--match: %w", err)
	}
	for _, s := range suites() {
		if !slices.Contains(b.suites, s.name) {
			continue
		}
		all, err := s.make()
		if err != nil {
			return nil, err
		}
		for _, w := range all {
			if wanted.MatchString(w.String()) && figure.shows(w.String()) && w.Bytes >= max(1, b.least) && (b.most == 0 || w.Bytes <= b.most) {
				chosen = append(chosen, w)
			}
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no layout of %s fits --match, --least and --most: `halox bench pack --list` prints them all", strings.Join(b.suites, ", "))
	}
	return chosen, nil
}

// listWorkloads prints names and packed bytes.
func listWorkloads(out io.Writer, all []workloads.Workload) error {
	for _, w := range all {
		if _, err := fmt.Fprintln(out, w, w.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// run measures and prints the table. Interrupted or failed, it keeps what it had.
func (b *packBench) run(ctx context.Context, figure *packFigure, work []workloads.Workload, out, notes io.Writer) (err error) {
	m, err := openDevices(configs.Devices{Backend: b.backend, IDs: []int{b.device}}, notes)
	if err != nil {
		return fmt.Errorf("--backend %s --device %d: %w", b.backend, b.device, err)
	}
	defer func() { err = errors.Join(err, m.close()) }()
	r := &packRun{
		device: m.devices[0], compiler: newCompiler(), contenders: figure.contenders(),
		pinned: b.to == toPinned, check: !b.noCheck, budget: b.budget,
		options: packing.Options{Blocks: b.blocks, Cache: os.Getenv("HALOX_CACHE")},
	}
	record := b.newPacks(m, r.contenders)
	failure := r.measureAll(ctx, work, b.unpack, record, notes)
	if failure != nil {
		record.Failure = failure.Error()
	}
	return errors.Join(failure, record.Table(out), b.keep(record, figure, notes))
}

// newPacks begins the record with what it is measured on, and how.
func (b *packBench) newPacks(m *opened, contenders []contender) *results.Packs {
	p := &results.Packs{
		Halox: results.Program{Version: version, Commit: builtFrom()}, Host: m.host(), Started: time.Now(),
		Device: describeDevice(m.devices[0]), To: b.to, Blocks: b.blocks, BudgetMS: b.budget.Seconds() * 1e3,
	}
	for _, c := range contenders {
		p.Contenders = append(p.Contenders, c.String())
	}
	return p
}

// keep writes the record and the plot that are wanted.
func (b *packBench) keep(p *results.Packs, figure *packFigure, notes io.Writer) error {
	var errs []error
	if b.record != "" {
		errs = append(errs, p.Write(b.record))
	}
	if b.plot != "" {
		if c := figure.draw(p); len(c.Curves) > 0 {
			errs = append(errs, results.WriteCurves(b.plot, c))
		} else {
			fmt.Fprintf(notes, "%s is not written: nothing that it shows was measured\n", b.plot)
		}
	}
	return errors.Join(errs...)
}
