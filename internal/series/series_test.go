package series_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/series"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/vtk"
	"github.com/halox/halox/internal/zarr"
	"github.com/halox/halox/solvers/scheme"
)

// A run is one whose field has the number of the step everywhere.
type run struct {
	*series.Run
	field  *halo.Field
	steps  int64
	failed []string
	warned []string
	stop   error // of failed outputs
}

func newRun(t *testing.T) *run {
	set := testdevices.Host(t, 2)
	grid := test.Must(domain.NewGrid([]int{6, 5, 4}, []bool{false, false, false}))(t)
	place := test.Must(halo.Place(test.Must(domain.Decompose(grid, domain.Vec{1, 1, 2}))(t), set.Devices))(t)
	r := &run{field: test.Must(halo.NewField(place, halo.Spec{Name: "u", Element: halo.Float64}))(t)}
	t.Cleanup(func() { test.Report(t, r.field.Close()) })
	r.Run = &series.Run{Place: place, Element: domain.Float64, Spacing: []float64{1, 1, 1}, Length: 0.5,
		Time:       func() float64 { return 0.5 * float64(r.steps) },
		Coordinate: func(_, index int) float64 { return float64(index) },
		Fields:     []series.Field{{Name: "u", Now: func() *halo.Field { return r.field }}},
		Failed: func(output string, err error) error {
			r.failed = append(r.failed, output+": "+err.Error())
			return r.stop
		},
		Warn: func(err error) { r.warned = append(r.warned, err.Error()) }}
	return r
}

func (r *run) step(t *testing.T, step int64) {
	r.steps = step
	test.Check(t, halo.FillPoints(r.field, func(domain.Vec) float64 { return float64(step) }))
}

// hasWarned checks the warnings about steps that are missing.
func (r *run) hasWarned(t *testing.T, steps ...string) {
	t.Helper()
	if !slices.EqualFunc(r.warned, steps, func(warning, missing string) bool {
		return strings.HasSuffix(warning, ": the steps "+missing+" are missing")
	}) {
		t.Errorf("warnings %q, not %q", r.warned, steps)
	}
}

// open starts a series after a step, and returns the function that runs to other steps.
func (r *run) open(t *testing.T, spec series.SeriesSpec, after int64) (w *series.Writer, do func(steps ...int64) error) {
	w = test.Must(series.NewWriter(t.Context(), r.Run, []series.SeriesSpec{spec}))(t)
	test.Check(t, w.Start(t.Context(), after))
	return w, func(steps ...int64) (err error) {
		for _, step := range steps {
			r.step(t, step)
			err = errors.Join(err, w.Event().Do(context.Background(), scheme.Result{Check: scheme.Check{Step: step}}))
		}
		return err
	}
}

// formats are the formats with the steps that readers find in a folder, and a file that an output after step 20 needs.
var formats = map[string]struct {
	steps   func(t *testing.T, folder string) []int64
	blocked string
}{
	"vti": {func(t *testing.T, folder string) (steps []int64) {
		for _, f := range test.Must(vtk.ReadCollection(filepath.Join(folder, "a.pvd")))(t) {
			step := int64(2 * f.Time)
			if text := string(test.Must(os.ReadFile(filepath.Join(folder, f.File)))(t)); len(text) < 6*5*4*8 {
				t.Errorf("%s has %d bytes", f.File, len(text))
			}
			steps = append(steps, step)
		}
		return steps
	}, "a-000000000020.vti"},
	"npy": {func(t *testing.T, folder string) (steps []int64) {
		for _, name := range test.Must(filepath.Glob(filepath.Join(folder, "a-u-*.npy")))(t) {
			if info := test.Must(os.Stat(name))(t); !info.IsDir() {
				steps = append(steps, number(name))
			}
		}
		return steps
	}, "a-u-000000000020.npy"},
	"zarr": {func(t *testing.T, folder string) (steps []int64) {
		a := test.Must(zarr.Open(filepath.Join(folder, "a.zarr", "step")))(t)
		numbers := make([]float64, a.Size[0])
		test.Check(t, zarr.ReadValues(a, numbers, 0, domain.Box{Hi: domain.Vec{len(numbers), 1, 1}}))
		u := test.Must(zarr.Open(filepath.Join(folder, "a.zarr", "u")))(t)
		for i, n := range numbers {
			var at [1]float64
			test.Check(t, zarr.ReadValues(u, at[:], i, domain.Box{Lo: domain.Vec{5, 4, 3}, Hi: domain.Vec{6, 5, 4}}))
			if at[0] != n {
				t.Errorf("the values of step %v are %v", n, at[0])
			}
			steps = append(steps, int64(n))
		}
		if u.Levels != len(steps) {
			t.Errorf("%d levels of %d steps", u.Levels, len(steps))
		}
		return steps
	}, "a.zarr/u/c/2"},
}

func number(name string) (n int64) {
	for _, c := range filepath.Base(name) {
		if '0' <= c && c <= '9' {
			n = 10*n + int64(c-'0')
		}
	}
	return n
}

