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
	held    []string // what is shown alone, for the title
	notes   []string
}

// nothing is an error that also matches ErrNothing.
type nothing struct{ error }

// Is reports whether target is ErrNothing.
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

// hold keeps, for each of the labels that varies, the rows with one value, for the title: the given one, or the
// greatest, if a row has it; otherwise that of the first row.
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
			s.held = append(s.held, "without "+wording.Spaced(l.Name))
		} else if !slices.Contains(titleLabels, l.Name) {
			s.held = append(s.held, wording.Spaced(l.Name)+" "+value)
		}
	}
}

// choices are labels that name ways to do one thing. Of other labels, which name different things, a point never has
// several values.
var choices = []string{
	"scheme", "order", "path", "engine", "variant", "steps_per_exchange", "parts", "kernel", "threads", "thread_blocks",
}

// sites are labels of the devices on which one thing was repeated.
var sites = []string{"device", "from", "to", "link"}

// separate makes the rows at each place on X of each series repetitions of one measurement: it holds a label that
// varies among them, at its greatest value, or makes it distinguish curves if it is a choice. It returns the labels of
// curves.
func (s *selection) separate(by []string, x axis) []string {
	held := map[string]bool{}
	for {
		label := s.mixed(by, x)
		switch {
		case label == "":
			return by
		case slices.Contains(choices, label):
			by = append(slices.Clip(by), label)
		case held[label]:
			s.hold([]results.Label{{Name: label, Value: greatest{}}})
		default: // where it is a label
			held[label] = true
			without := slices.DeleteFunc(slices.Clone(s.rows), func(row sourceRow) bool { return row.Text(label) != "" })
			s.rows = slices.DeleteFunc(s.rows, func(row sourceRow) bool { return row.Text(label) == "" })
			s.hold([]results.Label{{Name: label, Value: greatest{}}})
			s.rows = append(s.rows, without...)
		}
	}
}

// mixed returns a label in which rows differ that would be one point, "" if there is none.
func (s *selection) mixed(by []string, x axis) string {
	first := map[string]sourceRow{}
	for _, row := range s.rows {
		if x.place(row) == "" {
			continue
		}
		key := x.place(row) + "\x00" + strconv.Itoa(row.source)
		for _, label := range by {
			key += "\x00" + row.Text(label)
		}
		before, ok := first[key]
		if !ok {
			first[key] = row
			continue
		}
		for _, l := range slices.Concat(before.Labels, row.Labels) {
			if l.Name != x.name && !slices.Contains(slices.Concat(by, sites), l.Name) && before.Text(l.Name) != row.Text(l.Name) {
				return l.Name
			}
		}
	}
	return ""
}

