package plot

import (
	"errors"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/resultstest"
)

func TestPlotGolden(t *testing.T) {
	runs := func(t *testing.T) (all []results.Source) {
		for _, devices := range []string{
			"1-assisted-peer", "2-assisted-peer", "2-assisted-direct", "4-assisted-peer", "4-assisted-direct",
		} {
			some := test.Must(results.ReadAll("../testdata/heat3d-512-float64-" + devices + ".json"))(t)
			all = append(all, some...)
		}
		return all
	}
	one := func(s results.Source) func(*testing.T) []results.Source {
		return func(*testing.T) []results.Source { return []results.Source{s} }
	}
	kept := func(name string) func(*testing.T) []results.Source {
		return func(t *testing.T) []results.Source {
			return []results.Source{resultstest.Read(t, "../testdata/"+name+".json")}
		}
	}
	for _, tc := range []struct {
		name, kind string
		options    Options
		sources    func(*testing.T) []results.Source
	}{
		{"updates", "", Options{}, runs},
		{"history", "", Options{}, kept("history")},
		{"exchange", "", Options{}, kept("exchange")},
		{"pack", "", Options{}, kept("pack")},
		{"pingpong", "", Options{}, kept("pingpong")},
		{"links", "", Options{}, one(sampleLinks())},
		{"matrix", "matrix", Options{}, one(sampleLinks())},
		{"latency", "", Options{}, one(sampleLatency())},
		{"schemes", "", Options{}, one(resultstest.Schemes())},
		{"scaling", "", Options{}, one(sampleScaling())},
		{"sweep", "", Options{}, one(resultstest.Sweep())},
		{"checkpoint", "", Options{}, one(sampleCheckpoints())},
		{"slowdown", "slowdown", Options{}, one(sampleCheckpoints())},
		{"roofline", "roofline", Options{Peaks: map[string]float64{"float64": 30000, "float32": 60000}}, one(sampleRates())},
		{"machines", "sweep", Options{Where: []results.Condition{{Label: "stencil", Value: "7-point"}}},
			func(*testing.T) []results.Source {
				return []results.Source{resultstest.Sweep(), resultstest.Elsewhere(resultstest.Sweep())}
			}},
		{"places", "", Options{}, one(renamed(sampleLatency()))},
		{"maps", "matrix", Options{Where: []results.Condition{{Label: "path", Value: "peer"}}},
			func(*testing.T) []results.Source {
				far := resultstest.Elsewhere(sampleLinks())
				far.Host.Name = "a-machine-with-a-long-name.example.org"
				return []results.Source{sampleLinks(), far}
			}},
		{"curves", "curves", Options{X: "n", Y: "time", By: []string{"direction", "engine"}}, kept("pack")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			chart := test.Must(New(tc.kind, tc.options, tc.sources(t)...))(t)
			golden(t, "plot-"+tc.name, chart)
		})
	}
}

func writeChart(t *testing.T, c Chart, format string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chart"+format)
	test.Check(t, Write(path, c))
	return resultstest.ReadFile(t, path)
}

// named returns the names of a plot's curves, and its note after the devices.
func named(t *testing.T, kind string, o Options, all ...results.Source) (names []string, note string) {
	t.Helper()
	chart := test.Must(New(kind, o, all...))(t)
	c := chart.(Curves)
	for _, curve := range c.Curves {
		names = append(names, curve.Name)
	}
	_, note, _ = strings.Cut(c.Note, "; ")
	return names, note
}

