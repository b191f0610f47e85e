package main

import (
	"encoding/json"
	"os"
	"path/filepath"
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
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	var r results.Exchanges
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2*2*3 || strings.Count(out, "^3") != len(r.Rows) {
		t.Errorf("%d rows:\n%s", len(r.Rows), out)
	}
	for _, row := range r.Rows {
		want := int64(row.Points*row.Points*row.Radius) * 2 * 8
		if row.OneThread <= 0 || row.MessageBytes != want || row.DeviceBytes != 2*want || row.CopyUS <= 0 {
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
