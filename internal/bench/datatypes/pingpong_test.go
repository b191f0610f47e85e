package datatypes

import (
	"context"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/trial"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/streams"
)

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
	general := pingPongOptions{layouts: layouts{Over: "n"}}
	test.Check(t, general.complete())
	for name, want := range map[string][]plot.Curve{
		"wu-9": {
			{Name: "V, direct", X: []float64{1000, 2000}, Y: []float64{50, 40}},
			{Name: "V, direct, copies", X: []float64{2000}, Y: []float64{25}, Dashed: true, Color: "V, direct"},
			{Name: "T, direct", X: []float64{2000}, Y: []float64{80}},
		},
		"wu-10": {
			{Name: "V, direct", X: []float64{1000, 2000}, Y: []float64{80, 100}},
			{Name: "V, direct, copies", X: []float64{2000}, Y: []float64{160}, Dashed: true, Color: "V, direct"},
			{Name: "T, direct", X: []float64{2000}, Y: []float64{50}},
			{Name: "contiguous message of V's bytes", X: []float64{1000, 2000}, Y: []float64{40, 40}, Dashed: true, Bound: true},
		},
		"": {
			{Name: "direct", X: []float64{1000, 2000}, Y: []float64{100, 160}},
			{Name: "direct, copies", X: []float64{2000}, Y: []float64{50}, Dashed: true, Color: "direct"},
			{Name: "contiguous message", X: []float64{1000, 2000}, Y: []float64{200, 200}, Dashed: true, Bound: true},
		},
	} {
		f := general.figure
		if name != "" {
			f = test.Must(named(results.KindPingPong, name))(t)
		}
		c := f.draw(p)
		if !slices.EqualFunc(c.Curves, want, sameCurve) || c.Note != "a GPU 0 and a GPU 1, a ring of 2" {
			t.Errorf("figure %q: %+v, want %+v", name, c, want)
		}
	}
}

func sameCurve(a, b plot.Curve) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9*b }
	return a.Name == b.Name && a.Dashed == b.Dashed && a.Bound == b.Bound && a.Color == b.Color && slices.EqualFunc(a.X, b.X, near) && slices.EqualFunc(a.Y, b.Y, near)
}

// newPingCase returns a workload between two CPU devices.
func newPingCase(t *testing.T, w workloads.Workload) *pingCase {
	t.Helper()
	set := testdevices.Host(t, 2)
	c := &pingCase{open: &streams.Resources{}, pingRun: &pingRun{
		from: set.Devices[0], to: set.Devices[1], check: true, budget: 10 * time.Microsecond,
		compiler: kernels.NewCompiler(kernels.Options{Cache: t.TempDir()}),
	}}
	t.Cleanup(func() { test.Report(t, c.open.Close()) })
	test.Check(t, c.prepare(w))
	return c
}

// Bytes that are missing or misplaced are detected in both directions.
func TestPingPongFindsWrongBytes(t *testing.T) {
	all := test.Must(workloads.TEMPI())(t)
	small := slices.IndexFunc(all, func(w workloads.Workload) bool {
		return w.Bytes < 2000 && w.Send.Array > 2*w.Bytes
	})
	c, l := newPingCase(t, all[small]), channel{path: p2p.Direct, by: contender{engine: packing.Auto}}
	for _, both := range []*trial.Trial{c.ping, c.pong} {
		if err := both.Do(idle); err == nil {
			t.Errorf("%v arrived by itself", all[small])
		}
	}
	if row, us, err := c.measure(t.Context(), l); err != nil || !row.Checked || us.Median <= 0 {
		t.Errorf("%+v, %v, %v", row, us, err)
	}
	for _, end := range []struct {
		says  string
		trial *trial.Trial
	}{{"there: byte ", c.ping}, {"back: byte ", c.pong}} {
		gap := slices.Index(end.trial.Want(), trial.Stale)
		end.trial.Want()[gap] ^= 1
		if _, _, err := c.measure(t.Context(), l); err == nil || !strings.Contains(err.Error(), end.says) {
			t.Errorf("%v, not %q", err, end.says)
		}
		end.trial.Want()[gap] ^= 1
	}
}

// Interrupted at any look at its context, a benchmark keeps the layouts of which it has all rows.
func TestPingPongInterrupted(t *testing.T) {
	all := test.Must(workloads.SHOC())(t)
	set := testdevices.Host(t, 2)
	r := &pingRun{
		from: set.Devices[0], to: set.Devices[1], compiler: kernels.CompilerFromEnv(), budget: time.Microsecond,
		channels: []channel{{path: p2p.Direct, by: byCopies}, {path: p2p.Peer, by: byCopies}, {path: p2p.Peer, by: byTree}},
	}
	kept := 0
	for looks := 0; kept < 3*3; looks += 7 {
		record, left := &results.Record{}, looks
		err := (&bench.Recorder{Record: record}).Measure(interruption{t.Context(), &left}, r.tasks(all[:3], make([]load, 1)))
		if kept = len(record.Rows); kept%3 != 0 || kept > 3*3 || (err == context.Canceled) != record.Interrupted || err != nil && !record.Interrupted {
			t.Fatalf("%d rows after %d looks, %v", kept, looks, err)
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
		{0.5, streams.HostPlatform(1).Devices()[0], 1},
	} {
		if n := (&busy{fraction: tc.fraction}).blocks(tc.info); n != tc.want {
			t.Errorf("%v of %+v: %d blocks, not %d", tc.fraction, tc.info, n, tc.want)
		}
	}
}

// The function that runs next to the busy kernel is called once, and its error is returned.
func TestBusyDuring(t *testing.T) {
	var none *busy
	if lost, err := none.during(func() error { return io.EOF }); lost != 0 || err != io.EOF {
		t.Errorf("%v, %v", lost, err)
	}
	set := testdevices.Host(t, 2)
	b := test.Must(newBusy(t.Context(), kernels.CompilerFromEnv(), set.Devices, 0.25))(t)
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
	test.Is(t, test.ErrorOf(b.during(func() error { return io.EOF })), io.EOF)
	if _, err := b.during(func() error { return set.Devices[0].Close() }); err == nil {
		t.Error("a device that is gone was kept busy")
	}
}
