package results

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/results/internal/wording"
)

// A Condition is that a row has a label with one value.
type Condition struct{ Label, Value string }

// ParseCondition reads label=value.
func ParseCondition(text string) (Condition, error) {
	label, value, found := strings.Cut(text, "=")
	if !found || label == "" {
		return Condition{}, fmt.Errorf("%q is not label=value", text)
	}
	return Condition{label, value}, nil
}

// String gives label=value, as ParseCondition takes it.
func (c Condition) String() string { return c.Label + "=" + c.Value }

// holds compares numbers as such.
func (c Condition) holds(row Row) bool {
	if v, ok := row.Float(c.Label); ok {
		want, err := strconv.ParseFloat(c.Value, 64)
		return err == nil && v == want
	}
	return row.Text(c.Label) == c.Value
}

// Filter returns the records with those rows alone that fulfil all conditions, and of
// their values those of the metrics alone; all of them where none is named. A label or a
// metric that no row has is an error, and so are conditions that no row fulfils.
func Filter(all []Source, where []Condition, metrics ...Metric) (some []Source, err error) {
	for _, source := range all {
		record := *source.Record
		record.Rows = slices.Clone(record.Rows)
		some = append(some, Source{source.Name, &record})
	}
	for _, c := range where {
		if err := keep(some, c); err != nil {
			return nil, err
		}
	}
	if err := haveMetrics(some, metrics); err != nil {
		return nil, err
	}
	for _, source := range some {
		for i, row := range source.Rows {
			source.Rows[i] = row.only(metrics)
		}
	}
	return some, nil
}

// ErrNoRow is the error that no row fulfils a condition.
var ErrNoRow = errors.New("no row has")

// keep removes the rows that do not fulfil a condition.
func keep(some []Source, c Condition) error {
	if err := HaveLabel(some, c.Label); err != nil {
		return err
	}
	kept := 0
	for _, source := range some {
		source.Rows = slices.DeleteFunc(source.Rows, func(row Row) bool { return !c.holds(row) })
		kept += len(source.Rows)
	}
	if kept == 0 {
		return fmt.Errorf("%w %s", ErrNoRow, c)
	}
	return nil
}

// HaveLabel returns an error unless a row has the label.
func HaveLabel(all []Source, label string) error {
	return have(all, "label", label, func(row Row) (names []string, has bool) {
		for _, l := range row.Labels {
			names = append(names, l.Name)
		}
		return names, row.Lookup(label) != nil
	})
}

// have returns an error that lists the names of a row unless it has this one.
func have(all []Source, what, name string, of func(Row) (names []string, has bool)) error {
	var known []string
	for _, source := range all {
		for _, row := range source.Rows {
			names, has := of(row)
			if has {
				return nil
			}
			for _, n := range names {
				if !slices.Contains(known, n) {
					known = append(known, n)
				}
			}
		}
	}
	return fmt.Errorf("no row has the %s %q; there are %s", what, name, wording.List(known))
}

// only returns the row with the values of the metrics alone, in their order; with all where
// there are none.
func (r Row) only(metrics []Metric) Row {
	if len(metrics) == 0 {
		return r
	}
	var kept Values
	for _, m := range metrics {
		if i := slices.IndexFunc(r.Values, func(v Value) bool { return v.Metric == m }); i >= 0 {
			kept = append(kept, r.Values[i])
		}
	}
	r.Values = kept
	return r
}

// haveMetrics returns an error unless a row has each of the metrics.
func haveMetrics(all []Source, metrics []Metric) error {
	for _, m := range metrics {
		if err := have(all, "metric", string(m), func(row Row) (names []string, has bool) {
			for _, v := range row.Values {
				names, has = append(names, string(v.Metric)), has || v.Metric == m
			}
			return names, has
		}); err != nil {
			return err
		}
	}
	return nil
}
