package main

import (
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/streams"
)

// packs runs halox bench pack on host devices, and returns what it printed and its
// record.
func packs(t *testing.T, args ...string) (out string, r *results.Record) {
	t.Helper()
	t.Setenv("HALOX_CACHE", t.TempDir())
	record := filepath.Join(t.TempDir(), "p.json")
	args = append([]string{"bench", "pack", "--backend", "host", "--budget", "100us", "--record", record}, args...)
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

// contended returns what a record says that it measured.
func contended(r *results.Record) (names []string) {
	for _, name := range r.Settings.(map[string]any)["contenders"].([]any) {
		names = append(names, name.(string))
	}
	return names
}

// drawn fails unless a plot was written.
func drawn(t *testing.T, plot string) {
	t.Helper()
	if info, err := os.Stat(plot); err != nil || info.Size() < 1000 {
		t.Errorf("plot: %v, %v", info, err)
	}
}

// A small bench on a host device leaves its table, its record and its plot.
func TestBenchPack(t *testing.T) {
	plot := filepath.Join(t.TempDir(), "p.png")
	out, r := packs(t, "--suites", "jenkins,ddtbench", "--match", "vector-512|LAMMPS_atomic", "--most", "20000", "--unpack", "--plot", plot)
	drawn(t, plot)
	groups := r.Groups()
	if len(groups) != 2*(3*2+3) || r.Kind != results.KindPack || r.Devices[0].Backend != "host" || r.Rows[0].Text("memory") != toDevice || r.Interrupted || r.Failure != "" {
		t.Errorf("%d groups: %+v", len(groups), r)
	}
	for _, g := range groups {
		checkGroup(t, g)
		if first := g.Rows[0]; strings.Count(out, "\n"+first.Workload()+" ") != 2 {
			t.Errorf("%s has no line for each direction:\n%s", first.Workload(), out)
		}
	}
	for _, want := range []string{"packing into device memory", "unpacking from device memory", "best engine", "driver's own copies"} {
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
		us, bytes := row.Median(results.Time), labelled(row, "bytes")
		rate, share := bytes/us/1e3, contiguous/us
		if us <= 0 || !row.Checked || bytes <= 0 || bytes > 20000 || labelled(row, "pieces") < 1 || row.Median(results.CopyTime) != contiguous ||
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

// labelled returns the number that a label has, NaN for none.
func labelled(row results.Row, label string) float64 {
	if v, ok := row.Float(label); ok {
		return v
	}
	return math.NaN()
}

// An engine that does not suit a layout has no row; the driver's copies are always
// measured.
func TestBenchPackUnsuited(t *testing.T) {
	out, r := packs(t, "--engines", "targeted", "--match", "LAMMPS_atomic/d=1217", "--to", "pinned", "--blocks", "3", "--no-check")
	if len(r.Rows) != 1 || r.Rows[0].Text("engine") != "copies" || r.Rows[0].Checked || r.Rows[0].Text("memory") != toPinned || labelled(r.Rows[0], "thread_blocks") != 3 {
		t.Errorf("%+v", r)
	}
	if !slices.Equal(contended(r), []string{"copies", "targeted"}) || strings.Contains(out, "auto") || !strings.Contains(out, "pinned host memory") {
		t.Errorf("%v:\n%s", contended(r), out)
	}
}

func TestBenchPackRefuses(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder.png")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, want string
		args       []string
	}{
		{"no engine", `--engines: there is no "warp": take all, auto, copies`, []string{"--engines", "tree,warp"}},
		{"no suite", `--suites: there is no "nas": take ddtbench, tempi`, []string{"--suites", "nas"}},
		{"no suites", "--suites names none", []string{"--suites", ""}},
		{"no figure", `--figure: there is no "wu-99": take wu-6`, []string{"--figure", "wu-99"}},
		{"a figure's suites", "--figure wu-6 has its own --suites: leave --suites out", []string{"--figure", "wu-6", "--suites", "wu"}},
		{"a figure's engines", "leave --engines out", []string{"--figure", "wu-6", "--engines", "tree"}},
		{"no memory", `--to: there is no "host": take device, pinned`, []string{"--to", "host"}},
		{"no backend", `--backend: there is no "gpu": take auto, cuda, host`, []string{"--backend", "gpu"}},
		{"half an expression", "--match: error parsing regexp", []string{"--match", "(vector"}},
		{"nothing matches", "no layout of hacc fits", []string{"--suites", "hacc", "--match", "vector"}},
		{"nothing so large", "no layout of hacc fits", []string{"--suites", "hacc", "--least", "1000000000000"}},
		{"limits the wrong way round", "--least 9 is more than --most 8", []string{"--least", "9", "--most", "8"}},
		{"less than nothing", "--least -1", []string{"--least", "-1"}},
		{"a device before the first", "--device -1: devices are counted from 0", []string{"--device", "-1"}},
		{"fewer blocks than none", "--blocks -2", []string{"--blocks", "-2"}},
		{"no time", "--budget 0s: give a positive time", []string{"--budget", "0"}},
		{"no such plot", "must end in .png, .svg or .pdf", []string{"--plot", "p.gif"}},
		{"a plot that is a folder", "cannot be written: it is a folder", []string{"--plot", folder}},
		{"a record that is a folder", "cannot be written: it is a folder", []string{"--record", dir}},
		{"no such parameter", "--over edge: the layouts have no such parameter", []string{"--suites", "hacc", "--over", "edge"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := append([]string{"bench", "pack", "--backend", "host", "--budget", "1us"}, tc.args...)
			if code, out, errs := cli(args...); code != exitFailed || out != "" || !strings.Contains(errs, tc.want) {
				t.Errorf("exit %d, %q, %q, want %q", code, out, errs, tc.want)
			}
		})
	}
}

func TestBenchPackLists(t *testing.T) {
	code, out, _ := cli("bench", "pack", "--list", "--suites", "wu", "--match", "V/n=1024")
	if code != 0 || out != "wu/V/n=1024 8388608\n" {
		t.Errorf("exit %d: %q", code, out)
	}
	code, out, _ = cli("bench", "pack", "--figure", "list")
	if names := strings.Count(out, "\n"); code != 0 || names != len(figures()) || !strings.HasPrefix(out, "wu-6 ") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// Every curve of every figure has layouts, one for each place on the axis.
func TestFiguresHaveLayouts(t *testing.T) {
	all, err := workloads.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures() {
		for _, c := range f.curves {
			seen := map[float64]bool{}
			for _, w := range all {
				if !c.shows(w.String()) {
					continue
				}
				x, ok := layoutOf(w).Float(f.x)
				if !ok || seen[x] || w.Suite != f.suite {
					t.Errorf("figure %s, curve %q: %v at %v, %t", f.name, c.name, w, x, ok)
				}
				seen[x] = true
			}
			if len(seen) < 3 {
				t.Errorf("figure %s, curve %q has %d points", f.name, c.name, len(seen))
			}
		}
	}
}

// A figure measures its own contenders on its own layouts.
func TestBenchPackFigure(t *testing.T) {
	for _, tc := range []struct {
		figure, to string
		contenders []string
		args       []string
	}{
		{"hand-9", toDevice, []string{"copies", "bypass, sequential scan", "bypass, parallel scan", "bypass, scan in two steps"}, nil},
		{"hand-7", toPinned, []string{"copies", "bypass", "bypass, list pinned"}, []string{"--to", "pinned"}},
		{"jenkins-4", toPinned, []string{"copies", "tree"}, nil},
	} {
		t.Run(tc.figure, func(t *testing.T) {
			plot := filepath.Join(t.TempDir(), "p.svg")
			_, r := packs(t, append([]string{"--figure", tc.figure, "--most", "2000", "--plot", plot}, tc.args...)...)
			drawn(t, plot)
			if r.Rows[0].Text("memory") != tc.to || !slices.Equal(contended(r), tc.contenders) || len(r.Rows) != len(r.Groups())*len(tc.contenders) {
				t.Errorf("to %s, %v, %d rows of %d groups", r.Rows[0].Text("memory"), contended(r), len(r.Rows), len(r.Groups()))
			}
		})
	}
}

// What figure 7 of Wu et al. shows is the time there and back, and rates are of
// packing alone.
func TestFigureValues(t *testing.T) {
	row := func(params, direction, engine string, us float64) results.Row {
		return results.LayoutRow("wu", "V", params, 8e6).Label("direction", direction).Label("memory", toDevice).Label("engine", engine).
			Transfer(8e6, measure.Exact(us), measure.Exact(40))
	}
	p := &results.Record{Devices: []results.Device{{Name: "a GPU"}}, Rows: []results.Row{
		row("n=2000", results.Packed, "targeted", 100), row("n=2000", results.Unpacked, "targeted", 60),
		row("n=1000", results.Packed, "targeted", 50), row("n=1000", results.Unpacked, "targeted", 20),
		row("n=3000", results.Packed, "targeted", 100),
	}}
	for name, want := range map[string]plot.Curve{
		"wu-6": {Name: "V, targeted", X: []float64{1000, 2000, 3000}, Y: []float64{160, 80, 80}},
		"wu-7": {Name: "V, targeted", X: []float64{1000, 2000}, Y: []float64{70, 160}},
	} {
		f, err := findFigure(figures(), name)
		if err != nil {
			t.Fatal(err)
		}
		c := f.draw(p)
		if len(c.Curves) != 2 || c.Curves[0].Name != want.Name || !slices.Equal(c.Curves[0].X, want.X) || !slices.Equal(c.Curves[0].Y, want.Y) {
			t.Errorf("figure %s: %+v, want %+v first", name, c.Curves, want)
		}
		if !strings.HasSuffix(c.Title, "\na GPU, device memory") || !c.Curves[1].Dashed {
			t.Errorf("figure %s: %+v", name, c)
		}
	}
}

// newPackRun returns a host device to time packing on.
func newPackRun(t *testing.T) *packRun {
	t.Helper()
	devices, err := streams.HostPlatform(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := streams.CloseAll(devices); err != nil {
			t.Error(err)
		}
	})
	return &packRun{
		device: devices[0], compiler: kernels.CompilerFromEnv(), contenders: []contender{byCopies, byTargeted, byTree}, check: true,
		budget: 10 * time.Microsecond, options: packing.Options{Cache: t.TempDir()},
	}
}

// idle is a job that does nothing.
type idle struct{}

func (idle) Queue(*streams.Stream) error { return nil }

// A job that does not write what it should is found out, in both directions.
func TestTrialFindsWrongBytes(t *testing.T) {
	for _, pinned := range []bool{false, true} {
		for _, unpack := range []bool{false, true} {
			r := newPackRun(t)
			r.pinned = pinned
			c := &packCase{packRun: r, unpack: unpack, packers: map[packing.Options]*packing.Packer{}}
			t.Cleanup(func() { c.Close() })
			all, err := workloads.SHOC()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.prepare(all[2]); err != nil {
				t.Fatal(err)
			}
			if err := c.trial.do(idle{}); err == nil || !strings.Contains(err.Error(), "byte 0 of ") {
				t.Errorf("pinned %t, unpack %t: %v", pinned, unpack, err)
			}
			if err := c.enter(byTree); err != nil || !c.rows[0].Checked {
				t.Errorf("pinned %t, unpack %t: %+v, %v", pinned, unpack, c.rows, err)
			}
			c.trial.want[3] ^= 1
			if err := c.enter(byTargeted); err == nil || !strings.Contains(err.Error(), "engine targeted: byte 3 of ") || len(c.rows) != 1 {
				t.Errorf("pinned %t, unpack %t: %+v, %v", pinned, unpack, c.rows, err)
			}
		}
	}
}

// interruption is a context that ends after some looks at it.
type interruption struct {
	context.Context
	looks *int
}

func (i interruption) Err() error {
	if *i.looks--; *i.looks < 0 {
		return context.Canceled
	}
	return nil
}

// Interrupted, a bench keeps the layouts that it has measured. It looks before each of
// them, before each of its three contenders, and before they are timed.
func TestBenchPackInterrupted(t *testing.T) {
	r := newPackRun(t)
	all, err := workloads.SHOC()
	if err != nil {
		t.Fatal(err)
	}
	for looks, want := range map[int]int{0: 0, 1: 0, 4: 0, 5: 3, 6: 3, 9: 3, 10: 6} {
		record := &results.Record{}
		if err := new(recorder).measureAll(interruption{t.Context(), &looks}, record, r.tasks(all[:3], false), io.Discard); err != errInterrupted {
			t.Fatal(err)
		}
		if len(record.Rows) != want || !record.Interrupted {
			t.Errorf("%d rows, not %d; interrupted %t", len(record.Rows), want, record.Interrupted)
		}
	}
}