// Records of several machines, and files of one machine with rows at the same points, have separate curves; other files
// of one machine share curves.
func TestPlotTellsRecordsApart(t *testing.T) {
	rows := func(name, commit string, points ...int) results.Source {
		s := resultstest.Source(results.KindSweep)
		s.Name, s.Halox.Commit = name, commit
		for _, p := range points {
			s.Add(results.NewRow().Label("stencil", "7-point").Label("points", p).Number(results.Share, 0.5))
		}
		return s
	}
	small := rows("small.json", "aaa", 64, 128)
	for _, tc := range []struct {
		name, note string
		other      results.Source
		want       []string
	}{
		{"other points", "", rows("large.json", "bbb", 256, 512), []string{""}},
		{"some points twice", "", rows("large.json", "bbb", 128, 256), []string{"small.json", "large.json"}},
		{"another machine", "measured on different machines", resultstest.Elsewhere(rows("x", "aaa", 256)),
			[]string{"a GPU, host node1", "another GPU, host node2"}},
	} {
		names, note := named(t, "", Options{}, small, tc.other)
		if !slices.Equal(names, tc.want) || note != tc.note {
			t.Errorf("%s: curves %q, note %q", tc.name, names, note)
		}
	}
}

// Requested labels are not restricted. The title names what restricted labels are.
func TestPlotOptions(t *testing.T) {
	rows := []results.Row{
		resultstest.PackRow("wu/V/n=1", "unpack", "units", 3), resultstest.PackRow("wu/V/n=1", "pack", "units", 3),
		resultstest.PackRow("wu/V/n=2", "pack", "tree", 9), resultstest.PackRow("wu/V/n=2", "unpack", "tree", 8),
	}
	where := func(label, value string) []results.Condition {
		return []results.Condition{{Label: label, Value: value}}
	}
	for _, tc := range []struct {
		name, note string
		options    Options
		want       []string
	}{
		{"as it is", "", Options{}, []string{"units", "tree", "plain copy"}},
		{"by direction", "", Options{By: []string{"direction"}, X: "n"}, []string{"unpack", "pack", "plain copy"}},
		{"of one direction", "", Options{Where: where("direction", "unpack")}, []string{"units", "tree", "plain copy"}},
		{"by what all share", "", Options{By: []string{"suite"}}, []string{"rate", "plain copy"}},
		{"of a number", "", Options{Where: where("n", "2.0"), Y: "copy_time"}, []string{""}},
	} {
		if names, note := named(
			t, "", tc.options, resultstest.Source(results.KindPack, rows...),
		); !slices.Equal(names, tc.want) || note != tc.note {
			t.Errorf("%s: curves %q, note %q", tc.name, names, note)
		}
	}
}

// A chart has at most six curves unless labels are asked for: of each scheme the best at each point, then the best schemes.
// A scheme has its own color in all charts.
func TestPlotIsReadable(t *testing.T) {
	s := resultstest.Source(results.KindSchemes)
	schemes := slices.Sorted(maps.Keys(schemeHues))
	for i, scheme := range schemes {
		for k, path := range []string{"peer", "direct"} {
			for _, points := range []int{64, 128} {
				s.Add(results.NewRow().Label("scheme", scheme).Label("path", path).Label("points", points).
					Number(results.GFLOPS, float64(points*(i+1)+100*((k+points/128)%2))))
			}
		}
	}
	c := test.Must(New("", Options{}, s))(t).(Curves)
	if want := "of each scheme the best at each point; the best 6 of 8 curves"; len(c.Curves) != 6 || !strings.HasSuffix(c.Note, want) {
		t.Errorf("%d curves, %s", len(c.Curves), c.Note)
	}
	hues, _ := c.hues()
	for i, one := range c.Curves {
		at := slices.Index(schemes, one.Name)
		if at < 2 || hues[i] != schemeHues[one.Name] || !slices.Equal(one.Y, []float64{float64(64*(at+1) + 100), float64(128*(at+1) + 100)}) {
			t.Errorf("%+v in color %d", one, hues[i])
		}
	}
	if names, _ := named(t, "", Options{By: []string{"scheme", "path"}}, s); len(names) != 16 {
		t.Errorf("%d curves by scheme and path", len(names))
	}
}

