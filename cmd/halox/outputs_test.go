package main

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/internal/zarr"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/field"
)

// moving is a config whose fields are known after every step, see moved: whole numbers that move along x.
const moving = `solver: equation
grid: {size: [12, 10, 8], start: [0, 0, -2], end: [12, 10, 2]}
fields:
  u: {initial: "i + 100*j + 10000*k", boundary: {x: periodic, y: periodic, z: neumann}}
  v: {initial: "k - 2*j", boundary: {x: periodic, y: periodic, z: neumann}}
update: {u: "at(u, 1, 0, 0) + 3", v: "0.5*at(v, 0, 1, 0) + 0.5*at(v, 0, 1, 0)"}
time: {dt: 0.25}
stop: {iterations: 23, check_every: 4}
devices: {backend: host, count: 1}
`

// moved returns the value of a field of moving after a step.
func moved(field string, step, i, j, k int) float64 {
	if field == "v" {
		return float64(k - 2*((j+step)%10))
	}
	return float64((i+step)%12 + 100*j + 10000*k + 3*step)
}

// eachWay runs a config on one and on several devices, on GPUs and as processes, and calls check with the record. Each
// has a folder of its own, for which @ stands in the config.
func eachWay(t *testing.T, text string, check func(t *testing.T, folder string, r *results.Run)) {
	ways := func(name string, run func(t *testing.T, config, record string)) {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			record := filepath.Join(folder, "r.json")
			run(t, write(t, "c.yaml", strings.ReplaceAll(text, "@", folder)), record)
			check(t, folder, test.Must(results.Read(record))(t).Run)
		})
	}
	alone := func(set ...string) func(t *testing.T, config, record string) {
		return func(t *testing.T, config, record string) {
			args := []string{"run", config, "-q", "--record", record}
			for _, s := range set {
				args = append(args, "--set", s)
			}
			if code, _, errs := cli(args...); code != 0 || errs != "" {
				t.Fatalf("exit %d: %s", code, errs)
			}
		}
	}
	ways("one", alone())
	ways("four", alone("devices.count=4", "exchange.scheme=fused", "exchange.steps=2"))
	ways("float32", alone("devices.count=3", "precision=float32"))
	ways("gpus", func(t *testing.T, config, record string) {
		testdevices.InTurn(t, 3, 8)
		for _, set := range testdevices.Environment(t, 2) {
			name, value, _ := strings.Cut(set, "=")
			t.Setenv(name, value)
		}
		alone("devices={backend: cuda, count: 2}", "exchange.scheme=graph")(t, config, record)
	})
	t.Run("processes", func(t *testing.T) {
		testdevices.InTurn(t, 5, 8)
		testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
			folder := t.TempDir()
			config, record := write(t, "c.yaml", strings.ReplaceAll(text, "@", folder)), filepath.Join(folder, "r.json")
			launchHalox(t, in, 3, nil, "run", config, "--record", record, "--set", "devices.count=2").Succeeds(t)
			check(t, folder, test.Must(results.Read(record))(t).Run)
		})
	})
}

// Probes have the values of the nearest points at the steps at which they are due, in files and in the history.
func TestProbes(t *testing.T) {
	text := moving + `output:
  history: true
  probes:
    - {at: [3.4, 9.9, 1.9], every: 6, file: "@/probes.csv"}
    - {line: {from: [1, 1, -1.75], to: [1, 8, -1.75]}, every: {time: 1}, fields: [u], file: "@/y.csv"}
    - {line: {from: [0, 0, -1.75], to: [11, 9, 1.75], points: 3}, every: 23, fields: [v, u], file: "@/d/diagonal.csv"}
`
	type point struct {
		field   string
		i, j, k int
	}
	var along, diagonal []point
	for j := 1; j <= 8; j++ {
		along = append(along, point{"u", 1, j, 0})
	}
	for _, field := range []string{"v", "u"} {
		diagonal = append(diagonal, point{field, 0, 0, 0}, point{field, 5, 4, 3}, point{field, 11, 9, 7})
	}
	files := map[string]struct {
		head   string
		every  int
		points []point
	}{
		"probes.csv":     {"step,time,u(3 9 1.75),v(", 6, []point{{"u", 3, 9, 7}, {"v", 3, 9, 7}}},
		"y.csv":          {"step,time,u(1 1 -1.75),u(1 2 -1.75),u(", 4, along},
		"d/diagonal.csv": {"step,time,v(0 0 -1.75),v(5 4 -0.25),v(11 9 1.75),u(0 0 ", 23, diagonal},
	}
	check := func(t *testing.T, folder string, r *results.Run) {
		for name, f := range files {
			var want []string
			for step := 0; step <= 23; step += f.every {
				row := []string{strconv.Itoa(step), strconv.FormatFloat(float64(step)/4, 'g', -1, 64)}
				for _, p := range f.points {
					row = append(row, strconv.FormatFloat(moved(p.field, step, p.i, p.j, p.k), 'g', -1, 64))
				}
				want = append(want, strings.Join(row, ","))
			}
			head, rows, _ := strings.Cut(string(content(t, filepath.Join(folder, name))), "\n")
			if got := strings.Split(strings.TrimSpace(rows), "\n"); !strings.HasPrefix(head, f.head) ||
				fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %s\n%q, not\n%q", name, head, got, want)
			}
			if n := strings.Count(head, ","); n != len(f.points)+1 {
				t.Errorf("%s has %d columns: %s", name, n+1, head)
			}
		}
		for _, c := range r.History {
			v, due := c.Probes["u(1 2 -1.75)"], c.Iteration%4 == 0
			if (v != nil) != due || due && *v != moved("u", c.Iteration, 1, 2, 0) {
				t.Errorf("the history has %v at step %d", c.Probes, c.Iteration)
			}
		}
		if len(r.History) != 6 || len(r.History[2].Probes) != 10 || len(r.History[5].Probes) != 6 {
			t.Errorf("history %+v", r.History)
		}
	}
	eachWay(t, text, check)
}

