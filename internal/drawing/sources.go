package drawing

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/vtk"
	"github.com/halox/halox/internal/zarr"
	"github.com/halox/halox/results/field"
)

// A frame is a field at one time in a file, and what the file says about it.
type frame struct {
	path    string
	name    string  // of the field, or of the file if that is unknown
	unit    string  // "" if unknown
	step    int64   // less than 0 if unknown
	time    float64 // NaN if unknown
	size    []int
	origin  []float64 // coordinates of the first point; nil if unknown
	spacing []float64
	read    func(dst []float64, box domain.Box) error
}

// fieldEnds are the extensions of files with fields. Folders have them too: Zarr groups and checkpoints.
var fieldEnds = []string{".npy", ".vti", ".pvti", ".pvd", ".zarr"}

// isFolder reports whether there is a folder at a path.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// framesOf returns the frames of a file or a folder, of the field with a name, "" for the first.
func framesOf(path, name string) (all []frame, err error) {
	name, unnamed := name, fmt.Errorf("--field: %s has no names of fields, got %q", path, name)
	switch strings.ToLower(filepath.Ext(path)) {
	case ".npy":
		if name != "" {
			return nil, unnamed
		}
		one, err := npyFrame(path)
		return []frame{one}, err
	case ".vti", ".pvti":
		one, err := vtkFrame(path, name)
		return []frame{one}, err
	case ".pvd":
		list, err := vtk.ReadCollection(path)
		for _, f := range list {
			one, err := vtkFrame(filepath.Join(filepath.Dir(path), filepath.FromSlash(f.File)), name)
			if err != nil {
				return nil, err
			}
			one.time = f.Time
			all = append(all, one)
		}
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("%s has no frames", path)
		}
		return all, err
	}
	if steps := checkpoints(path); len(steps) > 0 {
		for _, step := range steps {
			some, err := zarrFrames(filepath.Join(path, step), name)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
		return all, nil
	}
	return zarrFrames(path, name)
}

// numbered is the name of a file with the step of its field.
var numbered = regexp.MustCompile(`^(.*?)[-_.]*([0-9]+)$`)

// stepOf returns the name of a file without its extension and its step, and the step; -1 for none.
func stepOf(path string) (name string, step int64) {
	name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if m := numbered.FindStringSubmatch(name); m != nil && m[1] != "" {
		if n, err := strconv.ParseInt(m[2], 10, 64); err == nil {
			return m[1], n
		}
	}
	return name, -1
}

// npyFrame describes a NumPy file, of which only the name is known.
func npyFrame(path string) (frame, error) {
	file, err := field.Open(path)
	if err != nil {
		return frame{}, err
	}
	f := frame{path: path, size: file.Size(), time: math.NaN()}
	f.name, f.step = stepOf(path)
	f.read = func(dst []float64, box domain.Box) error { return readBox(path, f.size, dst, box) }
	return f, file.Close()
}

// readBox reads a part of a NumPy file.
func readBox(path string, size []int, dst []float64, box domain.Box) error {
	file, err := field.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if !slices.Equal(file.Size(), size) {
		return fmt.Errorf("%s: the file has changed", path)
	}
	n := box.Size()[0]
	for z := box.Lo[2]; z < box.Hi[2]; z++ {
		for y := box.Lo[1]; y < box.Hi[1]; y++ {
			file.Row(dst[:n], domain.Vec{box.Lo[0], y, z})
			dst = dst[n:]
		}
	}
	return nil
}

// vtkFrame describes a field of an image of VTK.
func vtkFrame(path, name string) (frame, error) {
	r, err := vtk.Open(path)
	if err != nil {
		return frame{}, err
	}
	var names []string
	for _, a := range r.Arrays {
		names = append(names, a.Name)
	}
	number, err := choose(path, name, names)
	if err != nil {
		return frame{}, err
	}
	_, step := stepOf(path)
	return frame{path: path, name: names[number], unit: r.Arrays[number].Unit, step: step, time: math.NaN(), size: r.Size, origin: r.Origin,
		spacing: r.Spacing, read: func(dst []float64, box domain.Box) error { return r.Read(number, dst, box) }}, nil
}