// Rows that differ in what they measure are never one point. Repetitions are, and so are devices.
func TestPlotSeparates(t *testing.T) {
	row := func(points, from int, rate float64) results.Row {
		return results.NewRow().Label("path", "peer").Label("bytes", 64).Label("points", points).Label("from", from).
			Number(results.Rate, rate)
	}
	s := resultstest.Source(results.KindLinks, row(8, 0, 1), row(16, 0, 3), row(16, 1, 5))
	c := test.Must(New("", Options{}, s))(t).(Curves)
	if len(c.Curves) != 1 || c.Curves[0].Y[0] != 4 || !strings.HasSuffix(c.Title, ", 16 points per axis") ||
		!strings.HasSuffix(c.Note, "each point the median of its repetitions") {
		t.Errorf("%+v", c)
	}
}

// Rows without a label that others have are named by the missing label.
func TestPlotHoldsRowsWithoutALabel(t *testing.T) {
	rates := sampleRates()
	rates.Rows = append(rates.Rows, rates.Rows[0].Label("norms", "every step"))
	if c := test.Must(New("roofline", Options{}, rates))(t).(Curves); c.Title != "Roofline, without norms" {
		t.Errorf("the title is %q", c.Title)
	}
}

func TestPlotErrors(t *testing.T) {
	pack := resultstest.Source(results.KindPack, resultstest.PackRow("wu/V/n=1", "pack", "units", 3))
	nothing := resultstest.Source(results.KindPack)
	twoUnits := resultstest.Source(
		results.KindLinks, results.NewRow().Label("bytes", 8).Number(results.Rate, 1),
		results.NewRow().Label("bytes", 16).Number(results.Rate, 2),
	)
	twoUnits.Rows[1].Values[0].Unit = "MB/s"
	for _, tc := range []struct {
		name, kind, want string
		options          Options
		all              []results.Source
		empty            bool // ErrNothing
	}{
		{
			"no such plot", "pie", `the plot must be one of updates, history, measures, exchange`, Options{},
			[]results.Source{pack}, false,
		},
		{
			"mixed kinds", "", "pack.json has kind pack and sweep.json has kind sweep: choose a plot", Options{},
			[]results.Source{pack, resultstest.Sweep()}, false,
		},
		{"no records", "", "no records", Options{}, nil, true},
		{"no rows", "", "no rows", Options{}, []results.Source{nothing}, true},
		{
			"a kind to come", "", `records of kind "walk" have no default plot`, Options{},
			[]results.Source{resultstest.Source("walk", pack.Rows...)}, false,
		},
		{"no such label", "", `no row has the label "edge"; there are suite, layout`, Options{By: []string{"edge"}}, []results.Source{pack}, false},
		{
			"a condition on no label", "", `no row has the label "edge"`,
			Options{Where: []results.Condition{{Label: "edge", Value: "1"}}}, []results.Source{pack}, false,
		},
		{
			"nothing fulfils it", "", "no row has engine=tree",
			Options{Where: []results.Condition{{Label: "engine", Value: "tree"}}}, []results.Source{pack}, true,
		},
		{"nothing along X", "", "no row has edge, for X; rows have suite, layout", Options{X: "edge"}, []results.Source{pack}, true},
		{"nothing along Y", "", "no row has gflops, for Y", Options{Y: "gflops"}, []results.Source{pack}, true},
		{"nothing said", "curves", "choose the quantity along X: suite, layout", Options{}, []results.Source{pack}, false},
		{"no history", "history", "no record has a history", Options{}, []results.Source{pack}, true},
		{"nothing from or to", "matrix", "no row has the labels from and to", Options{}, []results.Source{pack}, true},
		{
			"a history over something", "history", "history has fixed X, Y and curves", Options{Y: "rate"},
			[]results.Source{pack}, false,
		},
		{
			"a map over something", "matrix", "matrix has fixed X", Options{X: "bytes"},
			[]results.Source{sampleLinks()}, false,
		},
		{
			"a roofline of something", "roofline", "roofline has fixed X and Y", Options{Y: "step"},
			[]results.Source{sampleRates()}, false,
		},
		{
			"a peak of curves", "sweep", "plot sweep does not support peaks", Options{Peaks: map[string]float64{"float64": 1}},
			[]results.Source{resultstest.Sweep()}, false,
		},
		{
			"no operations", "roofline", "no row has gflops and rate", Options{}, []results.Source{resultstest.Sweep()},
			true,
		},
		{
			"a scaling of something", "scaling", "scaling has fixed Y", Options{Y: "step"},
			[]results.Source{sampleScaling()}, false,
		},
		{"two units along Y", "", "rate is in GB/s and in MB/s", Options{}, []results.Source{twoUnits}, false},
		{
			"two units along X", "curves", "rate is in GB/s and in MB/s", Options{X: "rate", Y: "bytes"},
			[]results.Source{twoUnits}, false,
		},
		{"nothing that scales", "scaling", "no row has devices, for X", Options{}, []results.Source{pack}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := New(tc.kind, tc.options, tc.all...)
			resultstest.WantError(t, err, "plot", tc.want)
			if errors.Is(err, ErrNothing) != tc.empty {
				t.Errorf("%v: nothing to plot: %t", err, !tc.empty)
			}
		})
	}
}

