package results_test

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
)

// around is a sample of nine measurements about a number.
func around(v float64) results.Sample {
	var all []float64
	for i := range 9 {
		all = append(all, v*(1+0.04*float64(i-4)))
	}
	return measure.NewSample(all)
}

// source is a record of four GPUs with rows.
func source(kind results.Kind, rows ...results.Row) results.Source {
	r := &results.Record{Kind: kind, Host: results.Host{Name: "node1", Cores: 64}, Rows: rows}
	for id := range 4 {
		r.Devices = append(r.Devices, results.Device{ID: id, Name: "a GPU", Backend: "cuda"})
	}
	return results.Source{Name: string(kind) + ".json", Record: r}
}

// carried is the rate of a link that takes 4 us to begin.
func carried(bytes, peak float64) float64 { return bytes / (4 + bytes/peak/1e3) / 1e3 }

// sampleLinks has four GPUs, the last of which hangs on another kind of link.
func sampleLinks() results.Source {
	s := source(results.KindLinks)
	for _, path := range []string{"peer", "direct", "staged"} {
		for from := range 4 {
			for to := range 4 {
				peak := map[string]float64{"peer": 390, "direct": 340, "staged": 22}[path]
				link := "NV18"
				if from == 3 || to == 3 {
					peak, link = min(peak, 50), "PIX"
				}
				for bytes := 1024.0; bytes <= 1<<28 && from != to; bytes *= 8 {
					s.Add(results.NewRow().Label("from", from).Label("to", to).Label("link", link).Label("path", path).Label("bytes", bytes).
						Value(results.Rate, around(carried(bytes, peak))).Number(results.PeerRate, carried(bytes, 400)))
				}
			}
		}
	}
	return s
}

func sampleSchemes() results.Source {
	s := source(results.KindSchemes)
	for i, scheme := range []string{"two-stream", "assisted", "fused"} {
		for _, path := range []string{"peer", "staged"} {
			for _, points := range []float64{64, 128, 256, 512} {
				slow := map[string]float64{"peer": 1, "staged": 3}[path]
				s.Add(results.NewRow().Label("scheme", scheme).Label("path", path).Label("points", points).Label("devices", 4).
					Value(results.GFLOPS, around(8000/(1+slow*float64(200-20*i)/points))))
			}
		}
	}
	return s
}

func sampleScaling() results.Source {
	s := source(results.KindScaling)
	for _, points := range []float64{256, 512} {
		for _, devices := range []float64{1, 2, 4, 8} {
			s.Add(results.NewRow().Label("scheme", "fused").Label("points", points).Label("devices", devices).
				Value(results.Step, around(1000/devices+20*math.Log2(devices)*512/points)))
		}
	}
	return s
}

func sampleSweep() results.Source {
	s := source(results.KindSweep)
	for i, stencil := range []string{"7-point", "13-point", "27-point"} {
		for _, points := range []float64{64, 128, 256, 512} {
			s.Add(results.NewRow().Label("stencil", stencil).Label("precision", "float64").Label("points", points).
				Value(results.Share, around((0.95-0.1*float64(i))*points/(points+60))))
		}
	}
	return s
}

func sampleLatency() results.Source {
	s := source(results.KindLatency)
	for i, what := range []string{"launch", "event", "copy of 8 B", "store to a peer"} {
		for k, path := range []string{"peer", "direct"} {
			s.Add(results.NewRow().Label("what", what).Label("path", path).Value(results.Latency, around(float64(2+i+k))))
		}
	}
	return s
}

