package plot

import (
	"math"
	"strings"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/wording"
)

// axis is what lies along one: a label or a metric.
type axis struct {
	name   string
	metric bool
	unit   string // of a metric, as it is shown
	factor float64
}

// newMapSideAxis returns the axis of a name among rows. A label comes before a metric of that
// name.
func newAxisOf(name string, rows []sourceRow) axis {
	for _, row := range rows {
		if row.Lookup(name) != nil {
			return axis{name: name, factor: 1}
		}
	}
	a := axis{name: name, metric: true}
	a.unit, a.factor = results.Metric(name).Info().Shown(unitAmong(results.Metric(name), rows))
	return a
}

// unitAmong returns that of a metric in the rows.
func unitAmong(m results.Metric, rows []sourceRow) string {
	for _, row := range rows {
		if _, ok := row.Get(m); ok {
			return row.Unit(m)
		}
	}
	return m.Info().Unit
}

// title is what stands at the axis.
func (a axis) title() string {
	if a.metric {
		return results.Metric(a.name).Info().Title + wording.Unit(a.unit)
	}
	return labelTitle(a.name)
}

// countsBytes reports whether the numbers are those of bytes.
func (a axis) countsBytes() bool {
	return !a.metric && strings.HasSuffix(labelTitle(a.name), "(bytes)")
}

// labelTitle names a label at an axis, with its unit.
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

// at returns the number of a row on the axis; a label that is no number has none.
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

// spread returns the smallest and the greatest of the numbers of rows on an axis.
func spread(a axis, rows []sourceRow) span {
	s := span{math.Inf(1), math.Inf(-1)}
	for _, row := range rows {
		if v, ok := a.at(row); ok {
			s.lo, s.hi = min(s.lo, v.Median), max(s.hi, v.Median)
		}
	}
	return s
}