// choose returns the number of a name, of the first for "".
func choose(path, name string, names []string) (int, error) {
	i := slices.Index(names, name)
	switch {
	case len(names) == 0:
		return 0, fmt.Errorf("%s has no fields", path)
	case name == "":
		return 0, nil
	case i < 0:
		return 0, fmt.Errorf("--field: must be one of %s in %s, got %q", strings.Join(names, ", "), path, name)
	}
	return i, nil
}

// checkpointName is the name of the folder of a checkpoint.
var checkpointName = regexp.MustCompile(`^step-([0-9]+)$`)

// checkpoints returns the names of the checkpoints in a folder.
func checkpoints(path string) (names []string) {
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if e.IsDir() && checkpointName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// zarrFrames describes a field of a Zarr group, which is a series or a checkpoint. Arrays named as coordinates are not
// fields: step and time, and x, y and z, which give the places of points.
func zarrFrames(path, name string) (all []frame, err error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	coordinates := []string{"x", "y", "z", "time", "step"}
	var names []string
	for _, e := range entries {
		_, missing := os.Stat(filepath.Join(path, e.Name(), "zarr.json"))
		if missing == nil && !slices.Contains(coordinates, e.Name()) {
			names = append(names, e.Name())
		}
	}
	number, err := choose(path, name, names)
	if err != nil {
		return nil, err
	}
	a, err := zarr.Open(filepath.Join(path, names[number]))
	if err != nil {
		return nil, err
	}
	one := frame{path: path, name: names[number], step: -1, time: math.NaN(), size: a.Size}
	if m := checkpointName.FindStringSubmatch(filepath.Base(path)); m != nil {
		one.step, _ = strconv.ParseInt(m[1], 10, 64)
	}
	for axis, n := range a.Size {
		at, err := numbersOf(filepath.Join(path, coordinates[axis]), n)
		if err != nil {
			return nil, err
		}
		if at == nil {
			one.origin, one.spacing = nil, nil
			break
		}
		h := 1.0
		if n > 1 {
			h = (at[n-1] - at[0]) / float64(n-1)
		}
		one.origin, one.spacing = append(one.origin, at[0]), append(one.spacing, h)
	}
	times, err := numbersOf(filepath.Join(path, "time"), -1)
	steps, wrong := numbersOf(filepath.Join(path, "step"), -1)
	if err = errors.Join(err, wrong); err != nil {
		return nil, err
	}
	for level := range a.Levels {
		one := one
		if level < len(times) {
			one.time = times[level]
		}
		if level < len(steps) {
			one.step = int64(steps[level])
		}
		one.read = func(dst []float64, box domain.Box) error { return readZarr(a, dst, level, box) }
		all = append(all, one)
	}
	if len(all) == 0 {
		err = fmt.Errorf("%s has no frames", path)
	}
	return all, err
}

// numbersOf returns the numbers of an array of one axis, nil if there is none. n is their number, -1 for any.
func numbersOf(path string, n int) ([]float64, error) {
	a, err := zarr.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(a.Size) != 1 || n >= 0 && a.Size[0] != n || a.Series {
		return nil, fmt.Errorf("%s: must be an array of %d numbers, got %v", path, n, a.Size)
	}
	values := make([]float64, a.Size[0])
	return values, readZarr(a, values, 0, domain.Box{Hi: domain.Vec{len(values), 1, 1}})
}

// readZarr reads numbers of an array as float64.
func readZarr(a *zarr.Array, dst []float64, level int, box domain.Box) error {
	if a.Element == domain.Float64 {
		return zarr.ReadValues(a, dst, level, box)
	}
	if a.Element != domain.Float32 {
		return fmt.Errorf("element: must be float32 or float64, got %q", a.Element)
	}
	narrow := make([]float32, len(dst))
	err := zarr.ReadValues(a, narrow, level, box)
	for i, v := range narrow {
		dst[i] = float64(v)
	}
	return err
}
