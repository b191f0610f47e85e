package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/halox/halox/internal/measure"
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
func newAxisOf(name string, rows []tableRow) axis {
	for _, row := range rows {
		if row.Lookup(name) != nil {
			return axis{name: name, factor: 1}
		}
	}
	a := axis{name: name, metric: true}
	a.unit, a.factor = Metric(name).Info().shown(unitAmong(Metric(name), rows))
	return a
}

// unitAmong returns that of a metric in the rows.
func unitAmong(m Metric, rows []tableRow) string {
	for _, row := range rows {
		if _, ok := row.Get(m); ok {
			return row.unit(m)
		}
	}
	return m.Info().Unit
}

// title is what stands at the axis.
func (a axis) title() string {
	if a.metric {
		return Metric(a.name).Info().Title + unitIn(a.unit)
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
	return words(name)
}

// at returns the number of a row on the axis; a label that is no number has none.
func (a axis) at(row tableRow) (Sample, bool) {
	if a.metric {
		s, ok := row.Get(Metric(a.name))
		return s.Scale(a.factor), ok
	}
	v, ok := row.Float(a.name)
	return measure.Exact(v), ok
}

// place returns the text of a row on the axis.
func (a axis) place(row tableRow) string {
	if !a.metric {
		return row.Text(a.name)
	}
	if s, ok := a.at(row); ok {
		return digits(s.Median)
	}
	return ""
}

// series is the rows of one curve.
type series struct {
	name string
	rows []tableRow
}

// selection is the rows to be plotted, and what is to be said of them.
type selection struct {
	sources []Source
	rows    []tableRow
	notes   []string
}

// noRow is the error that no row fulfils a condition. It is one of having nothing to plot.
type noRow struct{ Condition }

func (n noRow) Error() string        { return "no row has " + n.String() }
func (n noRow) Is(target error) bool { return target == ErrNothingToPlot }

// selectRows returns the rows that fulfil all conditions.
func selectRows(all []Source, where []Condition) (*selection, error) {
	s := &selection{sources: all}
	for i, source := range all {
		for _, row := range source.Rows {
			s.rows = append(s.rows, tableRow{row, i})
		}
		if state := source.state(); state != "" {
			s.notes = append(s.notes, strings.TrimSpace(source.Name+" "+state))
		}
	}
	for _, c := range where {
		if err := s.known(c.Label); err != nil {
			return nil, err
		}
		s.rows = slices.DeleteFunc(s.rows, func(row tableRow) bool { return !c.holds(row.Row) })
		if len(s.rows) == 0 {
			return nil, noRow{c}
		}
	}
	return s, nil
}

// known returns an error unless a row has the label.
func (s *selection) known(label string) error {
	var names []string
	for _, row := range s.rows {
		if row.Lookup(label) != nil {
			return nil
		}
		for _, l := range row.Labels {
			if !slices.Contains(names, l.Name) {
				names = append(names, l.Name)
			}
		}
	}
	return fmt.Errorf("no row has the label %q; there are %s", label, orDash(strings.Join(names, ", ")))
}

// varies reports whether rows differ in a label, one that some lack among them.
func (s *selection) varies(label string) bool {
	return slices.ContainsFunc(s.rows, func(row tableRow) bool { return row.Text(label) != s.rows[0].Text(label) })
}

// hold keeps the rows that have one value of each of the labels that vary, and says so:
// the value that is given, or the greatest, where a row has it, else the first one.
func (s *selection) hold(labels []Label) {
	for _, l := range labels {
		if !s.varies(l.Name) {
			continue
		}
		value := labelText(l.Value)
		if l.Value == (greatest{}) {
			value = labelText(spread(axis{name: l.Name, factor: 1}, s.rows).hi)
		}
		if !slices.ContainsFunc(s.rows, func(row tableRow) bool { return row.Text(l.Name) == value }) {
			value = s.rows[0].Text(l.Name)
		}
		s.rows = slices.DeleteFunc(s.rows, func(row tableRow) bool { return row.Text(l.Name) != value })
		s.notes = append(s.notes, words(l.Name)+" "+orDash(value)+" only")
	}
}

// series gathers the rows by the labels that vary, by their machines where these
// differ, and by their records where two have something to say of one place on X.
func (s *selection) series(by []string, x axis) (all []series) {
	by = slices.DeleteFunc(slices.Clone(by), func(label string) bool { return label == x.name || !s.varies(label) })
	machines := machineNames(s.sources)
	name := func(row tableRow) string {
		var parts []string
		for _, label := range by {
			if text := row.Text(label); text != "" {
				parts = append(parts, seriesPart(label, row))
			}
		}
		return join(", ", append(parts, machines[row.source])...)
	}
	if machine := slices.ContainsFunc(machines, func(m string) bool { return m != "" }); machine {
		s.notes = append(s.notes, "measured on different machines")
	}
	if s.overlap(name, x) {
		plain, apart := name, s.recordNames()
		name = func(row tableRow) string { return join(", ", plain(row), apart[row.source]) }
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

// seriesPart is what a label says in the name of a curve: words speak for themselves.
func seriesPart(label string, row tableRow) string {
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
	return words(label) + " " + text
}

// overlap reports whether two records have rows of one name at one place.
func (s *selection) overlap(name func(tableRow) string, x axis) bool {
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

// recordNames tells records apart: by the commit of halox, where no two have the same,
// else by the names of their files.
func (s *selection) recordNames() (names []string) {
	seen := map[string]bool{}
	for _, source := range s.sources {
		commit := short(source.Halox.Commit)
		if commit == "" || seen[commit] {
			names = nil
			for _, source := range s.sources {
				names = append(names, source.Name)
			}
			return names
		}
		seen[commit] = true
		names = append(names, "halox "+commit)
	}
	return names
}

// point is a place on X with what is shown there.
type point struct {
	x float64
	y Sample
}

// points returns those of a series in the order of X: of several rows at one place
// the median alone. It counts the rows that have no place or no number, as what is not
// positive has none on a logarithmic axis.
func (s series) points(x, y axis, logX, logY bool) (all []point, merged, lost int) {
	at := map[float64][]Sample{}
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
		p := point{place, samples[0]}
		if len(samples) > 1 {
			var medians []float64
			for _, m := range samples {
				medians = append(medians, m.Median)
			}
			p.y = measure.Exact(measure.NewSample(medians).Median)
			merged += len(samples)
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	return all, merged, lost
}

// curve makes a curve of points, with error bars from the quartiles of those that were
// repeated.
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

// spread returns the smallest and the greatest of the numbers of rows on an axis.
func spread(a axis, rows []tableRow) span {
	s := span{math.Inf(1), math.Inf(-1)}
	for _, row := range rows {
		if v, ok := a.at(row); ok {
			s.lo, s.hi = min(s.lo, v.Median), max(s.hi, v.Median)
		}
	}
	return s
}

// wide reports whether numbers are better shown on a logarithmic axis.
func (s span) wide(times float64) bool { return s.lo > 0 && s.hi/s.lo >= times }
