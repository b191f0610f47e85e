package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench/datatypes"
	measures "github.com/halox/halox/internal/measure"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/results"
)

// contended returns what a record says that it measured.
func contended(r *results.Record) (names []string) {
	for _, name := range r.Settings.(map[string]any)["contenders"].([]any) {
		names = append(names, name.(string))
	}
	return names
}

// A small bench on a CPU device writes its table, its record and its plot.
func TestBenchPack(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	plot := filepath.Join(t.TempDir(), "p.png")
	out, r := measure(t, "pack", "--backend", "host", "--budget", "100us", "--suites", "jenkins,ddtbench", "--match", "vector-512|LAMMPS_atomic", "--most", "20000", "--unpack", "--plot", plot)
	drawn(t, plot)
	groups := r.Groups()
	if len(groups) != 2*(3*2+3) || r.Kind != results.KindPack || r.Devices[0].Backend != "host" || r.Rows[0].Text("memory") != datatypes.ToDevice || r.Interrupted || r.Failure != "" {
		t.Errorf("%d groups: %+v", len(groups), r)
	}
	for _, g := range groups {
		checkGroup(t, g)
		if first := g.Rows[0]; strings.Count(out, "\n"+first.Workload()+" ") != 2 {
			t.Errorf("%s has no line for each direction:\n%s", first.Workload(), out)
		}
	}
	for _, want := range []string{"packing into device memory", "unpacking from device memory", "best engine", "driver's copies"} {
		if !strings.Contains(out, want) {
			t.Errorf("the table has no %q:\n%s", want, out)
		}
	}
}

// checkGroup fails unless the rows of a workload hold together.
func checkGroup(t *testing.T, g results.Group) {
	t.Helper()
	contiguous := g.Rows[0].Median(results.CopyTime)
	for _, row := range g.Rows {
		us, bytes := row.Median(results.Time), labeled(row, "bytes")
		rate, share := bytes/us/1e3, contiguous/us
		if us <= 0 || !row.Checked || bytes <= 0 || bytes > 20000 || labeled(row, "pieces") < 1 || row.Median(results.CopyTime) != contiguous ||
			math.Abs(row.Median(results.Rate)-rate) > 1e-9*rate || math.Abs(row.Median(results.Share)-share) > 1e-9*share {
			t.Errorf("row %+v", row)
		}
	}
	auto, ok := g.Of("auto")
	if !ok || !slices.Contains(packing.Engines(), packing.Engine(auto.Text("took"))) || auto.Note == "" {
		t.Errorf("auto: %+v", auto)
	}
	if _, ok := g.Of("copies"); !ok {
		t.Errorf("%s was not copied by the driver", auto.Workload())
	}
}

// labeled returns the number of a label; NaN if there is none.
func labeled(row results.Row, label string) float64 {
	if v, ok := row.Float(label); ok {
		return v
	}
	return math.NaN()
}

// An engine that does not suit a layout has no row; the driver's copies are always
// measured.
func TestBenchPackUnsuited(t *testing.T) {
	testdevices.InTurn(t, 1, 2)
	testdevices.Once(t)
	out, r := measure(t, "pack", "--backend", "host", "--budget", "100us", "--engines", "targeted", "--match", "LAMMPS_atomic/d=1217", "--to", "pinned", "--blocks", "3", "--no-check")
	if len(r.Rows) != 1 || r.Rows[0].Text("engine") != "copies" || r.Rows[0].Checked || r.Rows[0].Text("memory") != datatypes.ToPinned || labeled(r.Rows[0], "thread_blocks") != 3 {
		t.Errorf("%+v", r)
	}
	if !slices.Equal(contended(r), []string{"copies", "targeted"}) || strings.Contains(out, "auto") || !strings.Contains(out, "pinned host memory") {
		t.Errorf("%v:\n%s", contended(r), out)
	}
}

func TestBenchLists(t *testing.T) {
	for args, want := range map[string]string{
		"pack --list --suites wu --match V/n=1024":      "wu/V/n=1024 8388608\n",
		"pingpong --list --figure wu-11 --match n=1024": "wu/V-contiguous/n=1024 8388608\n",
		"pack --figure list":                            "wu-6 ",
		"pingpong --figure list":                        "wu-9 ",
	} {
		if code, out, _ := cli(append([]string{"bench"}, strings.Fields(args)...)...); code != 0 || !strings.HasPrefix(out, want) || strings.HasSuffix(want, "\n") && out != want {
			t.Errorf("%s: exit %d: %q", args, code, out)
		}
	}
}

