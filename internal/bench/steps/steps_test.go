package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// near fails the test unless a metric of the row is what it should be.
func near(t *testing.T, row results.Row, m results.Metric, want float64) {
	t.Helper()
	if got := row.Median(m); !(math.Abs(got-want) <= 1e-6*math.Abs(want)) {
		t.Errorf("%s: %s is %v, want %v", bench.NameOf(row), m, got, want)
	}
}

// recorderOf returns a recorder that leaves no file.
func recorderOf(set *testdevices.Set) (*bench.Machine, *bench.Recorder) {
	on := &bench.Machine{Session: &halo.Session{Backend: set.Devices[0].Backend, Devices: set.Devices, Links: set.Links, Compiler: set.Compiler}}
	return on, &bench.Recorder{Notes: io.Discard, New: func(kind results.Kind, settings any, _ *p2p.Links) *results.Record {
		return &results.Record{Kind: kind, Settings: settings}
	}}
}

// Interrupted in the middle of a row, the benchmark keeps those before.
func TestInterruptedInARow(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := schemesOptions{
		common:  common{Devices: []int{2}, Dims: 3, Points: []int{6}, Precisions: []string{"float64"}, Cut: cutAuto, Budget: time.Millisecond},
		Schemes: []string{"baseline", "assisted"}, Paths: []string{"staged"}, Norms: []int{0}, Sums: []string{"fast"}, Groups: []int{1},
	}
	test.Check(t, o.Check())
	on, to := recorderOf(testdevices.Host(t, 2))
	r := test.Must(o.newRun(ctx, results.KindSchemes, on, to))(t)
	tasks := o.tasks(r)
	second := tasks[1].Measure
	tasks[1].Measure = func(ctx context.Context, open *streams.Resources) ([]results.Row, error) {
		cancel()
		return second(ctx, open)
	}
	if err := to.Measure(ctx, tasks); !errors.Is(err, context.Canceled) || len(to.Record.Rows) != 1 || !to.Record.Interrupted {
		t.Errorf("%v: %+v", err, to.Record)
	}
}

// Steps with checkpoints run by the scheme that their row names.
func TestCheckpointsOfEachScheme(t *testing.T) {
	o := checkpointOptions{Schemes: []string{"two-stream", "fused", "baseline"}, Every: []int{2, 3}}
	o.Groups = []int{1}
	on, to := recorderOf(testdevices.Host(t, 1))
	r := test.Must(o.newRun(t.Context(), results.KindCheckpoint, on, to))(t)
	ran := 0
	tasks := o.stepTasks(r, results.NewRow(), saved{stepCase: stepCase{devices: 1}},
		func(of saved, _ context.Context, _ *run, row results.Row, every int64) (results.Row, error) {
			if ran++; row.Text("scheme") != string(of.scheme) || row.Text("every") != fmt.Sprint(every) {
				t.Errorf("%v: scheme %s every %d steps", row.Labels, of.scheme, every)
			}
			return row, nil
		})
	for _, task := range tasks {
		test.Must(task.Measure(t.Context(), nil))(t)
	}
	if ran != 6 {
		t.Errorf("%d tasks ran", ran)
	}
}

// A row is compared with the best two-stream row of its own problem, and with the best on
// one device.
func TestCompareSchemes(t *testing.T) {
	row := func(scheme, path string, devices, points int, step float64) results.Row {
		return results.NewRow().Label("scheme", scheme).Label("path", path).Label("devices", devices).Label("points", points).
			Value(results.Step, measure.NewSample([]float64{step, step, step}))
	}
	rows := compareSchemes([]results.Row{
		row("assisted", "", 1, 64, 90), row("two-stream", "", 1, 64, 80),
		row("baseline", "staged", 2, 64, 120), row("two-stream", "peer", 2, 64, 60), row("two-stream", "staged", 2, 64, 50),
		row("assisted", "peer", 2, 64, 40), row("two-stream", "peer", 2, 128, 7), results.NewRow().Label("devices", 2),
	})
	near(t, rows[5], results.OverBaseline, 3)
	near(t, rows[5], results.OverTwoStream, 1.25)
	near(t, rows[5], results.SpeedUp, 2)
	near(t, rows[0], results.OverTwoStream, 80./90)
	near(t, rows[6], results.OverTwoStream, 1)
	if _, ok := rows[6].Get(results.SpeedUp); ok || len(rows[7].Values) > 0 {
		t.Errorf("%+v", rows[6:])
	}
}

// On GPUs scheme auto is the fastest that was found, as in a run, and its path too.
func TestScalingTakesTheFastest(t *testing.T) {
	t.Setenv("HALOX_CACHE", t.TempDir())
	on, to := recorderOf(testdevices.Host(t, 2))
	r := &run{Machine: on, budget: time.Millisecond, notes: to.Notes}
	c := stepCase{precision: "float64", stencil: option.Stencils(3)[0], size: []int{8, 8, 8}, devices: 2, scheme: scheme.Auto, order: scheme.LeftRight, path: p2p.Auto}
	_, s, err := r.step(t.Context(), c)
	if err != nil || s.Scheme != scheme.TwoStream {
		t.Fatalf("on CPU devices: %v", err)
	}
	s.Scheme = scheme.Resident
	if s.Plan, err = halo.NewPlan(s.Place, s.Session.Links, p2p.Direct, s.Problem.Field()); err != nil {
		t.Fatal(err)
	}
	if got := s.note(); got != "scheme auto is resident, resident ran sweeps: its kernels are for GPUs, path auto is direct" {
		t.Error(got)
	}
}

