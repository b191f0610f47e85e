package plot

import (
	"math"
	"strings"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/wording"
)

// An axis is the quantity along X or Y: a label or a metric.
type axis struct {
	name   string
	metric bool
	unit   string // display unit of a metric
	factor float64
}

// newAxis returns the axis with a name. Labels of the rows take precedence over metrics.
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

// unitAmong returns the unit in which the rows have a metric.
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
		return results.Metric(a.name).Title() + wording.Unit(strings.Replace(a.unit, "us", "µs", 1))
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
	case "per_multiprocessor":
		return "ranks per multiprocessor"
	case "n":
		return "matrix size"
	case "block":
		return "block length (bytes)"
	case "every":
		return "steps between checkpoints or samples"
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

// A sourceRow is a row and the index of its record.
type sourceRow struct {
	results.Row
	source int
}
