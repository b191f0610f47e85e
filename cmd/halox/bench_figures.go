package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
)

// axes is what the figures of the benches of datatypes have in common: curves over a
// parameter of the layouts.
type axes struct {
	name, title string
	suite       string // that all its layouts are of; "" for any
	x           string // the parameter, or bytes
	xLabel      string
}

func (a *axes) head() *axes { return a }

// figure is a figure of a bench.
type figure interface{ head() *axes }

// generalAxes are those of a plot of bandwidth over packed size, or another
// parameter.
func (b *layoutBench) generalAxes(title string) axes {
	a := axes{title: title, x: b.over, xLabel: b.over}
	if b.match != "" {
		a.title += " of " + b.match
	}
	if b.over == packedBytes {
		a.xLabel = "packed bytes"
	}
	return a
}

// has reports whether the workload has the parameter that the figure is over, above 0.
func (a *axes) has(w workloads.Workload) bool {
	x, ok := layoutOf(w).Float(a.x)
	return ok && x > 0
}

// findFigure returns the figure of that name.
func findFigure[F figure](all []F, name string) (f F, err error) {
	var names []string
	for _, f := range all {
		if f.head().name == name {
			return f, nil
		}
		names = append(names, f.head().name)
	}
	return f, fmt.Errorf("--figure: there is no %q: take %s, or list", name, strings.Join(names, ", "))
}

// listFigures prints the figures' names and titles.
func listFigures[F figure](out io.Writer, all []F) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range all {
		fmt.Fprintf(w, "%s\t%s\n", f.head().name, f.head().title)
	}
	return w.Flush()
}

// medians gathers numbers over places on the axis of a figure.
type medians map[float64][]float64

// add adds a number at the place of the row's layout; one without a place is left out.
func (m medians) add(a *axes, row results.Row, y float64) {
	if x, ok := row.Float(a.x); ok && x > 0 && y > 0 {
		m[x] = append(m[x], y)
	}
}

// draw gives the curve the median of each place.
func (m medians) draw(c plot.Curve) plot.Curve {
	for _, x := range slices.SortedFunc(maps.Keys(m), cmp.Compare) {
		ys := slices.Sorted(slices.Values(m[x]))
		c.X, c.Y = append(c.X, x), append(c.Y, ys[len(ys)/2])
	}
	return c
}

// withPoints returns the curves that have points. One whose twin has none stands alone.
func withPoints(all []plot.Curve) (some []plot.Curve) {
	alone := false
	for _, c := range all {
		if c.Twin = c.Twin && !alone; len(c.X) > 0 {
			some = append(some, c)
		}
		alone = len(c.X) == 0
	}
	return some
}

// deviceName returns the name of the first device of a record, "" for none.
func deviceName(r *results.Record) string {
	if len(r.Devices) == 0 {
		return ""
	}
	return r.Devices[0].Name
}