// series groups the rows into curves: by the labels that vary, by machine if the records are from several,
// and by record if two records have rows at the same place on X.
func (s *selection) series(by []string, x axis) (all []series) {
	by = s.separate(by, x)
	by = slices.DeleteFunc(slices.Clone(by), func(label string) bool { return label == x.name || !s.varies(label) })
	by = s.needed(by)
	machines := results.MachineNames(s.sources)
	name := func(row sourceRow) string {
		var parts []string
		for _, label := range by {
			if text := row.Text(label); text != "" {
				parts = append(parts, seriesPart(label, row.Row))
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
			if len(by) > 0 && machines[row.source] == "" {
				all[i].color = row.Text(by[0])
			}
			parts := []string{machines[row.source]}
			for _, label := range by {
				if text := row.Text(label); text != "" && !slices.Contains(choices, label) {
					parts = append(parts, seriesPart(label, row.Row))
				}
			}
			all[i].problem = wording.Join(", ", parts...)
		}
		all[i].rows = append(all[i].rows, row)
	}
	return all
}

// needed drops labels without which all curves have different names still, the last first.
func (s *selection) needed(by []string) []string {
	names := func(by []string) int {
		all := map[string]bool{}
		for _, row := range s.rows {
			key := ""
			for _, label := range by {
				key += "\x00" + row.Text(label)
			}
			all[key] = true
		}
		return len(all)
	}
	for i := len(by) - 1; i >= 0; i-- {
		if less := slices.Delete(slices.Clone(by), i, i+1); names(less) == names(by) {
			by = less
		}
	}
	return by
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

// titleLabels are the labels of problems that a title names if all rows share them.
var titleLabels = []string{
	"what", "computing", "mode", "direction", "solver", "stencil", "grid", "points", "precision", "norms", "devices",
}

// title returns the kind's title, with what all rows share.
func (s *selection) title(k kind) string {
	parts := []string{k.title}
	for _, label := range titleLabels {
		inTitle := label == "mode" && k.form == asScaling
		if len(s.rows) > 0 && s.rows[0].Text(label) != "" && !s.varies(label) && !inTitle {
			parts = append(parts, seriesPart(label, s.rows[0].Row))
		}
	}
	return wording.Join(", ", append(parts, s.held...)...)
}

// note returns the devices that all records share, which halox made the records and when, and the notes.
func (s *selection) note() string {
	notes := []string{wording.Join(", ", results.CommonDevices(s.sources), results.Made(s.sources...))}
	return wording.Join("; ", append(notes, s.notes...)...)
}

// remark notes how many rows were merged into one point, how many were omitted, and the meaning of error
// bars.
func (s *selection) remark(merged, lost int, bars bool) {
	if merged > 0 {
		s.notes = append(s.notes, "each point the median of its repetitions")
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
	name    string
	color   string // see Curve.Color
	problem string // what its rows measure, whatever way was chosen
	rows    []sourceRow
}

// mostCurves is the number of curves in a chart unless labels of curves are set.
const mostCurves = 6

// bestOf reduces series to the best six. Of series of one color each point is the best, if that is one of a choice.
func (s *selection) bestOf(all []series, k kind, x, y axis) []series {
	if k.asked || len(all) <= mostCurves {
		return all
	}
	ratio := func(a, b float64) float64 { // at most 1 if b is better
		if results.Metric(y.name).LowerIsBetter() {
			return b / a
		}
		return a / b
	}
	better := func(a, b float64) bool { return ratio(a, b) > 1 }
	best := map[float64]float64{} // at each place
	joined := map[string]int{}
	var few []series
	for _, one := range all {
		i, ok := joined[one.color+"\x00"+one.problem]
		if !ok || one.color == "" || !slices.Contains(choices, k.by[0]) {
			i = len(few)
			joined[one.color+"\x00"+one.problem] = i
			few = append(few, series{name: one.name, color: one.color, problem: one.problem})
		}
		for _, row := range one.rows {
			at, okX := x.at(row)
			v, okY := y.at(row)
			if !okX || !okY {
				continue
			}
			same := slices.IndexFunc(few[i].rows, func(o sourceRow) bool { return x.place(o) == x.place(row) })
			if same < 0 {
				few[i].rows = append(few[i].rows, row)
			} else if old, _ := y.at(few[i].rows[same]); better(v.Median, old.Median) {
				few[i].rows[same] = row
			}
			if b, ok := best[at.Median]; !ok || better(v.Median, b) {
				best[at.Median] = v.Median
			}
		}
	}
	if len(few) < len(all) {
		for i, one := range few {
			few[i].name = wording.Join(", ", one.color, one.problem)
		}
		s.notes = append(s.notes, "of each "+wording.Spaced(k.by[0])+" the best at each point")
	}
	few = slices.DeleteFunc(few, func(one series) bool { return len(one.rows) == 0 })
	if len(few) <= mostCurves {
		return few
	}
	score := func(one series) (mean float64) {
		for _, row := range one.rows {
			at, _ := x.at(row)
			v, _ := y.at(row)
			mean += ratio(v.Median, best[at.Median]) / float64(len(one.rows))
		}
		return mean
	}
	ranked := slices.Clone(few)
	slices.SortStableFunc(ranked, func(a, b series) int { return cmp.Compare(score(b), score(a)) })
	s.notes = append(s.notes, fmt.Sprintf("the best %d of %d curves", mostCurves, len(few)))
	return slices.DeleteFunc(few, func(one series) bool {
		return !slices.ContainsFunc(ranked[:mostCurves], func(kept series) bool { return kept.name == one.name })
	})
}

// seriesPart returns the part of a curve's name from a label: a word, or a number with the name of the label.
func seriesPart(label string, row results.Row) string {
	text := row.Text(label)
	if _, number := row.Float(label); !number {
		if label == "remote" {
			return label
		}
		return text
	}
	if label == "points" {
		return text + " points per axis"
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

// curve makes the curve of points, with error bars from the quartiles of repeated measurements.
func (s series) curve(points []point) Curve {
	c := Curve{Name: s.name, Color: s.color}
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
