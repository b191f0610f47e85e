package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/streams"
)

// pings runs halox bench pingpong on host devices, and returns what it printed and its
// record.
func pings(t *testing.T, args ...string) (out string, r *results.Record) {
	t.Helper()
	t.Setenv("HALOX_CACHE", t.TempDir())
	record := filepath.Join(t.TempDir(), "p.json")
	args = append([]string{"bench", "pingpong", "--backend", "host", "--budget", "100us", "--record", record}, args...)
	code, out, errs := cli(args...)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	r, err := results.Read(record)
	if err != nil {
		t.Fatal(err)
	}
	return out, r
}

// A small bench between host devices leaves its table, its record and its plot.
func TestBenchPingPong(t *testing.T) {
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
		if us.Median <= 0 || us.N < batches || !row.Checked || row.Text("engine") != "auto" || busy || math.Abs(row.Median(results.Share)-share) > 1e-9*share {
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
	_, r := pings(t, "--most", "3000", "--suites", "ddtbench,jenkins,hand,shoc", "--fragment", "200", "--ring", "2", "--remote",
		"--paths", "direct,peer", "--budget", "1ns")
	if len(r.Rows) < 2*40 || labelled(r.Rows[0], "fragment") != 200 || labelled(r.Rows[0], "ring") != 2 || !slices.Equal(contended(r), []string{"direct", "peer, remote"}) {
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

// A device sends to itself, beside something else.
func TestBenchPingPongOnOneBusyDevice(t *testing.T) {
	out, r := pings(t, "--devices", "1,1", "--match", "jenkins/vector-512/blocks=128,block=8$", "--engine", "units,copies,units", "--busy", "0.5", "--blocks", "3",
		"--no-check", "--paths", "direct", "--budget", "5ms")
	if len(r.Devices) != 1 || !goes(r, "1", "1", "") || labelled(r.Rows[0], "thread_blocks") != 3 || !slices.Equal(contended(r), []string{"direct, units", "direct, copies"}) || len(r.Rows) != 2 {
		t.Errorf("%+v", r)
	}
	busy, _ := r.Settings.(map[string]any)["busy"].(map[string]any)
	if fmt.Sprintf("%v %v", busy["fraction"], busy["blocks"]) != "0.5 1" || busy["launch_us"] == nil || labelled(r.Rows[0], "busy") != 0.5 {
		t.Errorf("busy: %+v", busy)
	}
	for _, row := range r.Rows {
		if lost := row.Median(results.BusyLost); row.Checked || !(lost <= 1) || lost == 0 {
			t.Errorf("row %+v", row)
		}
	}
	for _, want := range []string{"ping-pong on host", " 1 alone, 3 thread blocks at most, devices 50% busy, times of one way", "busy lost"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q:\n%s", want, out)
		}
	}
}

func TestBenchPingPongRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		args       []string
	}{
		{"no path", `--paths: there is no "auto": take direct, peer, staged`, []string{"--paths", "auto"}},
		{"no engine", `--engine: there is no "warp": take all, auto, copies`, []string{"--engine", "warp"}},
		{"one device", "--devices 1: name two devices", []string{"--devices", "1"}},
		{"a device before the first", "--devices -1,0: name two devices, counted from 0", []string{"--devices", "-1,0"}},
		{"no such fragment", "--fragment -1: ", []string{"--fragment", "-1"}},
		{"no such ring", "--ring -1: ", []string{"--ring", "-1"}},
		{"more than busy", "--busy 1.5: give a fraction from 0 to 1", []string{"--busy", "1.5"}},
		{"no fraction", "--busy NaN: ", []string{"--busy", "nan"}},
		{"nothing remote", "--remote is for path peer", []string{"--remote", "--paths", "direct"}},
		{"nothing remote in a figure", "--remote is for path peer", []string{"--remote", "--figure", "jenkins-6"}},
		{"no suite", `--suites: there is no "nas"`, []string{"--suites", "nas"}},
		{"no figure", `--figure: there is no "wu-6": take wu-9, wu-10`, []string{"--figure", "wu-6"}},
		{"a figure's suites", "--figure wu-9 has its own --suites", []string{"--figure", "wu-9", "--suites", "wu"}},
		{"a figure's engines", "--figure jenkins-6 has its own --engine", []string{"--figure", "jenkins-6", "--engine", "tree"}},
		{"no such parameter", "--over edge: the layouts have no such parameter", []string{"--suites", "hacc", "--over", "edge"}},
		{"no such plot", "must end in .png, .svg or .pdf", []string{"--plot", "p.gif"}},
		{"nothing matches", "no layout of hacc fits", []string{"--suites", "hacc", "--match", "vector"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := append([]string{"bench", "pingpong", "--backend", "host", "--budget", "1us"}, tc.args...)
			if code, out, errs := cli(args...); code != exitFailed || out != "" || !strings.Contains(errs, tc.want) {
				t.Errorf("exit %d, %q, %q, want %q", code, out, errs, tc.want)
			}
		})
	}
}

