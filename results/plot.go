package results

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ErrNothingToPlot is what [Plot] returns of records without numbers for it.
var ErrNothingToPlot = errors.New("there is nothing to plot")

// PlotOptions change what a plot shows. What is empty is as the kind has it.
type PlotOptions struct {
	X, Y  string // names of labels, of parameters or of metrics
	By    []string
	Where []Condition
}

// Plot makes the plot of that kind, see [PlotKinds], of some records; "" is the one
// that fits the records, which are then all of one kind. Records of different machines
// never share a curve.
func Plot(kind string, o PlotOptions, all ...Source) (Chart, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("results: plot: %w: no records", ErrNothingToPlot)
	}
	c, err := newChart(kind, o, all)
	if err != nil {
		return nil, fmt.Errorf("results: plot: %w", err)
	}
	return c, nil
}

func newChart(kind string, o PlotOptions, all []Source) (Chart, error) {
	k, err := findPlotKind(kind, all)
	if err != nil {
		return nil, err
	}
	if err := k.takes(o); err != nil {
		return nil, err
	}
	s, err := selectRows(all, o.Where)
	if err != nil {
		return nil, err
	}
	if k.form == asHistory {
		return s.history(k)
	}
	if len(s.rows) == 0 {
		return nil, fmt.Errorf("%w: there are no rows", ErrNothingToPlot)
	}
	s.leaveOutEmpty()
	if k, err = s.asked(k, o); err != nil {
		return nil, err
	}
	switch k.form {
	case asMatrix:
		return s.matrix(k)
	case asScaling:
		return s.scaling(k)
	}
	return s.plane(k)
}

// leaveOutEmpty drops the rows of what could not be measured, so that none of them is what
// the others are held at.
func (s *selection) leaveOutEmpty() {
	empty := func(row tableRow) bool { return len(row.Values) == 0 }
	if slices.ContainsFunc(s.rows, func(row tableRow) bool { return !empty(row) }) {
		s.rows = slices.DeleteFunc(s.rows, empty)
	}
}

// takes refuses options that a kind has no use for.
func (k plotKind) takes(o PlotOptions) error {
	var own string
	switch {
	case k.form == asHistory && (o.X != "" || o.Y != "" || o.By != nil):
		own = "X, Y and curves"
	case k.form == asMatrix && o.X != "":
		own = "X"
	case k.form == asScaling && o.Y != "":
		own = "Y"
	default:
		return nil
	}
	return fmt.Errorf("plot %s has its own %s: leave that open, or take another kind, such as curves or bars", k.name, own)
}

// asked puts what the options say in the place of what the kind has. What is asked for
// is not held.
func (s *selection) asked(k plotKind, o PlotOptions) (plotKind, error) {
	for _, label := range o.By {
		if err := s.known(label); err != nil {
			return k, err
		}
	}
	if o.X != "" {
		k.x = []string{o.X}
	}
	if o.Y != "" {
		k.y = []Metric{Metric(o.Y)}
	}
	if o.By != nil {
		k.by = o.By
	}
	k.hold = slices.DeleteFunc(slices.Clone(k.hold), func(l Label) bool {
		return slices.Contains(o.By, l.Name) || l.Name == o.X || slices.ContainsFunc(o.Where, func(c Condition) bool { return c.Label == l.Name })
	})
	s.hold(k.hold)
	return k, nil
}

// xAxis returns the first candidate that varies, else the first that there is.
func (s *selection) xAxis(k plotKind) (axis, error) {
	there := ""
	for _, name := range k.x {
		a := newAxisOf(name, s.rows)
		if !slices.ContainsFunc(s.rows, func(row tableRow) bool { return a.place(row) != "" }) {
			continue
		}
		if there = firstOf(there, name); slices.ContainsFunc(s.rows, func(row tableRow) bool { return a.place(row) != a.place(s.rows[0]) }) {
			return a, s.oneUnit(a)
		}
	}
	if there == "" {
		return axis{}, s.missing("X", k.x)
	}
	a := newAxisOf(there, s.rows)
	return a, s.oneUnit(a)
}

