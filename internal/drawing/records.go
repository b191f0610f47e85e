package drawing

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/bench/datatypes"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/results/trace"
)

// drawRecords draws records or a trace.
func (f *plotFlags) drawRecords(names []string, notes io.Writer) error {
	names, traces := withoutTraces(names, notes)
	if traces {
		return f.write(f.traceChart(names))
	}
	return f.write(f.recordChart(names))
}

// traceChart draws the timeline of a trace.
func (f *plotFlags) traceChart(names []string) (plot.Chart, error) {
	if len(names) > 1 {
		return nil, fmt.Errorf("%s and %s are traces: draw them one by one", names[0], names[1])
	}
	if f.kind != "" || f.x != "" || f.y != "" || len(f.by)+len(f.where) > 0 {
		return nil, fmt.Errorf("%s is a trace, which has one plot: leave --kind, --x, --y, --by and --where out",
			names[0])
	}
	t, err := trace.Read(names[0])
	if err != nil {
		return nil, err
	}
	chart, err := plot.Timeline(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", names[0], err)
	}
	return chart, nil
}

// recordChart draws the records of some files.
func (f *plotFlags) recordChart(names []string) (plot.Chart, error) {
	all, err := results.ReadAll(names...)
	if err != nil {
		return nil, err
	}
	figures := datatypes.Figures()
	if i := slices.IndexFunc(figures, func(g datatypes.Figure) bool { return g.Name == f.kind }); i >= 0 {
		return f.paperChart(figures[i], all)
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
			return nil, fmt.Errorf("--peak: must be a positive number of GFLOP/s, got %s=%s", name, text)
		}
		if peaks == nil {
			peaks = map[string]float64{}
		}
		peaks[name] = peak
	}
	return peaks, nil
}

// paperChart draws a paper's figure, of one record.
func (f *plotFlags) paperChart(figure datatypes.Figure, all []results.Source) (plot.Chart, error) {
	if len(all) != 1 {
		return nil, fmt.Errorf("--kind %s: must have one record, got %d", f.kind, len(all))
	}
	if f.x != "" || f.y != "" || f.by != nil || f.where != nil {
		return nil, fmt.Errorf("--kind %s has its own --x, --y, --by and --where: leave them out", f.kind)
	}
	if all[0].Kind != figure.Of {
		return nil, fmt.Errorf("--kind %s draws records of kind %s; %s is of kind %s", f.kind, figure.Of, all[0].Name,
			all[0].Kind)
	}
	c := figure.Draw(all[0].Record)
	if len(c.Curves) == 0 {
		return nil, fmt.Errorf("--kind %s: %s has none of the layouts and contenders that it shows", f.kind,
			all[0].Name)
	}
	return c, nil
}

// listPlots prints the names of the plots and what they show.
func listPlots(cmd *cobra.Command) error {
	w, all := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0), map[string]string{}
	for name, about := range allPlots() {
		fmt.Fprintf(w, "%s\t%s\n", name, about)
		all[name] = about
	}
	return errors.Join(w.Flush(), command.Of(cmd.Context()).PrintJSON(all))
}

// allPlots yields the names of the plots and figures, and what they show.
func allPlots() iter.Seq2[string, string] {
	return func(yield func(name, about string) bool) {
		for name, about := range plot.Kinds() {
			if !yield(name, about) {
				return
			}
		}
		for _, p := range datatypes.Figures() {
			if !yield(p.Name, p.Title) {
				return
			}
		}
	}
}

// resultsFlags are the flags of halox results.
type resultsFlags struct {
	format         string
	where, metrics []string
}

// NewResultsCommand returns the command halox results.
func NewResultsCommand() *cobra.Command {
	var f resultsFlags
	cmd := &cobra.Command{
		Use:   "results FILE...",
		Short: "Print records as a table",
		Long: `Print records as a table, one line per row of the records.

In text and markdown, labels that all rows share are printed above the table. Numbers are
medians, followed by the half width of their 95% confidence interval if that exceeds 1%.
In csv, each label has a column, and each metric has columns for its median, quartiles,
extremes and number of measurements. --where selects rows, --metrics the metrics and their
order. Traces are ignored.`,
		Example: `  halox results exchange.json
  halox results run-*.json --format markdown
  halox results schemes.json --where devices=4 --metrics step,gflops,over_baseline
  halox results pack.json --format csv > pack.csv`,
		Args: command.SomeFiles,
		RunE: func(cmd *cobra.Command, files []string) error {
			records, _ := withoutTraces(files, cmd.ErrOrStderr())
			return f.run(cmd, records)
		},
	}
	cmd.Flags().StringVar(&f.format, "format", "text", "format: "+strings.Join(results.Formats(), ", "))
	cmd.Flags().StringArrayVar(&f.where, "where", nil, "only rows with this `label=value`; may be repeated")
	cmd.Flags().StringSliceVar(&f.metrics, "metrics", nil, "only these metrics, in this order")
	command.Complete(cmd, "format", results.Formats())
	return cmd
}

// run prints the table of the files.
func (f *resultsFlags) run(cmd *cobra.Command, files []string) error {
	if !slices.Contains(results.Formats(), f.format) {
		return command.As(command.Usage, fmt.Errorf("--format: must be one of %s, got %q",
			strings.Join(results.Formats(), ", "), f.format))
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
	var records []json.RawMessage
	for _, r := range all {
		text, err := r.Encode()
		if err != nil {
			return err
		}
		records = append(records, text)
	}
	return errors.Join(results.WriteTable(cmd.OutOrStdout(), f.format, all...),
		command.Of(cmd.Context()).PrintJSON(records))
}

// conditions parses the values of --where.
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

// withoutTraces removes traces from the names of files, and prints which, because the files of a folder may be of both
// kinds. If there are only traces, it returns them all, and true.
func withoutTraces(names []string, notes io.Writer) (some []string, traces bool) {
	var others, left []string
	for _, name := range names {
		if trace.Begun(name) {
			left = append(left, name)
		} else {
			others = append(others, name)
		}
	}
	if len(others) > 0 && len(left) > 0 {
		fmt.Fprintf(notes, "left out, as they are traces, which halox plot draws one by one: %s\n",
			strings.Join(left, ", "))
		return others, false
	}
	return names, len(left) > 0
}
