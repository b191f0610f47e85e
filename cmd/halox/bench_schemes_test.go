package main

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/solvers/scheme"
)

// benched runs a bench of steps on host devices with small intervals and returns its record.
func benched(t *testing.T, args ...string) (*results.Record, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "r.json")
	code, out, errs := cli(append([]string{"bench", args[0], "--backend", "host", "--budget", "1ms", "--record", file}, args[1:]...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	r, err := results.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return r, out
}

// near fails the test unless a metric of the row is what it should be.
func near(t *testing.T, row results.Row, m results.Metric, want float64) {
	t.Helper()
	if got := row.Median(m); !(math.Abs(got-want) <= 1e-6*math.Abs(want)) {
		t.Errorf("%s: %s is %v, want %v", nameOf(row), m, got, want)
	}
}

// Steps with norms are rows of their own, and compared with each other.
func TestBenchSchemesWithNorms(t *testing.T) {
	r, _ := benched(t, "schemes", "--devices", "1", "--points", "9", "--precisions", "float32", "--schemes", "baseline,fused,resident", "--norms", "0,1,4,1")
	if len(r.Rows) != 3*3 {
		t.Fatalf("%d rows", len(r.Rows))
	}
	base := map[string]float64{}
	for i, row := range r.Rows {
		norms := row.Text("norms")
		if want := []string{"", withNorms, "every-4"}[i%3]; norms != want {
			t.Errorf("row %d has norms %q, want %q", i, norms, want)
		}
		if row.Text("scheme") == string(scheme.Baseline) {
			base[norms] = row.Median(results.Step)
		}
		near(t, row, results.OverBaseline, base[norms]/row.Median(results.Step))
	}
	for _, wrong := range []string{"-1", "0,-2"} {
		if code, _, errs := cli("bench", "schemes", "--backend", "host", "--norms", wrong); code == 0 || !strings.Contains(errs, "--norms") {
			t.Errorf("--norms %s: exit %d: %s", wrong, code, errs)
		}
	}
}

// Every scheme is there with every path and order, and its numbers agree.
func TestBenchSchemes(t *testing.T) {
	plot := filepath.Join(t.TempDir(), "s.png")
	r, out := benched(t, "schemes", "--devices", "1,2", "--points", "6,9", "--precisions", "float32", "--plot", plot)
	alone, two := 0, 0
	for _, s := range scheme.All() {
		paths := 0
		for _, p := range []p2p.Path{p2p.Staged, p2p.Peer, p2p.Direct} {
			if takes(s, p) {
				paths++
			}
		}
		alone, two = alone+1, two+paths*max(1, len(needsOf(s).Orders))
	}
	if want := 2 * (alone + two); len(r.Rows) != want || r.Kind != results.KindSchemes || len(r.Devices) != 2 || strings.Count(out, "pairwise") != 2*3 {
		t.Errorf("%d rows, want %d:\n%s", len(r.Rows), want, out)
	}
	for _, row := range r.Rows {
		points, _ := row.Float("points")
		devices, _ := row.Float("devices")
		step, ok := row.Get(results.Step)
		if !ok || step.N < minLaps || step.Median <= 0 || row.Text("stencil") != "7-point" || (row.Text("path") == "") != (devices == 1) {
			t.Errorf("row %+v", row)
			continue
		}
		cells := points * points * points
		for _, m := range []results.Metric{results.Updates, results.GFLOPS, results.Share, results.SpeedUp, results.OverBaseline, results.OverTwoStream} {
			if s, ok := row.Get(m); !ok || s.Q1 > s.Median || s.Median > s.Q3 {
				t.Errorf("%s: %s is %+v", nameOf(row), m, s)
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
	if info, err := os.Stat(plot); err != nil || info.Size() < 1000 {
		t.Errorf("plot: %v, %v", info, err)
	}
}

// Squares have the star of five points and six operations.
func TestBenchSchemesOfSquares(t *testing.T) {
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
	r, _ := benched(t, "schemes", "--devices", "1,3", "--points", "2", "--precisions", "float64", "--schemes", "assisted", "--paths", "peer")
	if len(r.Rows) != 2 || len(r.Rows[0].Values) == 0 || len(r.Rows[1].Values) > 0 || !strings.Contains(r.Rows[1].Note, "no cut of [2 2 2] points into 3 parts") {
		t.Errorf("%+v", r.Rows)
	}
	file := filepath.Join(t.TempDir(), "r.json")
	code, _, errs := cli("bench", "schemes", "--backend", "host", "--devices", "1", "--points", "60000", "--record", file)
	if code != exitFailed || !strings.Contains(errs, "left out: scheme=baseline") || !strings.Contains(errs, "the run needs") || !strings.Contains(errs, "nothing could be measured") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if r, err := results.Read(file); err != nil || len(r.Rows) != 2*len(scheme.All()) || r.Interrupted {
		t.Errorf("%+v, %v", r, err)
	}
}

// A grid that no device can hold is left out, and the others are measured.
func TestBenchSchemesTooLarge(t *testing.T) {
	r, _ := benched(t, "schemes", "--devices", "1", "--points", "100000,6", "--precisions", "float64", "--schemes", "baseline")
	if len(r.Rows) != 2 || len(r.Rows[0].Values) != 0 || len(r.Rows[1].Values) == 0 || !strings.Contains(r.Rows[0].Note, "a grid of 1e+15 points") {
		t.Errorf("%+v", r.Rows)
	}
}

func TestBenchSchemesRefuses(t *testing.T) {
	for _, bad := range [][]string{
		{"schemes", "--backend", "gpu"}, {"schemes", "--points", "0"}, {"schemes", "--points", "2000000"}, {"schemes", "--devices", "0,1"},
		{"schemes", "--backend", "host", "--devices", "2000"}, {"schemes", "--dims", "4"},
		{"schemes", "--budget", "0s"}, {"schemes", "--precisions", "half"}, {"schemes", "--schemes", "best"}, {"schemes", "--paths", "tunnel"},
		{"schemes", "--cut", "thin"}, {"schemes", "--plot", "times.gif"}, {"schemes", "--record", t.TempDir()}, {"schemes", "more"},
		{"scaling", "--mode", "none"}, {"scaling", "--scheme", "best"}, {"scaling", "--path", "tunnel"}, {"scaling", "--order", "random"},
		{"scaling", "--scheme", "baseline", "--path", "peer"}, {"scaling", "--points", "-4"},
	} {
		if code, out, errs := cli(append([]string{"bench"}, bad...)...); code != exitFailed || errs == "" || out != "" {
			t.Errorf("%v: exit %d, %q, %q", bad, code, out, errs)
		}
	}
}

// Interrupted in the middle of a row, the bench keeps those before, and goes on with them.
func TestBenchSchemesInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.json")
	args := []string{"bench", "schemes", "--backend", "host", "--devices", "2", "--points", "6", "--precisions", "float64", "--budget", "1ms"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := schemesBench{
		stepBench: stepBench{backend: "host", counts: []int{2}, dims: 3, points: []int{6}, precisions: []string{"float64"}, cut: cutAuto, budget: 1},
		schemes:   []string{"baseline", "assisted"}, paths: []string{"staged"}, norms: []int{0},
	}
	b.record = file
	err := b.run(ctx, results.KindSchemes, new(strings.Builder), new(strings.Builder), func(r *stepRun) []task {
		all := b.tasks(r)
		measure := all[1].measure
		all[1].measure = func(ctx context.Context) ([]results.Row, error) {
			cancel()
			return measure(ctx)
		}
		return all
	}, compareSchemes)
	r, readErr := results.Read(file)
	if !errors.Is(err, errInterrupted) || readErr != nil || len(r.Rows) != 1 || !r.Interrupted {
		t.Fatalf("%v, %v: %+v", err, readErr, r)
	}
	code, _, errs := cli(append(args, "--record", file)...)
	if code != 0 {
		t.Fatal(errs)
	}
	cut(t, file, 4, func(*results.Record) {})
	if code, _, errs = cli(append(args, "--resume", file)...); code != 0 {
		t.Fatal(errs)
	}
	if r, err = results.Read(file); err != nil || r.Interrupted || len(r.Rows) < 10 || math.IsNaN(r.Rows[9].Median(results.OverBaseline)) {
		t.Errorf("%v: %+v", err, r)
	}
}

// A row is compared with the best two-stream row of its own problem, and with the best on
// one device.
func TestCompareSchemes(t *testing.T) {
	row := func(scheme, path string, devices, points int, step float64) results.Row {
		return results.NewRow().Label("scheme", scheme).Label("path", path).Label("devices", devices).Label("points", points).
			Value(results.Step, measure.NewSample([]float64{step, step, step}))
	}
	rows := compareSchemes([]results.Row{
		row("assisted", "", 1, 64, 90), row("two-stream", "", 1, 64, 80),
		row("baseline", "staged", 2, 64, 120), row("two-stream", "peer", 2, 64, 60), row("two-stream", "staged", 2, 64, 50),
		row("assisted", "peer", 2, 64, 40), row("two-stream", "peer", 2, 128, 7), results.NewRow().Label("devices", 2),
	})
	near(t, rows[5], results.OverBaseline, 3)
	near(t, rows[5], results.OverTwoStream, 1.25)
	near(t, rows[5], results.SpeedUp, 2)
	near(t, rows[0], results.OverTwoStream, 80./90)
	near(t, rows[6], results.OverTwoStream, 1)
	if _, ok := rows[6].Get(results.SpeedUp); ok || len(rows[7].Values) > 0 {
		t.Errorf("%+v", rows[6:])
	}
}

// Strong and weak scaling are against one device, and their modes lie on curves of their
// own.
func TestBenchScaling(t *testing.T) {
	r, out := benched(t, "scaling", "--devices", "1,2,4", "--points", "8", "--precisions", "float64", "--scheme", "two-stream,baseline")
	if len(r.Rows) != 2*2*3 || r.Kind != results.KindScaling || !strings.Contains(out, "path auto") {
		t.Fatalf("%d rows:\n%s", len(r.Rows), out)
	}
	for i, row := range r.Rows {
		devices, _ := row.Float("devices")
		base, cells, step := r.Rows[i/3*3].Median(results.Step), 512.0, row.Median(results.Step)
		speedup := base / step
		if row.Text("mode") == weakScaling {
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
		strong, _ := r.Find(alone.Label("mode", strongScaling))
		weak, ok := r.Find(alone.Label("mode", weakScaling))
		if a, b := strong.Median(results.Step), weak.Median(results.Step); !ok || a != b {
			t.Errorf("%s on one device was measured twice: %v and %v", scheme, a, b)
		}
	}
	chart, err := plot.New("", plot.Options{}, results.Source{Record: r})
	if err != nil || len(chart.(plot.Panels).Panels[0].Curves) != 4+1 {
		t.Errorf("%+v, %v", chart, err)
	}
}

// One mode alone begins with one device, too, and a record that ends anywhere goes on.
func TestBenchScalingResumes(t *testing.T) {
	args := []string{"scaling", "--devices", "1,2", "--points", "8", "--precisions", "float64", "--scheme", "two-stream", "--mode", "weak"}
	if r, _ := benched(t, args...); len(r.Rows) != 2 || r.Rows[0].Text("mode") != weakScaling || r.Rows[0].Text("devices") != "1" {
		t.Errorf("%+v", r.Rows)
	}
	args[len(args)-1] = bothScalings
	file := filepath.Join(t.TempDir(), "s.json")
	whole, _ := benched(t, args...)
	for rows := range len(whole.Rows) {
		if err := whole.Write(file); err != nil {
			t.Fatal(err)
		}
		cut(t, file, rows, func(*results.Record) {})
		r, _ := benched(t, append(args, "--resume", file)...)
		if len(r.Rows) != 4 || r.Interrupted {
			t.Errorf("after %d rows: %d", rows, len(r.Rows))
		}
		for _, row := range r.Rows {
			if _, ok := row.Get(results.Efficiency); !ok {
				t.Errorf("after %d rows no efficiency: %s", rows, nameOf(row))
			}
		}
	}
}

// On GPUs scheme auto is the fastest that was found, as in a run, and its path too.
func TestBenchScalingTakesTheFastest(t *testing.T) {
	t.Setenv("HALOX_CACHE", t.TempDir())
	m, err := openDevices(configs.Devices{Backend: "host", Count: 2}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	r := &stepRun{opened: m, cut: cutAuto, budget: time.Millisecond, notes: io.Discard, compiler: kernels.CompilerFromEnv(), links: map[int]*p2p.Links{}}
	c := stepCase{precision: "float64", size: []int{8, 8, 8}, devices: 2, scheme: scheme.Auto, order: scheme.LeftRight, path: p2p.Auto}
	if _, w, err := r.step(t.Context(), c); err != nil || w.scheme != scheme.TwoStream {
		t.Fatalf("on host devices %v, %v", w.scheme, err)
	}
	w, err := r.plan(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.take([]scheme.Trial{{Scheme: scheme.Resident, Path: p2p.Direct, Step: time.Microsecond}}); err != nil {
		t.Fatal(err)
	}
	if got := c.chosen(w); got != "scheme auto is resident, path auto is direct" {
		t.Error(got)
	}
}

// Without one device the fewest count as ideal.
func TestCompareScalingFromTwo(t *testing.T) {
	row := func(mode string, devices int, step float64) results.Row {
		return results.NewRow().Label("mode", mode).Label("devices", devices).Number(results.Step, step)
	}
	rows := compareScaling([]results.Row{
		row(strongScaling, 2, 100), row(strongScaling, 4, 62.5), row(weakScaling, 2, 100), row(weakScaling, 4, 125), results.NewRow(),
	})
	for i, want := range []float64{2, 3.2, 2, 3.2} {
		near(t, rows[i], results.SpeedUp, want)
	}
	near(t, rows[3], results.Efficiency, 0.8)
}

// Of weak scaling each device has a cube, whatever their number.
func TestPartsOfWeakScaling(t *testing.T) {
	solid, flat, slabs := scalingBench{}, scalingBench{}, scalingBench{}
	solid.dims, flat.dims, slabs.dims = 3, 2, 3
	solid.cut, flat.cut, slabs.cut = cutAuto, cutAuto, cutSlabs
	for n, want := range map[int]domain.Vec{1: {1, 1, 1}, 2: {1, 1, 2}, 4: {1, 2, 2}, 6: {1, 3, 2}, 8: {2, 2, 2}, 7: {1, 1, 7}} {
		if got := solid.parts(n); got != want {
			t.Errorf("%d cubes lie %v, want %v", n, got, want)
		}
	}
	if got, want := flat.parts(8), (domain.Vec{2, 4, 1}); got != want {
		t.Errorf("8 squares lie %v, want %v", got, want)
	}
	if got, want := slabs.parts(8), (domain.Vec{1, 1, 8}); got != want {
		t.Errorf("8 slabs lie %v, want %v", got, want)
	}
}

// The baseline sends through the host alone; a scheme without a path of its own takes all.
func TestTakes(t *testing.T) {
	for _, path := range []p2p.Path{p2p.Staged, p2p.Peer, p2p.Direct} {
		if !takes(scheme.Assisted, path) || takes(scheme.Baseline, path) != (path == p2p.Staged) {
			t.Errorf("path %s", path)
		}
	}
}