// Without one device the fewest count as ideal.
func TestCompareScalingFromTwo(t *testing.T) {
	row := func(mode string, devices int, step float64) results.Row {
		return results.NewRow().Label("mode", mode).Label("devices", devices).Number(results.Step, step)
	}
	rows := compareScaling([]results.Row{
		row(strongScaling, 2, 100), row(strongScaling, 4, 62.5), row(weakScaling, 2, 100), row(weakScaling, 4, 125), results.NewRow(),
	})
	for i, want := range []float64{2, 3.2, 2, 3.2} {
		near(t, rows[i], results.SpeedUp, want)
	}
	near(t, rows[3], results.Efficiency, 0.8)
	wild := measure.NewSample([]float64{50, 60, 90, 110, 400, 500})
	rows = compareScaling([]results.Row{row(strongScaling, 1, 0).Value(results.Step, wild),
		row(strongScaling, 2, 0).Value(results.Step, measure.NewSample([]float64{50, 50, 50, 50, 50, 50}))})
	speedup, _ := rows[1].Get(results.SpeedUp)
	if lo, hi, ok := speedup.Interval(); !ok || lo > 1.01 || hi < 9.99 {
		t.Errorf("of a baseline between 50 and 500 us: %+v", speedup)
	}
}

// Stencils are measured with ghost regions of their radius and with messages to diagonal neighbors, and each has its own
// operations per point and speed-up.
func TestStencilsOfSteps(t *testing.T) {
	testdevices.InTurn(t, 3, 4)
	operations := map[string]float64{"7-point": 8, "13-point": 15, "19-point": 21}
	o := common{Devices: []int{1, 2}, Dims: 3, Points: []int{6}, Stencils: []string{"19-point", "7-point", "13-point"},
		Precisions: []string{"float64"}, Cut: cutAuto, Budget: time.Millisecond}
	schemes := []string{"baseline", "assisted"}
	for _, command := range []bench.Options{
		&schemesOptions{common: o, Schemes: schemes, Paths: []string{"staged"}, Norms: []int{0}, Sums: []string{"fast"}, Groups: []int{1}},
		&scalingOptions{common: o, Schemes: schemes, Paths: []string{"staged"}, Modes: scalings(), Groups: []int{1}},
	} {
		test.Check(t, command.Check())
		on, to := recorderOf(testdevices.Host(t, 2))
		test.Check(t, command.Run(t.Context(), on, to))
		rows := map[string]int{}
		for _, row := range to.Record.Rows {
			name := row.Text("stencil")
			rows[name]++
			points := 216.0
			if row.Text("mode") == weakScaling && row.Text("devices") == "2" {
				points *= 2
			}
			near(t, row, results.GFLOPS, points*operations[name]/row.Median(results.Step)/1e3)
			if _, ok := row.Get(results.SpeedUp); !ok {
				t.Errorf("%s has no speed-up", bench.NameOf(row))
			}
			if row.Text("devices") == "1" && row.Text("mode") != "" {
				near(t, row, results.SpeedUp, 1)
			}
		}
		if n := rows["7-point"]; len(rows) != 3 || n == 0 || rows["13-point"] != n || rows["19-point"] != n {
			t.Errorf("rows by stencil: %v", rows)
		}
	}
	o.Dims = 2
	test.Says(t, o.complete(), "--stencils: must be of 2 dimensions, those of --dims, got 19-point")
}

// Of weak scaling each device has a cube, whatever their number.
func TestPartsOfWeakScaling(t *testing.T) {
	options := func(dims int, cut string) *scalingOptions {
		return &scalingOptions{common: common{Dims: dims, Cut: cut}}
	}
	solid, flat, slabs := options(3, cutAuto), options(2, cutAuto), options(3, cutSlabs)
	for n, want := range map[int]domain.Vec{1: {1, 1, 1}, 2: {1, 1, 2}, 4: {1, 2, 2}, 6: {1, 3, 2}, 8: {2, 2, 2}, 7: {1, 1, 7}} {
		if got := solid.parts(n); got != want {
			t.Errorf("%d cubes lie %v, want %v", n, got, want)
		}
	}
	if got, want := flat.parts(8), (domain.Vec{2, 4, 1}); got != want {
		t.Errorf("8 squares lie %v, want %v", got, want)
	}
	if got, want := slabs.parts(8), (domain.Vec{1, 1, 8}); got != want {
		t.Errorf("8 slabs lie %v, want %v", got, want)
	}
}

// The baseline sends through the host alone; a scheme without a path of its own takes all.
func TestTakes(t *testing.T) {
	for _, path := range []p2p.Path{p2p.Staged, p2p.Peer, p2p.Direct} {
		if !takes(scheme.Assisted, path) || takes(scheme.Baseline, path) != (path == p2p.Staged) {
			t.Errorf("path %s", path)
		}
	}
}

// Steps between two exchanges are of several devices, or of a scheme that exchanges within one, and of schemes that take several.
func TestWaysWithGroups(t *testing.T) {
	o := schemesOptions{Schemes: []string{"assisted", "ranks", "resident"}, Paths: []string{"direct"}, Groups: []int{1, 3}}
	var got []string
	for _, devices := range []int{1, 2} {
		for _, w := range o.ways(devices) {
			row := stepCase{scheme: w.scheme, path: w.path, group: w.group, devices: devices}.labels()
			got = append(got, strings.TrimSpace(fmt.Sprint(devices, " ", w.scheme, " ", w.order, row.Text("steps_per_exchange"))))
		}
	}
	want := []string{"1 assisted concurrent", "1 ranks", "1 resident", "1 resident 3", "2 assisted concurrent", "2 assisted concurrent3",
		"2 assisted serial", "2 assisted serial3", "2 ranks", "2 resident", "2 resident 3"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
