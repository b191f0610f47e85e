package main

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	measures "github.com/halox/halox/internal/measure"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/results"
)

// A small bench on host devices leaves its table, its record and its plot.
func TestBenchExchange(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
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
		if one, ok := row.Get(results.OneThread); !ok || time.Median > one.Median || time.N < measures.MinBatches || time.Q1 > time.Q3 {
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
	for _, bad := range [][]string{{"--backend", "gpu"}, {"--plot", "times.gif"}, {"--record", t.TempDir()}, {"--radius", "9", "--points", "4"}} {
		if code, _, errs := cli(append([]string{"bench", "exchange", "--backend", "host", "--devices", "2"}, bad...)...); code == 0 || errs == "" {
			t.Errorf("%v: exit %d, %q", bad, code, errs)
		}
	}
}

// Flags that make no sense are refused before a record is touched.
func TestBenchExchangeRefuses(t *testing.T) {
	file := write(t, "e.json", "an older record")
	for says, args := range map[string][]string{
		`--paths: there is no "tunnel": take direct`:   {"--paths", "tunnel"},
		`--paths names none`:                           {"--paths="},
		`--points 0: give points along an axis`:        {"--points", "4,0"},
		`--points 9000000000000000000: give points`:    {"--points", "9000000000000000000"},
		`--radius: 0 is none`:                          {"--radius", "0"},
		`--fields: -1 is none`:                         {"--fields", "-1"},
		`--fields: 1000000000 is too many`:             {"--fields", "1000000000"},
		`--radius: 5000 is too many`:                   {"--radius", "5000"},
		`--devices -1: give a number of devices`:       {"--devices", "-1"},
		`2000 host devices: at most 1024 are possible`: {"--devices", "2000"},
	} {
		code, out, errs := cli(append([]string{"bench", "exchange", "--backend", "host", "--record", file}, args...)...)
		if code != exitFailed || !strings.Contains(errs, says) || out != "" {
			t.Errorf("%v: exit %d, %q, %q", args, code, errs, out)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "an older record" {
		t.Errorf("%q, %v", text, err)
	}
}

// What is named twice is measured once.
func TestBenchMeasuresOnce(t *testing.T) {
	for rows, args := range map[int][]string{
		1: {"exchange", "--devices", "2", "--points", "4,4", "--radius", "1,1", "--fields", "1,1", "--paths", "peer,peer"},
		2: {"sweep", "--stencils", "5-point,5-point", "--points-2d", "8,8", "--precision", "float64,float64", "--norms", "no,no,every-step", "--budget", "100us"},
	} {
		if _, r := measure(t, append(args, "--backend", "host")...); len(r.Rows) != rows {
			t.Errorf("%v: %d rows, want %d", args, len(r.Rows), rows)
		}
	}
}

// A record and its plot do not take each other's place.
func TestBenchFilesAreTwo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.json")
	other := filepath.Join(filepath.Dir(file), "b.svg")
	if err := os.Symlink("b.json", other); err != nil { // which is not there yet
		t.Skip("SKIPPED: no symbolic links here: ", err)
	}
	code, _, errs := cli("bench", "exchange", "--backend", "host", "--devices", "2", "--points", "4", "--record", file, "--plot", other)
	if code != exitFailed || !strings.Contains(errs, "is --record: name another file") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// A record has the name of one: that of a config was taken too, and written over.
func TestBenchRecordIsJSON(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	file := write(t, "la.yaml", small)
	for _, bench := range []string{"latency", "exchange", "links", "pack", "pingpong", "sweep", "schemes", "scaling", "ranks"} {
		code, out, errs := cli("bench", bench, "--backend", "host", "--record", file)
		if code != exitFailed || out != "" || errs != "--record "+file+": the name must end in .json\n" {
			t.Errorf("%s: exit %d: %s%s", bench, code, out, errs)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != small {
		t.Errorf("%q, %v", text, err)
	}
}

// A number of threads that no rank can have, and what no rank can compute, are refused before a record is touched.
func TestBenchRanksRefuses(t *testing.T) {
	file := write(t, "r.json", "an older record")
	for _, threads := range []string{"0", "33", "100000", "-32"} {
		code, out, errs := cli("bench", "ranks", "--backend", "host", "--record", file, "--threads", threads)
		if code != exitFailed || !strings.Contains(errs, "--threads "+threads+": want a multiple of 32 up to 1024") || out != "" {
			t.Errorf("%s: exit %d, %q, %q", threads, code, errs, out)
		}
	}
	for compute, says := range map[string]string{"sums": `--compute: there is no "sums": take newton, copy`, "newton,Copy": `--compute: there is no "Copy"`, "": "--compute names none"} {
		code, out, errs := cli("bench", "ranks", "--backend", "host", "--record", file, "--compute", compute)
		if code != exitFailed || !strings.Contains(errs, says) || out != "" {
			t.Errorf("%q: exit %d, %q, %q", compute, code, errs, out)
		}
	}
	if text := content(t, file); string(text) != "an older record" {
		t.Errorf("%q", text)
	}
}