// oneUnit returns an error where rows have a metric in several units, which no axis shows.
func (s *selection) oneUnit(a axis) error {
	unit := ""
	for _, row := range s.rows {
		if _, ok := row.Get(Metric(a.name)); !ok || !a.metric {
			continue
		}
		if is := row.unit(Metric(a.name)); unit != "" && is != unit {
			return fmt.Errorf("%s is in %s and in %s: draw the records one by one", a.name, unit, is)
		}
		unit = row.unit(Metric(a.name))
	}
	return nil
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// yAxis returns the first candidate that a row has.
func (s *selection) yAxis(k plotKind) (axis, error) {
	var names []string
	for _, m := range k.y {
		a := newAxisOf(string(m), s.rows)
		if slices.ContainsFunc(s.rows, func(row tableRow) bool { _, ok := a.at(row); return ok }) {
			return a, s.oneUnit(a)
		}
		names = append(names, string(m))
	}
	return axis{}, s.missing("Y", names)
}

// missing says that rows have nothing for an axis, and what they have.
func (s *selection) missing(axis string, wanted []string) error {
	if len(wanted) == 0 {
		return fmt.Errorf("say what lies along %s: %s", axis, s.have())
	}
	return fmt.Errorf("%w: no row has %s, for %s; there are %s", ErrNothingToPlot, strings.Join(wanted, " or "), axis, s.have())
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
	return orDash(strings.Join(names, ", "))
}

// title is the kind's, with the devices where all records have the same.
func (s *selection) title(k plotKind) string {
	var devices []string
	for _, source := range s.sources {
		devices = append(devices, source.devicesCounted())
	}
	if uniform(devices) {
		return join("\n", k.title, devices[0])
	}
	var names []string
	for _, source := range s.sources {
		names = append(names, source.machineFacts()[0].value)
	}
	if uniform(names) {
		return join("\n", k.title, names[0])
	}
	return k.title
}

// note is all that is to be said of a plot.
func (s *selection) note() string { return strings.Join(s.notes, "; ") }

// plane is a plot of Y over X: as curves, or as bars where that is the kind's form or X
// is made of words.
func (s *selection) plane(k plotKind) (Chart, error) {
	x, err := s.xAxis(k)
	if err != nil {
		return nil, err
	}
	y, err := s.yAxis(k)
	if err != nil {
		return nil, err
	}
	if k.title == "" {
		k.title = y.title() + " over " + x.title()
	}
	if k.form == asBars || spread(x, s.rows).empty() {
		return s.bars(k, x, y)
	}
	return s.curves(k, x, y)
}

func (s *selection) curves(k plotKind, x, y axis) (Chart, error) {
	logX, logY := spread(x, s.rows).wide(4), !k.linearY && spread(y, s.rows).wide(4)
	c := Curves{XLabel: x.title(), YLabel: y.title(), LinearX: !logX, LinearY: !logY, BytesX: x.countsBytes()}
	merged, lost, bars := 0, 0, false
	all := s.series(k.by, x)
	for _, one := range all {
		points, m, l := one.points(x, y, logX, logY)
		merged, lost = merged+m, lost+l
		if len(points) == 0 {
			continue
		}
		next := curve(one.name, points)
		bars = bars || next.Lo != nil
		c.Curves = append(c.Curves, next)
	}
	if len(c.Curves) == 0 {
		return nil, fmt.Errorf("%w: no row has both %s and %s", ErrNothingToPlot, x.name, y.name)
	}
	if k.ceiling && y.metric {
		c.Curves = append(c.Curves, s.ceilings(x, y, all)...)
		if len(c.Curves) > 1 && c.Curves[0].Name == "" {
			c.Curves[0].Name = y.name
		}
	}
	s.remark(merged, lost, bars)
	c.Title, c.Note = s.title(k), s.note()
	return c, nil
}

// remark adds to the notes what became of points.
func (s *selection) remark(merged, lost int, bars bool) {
	if merged > 0 {
		s.notes = append(s.notes, "each point the median of the rows at its place")
	}
	if lost > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%s not above 0, which a logarithmic axis cannot show", count(lost, "point")))
	}
	if bars {
		s.notes = append(s.notes, "error bars are quartiles")
	}
}

// ceilings returns the curves of what bounds Y: one, or one for each machine.
func (s *selection) ceilings(x, y axis, all []series) (curves []Curve) {
	machines := machineNames(s.sources)
	candidates := []Metric{Metric(y.name).Info().Ceiling}
	if y.name == string(Rate) {
		candidates = append(candidates, PeerRate)
	}
	for _, m := range candidates {
		if m == "" {
			continue
		}
		bound := newAxisOf(string(m), s.rows)
		var names []string
		for i := range s.sources {
			if slices.Contains(names, machines[i]) {
				continue
			}
			names = append(names, machines[i])
			one := series{}
			for _, row := range s.rows {
				if machines[row.source] == machines[i] {
					one.rows = append(one.rows, row)
				}
			}
			if points, _, _ := one.points(x, bound, true, true); len(points) > 0 {
				_, what, _ := strings.Cut(m.Info().Title, " of a ") // time of a plain copy
				c := curve(join(", ", what, machines[i]), points)
				c.Bound, c.Lo, c.Hi = true, nil, nil
				curves = append(curves, c)
			}
		}
	}
	return curves
}

func (s *selection) bars(k plotKind, x, y axis) (Chart, error) {
	b := Bars{XLabel: x.title(), YLabel: y.title()}
	b.Places = s.places(x)
	merged, errorBars := 0, false
	for _, one := range s.series(k.by, x) {
		set := BarSet{Name: one.name}
		for _, place := range b.Places {
			v, n := one.median(x, y, place)
			if n > 1 {
				merged += n
			}
			errorBars = errorBars || v.Repeated()
			set.Y, set.Lo, set.Hi = append(set.Y, v.Median), append(set.Lo, v.Q1), append(set.Hi, v.Q3)
		}
		if slices.ContainsFunc(set.Y, func(v float64) bool { return !math.IsNaN(v) }) {
			b.Sets = append(b.Sets, set)
		}
	}
	if len(b.Sets) == 0 {
		return nil, fmt.Errorf("%w: no row has both %s and %s", ErrNothingToPlot, x.name, y.name)
	}
	for i := range b.Sets {
		if len(b.Sets) > 1 {
			b.Sets[i].Name = orDash(b.Sets[i].Name)
		}
	}
	s.remark(merged, 0, errorBars)
	b.Title, b.Note = s.title(k), s.note()
	return b, nil
}

// places returns those along an axis: numbers in their order, then words in that of the
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

// median returns what a series has at a place, of how many rows; NaN of none.
func (s series) median(x, y axis, place string) (v Sample, n int) {
	var medians []float64
	v.Median, v.Q1, v.Q3 = math.NaN(), math.NaN(), math.NaN()
	for _, row := range s.rows {
		if m, ok := y.at(row); ok && x.place(row) == place {
			v = m
			medians = append(medians, m.Median)
		}
	}
	if len(medians) > 1 {
		v = newExact(medians)
	}
	return v, len(medians)
}
