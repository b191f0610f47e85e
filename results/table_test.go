package results_test

import (
	"encoding/csv"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/field"
	"github.com/halox/halox/results/internal/resultstest"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/results/trace"
)

func table(t *testing.T, format string, all ...results.Source) string {
	t.Helper()
	return shown(t, func(w io.Writer) error { return results.WriteTable(w, format, all...) })
}

// Tables of one record and of two machines' are golden in every format.
func TestTableGolden(t *testing.T) {
	for name, all := range map[string][]results.Source{
		"one": {resultstest.Read(t, "testdata/pingpong.json")}, "two": {resultstest.Sweep(), resultstest.Elsewhere(resultstest.Sweep())},
	} {
		for _, format := range results.Formats() {
			golden(t, "table-"+name+"."+format, table(t, format, all...))
		}
	}
}

// Rows of one table may lack what others have, and csv holds what a sample says.
func TestTableOfMixedKinds(t *testing.T) {
	run := results.Source{Name: "run.json", Record: finished()}
	pack := resultstest.Source(results.KindPack, resultstest.Took(resultstest.PackRow("wu/V|2/n=1", "pack", "", 3), "units"))
	lines, err := csv.NewReader(strings.NewReader(table(t, "csv", run, pack, resultstest.Sweep()))).ReadAll()
	if err != nil || len(lines) != 1+1+1+12 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	column := map[string]int{}
	for i, name := range lines[0] {
		column[name] = i
	}
	for name, want := range map[string][3]string{
		"file": {"run.json", "pack.json", "sweep.json"}, "kind": {"run", "pack", "sweep"}, "scheme": {"two-stream", "", ""},
		"updates (1/s)": {"2.0648881e+10", "", ""}, "time (us)": {"", "3", ""}, "share n": {"", "1", "9"}, "checked": {"false", "true", "false"},
		"note": {"", "units 1 us", ""}, "took": {"", "units", ""},
	} {
		for i, text := range want {
			if at, ok := column[name]; !ok || lines[1+i][at] != text {
				t.Errorf("%s of line %d: %q in %q", name, i+1, text, lines[1+i])
			}
		}
	}
	if text := table(t, "markdown", pack, run); !strings.Contains(text, `| V\|2 `) || !strings.Contains(text, "these are different machines") {
		t.Error(text)
	}
}

// Line breaks in what a record says leave a table's lines whole, and long texts are cut: all cells of a column are as
// wide.
func TestTableOfLineBreaks(t *testing.T) {
	all := resultstest.Source(results.KindPack, resultstest.PackRow("wu/V|2/n=1", "pack", "a\nb\tc", 3).Label("long", strings.Repeat("x", 9000)), resultstest.PackRow("wu/V|2/n=1", "pack", "d", 3))
	for _, format := range []string{"text", "markdown"} {
		if text := table(t, format, all); !strings.Contains(text, "a b c") || strings.Contains(text, "\t") || len(text) > 2000 {
			t.Errorf("as %s:\n%s", format, text)
		}
	}
}

func TestTableOfNothing(t *testing.T) {
	empty := resultstest.Source(results.KindLinks)
	empty.Interrupted = true
	for _, format := range []string{"text", "markdown"} {
		if text := table(t, format, empty); !strings.Contains(text, "interrupted") || !strings.Contains(text, "no rows") {
			t.Errorf("%q", text)
		}
	}
	if text := table(t, "csv", empty); text != "file,kind,checked,note\n" {
		t.Errorf("%q", text)
	}
	resultstest.WantError(t, results.WriteTable(&strings.Builder{}, "html", empty), `the format must be one of text, markdown, csv, got "html"`)
	resultstest.WantError(t, results.WriteTable(brokenWriter{}, "text", empty), "write table", "broken pipe")
}

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

func TestFilterErrors(t *testing.T) {
	s := resultstest.Schemes()
	for _, tc := range []struct {
		name   string
		where  []results.Condition
		metric results.Metric
		says   string
	}{
		{"a label that is not there", []results.Condition{{Label: "color", Value: "red"}}, results.GFLOPS, `no row has the label "color"; there are scheme, path, points, devices`},
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
	if len(c.Curves) != 1 || c.Curves[0].Y[0] != 4 || c.Title != "Schemes, float64, 4 devices" {
		t.Errorf("%+v", c)
	}
}

// What is not a regular file, or larger than any of its kind, is not read.
func TestOnlyFilesAreRead(t *testing.T) {
	huge := filepath.Join(t.TempDir(), "huge.json")
	if err := errors.Join(os.WriteFile(huge, nil, 0o644), os.Truncate(huge, 1<<30+1)); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	for name, why := range map[string]string{os.DevNull: "it is a device, not a regular file", huge: "must have at most"} {
		_, err := results.Read(name)
		resultstest.WantError(t, err, name, why)
		_, err = trace.Read(name)
		resultstest.WantError(t, err, name, why)
	}
	_, _, err := field.Read(os.DevNull)
	resultstest.WantError(t, err, "it is a device, not a regular file")
}