// old is a record of schema 1.
func old(t *testing.T, name string) results.Source {
	t.Helper()
	all, err := results.ReadAll("testdata/schema1/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// elsewhere is a source with another name, from another machine.
func elsewhere(s results.Source) results.Source {
	r := *s.Record
	r.Devices = []results.Device{{Name: "another GPU", Backend: "cuda"}}
	r.Host.Name, r.Interrupted = "node2", true
	r.Rows = nil
	for _, row := range s.Rows {
		share, _ := row.Get(results.Share)
		r.Add(row.Value(results.Share, share.Scale(0.7)))
	}
	return results.Source{Name: "elsewhere.json", Record: &r}
}

// renamed has places with names of many words.
func renamed(s results.Source) results.Source {
	for i, row := range s.Rows {
		s.Rows[i] = row.Label("what", row.Text("what")+", and then a wait for it on another stream")
	}
	return s
}

func TestPlotGolden(t *testing.T) {
	runs := func(t *testing.T) (all []results.Source) {
		for _, devices := range []string{"1-assisted-peer", "2-assisted-peer", "2-assisted-direct", "4-assisted-peer", "4-assisted-direct"} {
			some, err := results.ReadAll("testdata/heat3d-512-float64-" + devices + ".json")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, some...)
		}
		return all
	}
	one := func(s results.Source) func(*testing.T) []results.Source {
		return func(*testing.T) []results.Source { return []results.Source{s} }
	}
	kept := func(name string) func(*testing.T) []results.Source {
		return func(t *testing.T) []results.Source { return []results.Source{old(t, name)} }
	}
	for _, tc := range []struct {
		name, kind string
		options    results.PlotOptions
		sources    func(*testing.T) []results.Source
	}{
		{"updates", "", results.PlotOptions{}, runs},
		{"history", "", results.PlotOptions{}, kept("history")},
		{"exchange", "", results.PlotOptions{}, kept("exchange")},
		{"pack", "", results.PlotOptions{}, kept("pack")},
		{"pingpong", "", results.PlotOptions{}, kept("pingpong")},
		{"links", "", results.PlotOptions{}, one(sampleLinks())},
		{"matrix", "matrix", results.PlotOptions{}, one(sampleLinks())},
		{"latency", "", results.PlotOptions{}, one(sampleLatency())},
		{"schemes", "", results.PlotOptions{}, one(sampleSchemes())},
		{"scaling", "", results.PlotOptions{}, one(sampleScaling())},
		{"sweep", "", results.PlotOptions{}, one(sampleSweep())},
		{"machines", "sweep", results.PlotOptions{Where: []results.Condition{{Label: "stencil", Value: "7-point"}}},
			func(*testing.T) []results.Source {
				return []results.Source{sampleSweep(), elsewhere(sampleSweep())}
			}},
		{"places", "", results.PlotOptions{}, one(renamed(sampleLatency()))},
		{"maps", "matrix", results.PlotOptions{Where: []results.Condition{{Label: "path", Value: "peer"}}},
			func(*testing.T) []results.Source {
				far := elsewhere(sampleLinks())
				far.Host.Name = "a-machine-with-a-long-name.example.org"
				return []results.Source{sampleLinks(), far}
			}},
		{"curves", "curves", results.PlotOptions{X: "n", Y: "time", By: []string{"direction", "engine"}}, kept("pack")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			chart, err := results.Plot(tc.kind, tc.options, tc.sources(t)...)
			if err != nil {
				t.Fatal(err)
			}
			got := writeChart(t, chart, ".png")
			alike(t, decode(t, got), decode(t, golden(t, "plot-"+tc.name+".png", got)))
		})
	}
}

func writeChart(t *testing.T, c results.Chart, format string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chart"+format)
	if err := results.WriteChart(path, c); err != nil {
		t.Fatal(err)
	}
	return read(t, path)
}

// named returns the names of a plot's curves, and its note.
func named(t *testing.T, kind string, o results.PlotOptions, all ...results.Source) (names []string, note string) {
	t.Helper()
	chart, err := results.Plot(kind, o, all...)
	if err != nil {
		t.Fatal(err)
	}
	c := chart.(results.Curves)
	for _, curve := range c.Curves {
		names = append(names, curve.Name)
	}
	return names, c.Note
}

// Records of several machines, commits or files have curves of their own that say so,
// where else they would be of one name; of one machine, and not the same points, they
// share curves.
func TestPlotTellsRecordsApart(t *testing.T) {
	rows := func(name, commit string, points ...int) results.Source {
		s := source(results.KindSweep)
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
		{"another commit", "", rows("large.json", "bbb", 128, 256), []string{"halox aaa", "halox bbb"}},
		{"the same commit", "", rows("large.json", "aaa", 128, 256), []string{"small.json", "large.json"}},
		{"another machine", "elsewhere.json interrupted; measured on different machines", elsewhere(rows("x", "aaa", 256)),
			[]string{"a GPU, host node1", "another GPU, host node2"}},
	} {
		names, note := named(t, "", results.PlotOptions{}, small, tc.other)
		if !slices.Equal(names, tc.want) || note != tc.note {
			t.Errorf("%s: curves %q, note %q", tc.name, names, note)
		}
	}
}

