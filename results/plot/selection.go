package plot

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/wording"
)

// A selection is the rows that a plot shows, with the notes below its title.
type selection struct {
	sources []results.Source
	rows    []sourceRow
	notes   []string
}

// nothing is an error that also matches ErrNothing.
type nothing struct{ error }

func (nothing) Is(target error) bool { return target == ErrNothing }

// selectRows returns the rows that satisfy all conditions. It notes records that did not reach their end.
func selectRows(all []results.Source, where []results.Condition) (*selection, error) {
	all, err := results.Filter(all, where)
	if errors.Is(err, results.ErrNoRow) {
		return nil, nothing{err}
	}
	if err != nil {
		return nil, err
	}
	s := &selection{sources: all}
	for i, source := range all {
		for _, row := range source.Rows {
			s.rows = append(s.rows, sourceRow{row, i})
		}
		if state := source.State(); state != "" {
			s.notes = append(s.notes, strings.TrimSpace(source.Name+" "+state))
		}
	}
	return s, nil
}

// varies reports whether rows differ in a label, including rows without it.
func (s *selection) varies(label string) bool {
	return slices.ContainsFunc(s.rows, func(row sourceRow) bool { return row.Text(label) != s.rows[0].Text(label) })
}

// hold keeps, for each of the labels that varies, the rows with one value, and notes the value: the given
// one, or the greatest, if a row has it; otherwise that of the first row.
func (s *selection) hold(labels []results.Label) {
	for _, l := range labels {
		if !s.varies(l.Name) {
			continue
		}
		value := l.Text()
		if l.Value == (greatest{}) {
			value = results.Label{Value: spread(axis{name: l.Name, factor: 1}, s.rows).hi}.Text()
		}
		if !slices.ContainsFunc(s.rows, func(row sourceRow) bool { return row.Text(l.Name) == value }) {
			value = s.rows[0].Text(l.Name)
		}
		s.rows = slices.DeleteFunc(s.rows, func(row sourceRow) bool { return row.Text(l.Name) != value })
		if value == "" {
			s.notes = append(s.notes, "without "+wording.Spaced(l.Name))
		} else {
			s.notes = append(s.notes, wording.Spaced(l.Name)+" "+value+" only")
		}
	}
}

// series groups the rows into curves: by the labels that vary, by machine if the records are from several,
// and by record if two records have rows at the same place on X.
func (s *selection) series(by []string, x axis) (all []series) {
	by = slices.DeleteFunc(slices.Clone(by), func(label string) bool { return label == x.name || !s.varies(label) })
	machines := results.MachineNames(s.sources)
	name := func(row sourceRow) string {
		var parts []string
		for _, label := range by {
			if text := row.Text(label); text != "" {
				parts = append(parts, seriesPart(label, row))
			}
		}
		return wording.Join(", ", append(parts, machines[row.source])...)
	}
	if machine := slices.ContainsFunc(machines, func(m string) bool { return m != "" }); machine {
		s.notes = append(s.notes, "measured on different machines")
	}
	if s.overlap(name, x) {
		plain := name
		name = func(row sourceRow) string { return wording.Join(", ", plain(row), s.sources[row.source].Name) }
	}
	for _, row := range s.rows {
		key := name(row)
		i := slices.IndexFunc(all, func(o series) bool { return o.name == key })
		if i < 0 {
			i = len(all)
			all = append(all, series{name: key})
		}
		all[i].rows = append(all[i].rows, row)
	}
	return all
}

// few returns an error for too many curves or places along an axis. Bars and maps take time for each curve at
// each place.
func few(all []series, places ...[]string) error {
	const most = 500
	n := len(all)
	for _, axis := range places {
		n = max(n, len(axis))
	}
	if n > most {
		return fmt.Errorf("must have at most %d curves, bars or cells side by side, got %d: choose by a label", most, n)
	}
	return nil
}

// overlap reports whether two records have rows of one name at one place.
func (s *selection) overlap(name func(sourceRow) string, x axis) bool {
	type spot struct{ name, place string }
	seen := map[spot]int{}
	for _, row := range s.rows {
		at := spot{name(row), x.place(row)}
		if source, ok := seen[at]; ok && source != row.source {
			return true
		}
		seen[at] = row.source
	}
	return false
}

// leaveOutEmpty drops rows without values, for cases that could not be measured: hold might otherwise keep a
// value that only these have.
func (s *selection) leaveOutEmpty() {
	empty := func(row sourceRow) bool { return len(row.Values) == 0 }
	if slices.ContainsFunc(s.rows, func(row sourceRow) bool { return !empty(row) }) {
		s.rows = slices.DeleteFunc(s.rows, empty)
	}
}

