package plot

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/wording"
)

// An axis is what lies along X or Y: a label or a metric.
type axis struct {
	name   string
	metric bool
	unit   string // of a metric, as it is shown
	factor float64
}

// newAxis returns the axis of that name. A label of the rows comes before a metric.
func newAxis(name string, rows []sourceRow) axis {
	for _, row := range rows {
		if row.Lookup(name) != nil {
			return axis{name: name, factor: 1}
		}
	}
	a := axis{name: name, metric: true}
	a.unit, a.factor = results.Metric(name).Shown(unitAmong(results.Metric(name), rows))
	return a
}

// unitAmong returns the unit that the rows have a metric in.
func unitAmong(m results.Metric, rows []sourceRow) string {
	for _, row := range rows {
		if _, ok := row.Get(m); ok {
			return row.Unit(m)
		}
	}
	return results.NewRow().Unit(m)
}

// title returns the text at the axis, with the unit.
func (a axis) title() string {
	if a.metric {
		return results.Metric(a.name).Title() + wording.Unit(a.unit)
	}
	return labelTitle(a.name)
}

// countsBytes reports whether the axis is a number of bytes.
func (a axis) countsBytes() bool {
	return !a.metric && strings.HasSuffix(labelTitle(a.name), "(bytes)")
}

// labelTitle returns the title of a label, with its unit.
func labelTitle(name string) string {
	switch name {
	case "bytes":
		return "size (bytes)"
	case "message_bytes":
		return "largest message (bytes)"
	case "device_bytes":
		return "sent by the busiest device (bytes)"
	case "points":
		return "points along each axis"
	case "n":
		return "matrix size"
	case "block":
		return "block length (bytes)"
	case "fragment":
		return "fragment (bytes)"
	}
	return wording.Spaced(name)
}

// at returns the number of a row on the axis; false for a label that is a word.
func (a axis) at(row sourceRow) (results.Sample, bool) {
	if a.metric {
		s, ok := row.Get(results.Metric(a.name))
		return s.Scale(a.factor), ok
	}
	v, ok := row.Float(a.name)
	return measure.Exact(v), ok
}

// place returns the text of a row on the axis.
func (a axis) place(row sourceRow) string {
	if !a.metric {
		return row.Text(a.name)
	}
	if s, ok := a.at(row); ok {
		return wording.Digits(s.Median)
	}
	return ""
}

// spread returns the range of the rows' numbers on an axis.
func spread(a axis, rows []sourceRow) span {
	s := span{math.Inf(1), math.Inf(-1)}
	for _, row := range rows {
		if v, ok := a.at(row); ok {
			s.lo, s.hi = min(s.lo, v.Median), max(s.hi, v.Median)
		}
	}
	return s
}

// ErrNothing is the error of [New] for records that have no numbers for the plot.
var ErrNothing = errors.New("there is nothing to plot")

// xAxis returns the first candidate that varies, else the first that there is.
func (s *selection) xAxis(k kind) (axis, error) {
	there := ""
	for _, name := range k.x {
		a := newAxis(name, s.rows)
		if !slices.ContainsFunc(s.rows, func(row sourceRow) bool { return a.place(row) != "" }) {
			continue
		}
		there = cmp.Or(there, name)
		if slices.ContainsFunc(s.rows, func(row sourceRow) bool { return a.place(row) != a.place(s.rows[0]) }) {
			return a, s.oneUnit(a)
		}
	}
	if there == "" {
		return axis{}, s.missing("X", k.x)
	}
	a := newAxis(there, s.rows)
	return a, s.oneUnit(a)
}

// yAxis returns the first candidate that a row has.
func (s *selection) yAxis(k kind) (axis, error) {
	var names []string
	for _, m := range k.y {
		a := newAxis(string(m), s.rows)
		if slices.ContainsFunc(s.rows, func(row sourceRow) bool { _, ok := a.at(row); return ok }) {
			return a, s.oneUnit(a)
		}
		names = append(names, string(m))
	}
	return axis{}, s.missing("Y", names)
}

// oneUnit returns an error where rows have a metric in several units, which no axis shows.
func (s *selection) oneUnit(a axis) error {
	unit := ""
	for _, row := range s.rows {
		if _, ok := row.Get(results.Metric(a.name)); !ok || !a.metric {
			continue
		}
		if is := row.Unit(results.Metric(a.name)); unit != "" && is != unit {
			return fmt.Errorf("%s is in %s and in %s: draw the records one by one", a.name, unit, is)
		}
		unit = row.Unit(results.Metric(a.name))
	}
	return nil
}

// missing returns the error that no row has what lies along an axis. It lists what rows have.
func (s *selection) missing(axis string, wanted []string) error {
	if len(wanted) == 0 {
		return fmt.Errorf("say what lies along %s: %s", axis, s.have())
	}
	return fmt.Errorf(
		"%w: no row has %s, for %s; there are %s", ErrNothing, strings.Join(wanted, " or "), axis, s.have(),
	)
}

// have lists the labels and metrics that rows have.
func (s *selection) have() string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, row := range s.rows {
		for _, l := range row.Labels {
			add(l.Name)
		}
		for _, v := range row.Values {
			add(string(v.Metric))
		}
	}
	return wording.OrDash(strings.Join(names, ", "))
}