// Statistics are those of the samples, in the files at the end and at probes.
func TestStatistics(t *testing.T) {
	text := moving + `output:
  statistics: {max: [u], variance: [u], min: [v], from: {time: 2.1}, every: 3, folder: "@/s"}
  probes: [{at: [5, 5, 0.25], every: 1, fields: [mean_u, u, max_u], file: "@/probes.csv"}]
`
	const first, last = 9, 21
	eachWay(t, text, func(t *testing.T, folder string, r *results.Run) {
		if r.Samples != (last-first)/3+1 {
			t.Errorf("%d samples", r.Samples)
		}
		rows := strings.Split(string(content(t, filepath.Join(folder, "probes.csv"))), "\n")
		if got := rows[1+8]; got != "8,2,0,"+fmt.Sprint(moved("u", 8, 5, 5, 4))+",0" {
			t.Errorf("before the first sample: %s", got)
		}
		mean := 0.5*moved("u", 9, 5, 5, 4) + 0.5*moved("u", 12, 5, 5, 4)
		if got := strings.Split(rows[1+12], ","); got[2] != fmt.Sprint(mean) || got[4] != fmt.Sprint(max(moved("u", 9, 5, 5, 4), moved("u", 12, 5, 5, 4))) {
			t.Errorf("two samples: %v, mean %v", got, mean)
		}
		fields := map[string][]float64{}
		for _, name := range []string{"max_u", "mean_u", "variance_u", "min_v"} {
			shape, values, err := field.Read(filepath.Join(folder, "s", name+".npy"))
			if fields[name] = values; err != nil || fmt.Sprint(shape) != "[8 10 12]" {
				t.Fatalf("%s: %v, shape %v", name, err, shape)
			}
		}
		for at := range fields["mean_u"] {
			i, j, k := at%12, at/12%10, at/120
			mean, square, most, least, n := 0.0, 0.0, math.Inf(-1), math.Inf(1), 0.0
			for step := first; step <= last; step += 3 {
				u := moved("u", step, i, j, k)
				mean, n, most, least = mean+u, n+1, max(most, u), min(least, moved("v", step, i, j, k))
			}
			mean /= n
			for step := first; step <= last; step += 3 {
				square += (moved("u", step, i, j, k) - mean) * (moved("u", step, i, j, k) - mean) / n
			}
			slack := 1e-6 * (1 + math.Abs(mean)) // float32
			if fields["max_u"][at] != most || fields["min_v"][at] != least || math.Abs(fields["mean_u"][at]-mean) > slack ||
				math.Abs(fields["variance_u"][at]-square) > 1e-4*mean+slack {
				t.Fatalf("point %d: max %v, min %v, mean %v, variance %v; must be %v, %v, %v, %v", at, fields["max_u"][at],
					fields["min_v"][at], fields["mean_u"][at], fields["variance_u"][at], most, least, mean, square)
			}
		}
	})
}