// title returns the kind's title, with the devices that all records share.
func (s *selection) title(k kind) string {
	return wording.Join("\n", k.title, results.CommonDevices(s.sources))
}

// note returns the notes in one line.
func (s *selection) note() string { return strings.Join(s.notes, "; ") }

// remark notes how many rows were merged into one point, how many were omitted, and the meaning of error
// bars.
func (s *selection) remark(merged, lost int, bars bool) {
	if merged > 0 {
		s.notes = append(s.notes, "each point the median of the rows at its place")
	}
	if lost > 0 {
		const why = "not above 0, which a logarithmic axis cannot show"
		s.notes = append(s.notes, wording.Count(lost, "point")+" "+why)
	}
	if bars {
		s.notes = append(s.notes, "error bars are quartiles")
	}
}

// places returns the texts of the rows on an axis: numbers in ascending order, then words in the order of the
// rows.
func (s *selection) places(x axis) (places []string) {
	for _, row := range s.rows {
		if place := x.place(row); place != "" && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	number := func(place string) float64 {
		if v, err := strconv.ParseFloat(place, 64); err == nil {
			return v
		}
		return math.Inf(1)
	}
	slices.SortStableFunc(places, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	return places
}

// A series is the rows of one curve.
type series struct {
	name string
	rows []sourceRow
}

// seriesPart returns the part of a curve's name from a label: a word, or a number with the name of the label.
func seriesPart(label string, row sourceRow) string {
	text := row.Text(label)
	if _, number := row.Float(label); !number {
		if label == "remote" {
			return label
		}
		return text
	}
	if label == "devices" {
		return strings.TrimSuffix(text+" devices", map[bool]string{true: "s"}[text == "1"])
	}
	return wording.Spaced(label) + " " + text
}

// A point is a number on X and the sample at it.
type point struct {
	x float64
	y results.Sample
}

// points returns the points of a series in the order of X. Several rows at one place give their median,
// without error bars. merged counts such rows; lost counts the rows that a logarithmic axis cannot show.
func (s series) points(x, y axis, logX, logY bool) (all []point, merged, lost int) {
	at := map[float64][]results.Sample{}
	for _, row := range s.rows {
		px, okX := x.at(row)
		py, okY := y.at(row)
		switch {
		case !okX || !okY:
		case logX && px.Median <= 0 || logY && py.Median <= 0:
			lost++
		default:
			at[px.Median] = append(at[px.Median], py)
		}
	}
	for place, samples := range at {
		v, n := merge(samples)
		all, merged = append(all, point{place, v}), merged+n
	}
	slices.SortFunc(all, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	return all, merged, lost
}

// curve makes a curve of points, with error bars from the quartiles of repeated measurements.
func curve(name string, points []point) Curve {
	c := Curve{Name: name}
	repeated := slices.ContainsFunc(points, func(p point) bool { return p.y.Repeated() })
	for _, p := range points {
		c.X, c.Y = append(c.X, p.x), append(c.Y, p.y.Median)
		if repeated {
			c.Lo, c.Hi = append(c.Lo, p.y.Q1), append(c.Hi, p.y.Q3)
		}
	}
	return c
}

// merge returns one sample for those at one place: for several their median, without a spread. n is their
// number.
func merge(samples []results.Sample) (v results.Sample, n int) {
	if len(samples) == 1 {
		return samples[0], 0
	}
	var medians []float64
	for _, s := range samples {
		medians = append(medians, s.Median)
	}
	return measure.Exact(measure.NewSample(medians).Median), len(samples)
}

// median merges the rows of a series at a place; NaN if there are none.
func (s series) median(x, y axis, place string) (v results.Sample, n int) {
	var samples []results.Sample
	for _, row := range s.rows {
		if m, ok := y.at(row); ok && x.place(row) == place {
			samples = append(samples, m)
		}
	}
	if len(samples) == 0 {
		return results.Sample{Median: math.NaN(), Q1: math.NaN(), Q3: math.NaN()}, 0
	}
	return merge(samples)
}

// ErrNothing is the error of [New] for records without numbers for the plot.
var ErrNothing = errors.New("nothing to plot")

// xAxis returns the first candidate that varies, otherwise the first that rows have.
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

// oneUnit returns an error if rows have a metric in several units.
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

// missing returns the error that no row has the quantity of an axis. It lists what rows have.
func (s *selection) missing(axis string, wanted []string) error {
	if len(wanted) == 0 {
		return fmt.Errorf("choose the quantity along %s: %s", axis, s.have())
	}
	names := strings.Join(wanted, " or ")
	return fmt.Errorf("%w: no row has %s, for %s; rows have %s", ErrNothing, names, axis, s.have())
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
	return wording.List(names)
}