// A series continues after an output that fails, and after a restart: then outputs beyond the step are removed.
func TestSeriesContinue(t *testing.T) {
	for format, f := range formats {
		t.Run(format, func(t *testing.T) {
			r, folder := newRun(t), t.TempDir()
			spec := series.SeriesSpec{Every: series.Every{Steps: 10}, Format: format, Folder: folder, Name: "a", Fields: []string{"u"}}
			check := func(want ...int64) {
				t.Helper()
				if got := f.steps(t, folder); !slices.Equal(got, want) {
					t.Fatalf("steps %v, not %v", got, want)
				}
			}
			w, do := r.open(t, spec, 0)
			blocked := filepath.Join(folder, filepath.FromSlash(f.blocked))
			test.Check(t, do(0, 5, 10))
			if format == "zarr" {
				test.Check(t, os.WriteFile(blocked, nil, 0o600))
			} else {
				test.Check(t, os.MkdirAll(filepath.Join(blocked, "full"), 0o700))
			}
			test.Check(t, do(20, 21))
			if len(r.failed) != 1 || !strings.Contains(r.failed[0], "step 20") || !strings.Contains(r.failed[0], folder) {
				t.Errorf("failures: %q", r.failed)
			}
			test.Check(t, os.RemoveAll(blocked))
			test.Check(t, do(30))
			test.Check(t, w.Close())
			if s := w.Results()[0]; s.Written != 3 || s.Failed != 1 || s.Bytes < 3*40 {
				t.Errorf("%+v", s)
			}
			check(0, 10, 30)

			w, do = r.open(t, spec, 25)
			check(0, 10)
			test.Check(t, do(30, 40))
			test.Check(t, w.Close())
			check(0, 10, 30, 40)
			w, do = r.open(t, spec, 40) // the output of this step exists
			test.Check(t, do(40, 50))
			test.Check(t, w.Close())
			check(0, 10, 30, 40, 50)

			w, _ = r.open(t, spec, 61)
			test.Check(t, w.Close())
			r.hasWarned(t, "from 20 to the restart at step 25", "from 60 to the restart at step 61")
			w, do = r.open(t, spec, 0)
			r.stop = errors.New("told to stop")
			test.Check(t, os.RemoveAll(folder))
			test.Check(t, os.WriteFile(folder, nil, 0o600))
			test.Check(t, do(0))
			test.Says(t, do(3), "told to stop")
			test.Check(t, w.Close())
		})
	}
}

// A folder of another program is not replaced.
func TestForeignStore(t *testing.T) {
	r, folder := newRun(t), t.TempDir()
	test.Must(zarr.WriteGroup(filepath.Join(folder, "a.zarr"), nil))(t)
	spec := series.SeriesSpec{Every: series.Every{Steps: 1}, Format: "zarr", Folder: folder, Name: "a", Fields: []string{"u"}}
	w := test.Must(series.NewWriter(t.Context(), r.Run, []series.SeriesSpec{spec}))(t)
	test.Says(t, w.Start(t.Context(), 0), "must be a series, to be replaced or continued")
	test.Check(t, w.Close())
}

// Rows of probes up to the step of a restart stay; a row that was cut is replaced.
func TestProbesContinue(t *testing.T) {
	r, file := newRun(t), filepath.Join(t.TempDir(), "p.csv")
	spec := series.ProbeSpec{File: file, Every: series.Every{Time: 2}, Fields: []string{"u"}, At: []float64{2.4, 9, -1}, KeepRows: true}
	to := func(after int64, steps ...int64) *series.Probes {
		p := test.Must(series.NewProbes(r.Run, spec))(t)
		test.Check(t, p.Start(t.Context(), after))
		for _, step := range steps {
			r.step(t, step)
			test.Check(t, p.Event().Do(t.Context(), scheme.Result{Check: scheme.Check{Step: step}}))
		}
		test.Check(t, p.Close())
		return p
	}
	to(0, 0, 4, 8)
	text := test.Must(os.ReadFile(file))(t)
	test.Check(t, os.WriteFile(file, append(text, "12,6"...), 0o600))
	p := to(4, 4, 8, 12)
	const want = "step,time,u(2 4 0)\n0,0,0\n4,2,4\n8,4,8\n12,6,12\n"
	if got := string(test.Must(os.ReadFile(file))(t)); got != want || p.Values(4)[0] != 4 || p.Values(5) != nil {
		t.Errorf("%q, %v", got, p.Values(4))
	}
	to(16) // the row of step 16 is due
	to(17)
	test.Check(t, os.Remove(file))
	to(4)
	r.hasWarned(t, "from 16 to the restart at step 17", "from 0 to the restart at step 4")
	spec.At[0] = 3
	test.Check(t, test.Must(series.NewProbes(r.Run, spec))(t).Start(t.Context(), 4))
	if len(r.failed) != 1 || !strings.Contains(r.failed[0], "must have the columns of this run") {
		t.Errorf("%q", r.failed)
	}
}
