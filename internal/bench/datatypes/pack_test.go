package datatypes

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/streams"
)

// Every curve of every figure has layouts, one for each place on the axis.
func TestFiguresHaveLayouts(t *testing.T) {
	testdevices.InTurn(t, 1, 4)
	all := test.Must(workloads.All())(t)
	check := func(f *figure, curve string, shows func(workload string) bool) {
		seen := map[float64]bool{}
		for _, w := range all {
			if !shows(w.String()) {
				continue
			}
			x, ok := layoutOf(w).Float(f.x)
			if f.overSetting() { // a point for each of its values
				for x := range max(len(f.blocks), len(f.busy)) {
					seen[float64(x)] = !ok && w.Suite == f.suite
				}
				continue
			}
			if !ok || seen[x] || w.Suite != f.suite {
				t.Errorf("figure %s, curve %q: %v at %v, %t", f.name, curve, w, x, ok)
			}
			seen[x] = true
		}
		if len(seen) < 3 {
			t.Errorf("figure %s, curve %q has %d points", f.name, curve, len(seen))
		}
	}
	for _, f := range figures() {
		for _, c := range f.curves {
			check(f, c.name, c.shows)
		}
	}
}

// What figure 7 of Wu et al. shows is the time there and back, and rates are of
// packing alone.
func TestFigureValues(t *testing.T) {
	row := func(params, direction, engine string, us float64) results.Row {
		return results.LayoutRow("wu", "V", params, 8e6).Label("direction", direction).Label("memory", ToDevice).Label("engine", engine).
			Transfer(8e6, measure.Exact(us), measure.Exact(40))
	}
	p := &results.Record{Devices: []results.Device{{Name: "a GPU"}}, Rows: []results.Row{
		row("n=2000", results.Packed, "targeted", 100), row("n=2000", results.Unpacked, "targeted", 60),
		row("n=1000", results.Packed, "targeted", 50), row("n=1000", results.Unpacked, "targeted", 20),
		row("n=3000", results.Packed, "targeted", 100),
	}}
	for name, want := range map[string]struct {
		first  plot.Curve
		curves int
		note   string
	}{
		"wu-6": {plot.Curve{Name: "V, targeted", X: []float64{1000, 2000, 3000}, Y: []float64{160, 80, 80}}, 2, "a GPU, device memory"},
		"wu-7": {plot.Curve{Name: "V, kernel", X: []float64{1000, 2000}, Y: []float64{70, 160}}, 1, "a GPU"},
	} {
		f := test.Must(named(results.KindPack, name))(t)
		c := f.draw(p)
		if len(c.Curves) != want.curves || c.Curves[0].Name != want.first.Name || !slices.Equal(c.Curves[0].X, want.first.X) || !slices.Equal(c.Curves[0].Y, want.first.Y) {
			t.Errorf("figure %s: %+v, want %+v first", name, c.Curves, want.first)
		}
		if c.Note != want.note || len(c.Curves) > 1 && !c.Curves[1].Bound {
			t.Errorf("figure %s: %+v", name, c)
		}
	}
}

// newPackRun returns a CPU device to time packing on.
func newPackRun(t *testing.T) *packRun {
	t.Helper()
	return &packRun{
		device: testdevices.Host(t, 1).Devices[0], compiler: kernels.NewCompiler(kernels.Options{Cache: t.TempDir()}), check: true,
		budget: 10 * time.Microsecond,
	}
}

// idle is a job that does nothing.
func idle(*streams.Stream) error { return nil }

// A job that does not write what it should is found out, in both directions.
func TestTrialFindsWrongBytes(t *testing.T) {
	for _, memory := range []string{ToDevice, ToPinned, ToCopied} {
		for _, unpack := range []bool{false, true} {
			r := newPackRun(t)
			c := &packCase{packRun: r, open: &streams.Resources{}, unpack: unpack, memory: memory}
			t.Cleanup(func() { c.open.Close() })
			all := test.Must(workloads.SHOC())(t)
			test.Check(t, c.prepare(all[2]))
			if err := c.trial.Do(idle); err == nil || !strings.Contains(err.Error(), "byte 0 of ") {
				t.Errorf("%s, unpack %t: %v", memory, unpack, err)
			}
			if err := c.enter(byTree); err != nil || !c.rows[0].Checked {
				t.Errorf("%s, unpack %t: %+v, %v", memory, unpack, c.rows, err)
			}
			c.trial.Want()[3] ^= 1
			if err := c.enter(byTargeted); err == nil || !strings.Contains(err.Error(), "engine targeted: byte 3 of ") || len(c.rows) != 1 {
				t.Errorf("%s, unpack %t: %+v, %v", memory, unpack, c.rows, err)
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
func TestPackInterrupted(t *testing.T) {
	r := newPackRun(t)
	o := &packOptions{memory: []string{ToDevice}}
	o.figure = &figure{curves: []curve{{by: byCopies}, {by: byTargeted}, {by: byTree}}}
	o.work = test.Must(workloads.SHOC())(t)[:3]
	for looks, want := range map[int]int{0: 0, 1: 0, 4: 0, 5: 3, 6: 3, 9: 3, 10: 6} {
		record := &results.Record{}
		if err := (&bench.Recorder{Record: record}).Measure(interruption{t.Context(), &looks}, o.tasks(r)); err != context.Canceled {
			t.Fatal(err)
		}
		if len(record.Rows) != want || !record.Interrupted {
			t.Errorf("%d rows, not %d; interrupted %t", len(record.Rows), want, record.Interrupted)
		}
	}
}
