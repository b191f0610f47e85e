package plot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/wording"
)

// xAxis returns the first candidate that varies, else the first that there is.
func (s *selection) xAxis(k kind) (axis, error) {
	there := ""
	for _, name := range k.x {
		a := newAxis(name, s.rows)
		if !slices.ContainsFunc(s.rows, func(row sourceRow) bool { return a.place(row) != "" }) {
			continue
		}
		if there = firstOf(there, name); slices.ContainsFunc(s.rows, func(row sourceRow) bool { return a.place(row) != a.place(s.rows[0]) }) {
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

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// missing returns the error that no row has what lies along an axis. It lists what rows have.
func (s *selection) missing(axis string, wanted []string) error {
	if len(wanted) == 0 {
		return fmt.Errorf("say what lies along %s: %s", axis, s.have())
	}
	return fmt.Errorf("%w: no row has %s, for %s; there are %s", ErrNothing, strings.Join(wanted, " or "), axis, s.have())
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
