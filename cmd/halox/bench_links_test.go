package main

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results"
)

// All pairs, paths and modes of three devices are measured, beside what bounds them.
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
		t.Errorf("staged is beside %v, want %v", got, want)
	}
	row, _ = r.Find(results.NewRow().Label("path", "peer").Label("from", 1).Label("to", 2).Label("bytes", 1001))
	if got, want := row.Median(results.CopyTime), ceiling("device", 1, 1); got != want {
		t.Errorf("peer is beside %v, want %v", got, want)
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
	for what, want := range map[string]int{"issue a kernel": 2, "kernel and wait": 2, "kernel to kernel": 2, "event and wait": 2, "event to device": 1, "flag": 1, "message": 3} {
		if whats[what] != want {
			t.Errorf("%s: %d rows, want %d", what, whats[what], want)
		}
	}
	if len(r.Rows) != 13 || r.Kind != results.KindLatency {
		t.Errorf("%d rows of %s", len(r.Rows), r.Kind)
	}
	if _, r := measure(t, "latency", "--backend", "host", "--device-ids", "0", "--budget", "100us"); len(r.Rows) != 4 {
		t.Errorf("of one device: %+v", r.Rows)
	}
}
