package main

import (
	"path/filepath"
	"testing"

	"github.com/halox/halox/results"
)

// Every piece of work of two devices is timed.
func TestBenchLatency(t *testing.T) {
	plot := filepath.Join(t.TempDir(), "l.svg")
	_, r := measure(t, "latency", "--backend", "host", "--devices", "0,1", "--budget", "100us", "--plot", plot)
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
}

func TestBenchLatencyOfOneDevice(t *testing.T) {
	if _, r := measure(t, "latency", "--backend", "host", "--devices", "0", "--budget", "100us"); len(r.Rows) != 4 {
		t.Errorf("%+v", r.Rows)
	}
}