// A figure measures its own contenders on its own layouts, a ping-pong over its own path unless told another.
func TestBenchFigures(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	testdevices.Once(t)
	for _, tc := range []struct {
		args, to   string
		contenders []string
	}{
		{"pack --figure hand-9 --most 2000", datatypes.ToDevice, []string{"copies", "bypass, sequential scan", "bypass, parallel scan"}},
		{"pack --figure hand-7 --most 2000 --to copied", datatypes.ToCopied, []string{"copies", "bypass", "bypass, list copied each time", "bypass, list pinned"}},
		{"pack --figure wu-7 --match T/n=1024 --no-check", datatypes.ToDevice, []string{"targeted", "units, cut before", "units, cut meanwhile", "units"}},
		{"pack --figure wu-8 --match block=8$", datatypes.ToDevice, []string{"copies", "targeted"}},
		{"pack --figure wu-14 --match n=1024 --no-check", datatypes.ToDevice, []string{"units"}},
		{"pack --figure jenkins-4 --most 2000 --match (vector|irregular)", datatypes.ToPinned, []string{"copies", "tree", "targeted"}},
		{"pingpong --figure jenkins-6 --most 2000", "", []string{"staged, targeted"}},
		{"pingpong --figure jenkins-6 --most 2000 --paths peer", "", []string{"peer, targeted"}},
		{"pingpong --figure wu-15 --match n=1024 --no-check", "", []string{"peer", "direct"}},
		{"pingpong --figure hand-12 --most 3000", "", []string{"peer", "peer, transform, a launch per vector", "peer, copies"}},
		{"pingpong --figure wu-11 --match n=1024 --no-check", "", []string{"peer", "direct"}},
	} {
		plot := filepath.Join(t.TempDir(), "p.svg")
		_, r := measure(t, append(strings.Fields(tc.args), "--backend", "host", "--budget", "100us", "--plot", plot)...)
		drawn(t, plot)
		got := contended(r)
		if len(r.Rows) == 0 || r.Rows[0].Text("memory") != tc.to || !slices.Equal(got[:min(len(got), len(tc.contenders))], tc.contenders) ||
			tc.to != "" && (len(r.Rows) < len(r.Groups()) || len(r.Rows) > len(r.Groups())*len(got)) {
			t.Errorf("%s: %v, %d rows of %d groups", tc.args, got, len(r.Rows), len(r.Groups()))
		}
	}
}

// With --contend, packing and other work are timed alone, and each after the other has begun.
func TestBenchContend(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	out, r := measure(t, "pack", "--backend", "host", "--contend", "--engines", "tree", "--match", "jenkins/vector-512/blocks=128,block=8$")
	times := map[string]float64{}
	for _, row := range r.Rows {
		times[fmt.Sprintf("%s, %s first, %s, %s", row.Text("engine"), row.Text("first"), row.Text("other"), row.Text("timed"))] = row.Median(results.Time)
	}
	if len(times) != len(r.Rows) || len(times) != 2*(1+3*2*2)+3 || !strings.Contains(out, "copy to the host") {
		t.Errorf("%v\n%s", times, out)
	}
	for name, us := range times {
		if !(us > 0) {
			t.Errorf("%s: %v us", name, us)
		}
	}
}

// pings runs halox bench pingpong on CPU devices.
func pings(t *testing.T, args ...string) (out string, r *results.Record) {
	t.Helper()
	return measure(t, append([]string{"pingpong", "--backend", "host", "--budget", "100us"}, args...)...)
}

