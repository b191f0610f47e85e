package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/solvers/scheme"
)

// benched is measure of a bench of steps on host devices, with small intervals.
func benched(t *testing.T, args ...string) (*results.Record, string) {
	t.Helper()
	out, r := measure(t, append([]string{args[0], "--backend", "host", "--budget", "1ms"}, args[1:]...)...)
	return r, out
}

// near fails the test unless a metric of the row is what it should be.
func near(t *testing.T, row results.Row, m results.Metric, want float64) {
	t.Helper()
	if got := row.Median(m); !(math.Abs(got-want) <= 1e-6*math.Abs(want)) {
		t.Errorf("%s: %s is %v, want %v", bench.NameOf(row), m, got, want)
	}
}

// Steps with norms, and those of either way to sum, are rows of their own, and compared with each other.
func TestBenchSchemesWithNorms(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	testdevices.Once(t)
	for args, want := range map[string][]string{
		"--schemes baseline,fused,resident --norms 0,1,4,1":             {" ", "every-step ", "every-4 "},
		"--schemes baseline,fused --norms 0,1 --sums fast,reproducible": {" ", "every-step ", "every-step reproducible"},
	} {
		r, _ := benched(t, append([]string{"schemes", "--devices", "1", "--points", "9", "--precisions", "float32"}, strings.Fields(args)...)...)
		base := map[string]float64{}
		for i, row := range r.Rows {
			norms := row.Text("norms") + " " + row.Text("sums")
			if norms != want[i%3] {
				t.Errorf("%s: row %d has norms %q, want %q", args, i, norms, want[i%3])
			}
			if row.Text("scheme") == string(scheme.Baseline) {
				base[norms] = row.Median(results.Step)
			}
			near(t, row, results.OverBaseline, base[norms]/row.Median(results.Step))
		}
		if len(r.Rows)%3 != 0 || len(r.Rows) < 6 {
			t.Errorf("%s: %d rows", args, len(r.Rows))
		}
	}
}

// Every scheme is there with every path and order, and its numbers agree.
func TestBenchSchemes(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	plot, points := filepath.Join(t.TempDir(), "s.png"), testdevices.Some(1, []string{"6", "9"})
	r, out := benched(t, "schemes", "--devices", "1,2", "--points", strings.Join(points, ","), "--precisions", "float32", "--plot", plot)
	alone, two := 0, 0
	for _, s := range scheme.All() {
		paths := 0
		for _, p := range []p2p.Path{p2p.Staged, p2p.Peer, p2p.Direct} {
			if s.Needs().CheckPath(s, p) == nil {
				paths++
			}
		}
		alone, two = alone+1, two+paths*max(1, len(s.Needs().Orders))
	}
	if want := len(points) * (alone + two); len(r.Rows) != want || r.Kind != results.KindSchemes || len(r.Devices) != 2 || strings.Count(out, "pairwise") != len(points)*3 {
		t.Errorf("%d rows, want %d:\n%s", len(r.Rows), want, out)
	}
	for _, row := range r.Rows {
		points, _ := row.Float("points")
		devices, _ := row.Float("devices")
		step, ok := row.Get(results.Step)
		if !ok || step.N < 6 || step.Median <= 0 || row.Text("stencil") != "7-point" || (row.Text("path") == "") != (devices == 1) {
			t.Errorf("row %+v", row)
			continue
		}
		cells := points * points * points
		for _, m := range []results.Metric{results.Updates, results.GFLOPS, results.Share, results.SpeedUp, results.OverBaseline, results.OverTwoStream} {
			if s, ok := row.Get(m); !ok || s.Q1 > s.Median || s.Median > s.Q3 {
				t.Errorf("%s: %s is %+v", bench.NameOf(row), m, s)
			}
		}
		for m, want := range map[results.Metric]float64{
			results.Updates: cells / step.Median * 1e6,
			results.GFLOPS:  8 * cells / step.Median / 1e3,
			results.Share:   2 * 4 * cells / devices / step.Median / 1e3 / row.Median(results.CopyRate),
		} {
			near(t, row, m, want)
		}
	}
	drawn(t, plot)
}

// Squares have the star of five points and six operations.
func TestBenchSchemesOfSquares(t *testing.T) {
	testdevices.Once(t)
	r, _ := benched(t, "schemes", "--dims", "2", "--devices", "2", "--points", "8", "--precisions", "float64", "--cut", "slabs",
		"--schemes", "two-stream", "--paths", "peer")
	if len(r.Rows) != 2 {
		t.Fatalf("%d rows", len(r.Rows))
	}
	for _, row := range r.Rows {
		near(t, row, results.GFLOPS, 6*64/row.Median(results.Step)/1e3)
		if _, ok := row.Get(results.OverBaseline); ok || row.Text("stencil") != "5-point" || row.Text("parts") != "1 x 2" {
			t.Errorf("row %+v", row)
		}
	}
}

