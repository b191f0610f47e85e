package results

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/results/internal/wording"
)

// A Condition requires a value of a label.
type Condition struct {
	Label, Value string // name of a label and its required value
}

// ParseCondition reads label=value.
func ParseCondition(text string) (Condition, error) {
	label, value, found := strings.Cut(text, "=")
	if !found || label == "" {
		return Condition{}, fmt.Errorf("a condition must be label=value, got %q", text)
	}
	return Condition{label, value}, nil
}

// String returns label=value, the input of ParseCondition.
func (c Condition) String() string { return c.Label + "=" + c.Value }

// holds reports whether a row satisfies the condition. It compares numbers numerically.
func (c Condition) holds(row Row) bool {
	if v, ok := row.Float(c.Label); ok {
		want, err := strconv.ParseFloat(c.Value, 64)
		return err == nil && v == want
	}
	return row.Text(c.Label) == c.Value
}

// Filter returns the records with only the rows that satisfy all conditions, and only the values of the metrics, or all
// values if none is named. It is an error if no row has a label or a metric, or if no row satisfies the conditions.
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

// ErrNoRow is the error for a condition that no row satisfies.
var ErrNoRow = errors.New("no row has")

// keep removes the rows that do not satisfy a condition.
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

// only returns the row with only the values of the metrics, in their order; with all if there are none.
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
