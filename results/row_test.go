package results_test

import (
	"math"
	"testing"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
)

type path string

// Labels of all types are text or numbers, and rows made of one row do not touch
// each other.
func TestRow(t *testing.T) {
	head := results.NewRow().Label("path", path("peer")).Label("points", 256).Label("bytes", uint8(3)).Label("share", float32(0.5))
	a, b := head.Label("scheme", "fused"), head.Label("scheme", "graph").Label("points", int64(1)<<40)
	for _, tc := range []struct {
		row              results.Row
		name, text, what string
	}{
		{a, "path", "peer", "a named string"}, {a, "points", "256", "a number"}, {a, "bytes", "3", "a small one"},
		{a, "share", "0.5", "a fraction"}, {a, "scheme", "fused", "its own"}, {b, "scheme", "graph", "another's own"},
		{b, "points", "1099511627776", "set again"}, {a, "radius", "", "none"}, {head, "scheme", "", "of the head"},
	} {
		if got := tc.row.Text(tc.name); got != tc.text {
			t.Errorf("%s, %s: %q, want %q", tc.what, tc.name, got, tc.text)
		}
	}
	odd := results.NewRow().Label("nan", math.NaN()).Label("nil", nil).Label("empty", "").Label("yes", true)
	if len(odd.Labels) != 2 || odd.Text("nan") != "NaN" || odd.Text("yes") != "true" {
		t.Errorf("%v", odd)
	}
}

func TestRowParams(t *testing.T) {
	row := results.LayoutRow("wu", "vector", "blocks=1000,block=64,type=float64,bytes=7", 1000).Label("engine", "bypass").Label("variant", "list pinned")
	if row.Workload() != "wu/vector/blocks=1000,block=64,type=float64,bytes=7" || row.Contender() != "bypass, list pinned" {
		t.Errorf("%s by %s", row.Workload(), row.Contender())
	}
	for name, want := range map[string]any{"blocks": 1000.0, "block": 64.0, "bytes": 1000.0, "type": "float64", "n": nil, "": nil} {
		if got := row.Lookup(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestRowValues(t *testing.T) {
	times := measure.NewSample([]float64{1, 2, 2, 2, 2, 2, 4})
	row := results.NewRow().Transfer(8000, times, measure.Exact(1))
	for m, want := range map[results.Metric]float64{
		results.Time: 2, results.Rate: 4, results.CopyTime: 1, results.CopyRate: 8, results.Share: 0.5,
	} {
		if got := row.Median(m); got != want {
			t.Errorf("%s: %v, want %v", m, got, want)
		}
	}
	if rate, ok := row.Get(results.Rate); !ok || rate.N != 7 || rate.Min != 2 || rate.Max != 8 {
		t.Errorf("%+v, %t", rate, ok)
	}
	odd := results.NewRow().Number(results.Time, math.NaN()).Value(results.Rate, results.Sample{}).Number(results.Share, math.Inf(1))
	if len(odd.Values) != 0 || !math.IsNaN(odd.Median(results.Time)) {
		t.Errorf("%+v", odd)
	}
}