// What cannot be is left out and said, in the record too; if nothing can be, that is an
// error, which leaves the record.
func TestBenchSchemesLeavesOut(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	testdevices.Once(t)
	r, _ := benched(t, "schemes", "--devices", "1,3", "--points", "2", "--precisions", "float64", "--schemes", "assisted", "--paths", "peer")
	if len(r.Rows) != 2 || len(r.Rows[0].Values) == 0 || len(r.Rows[1].Values) > 0 || !strings.Contains(r.Rows[1].Note, "no cut of [2 2 2] points into 3 parts") {
		t.Errorf("%+v", r.Rows)
	}
	r, _ = benched(t, "schemes", "--devices", "1", "--points", "100000,6", "--precisions", "float64", "--schemes", "baseline")
	if len(r.Rows) != 2 || len(r.Rows[0].Values) != 0 || len(r.Rows[1].Values) == 0 || !strings.Contains(r.Rows[0].Note, "a grid of 1e+15 points") {
		t.Errorf("%+v", r.Rows)
	}
	file := filepath.Join(t.TempDir(), "r.json")
	code, _, errs := cli("bench", "schemes", "--backend", "host", "--devices", "1", "--points", "30000", "--record", file)
	if code != exitFailed || !strings.Contains(errs, "not measured: scheme baseline") || !strings.Contains(errs, "are needed, and ") || !strings.Contains(errs, "nothing could be measured") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if r, err := results.Read(file); err != nil || len(r.Rows) != 2*len(scheme.All()) || r.Interrupted {
		t.Errorf("%+v, %v", r, err)
	}
	code, _, errs = cli("bench", "schemes", "--backend", "host", "--devices", "2", "--points", "8", "--schemes", "ranks", "--paths", "direct", "--exchange-steps", "4")
	if code != exitFailed || !strings.Contains(errs, "scheme ranks with --exchange-steps 4: it exchanges after each step") || !strings.Contains(errs, "nothing could be measured") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// Strong and weak scaling are against one device, and their modes lie on curves of their
// own.
func TestBenchScaling(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	testdevices.Once(t)
	r, out := benched(t, "scaling", "--devices", "1,2,4", "--points", "8", "--precisions", "float64", "--scheme", "two-stream,baseline")
	if len(r.Rows) != 2*2*3 || r.Kind != results.KindScaling || !strings.Contains(out, "path auto") {
		t.Fatalf("%d rows:\n%s", len(r.Rows), out)
	}
	for i, row := range r.Rows {
		devices, _ := row.Float("devices")
		base, cells, step := r.Rows[i/3*3].Median(results.Step), 512.0, row.Median(results.Step)
		speedup := base / step
		if row.Text("mode") == "weak" {
			speedup, cells = devices*speedup, devices*cells
		}
		near(t, row, results.SpeedUp, speedup)
		near(t, row, results.Efficiency, speedup/devices)
		near(t, row, results.Updates, cells/step*1e6)
		if (row.Text("order") == "") != (row.Text("scheme") == "baseline") || devices > 1 && !strings.Contains(row.Note, "path auto is") {
			t.Errorf("row %+v", row)
		}
	}
	for _, scheme := range []string{"two-stream", "baseline"} {
		alone := results.NewRow().Label("scheme", scheme).Label("devices", 1)
		strong, _ := r.Find(alone.Label("mode", "strong"))
		weak, ok := r.Find(alone.Label("mode", "weak"))
		if a, b := strong.Median(results.Step), weak.Median(results.Step); !ok || a != b {
			t.Errorf("%s on one device was measured twice: %v and %v", scheme, a, b)
		}
	}
	chart, err := plot.New("", plot.Options{}, results.Source{Record: r})
	if err != nil || len(chart.(plot.Panels).Panels[0].Curves) != 4+1 {
		t.Errorf("%+v, %v", chart, err)
	}
}

// Steps between two exchanges have curves of their own, which begin with one device, measured once.
func TestBenchScalingWithGroups(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	testdevices.Once(t)
	r, _ := benched(t, "scaling", "--devices", "1,2", "--points", "8", "--precisions", "float64", "--scheme", "fused", "--exchange-steps", "1,3")
	if len(r.Rows) != 2*2*2 {
		t.Fatalf("%d rows", len(r.Rows))
	}
	for i, row := range r.Rows {
		devices, _ := row.Float("devices")
		base := r.Rows[i/2*2].Median(results.Step)
		want := base / row.Median(results.Step)
		if row.Text("mode") == "strong" {
			want /= devices
		}
		near(t, row, results.Efficiency, want)
		if devices == 1 && base != r.Rows[0].Median(results.Step) || row.Text("steps_an_exchange") != []string{"", "3"}[i/2%2] {
			t.Errorf("row %d: %+v", i, row)
		}
	}
}