// Rows are not restricted to a value of rows that were omitted because of too little memory.
func TestPlotOfRowsLeftOut(t *testing.T) {
	s := resultstest.Schemes()
	s.Add(results.NewRow().Label("scheme", "fused").Label("points", 64).Label("devices", 8))
	if names, note := named(t, "", Options{}, s); len(names) != 6 || note != "error bars are quartiles" {
		t.Errorf("%q, %s", names, note)
	}
}

// Changes that are all 0 are a history.
func TestHistoryOfZeros(t *testing.T) {
	zero, one := 0.0, 1.0
	for _, tc := range []struct {
		name    string
		changes []*float64
		points  int
	}{
		{"zeros", []*float64{&zero, &zero}, 2},
		{"one zero", []*float64{&zero, &one, nil}, 1},
	} {
		run := &results.Run{}
		for i, change := range tc.changes {
			run.History = append(run.History, results.Check{Iteration: i + 1, Norms: results.Norms{MaxChange: change}})
		}
		s := resultstest.Source(results.KindRun, results.NewRow().Label("iterations", 2))
		s.Run = run
		chart, err := New("history", Options{}, s)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if c := chart.(Curves).Curves; len(c) != 1 || len(c[0].X) != tc.points {
			t.Errorf("%s: %+v", tc.name, c)
		}
		writeChart(t, chart, ".svg")
	}
}

// Measures are plotted over the time, or over the steps if a run has none, each in a panel, from the start.
func TestMeasures(t *testing.T) {
	number := results.Number
	source := func(timed bool, names ...string) results.Source {
		run := &results.Run{StartMeasures: map[string]*float64{"mass": number(7)}}
		for i := range 3 {
			check := results.Check{Iteration: 10 * (i + 1), Measures: map[string]*float64{}}
			if timed {
				check.Time = number(0.5 * float64(i+1))
			}
			for k, name := range names {
				check.Measures[name] = number(float64(i + k))
			}
			run.History = append(run.History, check)
		}
		s := resultstest.Source(results.KindRun, results.NewRow().Label("iterations", 30))
		s.Run = run
		return s
	}
	for _, c := range []struct {
		name   string
		all    []results.Source
		label  string
		panels int
		x      []float64
	}{
		{"time", []results.Source{source(true, "mass")}, "time", 1, []float64{0, 0.5, 1, 1.5}},
		{"several", []results.Source{source(true, "mass", "top")}, "time", 2, []float64{0, 0.5, 1, 1.5}},
		{"steps", []results.Source{source(false, "mass"), source(true, "mass", "top")}, "steps", 2, []float64{0, 10, 20, 30}},
	} {
		chart := test.Must(New("", Options{}, c.all...))(t)
		panels, ok := chart.(Panels)
		if !ok {
			panels.Panels = []Curves{chart.(Curves)}
		}
		first := panels.Panels[0]
		if len(panels.Panels) != c.panels || first.XLabel != c.label || first.YLabel != "mass" || len(first.Curves) != len(c.all) ||
			!slices.Equal(first.Curves[0].X, c.x) || !slices.Equal(first.Curves[0].Y, []float64{7, 0, 1, 2}) {
			t.Errorf("%s: %+v", c.name, chart)
		}
		writeChart(t, chart, ".svg")
	}
	_, err := New("measures", Options{}, source(true))
	resultstest.WantError(t, err, "plot", "no record has measures in its history")
}

