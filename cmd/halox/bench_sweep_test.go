package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/results"
)

// Sweeps of all stencils are timed, and what follows of their times is right.
func TestBenchSweep(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	plot := filepath.Join(t.TempDir(), "s.png")
	stencils := append([]string{"5-point", "7-point"}, // of each number of dimensions
		testdevices.Again(1, []string{"5-point-axes", "7-point-axes", "9-point", "9-point-star", "13-point", "19-point", "25-point", "27-point"})...)
	_, r := measure(t, "sweep", "--backend", "host", "--stencils", strings.Join(stencils, ","), "--points-2d", "8,32", "--points-3d", "1,8",
		"--budget", "100us", "--plot", plot, "--sums", "reproducible,fast")
	drawn(t, plot)
	if len(r.Rows) != len(stencils)*2*2*3 || r.Kind != results.KindSweep || count(r, results.NewRow().Label("norms", "norms every step")) != len(r.Rows)*2/3 ||
		count(r, results.NewRow().Label("norms", "norms every step").Label("sums", "reproducible")) != len(r.Rows)/3 {
		t.Errorf("%d rows of %s", len(r.Rows), r.Kind)
	}
	flops := map[string]float64{
		"5-point": 6, "7-point": 8, "5-point-axes": 7, "7-point-axes": 10, "9-point": 3 + 8, "9-point-star": 3 + 8,
		"13-point": 3 + 12, "19-point": 3 + 18, "27-point": 4 + 26, "25-point": 6 + 24,
	}
	for _, row := range r.Rows {
		n, _ := row.Float("points")
		points := math.Pow(n, float64(strings.Count(row.Text("grid"), "x")+1))
		size := map[string]float64{"float32": 4, "float64": 8}[row.Text("precision")]
		time := row.Median(results.Time)
		for metric, want := range map[results.Metric]float64{
			results.Updates: points / time * 1e6,
			results.GFLOPS:  points * flops[row.Text("stencil")] / time / 1e3,
			results.Rate:    2 * points * size / time / 1e3,
			results.Share:   row.Median(results.CopyTime) / time,
		} {
			if got := row.Median(metric); !(math.Abs(got/want-1) < 0.3) {
				t.Errorf("%s %v, want %v: %+v", metric, got, want, row.Labels)
			}
		}
	}
}
