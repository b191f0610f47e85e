package drawing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/vtk"
	"github.com/halox/halox/internal/zarr"
	"github.com/halox/halox/results/field"
)

// counted returns values that count the points of a frame.
func counted(from, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(from + i)
	}
	return values
}

// writeVTI writes an image of two fields, of which the second counts from 100.
func writeVTI(t *testing.T, path string, from int) {
	t.Helper()
	m := vtk.Image{Size: []int{4, 3}, Origin: []float64{1, 2}, Spacing: []float64{0.5, 0.25},
		Arrays: []vtk.Array{{Name: "u", Element: domain.Float64}, {Name: "v", Element: domain.Float32}}}
	file := test.Must(files.Create(path))(t)
	e := test.Must(vtk.NewEncoder(file, m, domain.Box{Hi: domain.Vec{4, 3, 1}}))(t)
	data := test.Must(binary.Append(nil, binary.LittleEndian, counted(from, 12)))(t)
	for _, v := range counted(from+100, 12) {
		data = test.Must(binary.Append(data, binary.LittleEndian, float32(v)))(t)
	}
	test.Must(e.Write(data))(t)
	test.Check(t, e.Close(), file.Commit())
}

// writeZarr writes an array, with levels that each count from 1000 more.
func writeZarr(t *testing.T, path string, size []int, e domain.Element, levels int, values func(level int) []float64) {
	t.Helper()
	a := test.Must(zarr.New(path, zarr.Spec{Size: size, Element: e, Series: levels > 0, Zstd: 1}))(t)
	for level := range max(1, levels) {
		test.Must(a.WriteShard(level, 0, func(dst []byte, box domain.Box) error {
			var numbers any = values(level)
			if e == domain.Float32 {
				var narrow []float32
				for _, v := range values(level) {
					narrow = append(narrow, float32(v))
				}
				numbers = narrow
			}
			_, err := binary.Encode(dst, binary.NativeEndian, numbers)
			return err
		}))(t)
	}
	if levels > 0 {
		a.Levels = levels
	}
	test.Must(a.Commit())(t)
}

// Fields are found in files and folders of all kinds, with what these know about coordinates, steps and times.
func TestFrames(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	npy := test.Must(field.NewWriter(at("u-000020.npy"), []int{3, 4}, domain.Float64))(t)
	test.Check(t, errors.Join(npy.Write(counted(0, 12)), npy.Close()))
	writeVTI(t, at("u-000030.vti"), 0)
	writeVTI(t, at("sub/b.vti"), 1000)
	test.Check(t, vtk.WriteCollection(at("u.pvd"), []vtk.Frame{{Time: 0.5, File: "u-000030.vti"}, {Time: 0.75, File: "sub/b.vti"}}))
	two := func(level int) []float64 { return counted(1000*level, 12) }
	writeZarr(t, at("s.zarr/u"), []int{4, 3}, domain.Float32, 2, two)
	writeZarr(t, at("s.zarr/v"), []int{4, 3}, domain.Float64, 2, func(level int) []float64 { return counted(1000*level+100, 12) })
	for name, list := range map[string][]float64{"x": {1, 1.5, 2, 2.5}, "y": {2, 2.25, 2.5}, "time": {0.5, 0.75}, "step": {10, 15}} {
		writeZarr(t, at("s.zarr/"+name), []int{len(list)}, domain.Float64, 0, func(int) []float64 { return list })
	}
	for _, step := range []int{7, 8} {
		writeZarr(t, at(fmt.Sprintf("checkpoints/step-%012d/u", step)), []int{4, 3}, domain.Float64, 0, func(int) []float64 { return counted(1000*(step-7), 12) })
	}
	test.Check(t, os.MkdirAll(at("empty"), 0o755), vtk.WriteCollection(at("empty.pvd"), nil))
	for _, tc := range []struct {
		path, field string
		want        string // of each frame: name, step, time, origin, spacing, value of point (1, 2)
	}{
		{"u-000020.npy", "", "u 20 NaN [] [] 9"},
		{"u-000030.vti", "", "u 30 NaN [1 2] [0.5 0.25] 9"},
		{"u-000030.vti", "v", "v 30 NaN [1 2] [0.5 0.25] 109"},
		{"u.pvd", "v", "v 30 0.5 [1 2] [0.5 0.25] 109; v -1 0.75 [1 2] [0.5 0.25] 1109"},
		{"s.zarr", "", "u 10 0.5 [1 2] [0.5 0.25] 9; u 15 0.75 [1 2] [0.5 0.25] 1009"},
		{"s.zarr", "v", "v 10 0.5 [1 2] [0.5 0.25] 109; v 15 0.75 [1 2] [0.5 0.25] 1109"},
		{"checkpoints", "", "u 7 NaN [] [] 9; u 8 NaN [] [] 1009"},
		{"checkpoints/step-000000000008", "u", "u 8 NaN [] [] 1009"},
	} {
		frames, err := framesOf(at(tc.path), tc.field)
		var got []string
		for _, f := range frames {
			value := make([]float64, 1)
			err = errors.Join(err, f.read(value, domain.Box{Lo: domain.Vec{1, 2}, Hi: domain.Vec{2, 3, 1}}))
			got = append(got, fmt.Sprintln(f.name, f.step, f.time, f.origin, f.spacing, value[0]))
			if fmt.Sprint(f.size) != "[4 3]" {
				t.Errorf("%s has size %v", tc.path, f.size)
			}
		}
		if all := strings.ReplaceAll(strings.Join(got, "; "), "\n", ""); all != tc.want || err != nil {
			t.Errorf("%s of %s: %s, want %s: %v", tc.field, tc.path, all, tc.want, err)
		}
	}
	for _, tc := range []struct{ path, field, want string }{
		{"u-000020.npy", "u", "has no names of fields"}, {"u.pvd", "w", "--field: must be one of u, v in " + at("u-000030.vti") + `, got "w"`},
		{"s.zarr", "x", "--field: must be one of u, v"}, {"empty", "", "has no fields"}, {"empty.pvd", "", "has no frames"},
		{"none.zarr", "", "no such file"}, {"none.vti", "", "no such file"},
	} {
		if _, err := framesOf(at(tc.path), tc.field); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s of %s: %v, want %s", tc.field, tc.path, err, tc.want)
		}
	}
}
