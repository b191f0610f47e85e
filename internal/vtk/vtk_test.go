package vtk_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/vtk"
)

// value is the number of an array at a point: another one for each.
func value(array int, p domain.Vec) int { return array*1_000_000 + (p[2]*100+p[1])*100 + p[0] }

// appendRow appends the values of a row as the machine stores them.
func appendRow(row []byte, a vtk.Array, array int, box domain.Box, y, z int) []byte {
	for x := box.Lo[0]; x < box.Hi[0]; x++ {
		v := value(array, domain.Vec{x, y, z})
		switch a.Element {
		case domain.Float32:
			row = binary.LittleEndian.AppendUint32(row, math.Float32bits(float32(v)))
		case domain.Float64:
			row = binary.LittleEndian.AppendUint64(row, math.Float64bits(float64(v)))
		case domain.Int32:
			row = binary.LittleEndian.AppendUint32(row, uint32(v))
		case domain.Int64:
			row = binary.LittleEndian.AppendUint64(row, uint64(v))
		case domain.Uint8:
			row = append(row, byte(v))
		}
	}
	return row
}

func writeImage(t *testing.T, path string, m vtk.Image, box domain.Box) {
	t.Helper()
	file := test.Must(files.Create(path))(t)
	e := test.Must(vtk.NewEncoder(file, m, box))(t)
	for i, a := range m.Arrays {
		for z := box.Lo[2]; z < box.Hi[2]; z++ {
			for y := box.Lo[1]; y < box.Hi[1]; y++ {
				test.Must(e.Write(appendRow(nil, a, i, box, y, z)))(t)
			}
		}
	}
	test.Check(t, e.Close(), file.Commit())
}

// cut divides a grid into pieces: each axis at a few points.
func cut(m vtk.Image, name string, at ...[]int) (pieces []vtk.Piece) {
	n := append(slices.Clone(m.Size), 1, 1)[:3]
	for len(at) < 3 {
		at = append(at, nil)
	}
	bounds := func(axis int) []int { return slices.Concat([]int{0}, at[axis], []int{n[axis]}) }
	for z := range len(at[2]) + 1 {
		for y := range len(at[1]) + 1 {
			for x := range len(at[0]) + 1 {
				var box domain.Box
				for axis, i := range []int{x, y, z} {
					box.Lo[axis], box.Hi[axis] = bounds(axis)[i], bounds(axis)[i+1]
				}
				pieces = append(pieces, vtk.Piece{Points: box, File: fmt.Sprintf("%s-%d.vti", name, len(pieces))})
			}
		}
	}
	return pieces
}

func extent(b domain.Box) string {
	return fmt.Sprintf(`Extent="%d %d %d %d %d %d"`, b.Lo[0], b.Hi[0]-1, b.Lo[1], b.Hi[1]-1, b.Lo[2], b.Hi[2]-1)
}

// reading defines, for scripts, a function that reads a file or a box of it with VTK.
const reading = `
import json, os, sys, xml.etree.ElementTree as tree
import numpy as np
from vtkmodules.vtkCommonCore import vtkCommand, vtkDataArray
from vtkmodules.vtkIOXML import vtkXMLImageDataReader, vtkXMLPImageDataReader
from vtkmodules.util.numpy_support import vtk_to_numpy

def read(path, extent=None):
    reader = vtkXMLPImageDataReader() if path.endswith(".pvti") else vtkXMLImageDataReader()
    messages = []
    reader.AddObserver(vtkCommand.ErrorEvent, lambda *a: messages.append(path))
    reader.SetFileName(path)
    if extent:
        reader.UpdateInformation()
        reader.UpdateExtent(extent)
    else:
        reader.Update()
    return reader.GetOutput(), messages
`

