package main

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench/datatypes"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/results"
)

// contended returns what a record says that it measured.
func contended(r *results.Record) (names []string) {
	for _, name := range r.Settings.(map[string]any)["contenders"].([]any) {
		names = append(names, name.(string))
	}
	return names
}

// A small bench on a host device leaves its table, its record and its plot.
func TestBenchPack(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	plot := filepath.Join(t.TempDir(), "p.png")
	out, r := measure(t, "pack", "--backend", "host", "--budget", "100us", "--suites", "jenkins,ddtbench", "--match", "vector-512|LAMMPS_atomic", "--most", "20000", "--unpack", "--plot", plot)
	drawn(t, plot)
	groups := r.Groups()
	if len(groups) != 2*(3*2+3) || r.Kind != results.KindPack || r.Devices[0].Backend != "host" || r.Rows[0].Text("memory") != datatypes.ToDevice || r.Interrupted || r.Failure != "" {
		t.Errorf("%d groups: %+v", len(groups), r)
	}
	for _, g := range groups {
		checkGroup(t, g)
		if first := g.Rows[0]; strings.Count(out, "\n"+first.Workload()+" ") != 2 {
			t.Errorf("%s has no line for each direction:\n%s", first.Workload(), out)
		}
	}
	for _, want := range []string{"packing into device memory", "unpacking from device memory", "best engine", "driver's own copies"} {
		if !strings.Contains(out, want) {
			t.Errorf("the table has no %q:\n%s", want, out)
		}
	}
}

// checkGroup fails unless the rows of a workload hold together.
func checkGroup(t *testing.T, g results.Group) {
	t.Helper()
	contiguous := g.Rows[0].Median(results.CopyTime)
	for _, row := range g.Rows {
		us, bytes := row.Median(results.Time), labelled(row, "bytes")
		rate, share := bytes/us/1e3, contiguous/us
		if us <= 0 || !row.Checked || bytes <= 0 || bytes > 20000 || labelled(row, "pieces") < 1 || row.Median(results.CopyTime) != contiguous ||
			math.Abs(row.Median(results.Rate)-rate) > 1e-9*rate || math.Abs(row.Median(results.Share)-share) > 1e-9*share {
			t.Errorf("row %+v", row)
		}
	}
	auto, ok := g.Of("auto")
	if !ok || !slices.Contains(packing.Engines(), packing.Engine(auto.Text("took"))) || auto.Note == "" {
		t.Errorf("auto: %+v", auto)
	}
	if _, ok := g.Of("copies"); !ok {
		t.Errorf("%s was not copied by the driver", auto.Workload())
	}
}

// labelled returns the number that a label has, NaN for none.
func labelled(row results.Row, label string) float64 {
	if v, ok := row.Float(label); ok {
		return v
	}
	return math.NaN()
}

// An engine that does not suit a layout has no row; the driver's copies are always
// measured.
func TestBenchPackUnsuited(t *testing.T) {
	testdevices.InTurn(t, 1, 2)
	testdevices.Once(t)
	out, r := measure(t, "pack", "--backend", "host", "--budget", "100us", "--engines", "targeted", "--match", "LAMMPS_atomic/d=1217", "--to", "pinned", "--blocks", "3", "--no-check")
	if len(r.Rows) != 1 || r.Rows[0].Text("engine") != "copies" || r.Rows[0].Checked || r.Rows[0].Text("memory") != datatypes.ToPinned || labelled(r.Rows[0], "thread_blocks") != 3 {
		t.Errorf("%+v", r)
	}
	if !slices.Equal(contended(r), []string{"copies", "targeted"}) || strings.Contains(out, "auto") || !strings.Contains(out, "pinned host memory") {
		t.Errorf("%v:\n%s", contended(r), out)
	}
}

func TestBenchPackLists(t *testing.T) {
	code, out, _ := cli("bench", "pack", "--list", "--suites", "wu", "--match", "V/n=1024")
	if code != 0 || out != "wu/V/n=1024 8388608\n" {
		t.Errorf("exit %d: %q", code, out)
	}
	code, out, _ = cli("bench", "pack", "--figure", "list")
	if names := strings.Count(out, "\n"); code != 0 || names != 12 || !strings.HasPrefix(out, "wu-6 ") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// A figure measures its own contenders on its own layouts.
func TestBenchPackFigure(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	testdevices.Once(t)
	for _, tc := range []struct {
		figure, to string
		contenders []string
		args       []string
	}{
		{"hand-9", datatypes.ToDevice, []string{"copies", "bypass, sequential scan", "bypass, parallel scan"}, nil},
		{"hand-7", datatypes.ToPinned, []string{"copies", "bypass", "bypass, list pinned"}, []string{"--to", "pinned"}},
		{"jenkins-4", datatypes.ToPinned, []string{"copies", "tree"}, nil},
	} {
		t.Run(tc.figure, func(t *testing.T) {
			plot := filepath.Join(t.TempDir(), "p.svg")
			_, r := measure(t, append([]string{"pack", "--backend", "host", "--budget", "100us", "--figure", tc.figure, "--most", "2000", "--plot", plot}, tc.args...)...)
			drawn(t, plot)
			if r.Rows[0].Text("memory") != tc.to || !slices.Equal(contended(r), tc.contenders) || len(r.Rows) != len(r.Groups())*len(tc.contenders) {
				t.Errorf("to %s, %v, %d rows of %d groups", r.Rows[0].Text("memory"), contended(r), len(r.Rows), len(r.Groups()))
			}
		})
	}
}