func TestBenchPingPongLists(t *testing.T) {
	code, out, _ := cli("bench", "pingpong", "--list", "--figure", "wu-11", "--match", "n=1024")
	if code != 0 || out != "wu/V-contiguous/n=1024 8388608\n" {
		t.Errorf("exit %d: %q", code, out)
	}
	code, out, _ = cli("bench", "pingpong", "--figure", "list")
	if names := strings.Count(out, "\n"); code != 0 || names != len(pingFigures()) || !strings.HasPrefix(out, "wu-9 ") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// Every curve of every figure has layouts, one for each place on the axis.
func TestPingFiguresHaveLayouts(t *testing.T) {
	all, err := workloads.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range pingFigures() {
		for _, set := range f.layouts {
			seen := map[float64]bool{}
			for _, w := range all {
				if !set.has(w.String()) {
					continue
				}
				x, ok := layoutOf(w).Float(f.x)
				if !ok || seen[x] || w.Suite != f.suite {
					t.Errorf("figure %s, layouts %q: %v at %v, %t", f.name, set.name, w, x, ok)
				}
				seen[x] = true
			}
			if len(seen) < 3 {
				t.Errorf("figure %s, layouts %q have %d points", f.name, set.name, len(seen))
			}
		}
	}
}

// A figure measures its own engines over its own path, unless told another.
func TestBenchPingPongFigure(t *testing.T) {
	for _, tc := range []struct {
		figure, first string // contender
		args          []string
	}{
		{"jenkins-6", "staged, targeted", []string{"--most", "2000"}},
		{"jenkins-6", "peer, targeted", []string{"--most", "2000", "--paths", "peer"}},
		{"wu-11", "direct", []string{"--match", "n=1024", "--no-check"}},
	} {
		plot := filepath.Join(t.TempDir(), "p.svg")
		_, r := pings(t, append([]string{"--figure", tc.figure, "--plot", plot}, tc.args...)...)
		drawn(t, plot)
		if len(r.Rows) == 0 || contended(r)[0] != tc.first {
			t.Errorf("figure %s %v: %v, %d rows", tc.figure, tc.args, contended(r), len(r.Rows))
		}
	}
}

// Figure 9 of Wu et al. shows shares, figure 10 times, with a curve for each matrix and
// path, and the general one rates. The driver's copies are dashed.
func TestPingFigureValues(t *testing.T) {
	row := func(name, params, path, engine string, us float64) results.Row {
		return results.LayoutRow("wu", name, params, 8e6).Label("from", 0).Label("to", 1).Label("ring", 2).
			Label("path", path).Label("engine", engine).Transfer(8e6, measure.Exact(us), measure.Exact(40))
	}
	p := &results.Record{Devices: []results.Device{{Name: "a GPU"}, {Name: "a GPU", ID: 1}}, Rows: []results.Row{
		row("V", "n=2000", "direct", "auto", 100), row("V", "n=2000", "direct", "copies", 160),
		row("T", "n=2000", "direct", "auto", 50), row("V", "n=1000", "direct", "auto", 80),
	}}
	general := (&pingBench{layoutBench: layoutBench{over: "n"}}).generalFigure()
	figures := append(pingFigures(), general)
	for name, want := range map[string][]plot.Curve{
		"wu-9": {
			{Name: "V, direct", X: []float64{1000, 2000}, Y: []float64{50, 40}},
			{Name: "V, direct, copies", X: []float64{2000}, Y: []float64{25}, Dashed: true, Twin: true},
			{Name: "T, direct", X: []float64{2000}, Y: []float64{80}},
		},
		"wu-10": {
			{Name: "V, direct", X: []float64{1000, 2000}, Y: []float64{80, 100}},
			{Name: "V, direct, copies", X: []float64{2000}, Y: []float64{160}, Dashed: true, Twin: true},
			{Name: "T, direct", X: []float64{2000}, Y: []float64{50}},
			{Name: "contiguous message of V's bytes", X: []float64{1000, 2000}, Y: []float64{40, 40}, Dashed: true},
		},
		"": {
			{Name: "direct", X: []float64{1000, 2000}, Y: []float64{100, 160}},
			{Name: "direct, copies", X: []float64{2000}, Y: []float64{50}, Dashed: true, Twin: true},
			{Name: "contiguous message", X: []float64{1000, 2000}, Y: []float64{200, 200}, Dashed: true},
		},
	} {
		f, err := findFigure(figures, name)
		if err != nil {
			t.Fatal(err)
		}
		c := f.draw(p)
		if !slices.EqualFunc(c.Curves, want, sameCurve) || !strings.HasSuffix(c.Title, "\na GPU 0 and a GPU 1, a ring of 2") {
			t.Errorf("figure %q: %+v, want %+v", name, c, want)
		}
	}
}

func sameCurve(a, b plot.Curve) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9*b }
	return a.Name == b.Name && a.Dashed == b.Dashed && a.Twin == b.Twin && slices.EqualFunc(a.X, b.X, near) && slices.EqualFunc(a.Y, b.Y, near)
}