// Series have the fields at the times at which they are due, in all formats, and change no bits of the run.
func TestSeries(t *testing.T) {
	testdevices.InTurn(t, 0, 4)
	text := moving + `output:
  field: {u: "@/u.npy", v: "@/v.npy"}
  statistics: {max: [u], every: 5, folder: "@/s"}
  series:
    - {every: 10, folder: "@/all"}
    - {every: {time: 2}, format: zarr, folder: "@/all", fields: [v, u, max_u]}
    - {every: 23, format: npy, folder: "@/all", slice: {z: 0.3}, precision: float32, fields: [u]}
    - {every: 10, folder: "@/all", name: part, box: {x: [2, 7.4], y: [9, 9]}, coarsen: 2, fields: [u]}
    - {every: 8, format: zarr, folder: "@/all", name: coarse, coarsen: 3}
`
	eachWay(t, text, func(t *testing.T, folder string, r *results.Run) {
		for _, field := range []string{"u", "v"} {
			checkMoved(t, field, 23, readNPY(t, filepath.Join(folder, field+".npy")), domain.Vec{}, domain.Vec{12, 10, 8}, 1)
		}
		all := filepath.Join(folder, "all")
		checkMoved(t, "u", 0, readNPY(t, filepath.Join(all, "fields-u-000000000000.npy")), domain.Vec{0, 0, 4}, domain.Vec{12, 10, 1}, 1)
		checkMoved(t, "u", 23, readNPY(t, filepath.Join(all, "fields-u-000000000023.npy")), domain.Vec{0, 0, 4}, domain.Vec{12, 10, 1}, 1)
		for _, step := range []int{0, 10, 20} {
			for name, values := range readVTI(t, filepath.Join(all, fmt.Sprintf("part-%012d.vti", step))) {
				checkMoved(t, name, step, values, domain.Vec{2, 9, 0}, domain.Vec{3, 1, 4}, 2)
			}
		}
		for i, step := range []int{0, 8, 16} {
			for _, name := range []string{"u", "v"} {
				checkMoved(t, name, step, readZarr(t, filepath.Join(all, "fields.zarr", name), i), domain.Vec{}, domain.Vec{12, 10, 8}, 1)
				checkMoved(t, name, step, readZarr(t, filepath.Join(all, "coarse.zarr", name), i), domain.Vec{}, domain.Vec{4, 4, 3}, 3)
			}
		}
		var written []int
		for _, s := range r.Series {
			written = append(written, s.Written)
			if s.Bytes == 0 || s.Failed > 0 {
				t.Errorf("%+v", s)
			}
		}
		if !slices.Equal(written, []int{3, 3, 2, 3, 3}) {
			t.Errorf("written %v", written)
		}
		t.Run("vtk", func(t *testing.T) { test.Python(t, "vtk", seriesOfVTK, all) })
		t.Run("zarr", func(t *testing.T) { test.Python(t, "zarr", seriesOfZarr, all) })
	})
}

const formulas = `
import sys, os, numpy as np
k, j, i = np.meshgrid(np.arange(8), np.arange(10), np.arange(12), indexing="ij")
def u(n): return (i + n) % 12 + 100*j + 10000*k + 3*n
def v(n): return k - 2*((j + n) % 10)
`

const seriesOfVTK = formulas + `
import vtk, xml.etree.ElementTree as et
from vtk.util.numpy_support import vtk_to_numpy
sets = et.parse(os.path.join(sys.argv[1], "fields.pvd")).getroot().findall(".//DataSet")
assert [float(s.get("timestep")) for s in sets] == [0, 2.5, 5], [s.attrib for s in sets]
for n, s in zip([0, 10, 20], sets):
    name = os.path.join(sys.argv[1], s.get("file"))
    r = vtk.vtkXMLPImageDataReader() if name.endswith(".pvti") else vtk.vtkXMLImageDataReader()
    r.SetFileName(name)
    r.Update()
    image = r.GetOutput()
    assert image.GetDimensions() == (12, 10, 8) and image.GetOrigin() == (0, 0, -1.75), image
    assert image.GetSpacing() == (1, 1, 0.5), image
    for field, want in ("u", u(n)), ("v", v(n)):
        got = vtk_to_numpy(image.GetPointData().GetArray(field)).reshape(8, 10, 12)
        assert (got == want).all(), (field, n)
`

const seriesOfZarr = formulas + `
import zarr
g = zarr.open_group(os.path.join(sys.argv[1], "fields.zarr"), mode="r")
assert list(g["step"]) == [0, 8, 16] and list(g["time"]) == [0, 2, 4], (list(g["step"]), list(g["time"]))
assert list(g["z"])[:2] == [-1.75, -1.25] and list(g["x"]) == list(range(12)) and g["y"].metadata.dimension_names == ("y",)
assert g["u"].metadata.dimension_names == ("time", "z", "y", "x") and g.attrs["config"]["time"]["dt"] == 0.25
for at, n in enumerate([0, 8, 16]):
    assert (g["u"][at] == u(n)).all() and (g["v"][at] == v(n)).all(), n
assert (g["max_u"][1] == u(5)).all()
c = zarr.open_group(os.path.join(sys.argv[1], "coarse.zarr"), mode="r")
assert (c["u"][2] == u(16)[::3, ::3, ::3]).all() and list(c["x"]) == [0, 3, 6, 9]
`

