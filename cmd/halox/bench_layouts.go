package main

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
)

// layoutBench is what the benches of datatypes have in common: which layouts they
// measure, for how long, and what they leave behind.
type layoutBench struct {
	backend       string
	blocks        int
	suites        []string
	match, over   string
	least, most   int64 // packed bytes; 0 for no limit
	budget        time.Duration
	noCheck, list bool
	figure        string
	settings      map[string]any // all flags, for the record
	recorder
}

// packedBytes is the value of --over that every layout has.
const packedBytes = "bytes"

func (b *layoutBench) addFlags(f *pflag.FlagSet) {
	f.StringVar(&b.backend, "backend", configs.Auto, "auto, cuda or host")
	f.StringSliceVar(&b.suites, "suites", suiteNames(), "suites of layouts")
	f.StringVar(&b.match, "match", "", "only layouts whose name, suite/name/parameters, matches this `regexp`")
	f.Int64Var(&b.least, "least", 0, "only layouts of at least so many packed `bytes`")
	f.Int64Var(&b.most, "most", 0, "only layouts of at most so many packed `bytes`; 0 for no limit")
	f.BoolVar(&b.list, "list", false, "list the layouts, with their packed bytes, and measure nothing")
	f.IntVar(&b.blocks, "blocks", 0, "most thread blocks that a kernel may take; 0 for as many as suit")
	f.DurationVar(&b.budget, "budget", 20*time.Millisecond, "how long to take for each measurement of a layout")
	b.recorder.addFlags(f)
	f.StringVar(&b.over, "over", packedBytes, "draw over this `parameter` of the layouts, such as block")
	f.StringVar(&b.figure, "figure", "", "measure and draw what a paper's figure shows, by its `name`; list prints the names")
}

// check refuses values that make no sense.
func (b *layoutBench) check() error {
	for _, wrong := range []error{
		oneOf("backend", b.backend, configs.Auto, "cuda", "host"),
		eachOf("suites", b.suites, suiteNames()...),
		b.checkNumbers(),
		b.checkFiles(),
	} {
		if wrong != nil {
			return wrong
		}
	}
	return nil
}

func (b *layoutBench) checkNumbers() error {
	switch {
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
func (b *layoutBench) checkFiles() error {
	if b.list {
		return nil
	}
	return b.recorder.check()
}

// checkFiles returns an error unless a bench can write its record and its plot. Either
// name may be empty.
func checkFiles(record, plot string) error {
	if plot != "" {
		if err := checkPlot("--plot", plot); err != nil {
			return err
		}
	}
	for _, file := range []string{record, plot} {
		if file == "" {
			continue
		}
		if err := results.CheckWritable(file); err != nil {
			return err
		}
	}
	if record != "" && plot != "" && samePath(record, plot) {
		return fmt.Errorf("--plot %s is the record: name another file", plot)
	}
	return nil
}

// checkPlot returns an error unless a flag names a file that can be drawn into.
func checkPlot(flag, name string) error {
	if ext := strings.ToLower(filepath.Ext(name)); !slices.Contains([]string{".png", ".svg", ".pdf"}, ext) {
		return fmt.Errorf("%s %s: the name must end in .png, .svg or .pdf", flag, name)
	}
	return results.CheckWritable(name)
}

// fixed takes the figure's suite for those of the flags, and refuses other flags
// that the figure has a value of its own for.
func (b *layoutBench) fixed(f *axes, flags *pflag.FlagSet, own ...string) error {
	for _, name := range append([]string{"suites", "over"}, own...) {
		if flags.Changed(name) {
			return fmt.Errorf("--figure %s has its own --%s: leave --%s out", f.name, name, name)
		}
	}
	b.suites = []string{f.suite}
	return nil
}

// hasAxis returns an error unless one of the layouts has the parameter to be drawn over.
func (b *layoutBench) hasAxis(f *axes, work []workloads.Workload) error {
	if slices.ContainsFunc(work, func(w workloads.Workload) bool { return f.has(w) }) {
		return nil
	}
	return fmt.Errorf("--over %s: the layouts have no such parameter: --list prints them", b.over)
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

// workloads returns those that the flags choose and the figure shows. It is an
// error if there are none.
func (b *layoutBench) workloads(shows func(workload string) bool) (chosen []workloads.Workload, err error) {
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
			if wanted.MatchString(w.String()) && shows(w.String()) && w.Bytes >= max(1, b.least) && (b.most == 0 || w.Bytes <= b.most) {
				chosen = append(chosen, w)
			}
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no layout of %s fits --match, --least and --most: --list prints them all", strings.Join(b.suites, ", "))
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

// layoutOf begins the row of a workload.
func layoutOf(w workloads.Workload) results.Row {
	return results.LayoutRow(w.Suite, w.Name, w.Params, w.Bytes)
}

// names returns what contends as results name it.
func names[C fmt.Stringer](all []C) (names []string) {
	for _, c := range all {
		names = append(names, c.String())
	}
	return names
}

// positive returns the number, or no label where it is none.
func positive[N int | int64 | float64](n N) any {
	if n == 0 {
		return nil
	}
	return n
}

// draw writes the plot that is wanted.
func (b *layoutBench) draw(c plot.Curves, notes io.Writer) error {
	if b.plot == "" {
		return nil
	}
	if len(c.Curves) == 0 {
		fmt.Fprintf(notes, "%s is not written: nothing that it shows was measured\n", b.plot)
		return nil
	}
	return plot.Write(b.plot, c)
}