// newPingCase returns a workload between two host devices.
func newPingCase(t *testing.T, w workloads.Workload) *pingCase {
	t.Helper()
	set := testdevices.Host(t, 2)
	c := &pingCase{pingRun: &pingRun{
		from: set.Devices[0], to: set.Devices[1], compiler: kernels.CompilerFromEnv(), check: true,
		budget: 10 * time.Microsecond, packing: packing.Options{Cache: t.TempDir()},
	}}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := c.prepare(w); err != nil {
		t.Fatal(err)
	}
	return c
}

// What does not arrive, or arrives beside its place, is found out in both directions.
func TestPingPongFindsWrongBytes(t *testing.T) {
	all, err := workloads.TEMPI()
	if err != nil {
		t.Fatal(err)
	}
	small := slices.IndexFunc(all, func(w workloads.Workload) bool {
		return w.Bytes < 2000 && w.Send.Array > 2*w.Bytes
	})
	c, l := newPingCase(t, all[small]), channel{path: p2p.Direct, engine: packing.Auto}
	for _, trial := range []*trial{c.ping, c.pong} {
		if err := trial.do(idle{}); err == nil {
			t.Errorf("%v arrived by itself", all[small])
		}
	}
	if row, us, err := c.measure(l); err != nil || !row.Checked || us.Median <= 0 {
		t.Errorf("%+v, %v, %v", row, us, err)
	}
	for _, end := range []struct {
		says  string
		trial *trial
	}{{"there: byte ", c.ping}, {"back: byte ", c.pong}} {
		gap := slices.Index(end.trial.want, stale)
		end.trial.want[gap] ^= 1
		if _, _, err := c.measure(l); err == nil || !strings.Contains(err.Error(), end.says) {
			t.Errorf("%v, not %q", err, end.says)
		}
		end.trial.want[gap] ^= 1
	}
}