// checkMoved compares values at every n-th point of a box with moved.
func checkMoved(t *testing.T, field string, step int, got []float64, lo, size domain.Vec, n int) {
	t.Helper()
	if int64(len(got)) != size.Product() {
		t.Fatalf("%s has %d values, not %v", field, len(got), size)
	}
	for at, v := range got {
		i, j, k := lo[0]+n*(at%size[0]), lo[1]+n*(at/size[0]%size[1]), lo[2]+n*(at/size[0]/size[1])
		if want := moved(field, step, i, j, k); v != want {
			t.Fatalf("%s after step %d at %d, %d, %d is %v, not %v", field, step, i, j, k, v, want)
		}
	}
}

func readNPY(t *testing.T, file string) []float64 {
	t.Helper()
	_, values, err := field.Read(file)
	test.Check(t, err)
	return values
}

func readZarr(t *testing.T, path string, level int) []float64 {
	t.Helper()
	a := test.Must(zarr.Open(path))(t)
	values := make([]float64, a.Size[0]*a.Size[1]*a.Size[2])
	box := domain.Box{Hi: domain.Vec(a.Size)}
	if a.Element == domain.Float64 {
		test.Check(t, zarr.ReadValues(a, values, level, box))
		return values
	}
	narrow := make([]float32, len(values))
	test.Check(t, zarr.ReadValues(a, narrow, level, box))
	for i, v := range narrow {
		values[i] = float64(v)
	}
	return values
}

// readVTI returns the arrays of a .vti file.
func readVTI(t *testing.T, file string) map[string][]float64 {
	t.Helper()
	head, data, _ := strings.Cut(string(content(t, file)), `<AppendedData encoding="raw">`+"\n_")
	all := map[string][]float64{}
	for _, m := range regexp.MustCompile(`type="(\w+)" Name="(\w+)" format="appended" offset="(\d+)"`).FindAllStringSubmatch(head, -1) {
		at := test.Must(strconv.Atoi(m[3]))(t)
		values := []byte(data[at+8:][:binary.LittleEndian.Uint64([]byte(data[at:]))])
		for len(values) > 0 {
			if m[1] == "Float32" {
				all[m[2]], values = append(all[m[2]], float64(math.Float32frombits(binary.LittleEndian.Uint32(values)))), values[4:]
			} else {
				all[m[2]], values = append(all[m[2]], math.Float64frombits(binary.LittleEndian.Uint64(values))), values[8:]
			}
		}
	}
	return all
}

// A run that continues from a checkpoint has the outputs of an unbroken one: what was written after its step is removed.
func TestOutputsContinue(t *testing.T) {
	text := moving + `checkpoint: {folder: "@/saved", every: {steps: 10}}
output:
  history: true
  statistics: {variance: [u], min: [v], every: 3, folder: "@/s"}
  probes: [{at: [5, 5, 0.25], every: 2, fields: [mean_u, u], file: "@/probes.csv"}]
  series: [{every: 4, folder: "@/f"}, {every: 4, folder: "@/f", format: zarr, fields: [u, mean_u]}, {every: 4, folder: "@/f", format: npy}]
`
	outputs := func(folder string) map[string]string {
		all := map[string]string{}
		for _, pattern := range []string{"s/*", "*.csv", "f/*.*vt?", "f/*.pvd", "f/*.npy", "f/*.zarr/*/c/*/*/*/*", "f/*.zarr/*/c/*"} {
			for _, name := range test.Must(filepath.Glob(filepath.Join(folder, pattern)))(t) {
				if info := test.Must(os.Stat(name))(t); !info.IsDir() {
					all[strings.TrimPrefix(name, folder)] = string(content(t, name))
				}
			}
		}
		return all
	}
	run := func(folder string, args ...string) *results.Run {
		record := filepath.Join(folder, "r.json")
		config := write(t, "c.yaml", strings.ReplaceAll(text, "@", folder))
		code, _, errs := cli(append([]string{"run", config, "--record", record}, args...)...)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
		return test.Must(results.Read(record))(t).Run
	}
	unbroken, folder := t.TempDir(), t.TempDir()
	whole := run(unbroken)
	run(folder, "--set", "stop.iterations=14")
	test.Check(t, os.RemoveAll(filepath.Join(folder, "saved", "step-000000000014")))
	r := run(folder, "--restart", "--set", "devices.count=2")
	want, got := outputs(unbroken), outputs(folder)
	if len(want) < 30 {
		t.Fatalf("%d outputs: %q", len(want), slices.Sorted(maps.Keys(want)))
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if got[name] != want[name] {
			t.Errorf("%s differs, of %d and %d bytes", name, len(got[name]), len(want[name]))
		}
	}
	if len(got) != len(want) || r.Samples != whole.Samples || !reflect.DeepEqual(r.History, whole.History) || r.RestartStep == nil || *r.RestartStep != 10 {
		t.Errorf("%d outputs of %d, %d samples of %d, restarted at %v", len(got), len(want), r.Samples, whole.Samples, r.RestartStep)
	}
}
