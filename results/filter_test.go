package results_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/resultstest"
	"github.com/halox/halox/results/plot"
)

func TestFilter(t *testing.T) {
	a, b := resultstest.Source(results.KindSchemes), resultstest.Source(results.KindSchemes)
	for _, devices := range []int{1, 2} {
		row := results.NewRow().Label("devices", devices).Number(results.Step, 10).Number(results.GFLOPS, 3)
		a.Add(row.Label("scheme", "fused"))
		b.Add(row.Label("scheme", "resident").Number(results.SpeedUp, 2))
	}
	all, err := results.Filter([]results.Source{a, b}, []results.Condition{{Label: "devices", Value: "2"}}, results.SpeedUp, results.Step)
	if err != nil || len(all) != 2 || len(all[0].Rows) != 1 || len(all[1].Rows) != 1 || len(a.Rows) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	metrics := func(row results.Row) (names []results.Metric) {
		for _, v := range row.Values {
			names = append(names, v.Metric)
		}
		return names
	}
	if got := metrics(all[1].Rows[0]); !slices.Equal(got, []results.Metric{results.SpeedUp, results.Step}) {
		t.Errorf("%v", got)
	}
	if got := metrics(all[0].Rows[0]); !slices.Equal(got, []results.Metric{results.Step}) {
		t.Errorf("%v", got)
	}
	if all, err := results.Filter([]results.Source{a}, nil); err != nil || len(all[0].Rows) != 2 || len(all[0].Rows[0].Values) != 2 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestFilterRefuses(t *testing.T) {
	s := resultstest.Schemes()
	for _, tc := range []struct {
		name   string
		where  []results.Condition
		metric results.Metric
		says   string
	}{
		{"a label that is not there", []results.Condition{{Label: "colour", Value: "red"}}, results.GFLOPS, `no row has the label "colour"; there are scheme, path, points, devices`},
		{"a value that no row has", []results.Condition{{Label: "devices", Value: "3"}}, results.GFLOPS, "no row has devices=3"},
		{"a metric that is not there", nil, results.Step, `no row has the metric "step"; there are gflops`},
	} {
		if _, err := results.Filter([]results.Source{s}, tc.where, tc.metric); err == nil || !strings.HasPrefix(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// A record of many schemes is drawn for the most devices and one precision, and says so.
func TestPlotOfSchemesHoldsTheRest(t *testing.T) {
	s := resultstest.Source(results.KindSchemes)
	for _, precision := range []string{"float64", "float32"} {
		for _, devices := range []int{1, 4, 2} {
			for _, points := range []int{64, 128} {
				s.Add(results.NewRow().Label("scheme", "fused").Label("devices", devices).Label("precision", precision).Label("points", points).
					Number(results.GFLOPS, float64(devices)))
			}
		}
	}
	chart, err := plot.New("", plot.Options{}, s)
	check(t, err)
	c := chart.(plot.Curves)
	if len(c.Curves) != 1 || c.Curves[0].Y[0] != 4 || !strings.Contains(c.Note, "devices 4 only") || !strings.Contains(c.Note, "precision float64 only") {
		t.Errorf("%+v", c)
	}
}
