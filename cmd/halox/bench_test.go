package main

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/command"
	measures "github.com/halox/halox/internal/measure"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
)

// A small bench on CPU devices writes its table, its record and its plot.
func TestBenchExchange(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	plot := filepath.Join(t.TempDir(), "e.png")
	out, r := measure(t, "exchange", "--backend", "host", "--devices", "2", "--points", "4,8", "--radii", "1,2", "--fields", "2", "--plot", plot)
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
	drawn(t, plot)
}

// What is named twice is measured once.
func TestBenchMeasuresOnce(t *testing.T) {
	for rows, args := range map[int][]string{
		1: {"exchange", "--devices", "2", "--points", "4,4", "--radii", "1,1", "--fields", "1,1", "--paths", "peer,peer"},
		2: {"sweep", "--stencils", "5-point,5-point", "--points-2d", "8,8", "--precisions", "float64,float64", "--norms", "0,0,1", "--budget", "100us"},
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
	if code != int(command.Usage) || !strings.Contains(errs, "is --record: name another file") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// Options that cannot be are refused before a record is touched. What all flags refuse is tested in package option.
func TestBenchRefuses(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	testdevices.Once(t)
	records := filepath.Join(t.TempDir(), "folder.json")
	test.Check(t, os.Mkdir(records, 0o755))
	record := write(t, "r.json", "an older record")
	for _, tc := range []struct{ args, want string }{
		{"exchange --paths tunnel", `--paths: must be one of peer, direct, staged, got "tunnel"`},
		{"exchange --points 4,0", "--points: must be between 1 and 1048576, got 0"},
		{"exchange --devices -1", "--devices: must be at least 0, got -1"},
		{"exchange --devices 2000", "must be at most 1024 CPU devices, got 2000"},
		{"exchange --record p.yaml", "--record p.yaml: the name must end in .json\n"},
		{"exchange --record " + records, "cannot be written: it is a folder"},
		{"exchange --plot p.gif", "must end in .png, .svg, .pdf"},
		{"links --device-ids 0,0", "--device-ids: must be distinct and at least 0, got 0,0"},
		{"links --resume nowhere.json", "--resume: results: read record"},
		{"latency --exchange-network nccl", "unknown flag: --exchange-network"},
		{"ranks --threads 33", "--threads: must be a multiple of 32 up to 1024, got 33"},
		{"ranks --vectors 12", "--vectors: must be a multiple of 8 bytes, got 12"},
		{"sweep --stencils 5-point --points-3d 8", "--points-3d: must not be set without a stencil of 3 dimensions"},
		{"schemes --device-counts 0,1", "--device-counts: must be between 1 and 1024, got 0"},
		{"schemes --exchange-steps 1,17", "--exchange-steps: must be between 1 and"},
		{"schemes more", "unknown command"},
		{"scaling --modes none", `--modes: must be one of strong, weak, got "none"`},
		{"scaling --schemes baseline --paths auto,peer", "--paths: must not be peer for scheme baseline"},
		{"scaling --schemes fused,ranks --exchange-steps 2", "--exchange-steps: must be 1 for scheme ranks, got 2"},
		{"scaling --schemes fused --order pairwise", "--order: must be an order of one of the schemes fused, got"},
		{"checkpoint --every 0", "--every: must be at least 1, got 0"},
		{"checkpoint --folder nowhere", "--folder nowhere: stat nowhere: no such file or directory"},
		{"checkpoint --folder bench_test.go", "--folder bench_test.go: must be a folder"},
		{"pack --engines tree,warp", `--engines: must be one of all, auto, copies`},
		{"pack --figure wu-99", `--figure: must be one of wu-6`},
		{"pack --figure wu-6 --suites wu", "--suites: must not be set with --figure wu-6"},
		{"pack --match (vector", "--match: error parsing regexp"},
		{"pack --suites hacc --match vector", "no layout of hacc fits"},
		{"pack --suites hacc --least 512GiB", "no layout of hacc fits"},
		{"pack --least 9 --most 8", "--least: must be at most --most 8, got 9"},
		{"pack --suites hacc --x edge", "--x: must be a parameter of the layouts"},
		{"pingpong --device-ids 1", `--device-ids: must have 2 IDs, got "1"`},
		{"pingpong --device-ids -1,0", "--device-ids: must be distinct and at least 0, got -1,0"},
		{"pingpong --busy nan", "got NaN"},
		{"pingpong --remote --paths direct", "--remote: needs path peer"},
		{"pingpong --figure wu-6", `--figure: must be one of wu-9, wu-10`},
		{"pingpong --figure jenkins-6 --engines tree", "--engines: must not be set with --figure jenkins-6"},
	} {
		args := strings.Fields(tc.args)
		args = append([]string{"bench", args[0], "--backend", "host", "--record", record}, args[1:]...)
		if code, out, errs := cli(args...); code != int(command.Usage) || out != "" || !strings.Contains(errs, tc.want) {
			t.Errorf("%s: exit %d, %q, %q, want %q", tc.args, code, out, errs, tc.want)
		}
	}
	if text := content(t, record); string(text) != "an older record" {
		t.Errorf("%q", text)
	}
}

// drawn fails unless a plot was written.
func drawn(t *testing.T, plot string) {
	t.Helper()
	if info, err := os.Stat(plot); err != nil || info.Size() < 1000 {
		t.Errorf("plot: %v, %v", info, err)
	}
}

// measure runs a bench that must succeed, and returns what it printed and its record.
func measure(t *testing.T, args ...string) (out string, r *results.Record) {
	t.Helper()
	t.Setenv("HALOX_CACHE", t.TempDir())
	file := filepath.Join(t.TempDir(), "r.json")
	code, out, errs := cli(append(append([]string{"bench"}, args...), "--record", file)...)
	if code != 0 || errs != "" && !strings.HasPrefix(errs, "--fragment and --ring do not apply to ") && !strings.Contains(errs, "left out") && !strings.HasPrefix(errs, "not measured: ") {
		t.Fatalf("%v: exit %d: %s", args, code, errs)
	}
	r, err := results.Read(file)
	test.Check(t, err)
	return out, r
}

// count says how many rows have these labels.
func count(r *results.Record, labels results.Row) (n int) {
	for _, row := range r.Rows {
		if row.Has(labels) {
			n++
		}
	}
	return n
}

// What does not fit or suit is left out and said, in the record too; if nothing can be measured, that is an error, which leaves the record.
func TestBenchLeavesOut(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	testdevices.Once(t)
	for _, tc := range []struct {
		args, says string
		rows       string // of the record: + with numbers, - with the reason
	}{
		{"schemes --device-counts 1,3 --points 2 --precisions float64 --schemes assisted --paths peer", "[2 2 2] points in 3 parts", "+--"},
		{"schemes --device-counts 1 --points 100000,6 --precisions float64 --schemes baseline", "a grid of 1e+15 points", "-+"},
		{"schemes --device-counts 1 --points 30000 --precisions float64", "out of memory", strings.Repeat("-", len(scheme.All()))},
		{"schemes --device-counts 2 --points 8 --schemes ranks --paths direct --exchange-steps 4", "scheme ranks with --exchange-steps 4: it exchanges after each step", ""},
		{"sweep --stencils 7-point --points-3d 4,50000 --precisions float64 --norms 0",
			"not measured: stencil 7-point, precision float64, points 50000, grid 50000x50000x50000: its arrays take 1", "+-"},
		{"sweep --stencils 7-point --points-3d 50000 --precisions float64 --norms 0", "its arrays take 1", "-"},
		{"pingpong --engines tree --paths staged --match wu/V/n=1024$ --no-check --fragment 65536", "by staged, tree: ", "-"},
	} {
		file := filepath.Join(t.TempDir(), "r.json")
		code, _, errs := cli(append([]string{"bench"}, append(strings.Fields(tc.args), "--backend", "host", "--budget", "100us", "--record", file)...)...)
		nothing := !strings.Contains(tc.rows, "+")
		if !strings.Contains(errs, tc.says) || nothing != (code == int(command.Failed)) || nothing != strings.Contains(errs, "nothing could be measured") {
			t.Errorf("%s: exit %d: %s", tc.args, code, errs)
		}
		if tc.rows == "" {
			continue // it is said before there is a record
		}
		r := test.Must(results.Read(file))(t)
		rows := ""
		for _, row := range r.Rows {
			rows += map[bool]string{true: "+", false: "-"}[len(row.Values) > 0]
			if len(row.Values) == 0 && row.Note == "" {
				t.Errorf("%s: no reason: %+v", tc.args, row)
			}
		}
		if rows != tc.rows || r.Interrupted {
			t.Errorf("%s: rows %s, want %s", tc.args, rows, tc.rows)
		}
	}
}

// All pairs, paths and modes of three devices are measured, with their limits.
func TestBenchLinks(t *testing.T) {
	dir := t.TempDir()
	plot, matrix := filepath.Join(dir, "l.png"), filepath.Join(dir, "m.png")
	out, r := measure(t, "links", "--backend", "host", "--device-ids", "0,1,2", "--sizes", "4KiB,1001,4K", "--budget", "100us", "--plot", plot)
	drawn(t, plot)
	sizes := 2.0
	for path, want := range map[string]int{"device": 3, "pinned": 3 * 3, "peer": 6 + 3 + 2, "direct": 6 + 3 + 2, "staged": 6 + 3 + 2} {
		if n := count(r, results.NewRow().Label("path", path)); n != want*int(sizes) {
			t.Errorf("%s: %d rows, want %d", path, n, want*int(sizes))
		}
	}
	if r.Kind != results.KindLinks || len(r.Devices) != 3 || !strings.Contains(out, "all results checked") {
		t.Errorf("%+v\n%s", r, out)
	}
	for _, row := range r.Rows {
		bytes, _ := row.Float("bytes")
		times := map[string]float64{"both-ways": 2, "ring-both-ways": 2}[row.Text("mode")]
		rate, plain := row.Median(results.Rate), row.Median(results.CopyRate)
		if want := max(1, times) * bytes / row.Median(results.Time) / 1e3; math.Abs(rate-want) > 0.3*want || !row.Checked {
			t.Errorf("rate %v, want %v of %+v", rate, want, row)
		}
		bound := !slices.Contains([]string{"device", "pinned"}, row.Text("path"))
		if bound != (plain > 0) || bound && math.Abs(row.Median(results.Share)/(rate/plain)-1) > 0.3 {
			t.Errorf("share %v of %v and %v: %+v", row.Median(results.Share), rate, plain, row)
		}
	}
	ceiling := func(path string, from, to any) float64 {
		row, _ := r.Find(results.NewRow().Label("path", path).Label("from", from).Label("to", to).Label("bytes", 1001))
		return row.Median(results.Time)
	}
	row, _ := r.Find(results.NewRow().Label("path", "staged").Label("from", 1).Label("to", 2).Label("bytes", 1001))
	if got, want := row.Median(results.CopyTime), max(ceiling("pinned", 1, "host"), ceiling("pinned", "host", 2)); got != want {
		t.Errorf("staged is compared with %v, want %v", got, want)
	}
	row, _ = r.Find(results.NewRow().Label("path", "peer").Label("from", 1).Label("to", 2).Label("bytes", 1001))
	if got, want := row.Median(results.CopyTime), ceiling("device", 1, 1); got != want {
		t.Errorf("peer is compared with %v, want %v", got, want)
	}
	file := filepath.Join(dir, "l.json")
	test.Check(t, r.Write(file))
	if code, _, errs := cli("plot", file, "--kind", "matrix", "-o", matrix); code != 0 {
		t.Error(errs)
	}
	drawn(t, matrix)
}

// One device has no links, but memory.
func TestBenchLinksOfOneDevice(t *testing.T) {
	_, r := measure(t, "links", "--backend", "host", "--device-ids", "0", "--sizes", "1", "--budget", "100us")
	if len(r.Rows) != 4 || count(r, results.NewRow().Label("path", "device")) != 1 {
		t.Errorf("%+v", r.Rows)
	}
	code, _, errs := cli("bench", "links", "--backend", "host", "--device-ids", "0", "--sizes", "65536GiB")
	if code != int(command.Failed) || !strings.Contains(errs, "allocate device memory: 70368744177664 bytes: out of memory") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

// Every piece of work of two devices is timed.
func TestBenchLatency(t *testing.T) {
	plot := filepath.Join(t.TempDir(), "l.svg")
	_, r := measure(t, "latency", "--backend", "host", "--device-ids", "0,1", "--budget", "100us", "--plot", plot)
	drawn(t, plot)
	whats := map[string]int{}
	for _, row := range r.Rows {
		whats[row.Text("what")]++
		if !(row.Median(results.Latency) > 0) {
			t.Errorf("%+v", row)
		}
	}
	for what, want := range map[string]int{"issue a kernel": 2, "kernel and wait": 2, "kernel to kernel": 2, "event and wait": 2, "event to device": 1, "flag": 1, "flag between host and device": 2, "message": 3} {
		if whats[what] != want {
			t.Errorf("%s: %d rows, want %d", what, whats[what], want)
		}
	}
	if len(r.Rows) != 15 || r.Kind != results.KindLatency {
		t.Errorf("%d rows of %s", len(r.Rows), r.Kind)
	}
	if _, r := measure(t, "latency", "--backend", "host", "--device-ids", "0", "--budget", "100us"); len(r.Rows) != 5 {
		t.Errorf("of one device: %+v", r.Rows)
	}
}

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
