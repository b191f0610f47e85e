package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/bench/datatypes"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/results/trace"
)

// plotFlags are the flags of halox plot.
type plotFlags struct {
	out, kind string
	x, y      string
	by, where []string
	peaks     map[string]string
}

func newPlotCommand() *cobra.Command {
	var f plotFlags
	cmd := &cobra.Command{
		Use:   "plot FILE...",
		Short: "Draw what records hold",
		Long: `Draw what records hold.

Records of one kind have a plot that fits them; --kind asks for another, also for a
paper's figure, and --kind list names all. Several records lie over each other:
curves that would be of the same name say in which machine, commit or file they
differ. Records of different machines never share a curve. Error bars are quartiles
of what was repeated; --x, --y and --by say what to draw over what, and --where
which rows, by the names that halox results prints. A trace is drawn alone: of
records and traces, the traces are left out.`,
		Example: `  halox plot exchange.json -o exchange.svg
  halox plot before.json after.json -o both.png --where radius=2 --where fields=4
  halox plot pack.json -o blocks.pdf --where layout=vector --x block --y time --by engine
  halox plot pack.json -o wu-6.svg --kind wu-6`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, files []string) error {
			return f.run(withoutTraces(files, cmd.ErrOrStderr()), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "out", "o", "", "the `file` to draw into (.png, .svg, .pdf)")
	flags.StringVar(&f.kind, "kind", "", "the plot, by its `name`; list prints the names")
	flags.StringVar(&f.x, "x", "", "the label, parameter or metric along X")
	flags.StringVar(&f.y, "y", "", "the metric or label along Y")
	flags.StringSliceVar(&f.by, "by", nil, "the labels that tell curves apart")
	flags.StringArrayVar(&f.where, "where", nil, "only rows with this `label=value`; may be repeated")
	flags.StringToStringVar(&f.peaks, "peak", nil, "of a roofline: the most GFLOP/s of the device's arithmetic, as "+
		"`name=number`; may be repeated")
	return cmd
}

// run draws the files.
func (f *plotFlags) run(names []string, out io.Writer) error {
	if f.kind == "list" {
		return listPlots(out)
	}
	if len(names) == 0 {
		return errors.New("name the files to draw: halox plot FILE... -o OUT.svg")
	}
	if f.out == "" {
		return errors.New("-o: name the file to draw into, such as -o plot.svg")
	}
	if slices.ContainsFunc(names, func(file string) bool { return files.Same(file, f.out) }) {
		return fmt.Errorf("-o %s is one of the files to draw: name another", f.out)
	}
	if err := option.Drawable("-o", f.out); err != nil {
		return err
	}
	in, err := inputOf(names)
	if err != nil {
		return err
	}
	chart, err := in.chart(names, f)
	if err != nil {
		return err
	}
	return plot.Write(f.out, chart)
}

// input is a kind of file that halox plot draws.
type input struct {
	name  string
	is    func(head []byte) bool // by how the file begins
	chart func(files []string, f *plotFlags) (plot.Chart, error)
}

// inputs returns the kinds of files. What no other kind knows is read as a record,
// whose reader says what is wrong with it.
func inputs() []input {
	return []input{
		{"trace", isTrace, traceChart},
		{"record", func([]byte) bool { return true }, recordChart},
	}
}

// traceChart draws the timeline of a trace.
func traceChart(files []string, f *plotFlags) (plot.Chart, error) {
	if len(files) > 1 {
		return nil, fmt.Errorf("%s and %s are traces: draw them one by one", files[0], files[1])
	}
	if f.kind != "" || f.x != "" || f.y != "" || len(f.by)+len(f.where) > 0 {
		return nil, fmt.Errorf("%s is a trace, which has one plot: leave --kind, --x, --y, --by and --where out",
			files[0])
	}
	t, err := trace.Read(files[0])
	if err != nil {
		return nil, err
	}
	chart, err := plot.Timeline(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", files[0], err)
	}
	return chart, nil
}

// inputOf returns the kind that all the files are of.
func inputOf(files []string) (in input, err error) {
	for i, name := range files {
		head, err := headOf(name)
		if err != nil {
			return in, err
		}
		all := inputs()
		next := all[slices.IndexFunc(all, func(k input) bool { return k.is(head) })]
		if i > 0 && next.name != in.name {
			return in, fmt.Errorf("%s is a %s and %s a %s: draw them one by one", files[0], in.name, name, next.name)
		}
		in = next
	}
	return in, nil
}

// recordChart draws records: a paper's figure, or the plot of a kind.
func recordChart(files []string, f *plotFlags) (plot.Chart, error) {
	all, err := results.ReadAll(files...)
	if err != nil {
		return nil, err
	}
	if figure, ok := findPaper(f.kind); ok {
		return figure.chart(all, f)
	}
	where, err := conditions(f.where)
	if err != nil {
		return nil, err
	}
	peaks, err := f.parsedPeaks()
	if err != nil {
		return nil, err
	}
	return plot.New(f.kind, plot.Options{X: f.x, Y: f.y, By: f.by, Where: where, Peaks: peaks}, all...)
}

// parsedPeaks returns the peaks of a roofline, nil if none are named.
func (f *plotFlags) parsedPeaks() (peaks map[string]float64, err error) {
	for name, text := range f.peaks {
		peak, err := strconv.ParseFloat(text, 64)
		if err != nil || !(peak > 0) || math.IsInf(peak, 0) {
			return nil, fmt.Errorf("--peak %s=%s: want a positive number of GFLOP/s", name, text)
		}
		if peaks == nil {
			peaks = map[string]float64{}
		}
		peaks[name] = peak
	}
	return peaks, nil
}

// paper is a figure of a paper.
type paper struct{ datatypes.Figure }

func findPaper(name string) (paper, bool) {
	for _, figure := range datatypes.Figures() {
		if figure.Name == name {
			return paper{figure}, true
		}
	}
	return paper{}, false
}

// chart draws the figure of the one record that there has to be.
func (p paper) chart(all []results.Source, f *plotFlags) (plot.Chart, error) {
	if len(all) != 1 {
		return nil, fmt.Errorf("--kind %s draws one record, not %d", p.Name, len(all))
	}
	if f.x != "" || f.y != "" || f.by != nil || f.where != nil {
		return nil, fmt.Errorf("--kind %s has its own --x, --y, --by and --where: leave them out", p.Name)
	}
	if all[0].Kind != p.Of {
		return nil, fmt.Errorf("--kind %s draws records of kind %s; %s is of kind %s", p.Name, p.Of, all[0].Name,
			all[0].Kind)
	}
	c := p.Draw(all[0].Record)
	if len(c.Curves) == 0 {
		return nil, fmt.Errorf("--kind %s: %s has none of the layouts and contenders that it shows", p.Name,
			all[0].Name)
	}
	return c, nil
}

// listPlots prints the names of the plots and what they show.
func listPlots(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for name, about := range plot.Kinds() {
		fmt.Fprintf(w, "%s\t%s\n", name, about)
	}
	for _, p := range datatypes.Figures() {
		fmt.Fprintf(w, "%s\t%s\n", p.Name, p.Title)
	}
	return w.Flush()
}

// resultsFlags are the flags of halox results.
type resultsFlags struct {
	format         string
	where, metrics []string
}

func newResultsCommand() *cobra.Command {
	var f resultsFlags
	cmd := &cobra.Command{
		Use:   "results FILE...",
		Short: "Print what records hold as a table",
		Long: `Print what records hold as a table, a line a row of the records.

In text and markdown, what all rows have in common stands above the table, and
numbers are medians; one whose 95% confidence interval reaches farther than 1% is
followed by how far. Of several files traces are left out. In csv every label has a column, and every metric one for its
median, quartiles, extremes and number of measurements each. --where says which rows,
and --metrics which numbers and in which order.`,
		Example: `  halox results exchange.json
  halox results run-*.json --format markdown
  halox results schemes.json --where devices=4 --metrics step,gflops,over_baseline
  halox results pack.json --format csv > pack.csv`,
		Args: someFiles,
		RunE: func(cmd *cobra.Command, files []string) error {
			return f.run(withoutTraces(files, cmd.ErrOrStderr()), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&f.format, "format", "text", strings.Join(results.Formats(), ", "))
	cmd.Flags().StringArrayVar(&f.where, "where", nil, "only rows with this `label=value`; may be repeated")
	cmd.Flags().StringSliceVar(&f.metrics, "metrics", nil, "only these metrics, in this order")
	return cmd
}

// run prints the table of the files.
func (f *resultsFlags) run(files []string, out io.Writer) error {
	if err := option.OneOf("format", f.format, results.Formats()...); err != nil {
		return err
	}
	where, err := conditions(f.where)
	if err != nil {
		return err
	}
	all, err := results.ReadAll(files...)
	if err != nil {
		return err
	}
	var metrics []results.Metric
	for _, m := range f.metrics {
		metrics = append(metrics, results.Metric(m))
	}
	if all, err = results.Filter(all, where, metrics...); err != nil {
		return err
	}
	return results.WriteTable(out, f.format, all...)
}

// conditions reads the values of --where.
func conditions(where []string) (all []results.Condition, err error) {
	for _, text := range where {
		c, err := results.ParseCondition(text)
		if err != nil {
			return nil, fmt.Errorf("--where: %w", err)
		}
		all = append(all, c)
	}
	return all, nil
}

// withoutTraces returns the files that are no traces, of which notes tell, as the files of a folder may be of both
// kinds. Where there are traces alone it returns all.
func withoutTraces(names []string, notes io.Writer) []string {
	var others, traces []string
	for _, name := range names {
		if head, err := headOf(name); err == nil && isTrace(head) {
			traces = append(traces, name)
		} else {
			others = append(others, name)
		}
	}
	if len(others) == 0 || len(traces) == 0 {
		return names
	}
	fmt.Fprintf(notes, "left out, as they are traces, which halox plot draws one by one: %s\n",
		strings.Join(traces, ", "))
	return others
}

// isTrace reports whether a file begins as a trace does.
func isTrace(head []byte) bool { return bytes.Contains(head, []byte(`"traceEvents"`)) }

// headBytes is how much of a file its kind is told by.
const headBytes = 512

// headOf reads how a file begins.
func headOf(name string) ([]byte, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head := make([]byte, headBytes)
	n, err := io.ReadFull(file, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:n], err
}
