package results_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/resultstest"
	"pgregory.net/rapid"
)

// samplePacks has three layouts, one of which is unpacked too. Auto is right with the
// first, wrong with the second, and with the third slower than what it took.
func samplePacks() *results.Record {
	const a, b, c = "wu/V/n=1024", "wu/T/n=1024", "hacc/vblock/rank=5,cells=1024"
	return &results.Record{
		Kind: results.KindPack, Devices: []results.Device{{Name: "a GPU", Backend: "cuda"}},
		Rows: []results.Row{
			resultstest.PackRow(a, "pack", "copies", 8.25), resultstest.PackRow(a, "pack", "units", 4.5), resultstest.Took(resultstest.PackRow(a, "pack", "", 4.6), "units"),
			resultstest.PackRow(a, "unpack", "copies", 16), resultstest.Took(resultstest.PackRow(a, "unpack", "", 16.1), "copies"),
			resultstest.PackRow(b, "pack", "copies", 5), resultstest.PackRow(b, "pack", "tree", 4).Label("variant", "primitive"), resultstest.Took(resultstest.PackRow(b, "pack", "", 12), "units"),
			resultstest.PackRow(c, "pack", "units", 1234.5), resultstest.Took(resultstest.PackRow(c, "pack", "", 2000), "units"),
		},
	}
}

func comparison(t *testing.T, r *results.Record, contenders ...string) string {
	t.Helper()
	return shown(t, func(w io.Writer) error { return r.WriteComparison(w, contenders) })
}

func TestComparisons(t *testing.T) {
	golden(t, "packs.txt", comparison(t, samplePacks(), "copies", "units", "tree, primitive", "auto"))
	golden(t, "pings.txt", comparison(t, samplePings(), "direct", "peer", "peer, remote, tree", "staged, units"))
}

// Without auto nothing is said of it, and a record without rows has no table.
func TestComparisonWithoutAuto(t *testing.T) {
	p := samplePacks()
	p.Rows = p.Rows[5:7]
	if text := comparison(t, p, "copies", "units", "tree, primitive"); strings.Contains(text, "auto") || !strings.Contains(text, "wu/T/n=1024") {
		t.Error(text)
	}
	if text := comparison(t, &results.Record{}, "copies"); text != "" {
		t.Errorf("%q", text)
	}
}

// A summary names the worst only.
func TestComparisonWithManyLosses(t *testing.T) {
	p := &results.Record{Kind: results.KindPack}
	for i := range 9 {
		name := "wu/V/n=" + strings.Repeat("1", i+1)
		p.Add(resultstest.PackRow(name, "pack", "copies", 1), resultstest.Took(resultstest.PackRow(name, "pack", "", float64(2+i)), "tree"))
	}
	text := comparison(t, p, "copies", "auto")
	for _, want := range []string{"for 0 of 9 workloads\n  wu/V/n=111111111: tree took 10.00 times as long as copies", "  and 4 more\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// pingRow is what a message took between devices 2 and 3.
func pingRow(name, path, engine string, us float64) results.Row {
	return resultstest.Transfer(resultstest.LayoutRow(name).Label("from", 2).Label("to", 3).Label("link", "NV18").Label("path", path).Label("engine", engine), us)
}

// samplePings has two layouts of one suite and one of another, which not all paths suit.
func samplePings() *results.Record {
	const a, b, c = "wu/V/n=1024", "wu/T/n=1024", "hacc/vblock/rank=5,cells=1024"
	return &results.Record{
		Kind: results.KindPingPong, Devices: []results.Device{{ID: 2, Name: "a GPU", Backend: "cuda"}, {ID: 3, Name: "a GPU", Backend: "cuda"}},
		Rows: []results.Row{
			pingRow(a, "direct", "auto", 2.5), pingRow(a, "peer", "auto", 4), pingRow(a, "peer", "tree", 16).Label("remote", "yes"),
			pingRow(b, "direct", "auto", 8), pingRow(b, "peer", "auto", 5),
			pingRow(c, "direct", "auto", 1234.5),
		},
	}
}

// Limits on messages and concurrent work are above the table.
func TestComparisonOnOneBusyDevice(t *testing.T) {
	p := samplePings()
	for i, row := range p.Rows {
		p.Rows[i] = row.Label("to", 2).Label("link", "").Label("thread_blocks", 2).Label("ring", 4).Label("fragment", 65536).
			Label("busy", 0.25).Number(results.BusyLost, 0.07)
	}
	text := comparison(t, p, "direct", "peer", "peer, remote, tree", "staged, units")
	const caption = "ping-pong on a GPU 2 alone, fragments of 65536 B, a ring of 4, at most 2 thread blocks, devices 25% busy, times of one way in us\n\nworkload "
	if !strings.HasPrefix(text, caption) || strings.Count(text, "of contiguous  busy lost\n") != 2 || strings.Count(text, "         7%\n") != 3 {
		t.Error(text)
	}
}

func TestSummary(t *testing.T) {
	interrupted := finished()
	run := interrupted.Run
	run.Stopped, run.Iterations = results.StopInterrupted, 1
	run.Error, run.Time, run.DT = nil, nil, nil
	run.Order = ""
	interrupted.Devices[1].Name, interrupted.Devices[1].Backend = "CPU device", "host"
	run.UpdatesPerSecond, run.BytesExchanged = results.Number(999.4e3), 0
	failed := &results.Record{Run: &results.Run{Stopped: results.StopError}, Failure: "copy from device 0 to 1: device lost"}
	one := results.Number(1)
	measures := map[string]*float64{"highest": one, "mass": one, "speed": one}
	settings := map[string]any{"solver": "equation", "unit": map[string]string{"u": "K", "v": "m/s"}, "stop": map[string]string{"field": "v"},
		"measure": map[string]string{"highest": "max( u )", "mass": "sum(u + v)", "speed": "mean(v)"}}
	units := &results.Record{Settings: settings, Run: &results.Run{Stopped: results.StopIterations, Iterations: 2, Residual: one,
		Norms: results.Norms{MaxChange: one, MaxNorm: one}, Measures: measures, StartMeasures: measures,
		Errors: map[string]*results.ErrorNorms{"u": {Max: one, L2: one}, "w": {Max: one}}}}
	for name, record := range map[string]*results.Record{
		"finished": finished(), "interrupted": interrupted, "failed": failed, "units": units,
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, "summary-"+name+".txt", shown(t, record.Summary))
		})
	}
}

// golden compares a text with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if diff := cmp.Diff(string(resultstest.Golden(t, name, []byte(got))), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func check(t rapid.TB, err error) {
	t.Helper()
	test.Check(t, err)
}

// shown returns what is written.
func shown(t *testing.T, write func(w io.Writer) error) string {
	t.Helper()
	var text strings.Builder
	check(t, write(&text))
	return text.String()
}

func TestSummaryWriterFails(t *testing.T) {
	resultstest.WantError(t, finished().Summary(brokenWriter{}), "write summary", "broken pipe")
	resultstest.WantError(t, (&results.Record{Kind: results.KindPack}).Summary(io.Discard), `a record of kind "pack" is of no run`)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