// VTK reads from files and from pieces the same values at the same coordinates, with a cell between all points. A file
// of which pieces share no points has holes.
func TestImagesReadByVTK(t *testing.T) {
	const script = reading + `
for c in json.load(open(sys.argv[1])):
    image, messages = read(c["path"])
    if c["holes"]:
        assert messages, c
        continue
    n = (c["size"] + [1, 1])[:3]
    h, o = (c["spacing"] + [1] * 3)[:3], (c["origin"] + [0] * 3)[:3]
    assert not messages and list(image.GetDimensions()) == n, (c, messages, image.GetDimensions())
    assert image.GetNumberOfCells() == np.prod([max(1, i - 1) for i in n]), (c, image.GetNumberOfCells())
    z, y, x = np.meshgrid(*(np.arange(i) for i in reversed(n)), indexing="ij")
    for i, v in enumerate((x, y, z)):
        at = np.array([image.GetPoint(p)[i] for p in range(image.GetNumberOfPoints())])
        assert (at == (o[i] + h[i] * v).ravel()).all(), (c, i)
    data = image.GetPointData()
    assert data.GetNumberOfArrays() == len(c["arrays"]) and data.GetScalars().GetName() == c["arrays"][0]["Name"]
    for i, a in enumerate(c["arrays"]):
        assert (data.GetArray(a["Name"]).GetInformation().Get(vtkDataArray.UNITS_LABEL()) or "") == a["Unit"], a
        got = vtk_to_numpy(data.GetArray(a["Name"]))
        want = (i * 1000000 + (z * 100 + y) * 100 + x).ravel().astype(a["Element"])
        assert got.dtype == want.dtype and (got == want).all(), (c, a)
times = [(float(d.get("timestep")), d.get("file")) for d in tree.parse(sys.argv[2]).getroot().iter("DataSet")]
assert times == [(0.1 + 0.2, "a b&<.pvti"), (1e-300, "sub/c.vti")], times
`
	arrays := []vtk.Array{{"u", domain.Float64, "m/s \"<&"}, {"<v & \"w\">", domain.Float32, ""}, {"n", domain.Int32, "K"},
		{"ü", domain.Int64, "K"}, {"b", domain.Uint8, ""}}
	dir := t.TempDir()
	var list []map[string]any
	add := func(path string, m vtk.Image, holes bool) {
		list = append(list, map[string]any{"path": path, "size": m.Size, "spacing": append([]float64{}, m.Spacing...),
			"origin": append([]float64{}, m.Origin...), "arrays": m.Arrays, "holes": holes})
	}
	for n, c := range []struct {
		image vtk.Image
		cuts  [][]int
	}{
		{vtk.Image{Size: []int{7}, Arrays: arrays[:1]}, [][]int{{3}}},
		{vtk.Image{Size: []int{1}, Arrays: arrays}, nil},
		{vtk.Image{Size: []int{6, 5}, Spacing: []float64{0.1, 0.3}, Origin: []float64{-1.5, 0.05}, Arrays: arrays},
			[][]int{{2, 3}, {4}}},
		{vtk.Image{Size: []int{1, 4}, Spacing: []float64{1, 1e-9}, Arrays: arrays[3:]}, [][]int{nil, {1, 2, 3}}},
		{vtk.Image{Size: []int{5, 6, 7}, Spacing: []float64{0.2, 1. / 3, 7}, Origin: []float64{1, 2, 3},
			Arrays: arrays},
			[][]int{{2}, {1, 3}, {3, 6}}},
		{vtk.Image{Size: []int{3, 1, 4}, Arrays: arrays[1:2]}, [][]int{{1}, nil, {3}}},
	} {
		whole := filepath.Join(dir, fmt.Sprintf("whole %d.vti", n))
		pieces := cut(c.image, fmt.Sprintf("p&%d", n), c.cuts...)
		writeImage(t, whole, c.image, domain.Box{Hi: domain.Vec(append(slices.Clone(c.image.Size), 1, 1)[:3])})
		add(whole, c.image, false)
		for _, p := range pieces {
			writeImage(t, filepath.Join(dir, p.File), c.image, p.Box(c.image))
		}
		path := filepath.Join(dir, fmt.Sprintf("pieces %d.pvti", n))
		test.Check(t, vtk.WritePieces(path, c.image, pieces))
		add(path, c.image, false)
		if len(pieces) > 1 { // as written without shared points
			text := string(test.Must(os.ReadFile(path))(t))
			for _, p := range pieces {
				text = strings.Replace(text, "Piece "+extent(p.Box(c.image)), "Piece "+extent(p.Points), 1)
			}
			path := filepath.Join(dir, fmt.Sprintf("holes %d.pvti", n))
			test.Check(t, os.WriteFile(path, []byte(text), 0o644))
			add(path, c.image, true)
		}
	}
	names, pvd := filepath.Join(dir, "cases.json"), filepath.Join(dir, "all.pvd")
	test.Check(t, os.WriteFile(names, test.Must(json.Marshal(list))(t), 0o644),
		vtk.WriteCollection(pvd, []vtk.Frame{{0.30000000000000004, "a b&<.pvti"}, {1e-300, "sub/c.vti"}}))
	test.Python(t, "vtkmodules", script, names, pvd)
}

