package main

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/halox/halox/results"
)

// A small bench on host devices leaves its table, its record and its plot.
func TestBenchExchange(t *testing.T) {
	dir := t.TempDir()
	record, plot := filepath.Join(dir, "e.json"), filepath.Join(dir, "e.png")
	code, out, errs := cli("bench", "exchange", "--backend", "host", "--devices", "2", "--points", "4,8", "--radius", "1,2",
		"--fields", "2", "--record", record, "--plot", plot)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	r, err := results.Read(record)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2*2*3 || strings.Count(out, "direct") != 2*2 || r.Kind != results.KindExchange || len(r.Devices) != 2 || r.Command[1] != "exchange" {
		t.Errorf("%d rows of %+v:\n%s", len(r.Rows), r, out)
	}
	if points := r.Settings.(map[string]any)["points"]; !reflect.DeepEqual(points, []any{"4", "8"}) {
		t.Errorf("points %v", points)
	}
	for _, row := range r.Rows {
		points, _ := row.Float("points")
		radius, _ := row.Float("radius")
		message, _ := row.Float("message_bytes")
		device, _ := row.Float("device_bytes")
		if want := points * points * radius * 2 * 8; message != want || device != 2*want {
			t.Errorf("row %+v", row)
		}
		time, _ := row.Get(results.Time)
		if one, ok := row.Get(results.OneThread); !ok || time.Median > one.Median || time.N < batches || time.Q1 > time.Q3 {
			t.Errorf("row %+v", row)
		}
		share := row.Median(results.Rate) / row.Median(results.CopyRate)
		if math.Abs(row.Median(results.Share)-share) > 1e-9*share || row.Median(results.CopyTime) <= 0 {
			t.Errorf("row %+v", row)
		}
	}
	if info, err := os.Stat(plot); err != nil || info.Size() < 1000 {
		t.Errorf("plot: %v, %v", info, err)
	}
	for _, bad := range [][]string{{"--backend", "gpu"}, {"--plot", "times.gif"}, {"--record", t.TempDir()}, {"--paths", "tunnel"}, {"--points", "0"}, {"--radius", "9", "--points", "4"}} {
		if code, _, errs := cli(append([]string{"bench", "exchange", "--backend", "host", "--devices", "2"}, bad...)...); code == 0 || errs == "" {
			t.Errorf("%v: exit %d, %q", bad, code, errs)
		}
	}
}
