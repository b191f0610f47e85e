package results

import (
	"fmt"
	"slices"
	"strings"
)

// Filter returns the records with those rows alone that fulfil all conditions, and of
// their values those of the metrics alone; all of them where none is named. A label or a
// metric that no row has is an error, and so are conditions that no row fulfils.
func Filter(all []Source, where []Condition, metrics ...Metric) (some []Source, err error) {
	s, err := selectRows(all, where)
	if err != nil {
		return nil, err
	}
	if err := s.haveMetrics(metrics); err != nil {
		return nil, err
	}
	for i, source := range all {
		record := *source.Record
		record.Rows = nil
		for _, row := range s.rows {
			if row.source == i {
				record.Add(row.only(metrics))
			}
		}
		source.Record = &record
		some = append(some, source)
	}
	return some, nil
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
func (s *selection) haveMetrics(metrics []Metric) error {
	var there []string
	for _, row := range s.rows {
		for _, v := range row.Values {
			if !slices.Contains(there, string(v.Metric)) {
				there = append(there, string(v.Metric))
			}
		}
	}
	for _, m := range metrics {
		if !slices.Contains(there, string(m)) {
			return fmt.Errorf("no row has the metric %q; there are %s", m, orDash(strings.Join(there, ", ")))
		}
	}
	return nil
}