// sparse leaves holes in a file where zeros are written.
type sparse struct {
	*os.File
	zeros []byte
}

func (s sparse) Write(data []byte) (int, error) {
	if len(data) <= len(s.zeros) && bytes.Equal(data, s.zeros[:len(data)]) {
		_, err := s.Seek(int64(len(data)), io.SeekCurrent)
		return len(data), err
	}
	return s.File.Write(data)
}

// Arrays may begin and end after more than 4 GiB.
func TestImageOfTenGigabytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.vti")
	file := sparse{test.Must(os.Create(path))(t), make([]byte, 1<<20)}
	m := vtk.Image{Size: []int{1024, 1024, 641}, Arrays: []vtk.Array{{"u", domain.Float64, "m/s \"<&"}, {"v", domain.Float64, ""}}}
	e := test.Must(vtk.NewEncoder(file, m, domain.Box{Hi: domain.Vec(m.Size)}))(t)
	ones := bytes.Repeat([]byte{0x3f}, 1<<20)
	for range m.Arrays {
		for range 8 * 640 {
			test.Must(e.Write(file.zeros))(t)
		}
		for range 8 {
			test.Must(e.Write(ones))(t)
		}
	}
	test.Check(t, e.Close(), file.Close())
	size := test.Must(os.Stat(path))(t).Size()
	if least := int64(2 * 8 * 641 << 20); size < least || size > least+2000 {
		t.Errorf("%d bytes, want %d and the text", size, least)
	}
	const script = reading + `
image, messages = read(sys.argv[1], [0, 1023, 0, 1023, 639, 640])
assert not messages and image.GetExtent() == (0, 1023, 0, 1023, 639, 640), (messages, image.GetExtent())
for name in "uv":
    got = vtk_to_numpy(image.GetPointData().GetArray(name)).view(np.uint64).reshape(2, -1)
    assert (got[0] == 0).all() and (got[1] == 0x3f3f3f3f3f3f3f3f).all(), got
`
	test.Python(t, "vtkmodules", script, path)
}

func TestEncoderCounts(t *testing.T) {
	m := vtk.Image{Size: []int{2, 2}, Arrays: []vtk.Array{{"u", domain.Float32, "m/s \"<&"}, {"n", domain.Uint8, "K"}}}
	encoder := func() *vtk.Encoder {
		return test.Must(vtk.NewEncoder(io.Discard, m, domain.Box{Hi: domain.Vec{2, 2, 1}}))(t)
	}
	e := encoder()
	test.Must(e.Write(make([]byte, 17)))(t)
	test.Says(t, e.Close(), "array 1 has 1 of 4 bytes")
	e = encoder()
	test.Says(t, test.ErrorOf(e.Write(make([]byte, 21))), "more values than points")
	test.Says(t, e.Close(), "more values than points")
	e = encoder()
	for range 20 {
		test.Must(e.Write(make([]byte, 1)))(t)
	}
	test.Check(t, e.Close())
}

