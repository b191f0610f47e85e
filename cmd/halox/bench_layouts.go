package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/datatypes"
	"github.com/halox/halox/results"
)

// layoutFlags are the flags of the benches of datatypes.
type layoutFlags struct {
	benchFlags
	list bool
}

func (l *layoutFlags) addTo(f *pflag.FlagSet, o *datatypes.Layouts) {
	f.StringSliceVar(&o.Suites, "suites", datatypes.Suites(), "suites of layouts")
	f.StringVar(&o.Match, "match", "", "only layouts whose name, suite/name/parameters, matches this `regexp`")
	f.Int64Var(&o.Least, "least", 0, "only layouts of at least so many packed `bytes`")
	f.Int64Var(&o.Most, "most", 0, "only layouts of at most so many packed `bytes`; 0 for no limit")
	f.BoolVar(&l.list, "list", false, "list the layouts, with their packed bytes, and measure nothing")
	f.IntVar(&o.Blocks, "blocks", 0, "most thread blocks that a kernel may take; 0 for as many as suit")
	f.DurationVar(&o.Budget, "budget", 20*time.Millisecond, "how long to take for each measurement of a layout")
	f.StringVar(&o.Over, "over", datatypes.PackedBytes, "draw over this `parameter` of the layouts, such as block")
	f.StringVar(&o.Figure, "figure", "", "measure and draw what a paper's figure shows, by its `name`; list prints the names")
	l.add(f)
}

// listFigures is the value of --figure that lists them.
const listFigures = "list"

// printFigures prints the names and titles of the figures of a kind of record.
func printFigures(out io.Writer, kind results.Kind) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range datatypes.Figures() {
		if f.Of == kind {
			fmt.Fprintf(w, "%s\t%s\n", f.Name, f.Title)
		}
	}
	return w.Flush()
}

// printLayouts prints names and packed bytes.
func printLayouts(out io.Writer, all []workloads.Workload, err error) error {
	for _, w := range all {
		if err == nil {
			_, err = fmt.Fprintln(out, w, w.Bytes)
		}
	}
	return err
}

// comparison prints what contenders took, beside each other.
func comparison(contenders func() []string) func(w io.Writer, r *results.Record) error {
	return func(w io.Writer, r *results.Record) error {
		return bench.Measured(r).WriteComparison(w, contenders())
	}
}
