package vtk_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/vtk"
)

// What was written is read: whole, in parts, and from pieces of which each point is read once.
func TestOpen(t *testing.T) {
	arrays := []vtk.Array{{"u", domain.Float64, "m/s \"<&"}, {"<v & \"w\">", domain.Float32, ""}, {"n", domain.Int32, "K"}, {"ü", domain.Int64, "K"}}
	dir := t.TempDir()
	for name, m := range map[string]vtk.Image{
		"cube":  {Size: []int{6, 5, 4}, Origin: []float64{1, 2, 3}, Spacing: []float64{0.5, 0.25, 2}, Arrays: arrays},
		"plane": {Size: []int{6, 5}, Origin: []float64{1, 2}, Spacing: []float64{0.5, 0.25}, Arrays: arrays[:1]},
		"line":  {Size: []int{7}, Origin: []float64{3}, Spacing: []float64{3}, Arrays: arrays},
	} {
		grid := domain.Box{Hi: domain.Vec{1, 1, 1}}
		copy(grid.Hi[:], m.Size)
		single, several := filepath.Join(dir, name+".vti"), filepath.Join(dir, name+".pvti")
		writeImage(t, single, m, grid)
		pieces := cut(m, name, []int{2, 4}, []int{3}[:len(m.Size)/2], []int{1}[:len(m.Size)/3])
		for _, p := range pieces {
			writeImage(t, filepath.Join(dir, p.File), m, p.Box(m))
		}
		test.Check(t, vtk.WritePieces(several, m, pieces))
		last := pieces[len(pieces)-1]
		for _, path := range []string{single, several, filepath.Join(dir, last.File)} {
			r := test.Must(vtk.Open(path))(t)
			shift, want := domain.Vec{}, m
			if path != single && path != several { // a piece is a grid of its own
				box := last.Box(m)
				shift, want.Size, want.Origin = box.Lo, slices.Clone(m.Size), slices.Clone(m.Origin)
				for a := range m.Size {
					want.Size[a] = box.Size()[a]
					want.Origin[a] += float64(shift[a]) * m.Spacing[a]
				}
			}
			if !slices.Equal(r.Size, want.Size) || !slices.Equal(r.Origin, want.Origin) || !slices.Equal(r.Spacing, want.Spacing) || !slices.Equal(r.Arrays, want.Arrays) {
				t.Errorf("%s: %+v, want %+v", path, r.Image, want)
			}
			whole := domain.Box{Hi: domain.Vec{1, 1, 1}}
			copy(whole.Hi[:], r.Size)
			part := whole
			for a, n := range r.Size {
				part.Lo[a], part.Hi[a] = n/2, n
			}
			for _, box := range []domain.Box{whole, part} {
				for i := range r.Arrays {
					got := make([]float64, box.Points())
					test.Check(t, r.Read(i, got, box))
					for z := box.Lo[2]; z < box.Hi[2]; z++ {
						for y := box.Lo[1]; y < box.Hi[1]; y++ {
							for x := box.Lo[0]; x < box.Hi[0]; x++ {
								if want := float64(value(i, domain.Vec{x, y, z}.Add(shift))); got[0] != want {
									t.Fatalf("%s: array %d at (%d, %d, %d) is %v, want %v", path, i, x, y, z, got[0], want)
								}
								got = got[1:]
							}
						}
					}
				}
			}
		}
	}
	test.Check(t, os.Remove(filepath.Join(dir, "cube-0.vti")))
	r := test.Must(vtk.Open(filepath.Join(dir, "cube.pvti")))(t)
	if err := r.Read(0, make([]float64, 1), domain.Box{Hi: domain.Vec{1, 1, 1}}); err == nil || !strings.Contains(err.Error(), "cube-0.vti") {
		t.Errorf("a missing piece: %v", err)
	}
	text := string(test.Must(os.ReadFile(filepath.Join(dir, "plane.vti")))(t))
	for was, is := range map[string]string{
		"\n_": "\n", "UInt64": "UInt32", "LittleEndian": "BigEndian", "0 5 0 4 0 0": "0 5 0 99999 0 0", `offset="0"`: `offset="-9"`,
		"Float64": "Float128", "ImageData": "RectilinearGrid", "0.25": "x", "appended\"": "ascii\"", "0 5 0": "0 5 a",
	} {
		path := filepath.Join(dir, "bad.vti")
		test.Check(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, was, is)), 0o644))
		if _, err := vtk.Open(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q for %q: %v", is, was, err)
		}
	}
}