// What is asked for is not held, and what is held is said.
func TestPlotOptions(t *testing.T) {
	rows := []results.Row{
		packRow("wu/V/n=1", "unpack", "units", 3), packRow("wu/V/n=1", "pack", "units", 3),
		packRow("wu/V/n=2", "pack", "tree", 9), packRow("wu/V/n=2", "unpack", "tree", 8),
	}
	where := func(label, value string) []results.Condition {
		return []results.Condition{{Label: label, Value: value}}
	}
	const merged = "each point the median of the rows at its place"
	for _, tc := range []struct {
		name, note string
		options    results.PlotOptions
		want       []string
	}{
		{"as it is", "direction pack only", results.PlotOptions{}, []string{"units", "tree", "plain copy"}},
		{"by direction", "", results.PlotOptions{By: []string{"direction"}, X: "n"}, []string{"unpack", "pack", "plain copy"}},
		{"of one direction", "", results.PlotOptions{Where: where("direction", "unpack")}, []string{"units", "tree", "plain copy"}},
		{"merged", "direction pack only; " + merged, results.PlotOptions{By: []string{"suite"}}, []string{"rate", "plain copy"}},
		{"of a number", "direction pack only", results.PlotOptions{Where: where("n", "2.0"), Y: "copy_time"}, []string{""}},
	} {
		if names, note := named(t, "", tc.options, source(results.KindPack, rows...)); !slices.Equal(names, tc.want) || note != tc.note {
			t.Errorf("%s: curves %q, note %q", tc.name, names, note)
		}
	}
}

func TestPlotRefuses(t *testing.T) {
	pack := source(results.KindPack, packRow("wu/V/n=1", "pack", "units", 3))
	nothing := source(results.KindPack)
	twoUnits := source(results.KindLinks, results.NewRow().Label("bytes", 8).Number(results.Rate, 1), results.NewRow().Label("bytes", 16).Number(results.Rate, 2))
	twoUnits.Rows[1].Values[0].Unit = "MB/s"
	for _, tc := range []struct {
		name, kind, want string
		options          results.PlotOptions
		all              []results.Source
		empty            bool // ErrNothingToPlot
	}{
		{"no such plot", "pie", `there is no plot "pie": take updates, history, exchange`, results.PlotOptions{}, []results.Source{pack}, false},
		{"mixed kinds", "", "pack.json is of pack and sweep.json of sweep: say which plot", results.PlotOptions{}, []results.Source{pack, sampleSweep()}, false},
		{"no records", "", "no records", results.PlotOptions{}, nil, true},
		{"no rows", "", "there are no rows", results.PlotOptions{}, []results.Source{nothing}, true},
		{"a kind to come", "", `records of kind "walk" have no plot of their own`, results.PlotOptions{}, []results.Source{source("walk", pack.Rows...)}, false},
		{"no such label", "", `no row has the label "edge"; there are suite, layout`, results.PlotOptions{By: []string{"edge"}}, []results.Source{pack}, false},
		{"a condition on no label", "", `no row has the label "edge"`, results.PlotOptions{Where: []results.Condition{{Label: "edge", Value: "1"}}}, []results.Source{pack}, false},
		{"nothing fulfils it", "", "no row has engine=tree", results.PlotOptions{Where: []results.Condition{{Label: "engine", Value: "tree"}}}, []results.Source{pack}, true},
		{"nothing along X", "", "no row has edge, for X; there are suite, layout", results.PlotOptions{X: "edge"}, []results.Source{pack}, true},
		{"nothing along Y", "", "no row has gflops, for Y", results.PlotOptions{Y: "gflops"}, []results.Source{pack}, true},
		{"nothing said", "curves", "say what lies along X: suite, layout", results.PlotOptions{}, []results.Source{pack}, false},
		{"no history", "history", "no record has a history", results.PlotOptions{}, []results.Source{pack}, true},
		{"nothing from or to", "matrix", "no row has the labels from and to", results.PlotOptions{}, []results.Source{pack}, true},
		{"a history over something", "history", "history has its own X, Y and curves", results.PlotOptions{Y: "rate"}, []results.Source{pack}, false},
		{"a map over something", "matrix", "matrix has its own X", results.PlotOptions{X: "bytes"}, []results.Source{sampleLinks()}, false},
		{"a scaling of something", "scaling", "scaling has its own Y", results.PlotOptions{Y: "step"}, []results.Source{sampleScaling()}, false},
		{"two units along Y", "", "rate is in GB/s and in MB/s", results.PlotOptions{}, []results.Source{twoUnits}, false},
		{"two units along X", "curves", "rate is in GB/s and in MB/s", results.PlotOptions{X: "rate", Y: "bytes"}, []results.Source{twoUnits}, false},
		{"nothing that scales", "scaling", "no row has devices, for X", results.PlotOptions{}, []results.Source{pack}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := results.Plot(tc.kind, tc.options, tc.all...)
			wantError(t, err, "plot", tc.want)
			if errors.Is(err, results.ErrNothingToPlot) != tc.empty {
				t.Errorf("%v: nothing to plot: %t", err, !tc.empty)
			}
		})
	}
}