// A small bench between CPU devices writes its table, its record and its plot.
func TestBenchPingPong(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	plot := filepath.Join(t.TempDir(), "p.png")
	out, r := pings(t, "--suites", "jenkins,ddtbench", "--match", "vector-512|LAMMPS_atomic", "--most", "20000",
		"--paths", "direct,peer,staged", "--plot", plot)
	drawn(t, plot)
	groups := r.Groups()
	if len(groups) != 3*2+3 || len(r.Rows) != 3*len(groups) || r.Kind != results.KindPingPong || len(r.Devices) != 2 || !goes(r, "0", "1", "memory") || r.Rows[0].Text("busy") != "" {
		t.Errorf("%d groups: %+v", len(groups), r)
	}
	for _, row := range r.Rows {
		us, _ := row.Get(results.Time)
		_, busy := row.Get(results.BusyLost)
		share := row.Median(results.CopyTime) / us.Median
		if us.Median <= 0 || us.N < measures.MinBatches || !row.Checked || row.Text("engine") != "auto" || busy || math.Abs(row.Median(results.Share)-share) > 1e-9*share {
			t.Errorf("row %+v", row)
		}
		if strings.Count(out, "\n"+row.Workload()+" ") != 1 {
			t.Errorf("%s has no line:\n%s", row.Workload(), out)
		}
	}
	if !slices.Equal(contended(r), []string{"direct", "peer", "staged"}) {
		t.Errorf("%v", contended(r))
	}
}

// goes reports whether messages go from a device to another over a link.
func goes(r *results.Record, from, to, link string) bool {
	row := r.Rows[0]
	return row.Text("from") == from && row.Text("to") == to && row.Text("link") == link
}

// Small layouts of many suites arrive as they should, there and back, in fragments that
// do not suit them. Those of layouts in one piece need none.
func TestBenchPingPongInFragments(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	testdevices.Once(t)
	_, r := pings(t, "--most", "3000", "--suites", "ddtbench,jenkins,hand,shoc", "--fragment", "200", "--ring", "2", "--remote",
		"--paths", "direct,peer", "--budget", "1ns")
	if len(r.Rows) < 2*40 || labeled(r.Rows[0], "fragment") != 200 || labeled(r.Rows[0], "ring") != 2 || !slices.Equal(contended(r), []string{"direct", "peer, remote"}) {
		t.Errorf("%d rows: %+v", len(r.Rows), r)
	}
	suites := map[string]bool{}
	for _, row := range r.Rows {
		suites[row.Text("suite")] = true
		if !row.Checked {
			t.Errorf("row %+v", row)
		}
	}
	if len(suites) != 4 {
		t.Errorf("only %v", suites)
	}
}

// A device sends to itself while another kernel runs.
func TestBenchPingPongOnOneBusyDevice(t *testing.T) {
	testdevices.InTurn(t, 0, 2)
	out, r := pings(t, "--device-ids", "1,1", "--match", "jenkins/vector-512/blocks=128,block=8$", "--engines", "units,copies,units", "--busy", "0.5", "--blocks", "3",
		"--no-check", "--paths", "direct", "--budget", "5ms")
	if len(r.Devices) != 1 || !goes(r, "1", "1", "") || labeled(r.Rows[0], "thread_blocks") != 3 || !slices.Equal(contended(r), []string{"direct, units", "direct, copies"}) || len(r.Rows) != 2 {
		t.Errorf("%+v", r)
	}
	busy, _ := r.Settings.(map[string]any)["busy"].(map[string]any)
	if fmt.Sprintf("%v %v", busy["fraction"], busy["blocks"]) != "0.5 1" || busy["launch_us"] == nil || labeled(r.Rows[0], "busy") != 0.5 {
		t.Errorf("busy: %+v", busy)
	}
	for _, row := range r.Rows {
		if lost := row.Median(results.BusyLost); row.Checked || !(lost <= 1) || lost == 0 {
			t.Errorf("row %+v", row)
		}
	}
	for _, want := range []string{"ping-pong on host", " 1 alone, at most 3 thread blocks, devices 50% busy, times of one way", "busy lost"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q:\n%s", want, out)
		}
	}
}

// Fragments that a message does not go in are no label of its row, and are said not to apply.
func TestBenchPingPongWithoutFragments(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	testdevices.Once(t)
	file := filepath.Join(t.TempDir(), "p.json")
	code, out, errs := cli("bench", "pingpong", "--backend", "host", "--budget", "100us", "--paths", "direct",
		"--match", "wu/V-contiguous/n=1024$", "--fragment", "65536", "--ring", "2", "--record", file)
	if code != 0 || strings.Contains(out, "fragments of") || errs != "--fragment and --ring do not apply to 1 of 1 rows: their messages are sent by one job\n" {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if r, err := results.Read(file); err != nil || len(r.Rows) != 1 || r.Rows[0].Text("fragment") != "" || r.Rows[0].Note == "" {
		t.Errorf("%+v, %v", r, err)
	}
}