func TestBadImages(t *testing.T) {
	good := func() vtk.Image {
		return vtk.Image{Size: []int{4, 4}, Arrays: []vtk.Array{{"u", domain.Float32, "m/s \"<&"}}}
	}
	box := func(lo, hi int) vtk.Piece {
		points := domain.Box{Lo: domain.Vec{lo, 0, 0}, Hi: domain.Vec{hi, 4, 1}}
		return vtk.Piece{Points: points, File: fmt.Sprintf("%d.vti", lo)}
	}
	for _, c := range []struct {
		name   string
		change func(*vtk.Image)
		pieces []vtk.Piece
		says   string
	}{
		{"axes", func(m *vtk.Image) { m.Size = nil }, nil, "number of axes: must be between 1 and 3, got 0"},
		{"points", func(m *vtk.Image) { m.Size[1] = 0 }, nil, "every axis must have at least 1 point"},
		{"bytes", func(m *vtk.Image) { m.Size = []int{1 << 40, 1 << 40} }, nil, "less than 2^63 bytes"},
		{"origin", func(m *vtk.Image) { m.Origin = []float64{1} }, nil, "origin: must have one entry per axis or none"},
		{"NaN", func(m *vtk.Image) { m.Origin = []float64{1, math.NaN()} }, nil, "origin: must be finite, got NaN"},
		{"spacing", func(m *vtk.Image) { m.Spacing = []float64{1, 0} }, nil, "spacing: must be above 0, got 0"},
		{"arrays", func(m *vtk.Image) { m.Arrays = nil }, nil, "arrays: must be at least one"},
		{"element", func(m *vtk.Image) { m.Arrays[0].Element = domain.Complex64 }, nil, "must be a real number"},
		{"name", func(m *vtk.Image) { m.Arrays[0].Name = "a\x00" }, nil, "must be a text of its own"},
		{"twice", func(m *vtk.Image) { m.Arrays = append(m.Arrays, m.Arrays[0]) }, nil, `of its own, got "u"`},
		{"outside", nil, []vtk.Piece{box(0, 3), box(3, 5)}, "piece 3.vti: must have points of the grid of 4 x 4"},
		{"overlap", nil, []vtk.Piece{box(0, 3), box(2, 4)}, "0.vti and 2.vti: both have the points [2,3)x[0,4)x[0,1)"},
		{"hole", nil, []vtk.Piece{box(0, 2), box(3, 4)}, "pieces: must have all points of the grid, 4 are missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, path := good(), filepath.Join(t.TempDir(), "a.pvti")
			if c.change != nil {
				c.change(&m)
				test.Says(t, test.ErrorOf(vtk.NewEncoder(io.Discard, m, domain.Box{Hi: domain.Vec{4, 4, 1}})), c.says)
			}
			test.Says(t, vtk.WritePieces(path, m, c.pieces), c.says)
			if _, err := os.Stat(path); err == nil {
				t.Error("a file was written")
			}
		})
	}
	for _, box := range []domain.Box{{}, {Hi: domain.Vec{4, 5, 1}}, {Lo: domain.Vec{-1}, Hi: domain.Vec{4, 4, 1}}} {
		test.Says(t, test.ErrorOf(vtk.NewEncoder(io.Discard, good(), box)), "box: must have points of the grid")
	}
}

// What a collection file holds is a list of frames or an error, and frames are read as they were written.
func FuzzCollection(f *testing.F) {
	path := filepath.Join(f.TempDir(), "a.pvd")
	test.Check(f, vtk.WriteCollection(path, []vtk.Frame{{-0.25, "a.vti"}, {1e300, "b/ü&.pvti"}}))
	f.Add(test.Must(os.ReadFile(path))(f))
	f.Add([]byte(`<VTKFile type="ImageData"/>`))
	f.Add([]byte(`<VTKFile type="Collection"><Collection><DataSet timestep="NaN" file="a"/></Collection></VTKFile>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "a.pvd")
		test.Check(t, os.WriteFile(path, data, 0o644))
		frames, err := vtk.ReadCollection(path)
		if err != nil {
			return
		}
		for i := range frames {
			frames[i].File = filepath.ToSlash(frames[i].File)
		}
		test.Check(t, vtk.WriteCollection(path, frames))
		again := test.Must(vtk.ReadCollection(path))(t)
		if !slices.Equal(again, frames) {
			t.Errorf("%v, then %v", frames, again)
		}
	})
}
