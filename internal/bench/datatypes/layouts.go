// Package datatypes measures the engines that pack MPI datatypes, on the layouts of benchmarks and papers: on one
// device by [PackCommand], and between two devices by [PingPongCommand]. It draws the papers' figures from the
// measurements.
package datatypes

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/streams"
)

// layouts selects the layouts and the duration of measurements. If a figure is named, it provides the options that are
// not set.
type layouts struct {
	Suites      []string // nil for all
	Match       string   // regular expression that names must match
	Least, Most int64    // packed bytes; 0 for no limit
	Over        string   // parameter on the x axis; "" for packedBytes
	Figure      string   // name of a figure of a paper; "" for bandwidth over the parameter
	Blocks      int      // maximum number of thread blocks per kernel; 0: automatic
	Budget      time.Duration
	NoCheck     bool // do not compare results with those of the host
	Listed      bool // list the layouts instead of measuring them

	figure *figure
	work   []workloads.Workload // chosen by the options, and shown by the figure
}

func (l *layouts) flags() []option.Flag {
	return []option.Flag{
		{Name: "suites", Value: &l.Suites, Help: "suites of layouts: {}", Open: true, Choices: suiteNames()},
		{Name: "match", Value: &l.Match, Help: "only layouts whose name, suite/name/parameters, matches this `regexp`"},
		{Name: "least", Value: &l.Least, Help: "only layouts of at least this many packed `bytes`"},
		{Name: "most", Value: &l.Most, Help: "only layouts of at most this many packed `bytes`; 0: no limit"},
		{Name: "list", Value: &l.Listed, Help: "print the layouts and their packed bytes, and measure nothing"},
		{Name: "blocks", Value: &l.Blocks, Help: "maximum number of thread blocks per kernel; 0: automatic",
			To: option.NoLimit},
		option.Budget(&l.Budget),
		{Name: "x", Value: &l.Over, Help: "`parameter` of the layouts on the x axis of --plot, such as block",
			Open: true},
		{Name: "figure", Value: &l.Figure, Help: "measure and draw the figure of a paper with this `name`; list " +
			"prints the names"},
	}
}

// newLayouts returns the layouts that flags show as the default.
func newLayouts() layouts {
	return layouts{Suites: suiteNames(), Over: packedBytes, Budget: 20 * time.Millisecond}
}

// check rejects values that exclude each other.
func (l *layouts) check() error {
	if l.Most > 0 && l.Least > l.Most {
		return fmt.Errorf("--least: must be at most --most %d, got %d", l.Most, l.Least)
	}
	return nil
}

// setGeneral sets defaults, and chooses a figure of bandwidth over packed size or another parameter.
func (l *layouts) setGeneral(kind results.Kind, title string, curves ...curve) {
	l.Over = cmp.Or(l.Over, packedBytes)
	if l.Suites == nil {
		l.Suites = suiteNames()
	}
	f := &figure{axes: axes{title: title, x: l.Over, xLabel: l.Over}, kind: kind, shown: byteRate, curves: curves}
	if l.Match != "" {
		f.title += " of " + l.Match
	}
	if l.Over == packedBytes {
		f.xLabel = "packed bytes"
	}
	l.figure = f
}

// setFigure finds the requested figure, and takes its suite and its parameter.
func (l *layouts) setFigure(kind results.Kind) (err error) {
	if l.figure, err = named(kind, l.Figure); err != nil {
		return err
	}
	err = cmp.Or(l.reject("suites", l.Suites != nil), l.reject("x", l.Over != ""))
	l.Suites, l.Over = []string{l.figure.suite}, l.figure.x
	return err
}

// reject returns an error if an option was given that the figure sets.
func (l *layouts) reject(name string, given bool) error {
	if !given {
		return nil
	}
	return fmt.Errorf("--%s: must not be set with --figure %s", name, l.Figure)
}

// table writes a line for each layout with a column for each contender, or for each row if settings vary.
func (l *layouts) table(w io.Writer, r *results.Record, contenders []string, varied bool) error {
	r = bench.Measured(r)
	if varied || len(l.allBlocks()) > 1 {
		return results.WriteTable(w, "text", results.Source{Record: r})
	}
	return r.WriteComparison(w, contenders)
}

// allBlocks returns the maximum numbers of thread blocks: those of the figure unless one was given.
func (l *layouts) allBlocks() []int {
	if l.Blocks > 0 || l.figure.blocks == nil {
		return []int{l.Blocks}
	}
	return l.figure.blocks
}