// What was left out for want of memory is not what the others are held at.
func TestPlotOfRowsLeftOut(t *testing.T) {
	s := sampleSchemes()
	s.Add(results.NewRow().Label("scheme", "fused").Label("points", 64).Label("devices", 8))
	if names, note := named(t, "", results.PlotOptions{}, s); len(names) != 6 || note != "error bars are quartiles" {
		t.Errorf("%q, %s", names, note)
	}
}

// One device sends nothing: its exchanges differ in their points.
func TestPlotOfExchangesAlone(t *testing.T) {
	s := source(results.KindExchange)
	for _, points := range []float64{8, 16} {
		s.Add(results.NewRow().Label("points", points).Label("message_bytes", 0).Number(results.Time, points))
	}
	chart, err := results.Plot("", results.PlotOptions{}, s)
	if err != nil {
		t.Fatal(err)
	}
	if c := chart.(results.Curves); len(c.Curves) != 1 || len(c.Curves[0].X) != 2 || c.Note != "" {
		t.Errorf("%+v", c)
	}
}

// Odd rows are drawn as far as they can be, in all formats.
func TestPlotOfOddRows(t *testing.T) {
	row := func(bytes, rate float64) results.Row {
		return results.NewRow().Label("bytes", bytes).Label("path", "peer").Number(results.Rate, rate)
	}
	failed := source(results.KindLinks, row(8, 1))
	failed.End(errors.New("a link fell"))
	for name, s := range map[string]results.Source{
		"one row":         source(results.KindLinks, row(8, 1)),
		"none":            source(results.KindLinks, row(0, 0), row(8, 0)),
		"below zero":      source(results.KindLinks, row(1, -3), row(1000, 5), row(1e6, 1e9)),
		"not finite":      source(results.KindLinks, row(1, math.NaN()), row(2, math.Inf(1)), row(3, 4)),
		"words along X":   source(results.KindLinks, row(1, 2).Label("bytes", "few"), row(1, 2).Label("bytes", "many")),
		"numbers, words":  source(results.KindLinks, row(1, 2).Label("bytes", "few"), row(1, 2)),
		"far apart":       source(results.KindLinks, row(1, math.SmallestNonzeroFloat64), row(1e300, math.MaxFloat64)),
		"failed":          failed,
		"long names":      source(results.KindLinks, row(1, 1).Label("path", strings.Repeat("long ", 30)), row(1, 2)),
		"another's units": {Name: "x", Record: source(results.KindLinks, row(1, 1)).Record},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chart, err := results.Plot("", results.PlotOptions{}, s)
			if err != nil {
				t.Fatal(err)
			}
			for _, format := range []string{".svg", ".pdf"} {
				writeChart(t, chart, format)
			}
		})
	}
}

func TestChartsRefuse(t *testing.T) {
	for want, c := range map[string]results.Chart{
		"there are no bars":   results.Bars{},
		"bars \"b\": 1 for 2": results.Bars{Places: []string{"x", "y"}, Sets: []results.BarSet{{Name: "b", Y: []float64{1}}}},
		"there are no cells":  results.Matrix{},
		`map "g": 0 rows`:     results.Matrix{Rows: []string{"0"}, Cols: []string{"0"}, Grids: []results.Grid{{Name: "g"}}},
		`map "h": 0 columns`:  results.Matrix{Rows: []string{"0"}, Cols: []string{"0"}, Grids: []results.Grid{{Name: "h", Values: [][]float64{nil}}}},
		"there are no panels": results.Panels{},
		"there are no curves": results.Panels{Panels: []results.Curves{{}}},
		"is not finite":       results.Curves{Curves: []results.Curve{{X: []float64{1}, Y: []float64{math.Inf(1)}}}},
		"error bars":          results.Curves{Curves: []results.Curve{{X: []float64{1}, Y: []float64{1}, Lo: []float64{1}}}},
	} {
		wantError(t, results.WriteChart(filepath.Join(t.TempDir(), "c.svg"), c), "plot", want)
	}
}
