package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results/trace"
)

// runTraced runs a config with --trace and returns what was printed and the trace.
func runTraced(t *testing.T, config string, args ...string) (code int, out string, tr *trace.Trace) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out", "trace.json")
	code, out, errs := cli(append([]string{"run", write(t, "c.yaml", config), "--trace", file}, args...)...)
	tr, err := trace.Read(file)
	if err != nil {
		t.Fatalf("exit %d: %s%s: %v", code, out, errs, err)
	}
	return code, out + errs, tr
}

// sweepsOf counts the sweeps of a device, and the steps that they are of.
func sweepsOf(d trace.Device) (sweeps int, steps map[int64]bool) {
	steps = map[int64]bool{}
	for _, s := range d.Streams {
		for _, o := range s.Operations {
			if o.Category == "sweep" {
				sweeps++
				steps[o.Step] = true
			}
		}
	}
	return sweeps, steps
}

// Every scheme leaves a trace with all sweeps of its steps, and says how much of the
// communication was hidden: in the file, and printed.
func TestTraceOfEveryScheme(t *testing.T) {
	for _, tc := range []struct {
		scheme, path  string
		streams, each int // sweeps a step and device
	}{
		{"baseline", "staged", 1, 1}, {"two-stream", "staged", 2, 2}, {"two-stream", "peer", 2, 2}, {"two-stream", "direct", 2, 2},
		{"assisted", "staged", 4, 2}, {"assisted", "peer", 4, 2}, {"assisted", "direct", 2, 2},
	} {
		t.Run(tc.scheme+"/"+tc.path, func(t *testing.T) {
			code, out, trace := runTraced(t, small, "--trace-steps", "7", "--set", "exchange.scheme="+tc.scheme, "--set", "exchange.path="+tc.path)
			if code != 0 || !strings.Contains(out, "\nhidden     ") || !strings.Contains(out, "trace.json") {
				t.Errorf("exit %d:\n%s", code, out)
			}
			if a := trace.About; a.Scheme != tc.scheme || a.Path != tc.path || a.Lost != 0 || a.Failure != "" || a.Solver != "heat" {
				t.Errorf("about %+v", a)
			}
			for i, d := range trace.Devices {
				sweeps, steps := sweepsOf(d)
				if sweeps != 7*tc.each || len(steps) != 7 || steps[5] || !steps[6] || !steps[12] || len(d.Streams) != tc.streams {
					t.Errorf("device %d: %d sweeps of steps %v on %d streams", i, sweeps, steps, len(d.Streams))
				}
				if d.Name != fmt.Sprintf("host %d", i) || d.ClockError != 0 {
					t.Errorf("device %d: %s, within %v", i, d.Name, d.ClockError)
				}
			}
			hidden, communication := trace.Hidden()
			if communication <= 0 || hidden < 0 || hidden > communication || tc.scheme == "baseline" && hidden != 0 {
				t.Errorf("%v of %v hidden", hidden, communication)
			}
		})
	}
}

// The share in the file is that of what is printed.
func TestTraceHasTheShare(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	code, out, errs := cli("run", write(t, "c.yaml", small), "--trace", file)
	text, err := os.ReadFile(file)
	if code != 0 || err != nil {
		t.Fatalf("exit %d: %s, %v", code, errs, err)
	}
	picture := filepath.Join(t.TempDir(), "t.svg")
	if code, _, errs := cli("plot", file, "-o", picture); code != 0 {
		t.Errorf("plot: exit %d: %s", code, errs)
	}
	drawn(t, picture)
	var f struct {
		OtherData struct {
			Share float64 `json:"hidden_share"`
		}
	}
	test.Check(t, json.Unmarshal(text, &f))
	if want := fmt.Sprintf("hidden     %.1f %% of ", 100*f.OtherData.Share); !strings.Contains(out, want) {
		t.Errorf("no %q in:\n%s", want, out)
	}
}

// Short runs are traced as far as they go, and one device has nothing to hide.
func TestTraceOfAShortRun(t *testing.T) {
	_, _, trace := runTraced(t, small, "--set", "stop.iterations=3")
	if _, steps := sweepsOf(trace.Devices[0]); len(steps) != 3 || !steps[1] {
		t.Errorf("steps %v", steps)
	}
	_, out, trace := runTraced(t, small, "--set", "stop.iterations=30", "--trace-skip", "2", "--set", "devices.count=1")
	if _, steps := sweepsOf(trace.Devices[0]); len(steps) != 20 || !steps[3] || !strings.Contains(out, "no communication was traced") {
		t.Errorf("steps %v:\n%s", steps, out)
	}
	_, out, trace = runTraced(t, small, "--set", "stop.tolerance=1e9", "--set", "stop.check_every=1", "--trace-skip", "10")
	if trace.Traced() || !strings.Contains(out, "nothing was traced: the run ended before step 11") {
		t.Errorf("%v:\n%s", trace, out)
	}
}

// A run that fails leaves what was traced, and why there is no more.
func TestTraceOfAFailedRun(t *testing.T) {
	code, _, trace := runTraced(t, small, "--set", "heat.dt=0.1", "--set", "heat.force=true",
		"--set", "stop.iterations=5000", "--set", "stop.tolerance=1e-9")
	if code != int(command.Diverged) || !strings.Contains(trace.About.Failure, "non-finite values") {
		t.Errorf("exit %d: %+v", code, trace.About)
	}
	if sweeps, _ := sweepsOf(trace.Devices[1]); sweeps != 40 {
		t.Errorf("%d sweeps", sweeps)
	}
}

func TestTraceFlagsThatMakeNoSense(t *testing.T) {
	good := write(t, "good.yaml", small)
	both, picture := filepath.Join(filepath.Dir(good), "r.json"), filepath.Join(filepath.Dir(good), "p.png")
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"steps without a file", []string{"--trace-steps", "3"}, "--trace-steps: needs --trace"},
		{"no step", []string{"--trace", "t.json", "--trace-steps", "0"}, "--trace-steps: must be between 1 and 1000, got 0"},
		{"too many", []string{"--trace", "t.json", "--trace-steps", "1001"}, "1000, got 1001"},
		{"a negative number", []string{"--trace", "t.json", "--trace-skip", "-1"}, "--trace-skip: must be at least 0, got -1"},
		{"ranks", []string{"--trace", "t.json", "--set", "exchange.scheme=ranks", "--set", "exchange.path=auto"}, "--trace: must not be set with exchange.scheme ranks"},
		{"the config", []string{"--trace", good}, "is the config: name another file"},
		{"the record", []string{"--trace", both, "--record", filepath.Dir(good) + "/./r.json"}, "is output.record: name another file"},
		{"the picture", []string{"--trace", picture, "--set", "output.picture=" + picture}, "is output.picture: name another file"},
		{"a folder", []string{"--trace", filepath.Dir(good)}, "cannot be written: it is a folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if code, out, errs := cli(append([]string{"run", good}, c.args...)...); code != int(command.Usage) && code != int(command.Config) || !strings.Contains(errs, c.says) || out != "" {
				t.Errorf("exit %d: %s%s", code, out, errs)
			}
		})
	}
}