// Interrupted, a bench keeps the layouts of which it has all rows.
func TestBenchPingPongInterrupted(t *testing.T) {
	all, err := workloads.SHOC()
	if err != nil {
		t.Fatal(err)
	}
	set := testdevices.Host(t, 2)
	r := &pingRun{
		from: set.Devices[0], to: set.Devices[1], compiler: kernels.CompilerFromEnv(), budget: time.Microsecond,
		channels: []channel{{path: p2p.Direct, engine: packing.Copies}, {path: p2p.Peer, engine: packing.Copies}, {path: p2p.Peer, engine: packing.Tree}},
	}
	for looks, want := range map[int]int{0: 0, 1: 0, 3: 0, 4: 3, 7: 3} {
		record := &results.Record{}
		if err := new(recorder).measureAll(interruption{t.Context(), &looks}, record, r.tasks(all[:3]), io.Discard); err != errInterrupted {
			t.Fatal(err)
		}
		if len(record.Rows) != want || !record.Interrupted {
			t.Errorf("%d rows, not %d; interrupted %t", len(record.Rows), want, record.Interrupted)
		}
	}
}

// The kernel that keeps a GPU busy compiles, and takes what it is given.
func TestBusyCompiles(t *testing.T) {
	source := busySource
	source.Text += "static_assert(sizeof(Busy) == 3 * 8, \"size\");\n"
	testdevices.Compile(t, source)
}

// A GPU has as many thread blocks kept busy as the fraction of those that it holds.
func TestBusyBlocks(t *testing.T) {
	for _, tc := range []struct {
		fraction float64
		info     streams.Info
		want     int
	}{
		{1, streams.Info{Backend: streams.CUDA, Arch: "sm_90", Cores: 132}, 1056},
		{0.25, streams.Info{Backend: streams.CUDA, Arch: "sm_90", Cores: 132}, 264},
		{0.5, streams.Info{Backend: streams.CUDA, Arch: "sm_86", Cores: 10}, 30},
		{1, streams.Info{Backend: streams.CUDA, Arch: "sm_75", Cores: 40}, 160},
		{0.001, streams.Info{Backend: streams.CUDA, Arch: "sm_80", Cores: 8}, 1},
		{0.5, streams.Info{Backend: streams.Host, Cores: 1}, 1},
	} {
		if n := (&busy{fraction: tc.fraction}).blocks(tc.info); n != tc.want {
			t.Errorf("%v of %+v: %d blocks, not %d", tc.fraction, tc.info, n, tc.want)
		}
	}
}

// What is done beside the busy kernel is done once, and its error is kept.
func TestBusyDuring(t *testing.T) {
	var none *busy
	if lost, err := none.during(func() error { return io.EOF }); lost != 0 || err != io.EOF {
		t.Errorf("%v, %v", lost, err)
	}
	set := testdevices.Host(t, 2)
	b, err := newBusy(kernels.CompilerFromEnv(), set.Devices, 0.25)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if len(b.occupants) != 2 {
		t.Fatalf("%d occupants", len(b.occupants))
	}
	for _, o := range b.occupants {
		if o.alone <= 0 || o.took <= 0 {
			t.Errorf("%v launches a second, %v each", o.alone, o.took)
		}
	}
	done := 0
	lost, err := b.during(func() error {
		time.Sleep(20 * time.Millisecond)
		done++
		return nil
	})
	if err != nil || done != 1 || lost >= 1 {
		t.Errorf("done %d times, %v lost, %v", done, lost, err)
	}
	if _, err := b.during(func() error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if _, err := b.during(func() error { return set.Devices[0].Close() }); err == nil {
		t.Error("a device that is gone was kept busy")
	}
}