// chooseWork chooses layouts. None is an error.
func (l *layouts) chooseWork() error {
	wanted, err := regexp.Compile(l.Match)
	if err != nil {
		return fmt.Errorf("--match: %w", err)
	}
	l.work = nil
	for _, s := range suites() {
		if !slices.Contains(l.Suites, s.name) {
			continue
		}
		all, err := s.make()
		if err != nil {
			return err
		}
		for _, w := range all {
			if wanted.MatchString(w.String()) && l.figure.shows(w.String()) && w.Bytes >= max(1, l.Least) &&
				(l.Most == 0 || w.Bytes <= l.Most) {
				l.work = append(l.work, w)
			}
		}
	}
	if len(l.work) == 0 {
		return fmt.Errorf("--match, --least and --most: no layout of %s fits; --list prints all",
			strings.Join(l.Suites, ", "))
	}
	return nil
}

// draw draws the figure of a record. The error is plot.ErrNothing if the record has none of its data.
func (l *layouts) draw(r *results.Record) (plot.Chart, error) {
	c := l.figure.draw(r)
	if len(c.Curves) == 0 {
		return nil, fmt.Errorf("%w of what it shows", plot.ErrNothing)
	}
	return c, nil
}

// checkAxis returns an error unless one of the layouts has the parameter to be drawn over.
func (l *layouts) checkAxis() error {
	if slices.ContainsFunc(l.work, l.figure.has) {
		return nil
	}
	return fmt.Errorf("--x: must be a parameter of the layouts, which --list prints, got %q", l.Over)
}

// packersOf returns a function that makes the packer of a device with given options once, limited to a number of thread
// blocks if that is above 0.
func packersOf(
	c *kernels.Compiler, d *streams.Device, blocks int, open *streams.Resources,
) func(o packing.Options) (*packing.Packer, error) {
	made := map[packing.Options]*packing.Packer{}
	return func(o packing.Options) (*packing.Packer, error) {
		o.Blocks = blocks
		if p := made[o]; p != nil {
			return p, nil
		}
		p, err := packing.New(c, d, o)
		if err == nil {
			open.Add(p)
			made[o] = p
		}
		return p, err
	}
}

// suite is a source of workloads.
type suite struct {
	name string
	make func() ([]workloads.Workload, error)
}

func suites() []suite {
	return []suite{
		{"ddtbench", workloads.DDTBench}, {"tempi", workloads.TEMPI}, {"jenkins", workloads.Jenkins},
		{"hand", workloads.HAND},
		{"wu", workloads.Wu}, {"shoc", workloads.SHOC}, {"hacc", workloads.HACC},
	}
}

func suiteNames() (names []string) {
	for _, s := range suites() {
		names = append(names, s.name)
	}
	return names
}

// contiguousMessage returns the layout of so many bytes without gaps.
func contiguousMessage(bytes int64) (*packing.MessageLayout, error) {
	t, err := datatype.Contiguous(int(bytes), datatype.Byte)
	if err != nil {
		return nil, err
	}
	return packing.NewMessageLayout(t, 1)
}

// positive returns the number, or nil (no label) if it is 0.
func positive[N int | int64 | float64](n N) any {
	if n == 0 {
		return nil
	}
	return n
}

// allEngines names all engines among the values of an option.
const allEngines = "all"

// enginesFlag returns flag --engines: all, auto and the names of engines.
func enginesFlag(value *[]string) option.Flag {
	return option.Flag{Name: "engines", Value: value, Help: "engines that pack and unpack: {}", Open: true,
		Choices: append([]string{allEngines, string(packing.Auto)}, option.Texts(packing.Engines())...)}
}

// chosenEngines returns the engines with the names in an option, auto last.
func chosenEngines(names []string) (all []packing.Engine) {
	for _, e := range append(packing.Engines(), packing.Auto) {
		if slices.Contains(names, string(e)) || e != packing.Auto && slices.Contains(names, allEngines) {
			all = append(all, e)
		}
	}
	return all
}

// namesOf returns the names of the contenders in results.
func namesOf[C fmt.Stringer](all []C) (names []string) {
	for _, c := range all {
		names = append(names, c.String())
	}
	return names
}

// list prints the figures of a kind of record, or the layouts, if requested.
func (l *layouts) list(w io.Writer, kind results.Kind, choose func() error) (any, error) {
	if l.Figure == "list" {
		t, listed := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), map[string]string{}
		for _, f := range figures() {
			if f.kind == kind {
				fmt.Fprintf(t, "%s\t%s\n", f.name, f.title)
				listed[f.name] = f.title
			}
		}
		t.Flush() // the command looks at errors of its output
		return listed, nil
	}
	if !l.Listed {
		return nil, nil
	}
	err := choose()
	listed := map[string]int64{}
	for _, one := range l.work {
		fmt.Fprintln(w, one, one.Bytes)
		listed[one.String()] = one.Bytes
	}
	return listed, err
}
