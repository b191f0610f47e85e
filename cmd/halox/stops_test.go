package main

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/results"
)

// A run ends when its wall time is over, as one that is complete.
func TestWallTime(t *testing.T) {
	_, r := run(t, small+"\n", "--set", "stop.iterations=1000000000", "--set", "stop.wall_time=50ms", "--set", "exact=null",
		"--set", "initial=1")
	if r.Run.Stopped != results.StopWallTime || r.Interrupted || r.Run.Iterations == 0 || r.Failure != "" {
		t.Errorf("%s after %d steps, interrupted %v: %q", r.Run.Stopped, r.Run.Iterations, r.Interrupted, r.Failure)
	}
	testdevices.InTurn(t, 2, 4)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		record := filepath.Join(t.TempDir(), "r.json")
		launchHalox(t, in, 2, nil, "run", write(t, "c.yaml", small), "--record", record, "--set", "stop.iterations=1000000000",
			"--set", "stop.wall_time=200ms", "--set", "exact=null").Succeeds(t)
		if r := test.Must(results.Read(record))(t); r.Run.Stopped != results.StopWallTime {
			t.Errorf("two processes stopped by %s", r.Run.Stopped)
		}
	})
}

// The norms, and with them the tolerance, are those of the field that stop.field names.
func TestFieldOfATolerance(t *testing.T) {
	const text = `solver: equation
grid: {size: [8, 8]}
fields:
  still: {initial: 2, boundary: {x: periodic, y: periodic}}
  moving: {initial: "sin(2*pi*x)", boundary: {x: periodic, y: periodic}}
equations: {still: lap(still), moving: 0.1*lap(moving)}
stop: {iterations: 20, tolerance: 1e-9, check_every: 5}
devices: {backend: host, count: 2}
`
	for field, c := range map[string]struct {
		steps   int
		largest float64
	}{"still": {5, 2}, "moving": {20, 1}, "": {20, 2}} {
		var args []string
		if field != "" {
			args = []string{"--set", "stop.field=" + field}
		}
		_, r := run(t, text, args...)
		if largest := *r.Run.MaxNorm; r.Run.Iterations != c.steps || math.Abs(largest-c.largest) > 0.5 {
			t.Errorf("%q: %d steps, largest %v", field, r.Run.Iterations, largest)
		}
	}
}