// A single device sends nothing: its exchanges differ in their points.
func TestPlotOfExchangesAlone(t *testing.T) {
	s := resultstest.Source(results.KindExchange)
	for _, points := range []float64{8, 16} {
		s.Add(results.NewRow().Label("points", points).Label("message_bytes", 0).Number(results.Time, points))
	}
	chart := test.Must(New("", Options{}, s))(t)
	if c := chart.(Curves); len(c.Curves) != 1 || len(c.Curves[0].X) != 2 || c.Note != "4 x a GPU" {
		t.Errorf("%+v", c)
	}
}

// Unusual rows are drawn as far as possible, in all formats.
func TestPlotOfOddRows(t *testing.T) {
	row := func(bytes, rate float64) results.Row {
		return results.NewRow().Label("bytes", bytes).Label("path", "peer").Number(results.Rate, rate)
	}
	failed := resultstest.Source(results.KindLinks, row(8, 1))
	failed.End(errors.New("a link fell"))
	for name, s := range map[string]results.Source{
		"one row":    resultstest.Source(results.KindLinks, row(8, 1)),
		"none":       resultstest.Source(results.KindLinks, row(0, 0), row(8, 0)),
		"below zero": resultstest.Source(results.KindLinks, row(1, -3), row(1000, 5), row(1e6, 1e9)),
		"not finite": resultstest.Source(results.KindLinks, row(1, math.NaN()), row(2, math.Inf(1)), row(3, 4)),
		"words along X": resultstest.Source(
			results.KindLinks, row(1, 2).Label("bytes", "few"), row(1, 2).Label("bytes", "many"),
		),
		"numbers, words": resultstest.Source(results.KindLinks, row(1, 2).Label("bytes", "few"), row(1, 2)),
		"far apart": resultstest.Source(
			results.KindLinks, row(1, math.SmallestNonzeroFloat64), row(1e300, math.MaxFloat64),
		),
		"failed": failed,
		"long names": resultstest.Source(
			results.KindLinks, row(1, 1).Label("path", strings.Repeat("long ", 30)), row(1, 2),
		),
		"another's units": {Name: "x", Record: resultstest.Source(results.KindLinks, row(1, 1)).Record},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chart := test.Must(New("", Options{}, s))(t)
			for _, format := range []string{".svg", ".pdf"} {
				writeChart(t, chart, format)
			}
		})
	}
}

func TestChartErrors(t *testing.T) {
	for want, c := range map[string]Chart{
		"must have at least one panel": Panels{},
		"must have at least one curve": Panels{Panels: []Curves{{}}},
		"must be finite":               Curves{Curves: []Curve{{X: []float64{1}, Y: []float64{math.Inf(1)}}}},
		"error bars":                   Curves{Curves: []Curve{{X: []float64{1}, Y: []float64{1}, Lo: []float64{1}}}},
	} {
		resultstest.WantError(t, Write(filepath.Join(t.TempDir(), "c.svg"), c), "plot", want)
	}
}
