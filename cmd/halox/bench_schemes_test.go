package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/solvers/scheme"
)

// benched runs a bench of steps on CPU devices, with small intervals.
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
		r, _ := benched(t, append([]string{"schemes", "--device-counts", "1", "--points", "9", "--precisions", "float32"}, strings.Fields(args)...)...)
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
	r, out := benched(t, "schemes", "--device-counts", "1,2", "--points", strings.Join(points, ","), "--precisions", "float32", "--plot", plot)
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

// Checkpoints are measured in steps, alone and read, with values that agree, and leave no file.
func TestBenchCheckpoint(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	testdevices.Once(t)
	folder, plot := t.TempDir(), filepath.Join(t.TempDir(), "c.svg")
	r, out := benched(t, "checkpoint", "--device-counts", "1,2", "--points", "12", "--precisions", "float32", "--every", "3",
		"--schemes", "fused,ranks", "--exchange-steps", "1,2", "--compress", "none,zstd", "--folder", folder, "--plot", plot)
	// ranks exchange after each step, one device does not exchange
	if len(r.Rows) != 2*(2+2+3+2)+2+3 || r.Kind != results.KindCheckpoint {
		t.Errorf("%d rows:\n%s", len(r.Rows), out)
	}
	const bytes = 12 * 12 * 12 * 4
	for _, row := range r.Rows {
		files, _ := row.Float("bytes")
		time, _ := row.Get(results.Time)
		slowdown, _ := row.Get(results.Slowdown)
		if row.Text("what") == "statistics" {
			if slowdown.N < 3 || slowdown.Min <= -1 || row.Text("compress") != "" {
				t.Errorf("row %+v", row)
			}
			continue
		}
		if waited, _ := row.Float("waited"); time.N < 3 || waited != 0 || files <= 0 {
			t.Errorf("row %+v", row)
		}
		if row.Text("what") == "steps" {
			written, _ := row.Float("written")
			skipped, _ := row.Float("skipped")
			if turns := slowdown.N + 1; written < float64(turns) || written+skipped != float64(2*turns) || slowdown.Min <= -1 ||
				row.Median(results.Step) <= 0 || row.Median(results.StepAlone) <= 0 {
				t.Errorf("row %+v", row)
			}
			continue
		}
		if (files > bytes) != (row.Text("compress") == "none") {
			t.Errorf("row %+v", row)
		}
		near(t, row, results.Rate, bytes/time.Median/1e3)
		near(t, row, results.FileRate, files/row.Median(results.FileTime)/1e3)
		slower := row.Median(results.FileTime)
		if row.Text("what") == "write" {
			slower = max(slower, row.Median(results.CopyTime))
		} else if parts := row.Median(results.Finding) + row.Median(results.Reading); !row.Checked || parts > time.Max*2 {
			t.Errorf("row %+v", row)
		}
		near(t, row, results.Share, slower/time.Median)
	}
	drawn(t, plot)
	if left := test.Must(os.ReadDir(folder))(t); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// Squares have the star of five points and six operations.
func TestBenchSchemesOfSquares(t *testing.T) {
	testdevices.Once(t)
	r, _ := benched(t, "schemes", "--dims", "2", "--device-counts", "2", "--points", "8", "--precisions", "float64", "--cut", "slabs",
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

// Strong and weak scaling, and those with steps between two exchanges, are against one device, which is measured once. The chart
// is of strong scaling, with the ideal.
func TestBenchScaling(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	testdevices.Once(t)
	for args, curves := range map[string]int{
		"--device-counts 1,2,4 --schemes two-stream,baseline":        4,
		"--device-counts 1,2,4 --schemes fused --exchange-steps 1,3": 4,
	} {
		r, out := benched(t, append([]string{"scaling", "--points", "8", "--precisions", "float64"}, strings.Fields(args)...)...)
		if len(r.Rows) != 3*curves || r.Kind != results.KindScaling || !strings.Contains(out, "path auto") {
			t.Fatalf("%s: %d rows:\n%s", args, len(r.Rows), out)
		}
		alone := map[string]float64{}
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
			if (row.Text("order") != "") != (row.Text("scheme") == "two-stream") || devices > 1 && !strings.Contains(row.Note, "path auto is") ||
				(row.Text("steps_per_exchange") == "3") != (strings.Contains(args, "1,3") && i/3%2 == 1) {
				t.Errorf("row %d: %+v", i, row)
			}
			if once, seen := alone[row.Text("scheme")]; seen && base != once {
				t.Errorf("%s on one device was measured twice: %v and %v", row.Text("scheme"), base, once)
			}
			alone[row.Text("scheme")] = base
		}
		chart, err := plot.New("", plot.Options{}, results.Source{Record: r})
		if err != nil || len(chart.(plot.Panels).Panels[0].Curves) != curves/2+1 {
			t.Errorf("%s: %+v, %v", args, chart, err)
		}
	}
}
